"""Before a byte of state crosses a socket, both ends prove that they know the group's secret and find that
they are of one mind: the same group, plan, model and versions. A difference is named by both."""

import hmac
import json
import os
import socket
import time
from dataclasses import dataclass
from typing import Any

from .wire import LENGTHS, Seal, read_exactly, read_message, send_message

PROTOCOL = "bushel-stage/1"
GREETING_BYTES_MAX = 4096  # nothing longer is read from someone who has proved nothing


class GroupMismatch(Exception):
    """What differs between two ranks of a group, in one sentence."""


class NotOurs(Exception):
    """Who dialled does not know the group's secret, or is no rank."""


@dataclass(frozen=True)
class Identity:
    rank: int
    stage: int
    group: str
    secret: str
    facts: dict[str, str]  # what must be the same on every rank, by the name that a person knows it under


@dataclass(frozen=True)
class Peer:
    rank: int
    stage: int

    def __str__(self) -> str:
        return f"rank {self.rank} (stage {self.stage})"


@dataclass(frozen=True)
class Joined:
    """A connection whose ends trust each other."""

    socket: socket.socket
    peer: Peer
    sending: Seal
    receiving: Seal


def shake_hands(connection: socket.socket, me: Identity, expected_stage: int, dialled: bool, seconds: float) -> Joined:
    """`dialled`: whether this end has dialled. Raises NotOurs, GroupMismatch or OSError."""
    deadline = time.monotonic() + seconds
    nonce = os.urandom(16).hex()
    _say(connection, {"speaks": PROTOCOL, "rank": me.rank, "stage": me.stage, "nonce": nonce}, deadline)
    greeting = _hear(connection, deadline)
    if greeting.get("speaks") != PROTOCOL:
        raise NotOurs(f"it does not speak {PROTOCOL}")
    try:
        peer = Peer(int(greeting["rank"]), int(greeting["stage"]))
        dialler, listener = ((nonce, greeting["nonce"]) if dialled else (greeting["nonce"], nonce))
        ends = (me.rank, peer.rank) if dialled else (peer.rank, me.rank)
        talk = json.dumps([PROTOCOL, me.group, str(dialler), str(listener), *ends])
    except (KeyError, TypeError, ValueError):
        raise NotOurs("its greeting cannot be read") from None

    def key(purpose: str) -> bytes:
        return hmac.digest(me.secret.encode(), f"{purpose} {talk}".encode(), "sha256")

    mine, theirs = ("dials", "listens") if dialled else ("listens", "dials")
    # Who dials proves itself first: a listener tells strangers nothing.
    if dialled:
        _say(connection, {"proof": key(mine).hex()}, deadline)
    proof = _hear(connection, deadline)
    if not hmac.compare_digest(str(proof.get("proof")), key(theirs).hex()):
        if not dialled:
            _say(connection, {"refused": "secret"}, deadline)
        raise NotOurs(f"{peer} does not know this group's secret")
    if not dialled:
        _say(connection, {"proof": key(mine).hex()}, deadline)

    joined = Joined(connection, peer, Seal(key(f"from the one who {mine}")), Seal(key(f"from the one who {theirs}")))
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    send_message(connection, joined.sending, {"facts": me.facts})
    told, _ = read_message(connection, joined.receiving)
    if peer.stage != expected_stage:
        raise GroupMismatch(f"{peer} was reached where stage {expected_stage} should be")
    compare(me.facts, told["facts"], peer, me.rank)
    return joined


def compare(mine: dict[str, str], theirs: dict[str, str], peer: Peer, rank: int) -> None:
    differing = [
        f"{name} is {theirs.get(name, 'not known')!s} on {peer} but {mine.get(name, 'not known')!s} on rank {rank}"
        for name in sorted({*mine, *theirs})
        if mine.get(name) != theirs.get(name)
    ]
    if differing:
        raise GroupMismatch("; ".join(differing))


def _say(connection: socket.socket, message: dict[str, Any], deadline: float) -> None:
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    data = json.dumps(message).encode()
    connection.sendall(LENGTHS.pack(len(data), 0) + data)


def _hear(connection: socket.socket, deadline: float) -> dict[str, Any]:
    size, _ = LENGTHS.unpack(read_exactly(connection, LENGTHS.size, deadline))
    if size > GREETING_BYTES_MAX:
        raise NotOurs(f"it greeted with {size} bytes")
    try:
        heard = json.loads(bytes(read_exactly(connection, size, deadline)))
    except ValueError:
        raise NotOurs("its greeting is not JSON") from None
    if not isinstance(heard, dict):
        raise NotOurs("its greeting is no object")
    return heard
