"""A link to a neighbouring stage, once both ends trust each other. A thread reads, so that what comes is
taken from the network whatever the engine does; another sends beats, so that a neighbour that is only busy or
idle is told from one that is gone. A beat carries the engine's step counter: threads may beat on in a
process whose engine hangs."""

import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .handshake import Joined
from .wire import Tensor, WireError, read_message, send_message

BEATS_PER_TIMEOUT = 4


class PeerLost(Exception):
    """A neighbour cannot be reached, or makes no progress. `final`: it has refused to serve, and no other in its
    place would do better."""

    def __init__(self, link: str, rank: int, stage: int, reason: str, final: bool = False) -> None:
        super().__init__(f"rank {rank} (stage {stage}) was lost: {reason}")
        self.link, self.rank, self.stage, self.reason, self.final = link, rank, stage, reason, final


class Message(NamedTuple):
    header: dict[str, Any]
    tensor: Tensor | None


@dataclass
class Activity:
    """What this process's engine is doing, for beats and pulses; written by its thread alone."""

    step: int = 0
    busy: bool = False


Inbox = queue.SimpleQueue[Message | PeerLost]


class Link:
    def __init__(self, name: str, joined: Joined, inbox: Inbox, activity: Activity, timeout_seconds: float) -> None:
        self.name, self.peer, self._joined, self._inbox = name, joined.peer, joined, inbox
        self._activity, self._timeout = activity, timeout_seconds
        self._sending = threading.Lock()
        self._losing = threading.Lock()  # reader, beater and engine may notice at the same time
        self._lost: PeerLost | None = None
        self._on_lost: Callable[[PeerLost], None] = lambda lost: None
        self._closed = threading.Event()
        self.heard = 0  # messages and steps of the peer's engine: whether somebody behind it works
        joined.socket.settimeout(timeout_seconds)
        for work in (self._read, self._beat):
            threading.Thread(target=work, name=f"{name} {work.__name__}", daemon=True).start()

    def send(self, header: dict[str, Any], tensor: Tensor | None = None) -> None:
        if self._lost is not None:
            raise self._lost
        try:
            with self._sending:
                send_message(self._joined.socket, self._joined.sending, header, tensor)
        except OSError as error:
            raise self._lose(_reason(error, self._timeout)) from None

    def watch(self, on_lost: Callable[[PeerLost], None]) -> None:
        """Calls `on_lost` when the peer is lost; at once when it already is."""
        with self._losing:
            self._on_lost, lost = on_lost, self._lost
        if lost is not None:
            on_lost(lost)

    def part(self, lost: PeerLost) -> None:
        """Closes, but says first who was lost: the peer must not take this rank for the culprit."""
        if self._lost is None:
            try:
                self._joined.socket.settimeout(min(1.0, self._timeout))
                told = {"rank": lost.rank, "stage": lost.stage, "reason": lost.reason, "final": lost.final}
                self.send({"op": "parting", **told})
            except (PeerLost, OSError):  # the peer was quicker, and the reader has closed the socket meanwhile
                pass
        self.close()

    def close(self) -> None:
        self._closed.set()
        try:
            self._joined.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._joined.socket.close()

    def _read(self) -> None:
        step, since = -1, time.monotonic()
        while True:
            try:
                header, tensor = read_message(self._joined.socket, self._joined.receiving)
            except (OSError, WireError, ValueError, KeyError, TypeError) as error:
                self._lose(_reason(error, self._timeout))
                return
            now = time.monotonic()
            if header.get("op") == "parting":
                self._lose(header["reason"], header["rank"], header["stage"], header["final"])
                return
            if header.get("op") != "beat":
                self.heard += 1
                self._inbox.put(Message(header, tensor))
                since = now
            elif not header["busy"] or header["step"] != step:
                self.heard += header["step"] != step
                step, since = header["step"], now
            elif now - since > self._timeout:
                self._lose(f"it has work but has made no step for {now - since:.1f} s")
                return

    def _beat(self) -> None:
        while not self._closed.wait(self._timeout / BEATS_PER_TIMEOUT) and self._lost is None:
            activity = self._activity
            try:
                self.send({"op": "beat", "step": activity.step, "busy": activity.busy})
            except PeerLost:
                return

    def _lose(
        self, reason: str, rank: int | None = None, stage: int | None = None, final: bool = False
    ) -> PeerLost:
        with self._losing:
            if self._lost is not None:
                return self._lost
            known = (self.peer.rank, self.peer.stage) if rank is None or stage is None else (rank, stage)
            lost = self._lost = PeerLost(self.name, *known, reason, final)
            on_lost = self._on_lost
        if not self._closed.is_set():
            self._inbox.put(lost)
            on_lost(lost)
            self.close()
        return lost


def _reason(error: Exception, timeout_seconds: float) -> str:
    if isinstance(error, TimeoutError):
        return f"nothing was heard for {timeout_seconds:g} s"
    if isinstance(error, (BrokenPipeError, ConnectionResetError)):
        return "it closed the connection"
    return str(error) or type(error).__name__
