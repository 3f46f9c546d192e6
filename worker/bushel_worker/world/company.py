"""The ranks of one world together: the leader dials its followers, both ends prove the group's secret and
compare what must be the same, and then all join MLX's group. From then on a rank that goes takes the others
with it at once: MLX cannot form a group anew, and whoever waits for a dead rank in a collective may wait for
ever."""

import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from ..frames import Load
from ..memory import CacheCost, MemoryPlan
from ..pipeline.handshake import GroupMismatch, Identity, Joined
from ..pipeline.link import Activity, Inbox, Link, Message, PeerLost
from ..pipeline.ring import CannotConnect, _accepted, _dialled, _family
from ..pipeline.wire import WireError, read_message, send_message
from ..stage_rows import StageRows
from .backend import check, join
from .follower import Follower
from .leader import LeadingStage
from .lockstep import Lockstep

LOAD_SECONDS_MAX = 3600  # for the slowest rank to read its share; its agent is told of progress meanwhile
COMPARED_TOKENS = 4096  # a row of this length tells which rank's memory is the tightest

OnLost = Callable[[PeerLost], None]


class Company:
    def __init__(self, load: Load, group: Any, joined: list[Joined], on_lost: OnLost) -> None:
        self.load, self.group = load, group
        self.activity = Activity()
        self.inbox: Inbox = _WatchedInbox(lambda lost: self._part(lost, on_lost))
        self._links: list[Link] = []
        name, seconds = "following" if load.leads else "leading", load.limits.peer_timeout_ms_max / 1000
        self._links = [Link(name, peer, self.inbox, self.activity, seconds) for peer in joined]
        self._lockstep = None if group is None else Lockstep(group)

    def together(self, told: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Everyone waits here, on a socket, for the slowest; the leader hears what the followers tell."""
        if self.load.leads:
            heard = [self._hear()["told"] for _ in self._links]
            for link in self._links:
                link.send({"op": "together"})
            return heard
        self._links[0].send({"op": "together", "told": told or {}})
        self._hear()
        return []

    def tightest(self, plan: MemoryPlan) -> MemoryPlan:
        """The leader's plan, with no more room than every follower has for the same rows."""
        capacity = plan.capacity_bytes
        for told in self.together(asdict(plan)):
            other = MemoryPlan(**{**told, "costs": tuple(CacheCost(**cost) for cost in told["costs"])})
            scale = plan.row_bytes(COMPARED_TOKENS) / max(other.row_bytes(COMPARED_TOKENS), 1)
            capacity = min(capacity, int(other.capacity_bytes * scale))
        return replace(plan, capacity_bytes=capacity)

    def lead(self, rows: StageRows) -> LeadingStage:
        waits = self.load.stage_count > 1
        assert self._lockstep is not None
        return LeadingStage(rows, self._lockstep, self._links, self.activity, waits)

    def follow(self, rows: StageRows) -> Follower:
        assert self._lockstep is not None
        return Follower(rows, self._lockstep, self.activity)

    def _part(self, lost: PeerLost, on_lost: OnLost) -> None:
        """The others hear who was lost before they see this rank go."""
        for link in self._links:
            if link.peer.rank != lost.rank:
                link.part(lost)
        on_lost(lost)

    def _hear(self) -> dict[str, Any]:
        try:
            message = self.inbox.get(timeout=LOAD_SECONDS_MAX)
        except queue.Empty:
            raise CannotConnect(f"not all ranks of the world were ready within {LOAD_SECONDS_MAX} s") from None
        if isinstance(message, PeerLost):
            raise message
        return message.header


class _WatchedInbox(queue.SimpleQueue[Message | PeerLost]):
    """Tells of a lost rank when it is lost: nobody may be reading, because the engine waits for that rank."""

    def __init__(self, on_lost: OnLost) -> None:
        self._on_lost = on_lost

    def put(self, item: Message | PeerLost, block: bool = True, timeout: float | None = None) -> None:
        if isinstance(item, PeerLost):
            self._on_lost(item)
        super().put(item)


def assemble(load: Load, facts: dict[str, str], on_lost: OnLost) -> Company:
    """Raises CannotConnect, GroupMismatch or CannotJoin."""
    world = load.world
    if not load.secret:
        raise CannotConnect("the group has no secret")
    computes = load.engine == "mlx"
    if computes:
        check(world)
    facts = {**facts, "strategy": world.strategy, "ranks of the world": str(world.size), "backend": world.backend}
    facts["shares"] = ", ".join(f"{share:g}" for share in world.shares) or "equal"
    me = Identity(load.rank, load.stage_index, load.group, load.secret, facts)
    deadline = time.monotonic() + load.limits.connect_timeout_ms_max / 1000
    seconds = load.limits.peer_timeout_ms_max / 1000
    joined = _call(load, me, deadline, seconds) if load.leads else [_answer(load, me, deadline, seconds)]
    return Company(load, join(world) if computes else None, joined, on_lost)


def _call(load: Load, me: Identity, deadline: float, seconds: float) -> list[Joined]:
    found = load.links.followers
    if len(found) != load.world.size - 1:
        raise CannotConnect(f"rank {load.rank} leads {load.world.size - 1} others but was given {len(found)} addresses")
    never = threading.Event()
    joined = [_dialled(address, me, me.stage, deadline, seconds, never) for address in found]
    for index, peer in enumerate(joined):
        send_message(peer.socket, peer.sending, {"op": "begin", "rank": index + 1})
    return joined


def _answer(load: Load, me: Identity, deadline: float, seconds: float) -> Joined:
    """A follower begins when all others are there: MLX would wait for them without a deadline."""
    listen = load.links.listen
    if listen is None:
        raise CannotConnect(f"rank {load.rank} was given no address to listen at")
    try:
        door = socket.create_server(listen, family=_family(listen), backlog=8)
    except OSError as error:
        raise CannotConnect(f"rank {load.rank} cannot listen at {listen[0]}:{listen[1]}: {error.strerror}") from None
    with door:
        joined = _accepted(door, me, me.stage, deadline, seconds, threading.Event())
    joined.socket.settimeout(max(0.1, deadline - time.monotonic()))
    try:
        begin, _ = read_message(joined.socket, joined.receiving)
    except (OSError, WireError) as error:
        raise CannotConnect(f"the other ranks of the world did not come: {error}") from None
    if begin.get("rank") != load.world.rank:
        taken = f"rank {begin.get('rank')} of its world, not {load.world.rank}"
        raise GroupMismatch(f"{joined.peer} takes rank {load.rank} for {taken}")
    return joined
