"""Finds a rank's two neighbours: it listens for the one before it and dials the one after it, at the same
time, until both are there or the deadline has passed."""

import socket
import threading
import time
from dataclasses import dataclass

from .handshake import GroupMismatch, Identity, Joined, NotOurs, shake_hands
from .link import Activity, Inbox, Link, PeerLost

DIAL_AGAIN_SECONDS = 0.1


class CannotConnect(Exception):
    """Why a rank found no neighbour, in one sentence."""


@dataclass(frozen=True)
class Deadlines:
    connect_seconds: float  # for the neighbours to be there
    peer_seconds: float  # for every wait after that


@dataclass(frozen=True)
class Ring:
    """`inward` brings operations (results, to the head); what this rank makes of them goes `outward`."""

    inbox: Inbox
    inward: Link
    outward: Link

    def part(self, lost: PeerLost) -> None:
        self.inward.part(lost)
        self.outward.part(lost)

    def close(self) -> None:
        self.inward.close()
        self.outward.close()


Endpoint = tuple[str, int]


def connect(
    me: Identity, stages: int, listen: Endpoint, dial: Endpoint, activity: Activity, deadlines: Deadlines
) -> Ring:
    before, after = (me.stage - 1) % stages, (me.stage + 1) % stages
    deadline = time.monotonic() + deadlines.connect_seconds
    try:
        door = socket.create_server(listen, family=_family(listen), backlog=8)
    except OSError as error:
        raise CannotConnect(f"rank {me.rank} cannot listen at {listen[0]}:{listen[1]}: {error.strerror}") from None
    found: dict[str, Joined | Exception] = {}
    given_up = threading.Event()

    def accept() -> None:
        try:
            found["inward"] = _accepted(door, me, before, deadline, deadlines.peer_seconds, given_up)
        except Exception as error:
            found["inward"] = error
            given_up.set()

    thread = threading.Thread(target=accept, name="accept", daemon=True)
    thread.start()
    try:
        found["outward"] = _dialled(dial, me, after, deadline, deadlines.peer_seconds, given_up)
    except Exception as error:
        found["outward"] = error
        given_up.set()
    thread.join()
    door.close()
    failures = [entry for entry in found.values() if isinstance(entry, Exception)]
    for failure in sorted(failures, key=lambda error: not isinstance(error, GroupMismatch)):
        for entry in found.values():
            if isinstance(entry, Joined):
                entry.socket.close()
        raise failure
    inbox: Inbox = Inbox()
    links = []
    for name in ("inward", "outward"):
        joined = found[name]
        assert isinstance(joined, Joined)
        joined.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages must not wait
        label = "previous" if name == "inward" else "next"
        links.append(Link(label, joined, inbox, activity, deadlines.peer_seconds))
    return Ring(inbox, *links)


def _accepted(
    door: socket.socket, me: Identity, before: int, deadline: float, seconds: float, given_up: threading.Event
) -> Joined:
    """Strangers are turned away and not counted: a port scan must not end a group."""
    refused = ""
    while time.monotonic() < deadline and not given_up.is_set():
        door.settimeout(0.2)
        try:
            connection, _ = door.accept()
        except TimeoutError:
            continue
        try:
            return shake_hands(connection, me, before, False, seconds)
        except GroupMismatch:
            connection.close()
            raise
        except (NotOurs, OSError, ValueError, KeyError) as error:
            refused = f"; one came and was turned away: {error}"
            connection.close()
    raise CannotConnect(f"stage {before} did not reach rank {me.rank} in time{refused}")


def _dialled(
    dial: Endpoint, me: Identity, after: int, deadline: float, seconds: float, given_up: threading.Event
) -> Joined:
    last = ""
    while time.monotonic() < deadline and not given_up.is_set():
        try:
            connection = socket.create_connection(dial, timeout=min(seconds, max(0.1, deadline - time.monotonic())))
        except OSError as error:
            last = f": {error.strerror or error}"
            given_up.wait(DIAL_AGAIN_SECONDS)
            continue
        try:
            return shake_hands(connection, me, after, True, max(seconds, deadline - time.monotonic()))
        except NotOurs as error:
            connection.close()
            raise GroupMismatch(f"stage {after} at {dial[0]}:{dial[1]} was refused: {error}") from None
        except GroupMismatch:
            connection.close()
            raise
        except (OSError, ValueError, KeyError) as error:
            last = f": {error}"
            connection.close()
            given_up.wait(DIAL_AGAIN_SECONDS)
    raise CannotConnect(f"rank {me.rank} did not reach stage {after} at {dial[0]}:{dial[1]} in time{last}")


def _family(address: Endpoint) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET
