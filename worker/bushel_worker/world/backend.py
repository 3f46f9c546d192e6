"""Joins MLX's own group of ranks, over ring, JACCL or NCCL. MLX reads its environment once, at init, keeps one
group for each backend for the life of the process, and can wait in init for ever with Python's lock held, so
nothing of ours would run: a timer outside Python ends the process then."""

import faulthandler
import json
import os
import socket
import tempfile
import time

import mlx.core as mx

from ..frames import World
from .errors import CannotJoin
from .slices import Group

INIT_SECONDS_MAX = 45  # ring's own retries end after 31
ORDER_SECONDS = 0.05  # ring's last rank dials first; when it comes too early it sleeps for a second


def check(world: World) -> None:
    """What can be known before anybody is called: that the backend is there and its ports are free."""
    if not mx.distributed.is_available(world.backend):
        raise CannotJoin(f"MLX on this machine has no {world.backend} backend")
    if world.backend == "ring":
        _try_ports(world)


def join(world: World) -> Group:
    if world.backend == "ring" and world.rank == world.size - 1:
        time.sleep(ORDER_SECONDS)
    written: list[str] = []
    faulthandler.dump_traceback_later(INIT_SECONDS_MAX, exit=True)
    try:
        os.environ.update(world.env)
        for name, content in world.files.items():
            os.environ[name] = _write(content, written)
        group = mx.distributed.init(strict=True, backend=world.backend)
    except (RuntimeError, ValueError) as error:
        raise CannotJoin(f"{world.backend} cannot start: {str(error).strip()[:200]}") from None
    finally:
        faulthandler.cancel_dump_traceback_later()
        for path in written:
            os.unlink(path)
    if (group.rank(), group.size()) != (world.rank, world.size):
        found = f"rank {group.rank()} of {group.size()}"
        raise CannotJoin(f"{world.backend} made this {found}, not rank {world.rank} of {world.size}")
    return group


def _write(content: str, written: list[str]) -> str:
    """To a file that nobody else can read; it is only needed during init."""
    handle, path = tempfile.mkstemp(prefix="bushel-world-")
    written.append(path)
    with os.fdopen(handle, "w") as file:
        file.write(content)
    return path


def _try_ports(world: World) -> None:
    """Ring tells of a taken port in a way that names nothing."""
    try:
        own = json.loads(world.files["MLX_HOSTFILE"])[world.rank]
        addresses = [(host, int(port)) for host, port in (entry.rsplit(":", 1) for entry in own)]
    except (KeyError, ValueError, IndexError, TypeError, AttributeError):
        raise CannotJoin(f"the list of addresses for ring says nothing usable about rank {world.rank}") from None
    for address in addresses:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(address)
            except OSError as error:
                raise CannotJoin(f"{address[0]}:{address[1]} cannot be used for ring: {error.strerror}") from None
