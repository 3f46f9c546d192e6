"""The life of a rank that leads a stage of a pipeline: it finds its neighbours, loads its layers, and then
serves, as the head or as a later stage."""

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..canary import one_token
from ..checks import FrameError
from ..folder import ModelRefused, check_folder
from ..frames import FrameWriter, Load, links_of, parse_line
from ..intake import Intake, refuse_line
from ..loop import Loop
from ..memory import CacheCost, GroupMemory, MemoryPlan
from ..reporting import guarded, ready_frame
from ..rows import Row
from ..service import Service
from ..world.member import assembled
from .handshake import GroupMismatch, Identity
from .head import PipelineEngine
from .link import Activity, PeerLost
from .ring import CannotConnect, Deadlines, Ring, connect
from .service import StageService
from .work import Work

Progress = Callable[[str, float, float], None]


@dataclass(frozen=True)
class Prepared:
    """What a rank brings to its group, MLX or scripted."""

    work: Work
    facts: dict[str, Any]
    memory: MemoryPlan
    device: str
    versions: dict[str, str]
    head_service: Callable[[PipelineEngine, int], Service]  # given the width of the logits, on the head alone


@dataclass(frozen=True)
class Kind:
    """How ranks of one engine are made."""

    facts: Callable[[], dict[str, str]]  # that must be the same everywhere
    prepare: Callable[[Progress], Prepared]


class Member:
    def __init__(self, load: Load, kind: Kind, lines: "queue.SimpleQueue[bytes]", out: FrameWriter) -> None:
        self._load, self._kind, self._lines, self._out = load, kind, lines, out
        self._activity = Activity()
        self._relinks: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._began = time.monotonic()

    def run(self) -> None:
        """Raises CannotConnect, GroupMismatch, ModelRefused or PeerLost."""
        load = self._load
        self._progress("connect", 0, 1)
        ring = self._connect()
        self._progress("connect", 1, 1)
        try:
            prepared = self._kind.prepare(self._progress)
            if load.first:
                self._lead(ring, prepared)
            else:
                self._follow(ring, prepared)
        except ModelRefused as refused:  # the others need not wait for anyone in this one's place
            ring.part(PeerLost("", load.rank, load.stage_index, f"it refuses: {refused}", final=True))
            raise

    def _lead(self, ring: Ring, prepared: Prepared) -> None:
        load = self._load
        kept = prepared.facts["keptBytesMax"]
        engine = PipelineEngine(prepared.work, ring, load.stage_count, self._activity, kept)
        engine.on_wait = lambda _: self._progress("connect", 1, 1)
        stages = engine.gather(prepared.facts)
        service = as_group(prepared.head_service(engine, stages[-1]["vocabulary"]), stages)
        loaded = time.monotonic()
        self._progress("canary", 0, 1)
        if not one_token(service):
            raise ModelRefused("the model was loaded but gave no token with a probability; its weights may be damaged")
        self._progress("canary", 1, 1)
        loop = service.loop(self._out.send)
        intake = Intake(service, loop, self._out, self._relinks.put)
        tried = time.monotonic()
        self._out.send(ready_frame(service, (loaded - self._began) * 1000, (tried - loaded) * 1000))
        threading.Thread(target=guarded, args=(lambda: intake.run(self._lines), self._out), daemon=True).start()
        self._watch(engine, loop)
        while True:
            try:
                loop.run()
            except PeerLost as lost:
                self._recover(engine, loop, service, lost)

    def _watch(self, engine: PipelineEngine, loop: Loop) -> None:
        """A loss wakes the head though it has nothing to do; of a ring that has been replaced it means nothing."""
        ring = engine.ring

        def raise_if_current(lost: PeerLost) -> None:
            if engine.ring is ring:
                raise lost

        for link in (ring.inward, ring.outward):
            link.watch(lambda lost: loop.orders.put(("lost", lambda: raise_if_current(lost))))

    def _recover(self, engine: PipelineEngine, loop: Loop, service: Service, lost: PeerLost) -> None:
        """Until the ring holds and every row goes on."""
        began, cause = time.monotonic(), f"rank {lost.rank} of its group was lost: {lost.reason}"
        while True:
            ring, formation = self._relink(engine.ring, lost)
            whole = time.monotonic()
            told = {"tokensReplayed": 0, "rowsAnew": 0}
            paused: list[str] = []

            def recover(wanted: dict[Row, int]) -> set[Row]:
                chunk = max(1, int(service.tokens_per_second * self._load.limits.chunk_ms_max / 2000))
                anew, again = engine.recover(ring, wanted, min(chunk, 1024))
                told.update(tokensReplayed=again, rowsAnew=len(anew))
                paused.extend(row.attempt for row in wanted)
                return anew

            try:
                loop.resume(recover)
            except PeerLost as again:
                engine.ring, lost = ring, again
                continue
            self._watch(engine, loop)
            self._out.send({"kind": "relinked", "formation": formation, **told})
            if paused:
                waited, reworked = (round(seconds * 1000, 1) for seconds in (whole - began, time.monotonic() - whole))
                pause = {"cause": cause, "waitedMs": waited, "reworkedMs": reworked}
                self._out.send({"kind": "paused", "attempts": paused, "pause": pause})
            return

    def _follow(self, ring: Ring, prepared: Prepared) -> None:
        load, memory = self._load, prepared.memory
        service = StageService(
            prepared.work, load.stage_index, load.last, prepared.facts, self._activity, self._out.send
        )
        self._out.send(
            {
                "kind": "ready",
                "pid": os.getpid(),
                "device": prepared.device,
                "versions": prepared.versions,
                "contextTokens": min(prepared.facts["contextTokens"], memory.tokens_max()),
                "vocabulary": prepared.facts["vocabulary"],
                "rowsMax": load.limits.rows_max,
                "weightsBytes": memory.weights_bytes,
                "kvBytesPerToken": memory.per_token,
                "batching": "merged" if prepared.facts["merging"] else "separate",
                "loadMs": round((time.monotonic() - self._began) * 1000, 1),
                "canaryMs": 0,
                "abilities": {"chat": False, "tools": False, "reasoning": False},
            }
        )
        threading.Thread(target=guarded, args=(self._listen, self._out), daemon=True).start()
        while True:
            try:
                service.run(ring)
            except PeerLost as lost:
                ring, formation = self._relink(ring, lost)
                told = {"formation": formation, "tokensReplayed": 0, "rowsAnew": 0}
                self._out.send({"kind": "relinked", **told})

    def _listen(self) -> None:
        """The agent of a later stage has little to say."""
        while True:
            line = self._lines.get()
            if not line.strip():
                continue
            try:
                frame = parse_line(line)
            except FrameError as error:
                refuse_line(self._out, line, str(error))
                continue
            if frame["kind"] == "close":
                os._exit(0)
            if frame["kind"] == "relink":
                self._relinks.put(frame)
            else:
                refuse_line(self._out, line, f"a frame of kind {frame['kind']} is not for a stage after the first")

    def _relink(self, ring: Ring, lost: PeerLost) -> tuple[Ring, int]:
        """Weights and caches stay; the agent is told, and says where the neighbours are now. Raises `lost` when it
        does not in time."""
        ring.part(lost)
        if lost.final:
            raise lost
        self._activity.busy = False
        while True:
            self._out.send({"kind": "peer-lost", "rank": lost.rank, "reason": lost.reason})
            try:
                frame = self._relinks.get(timeout=self._load.limits.relink_wait_ms_max / 1000)
                while not self._relinks.empty():
                    frame = self._relinks.get()
            except queue.Empty:
                raise lost from None
            layers = frame.get("layers")
            if layers is not None and tuple(layers) != self._load.layers:
                raise CannotConnect(
                    f"rank {self._load.rank} holds layers {self._load.layers} and cannot take {tuple(layers)} instead"
                )
            links = links_of(frame["links"])
            self._load = replace(self._load, plan=frame["plan"], links=links, secret=frame["secret"])
            try:
                return self._connect(), frame["formation"]
            except (CannotConnect, GroupMismatch) as alone:  # a neighbour may still be at an earlier forming
                lost = PeerLost("next", lost.rank, lost.stage, str(alone))

    def _connect(self) -> Ring:
        load = self._load
        listen, dial = load.links.listen, load.links.back if load.last else load.links.next
        if listen is None or dial is None:
            missing = "address to listen at" if listen is None else "address of the next stage"
            raise CannotConnect(f"rank {load.rank} was given no {missing}")
        if not load.secret:
            raise CannotConnect("the group has no secret")
        me = Identity(load.rank, load.stage_index, load.group, load.secret, {**self._kind.facts(), "plan": load.plan})
        deadlines = Deadlines(load.limits.connect_timeout_ms_max / 1000, load.limits.peer_timeout_ms_max / 1000)
        return connect(me, load.stage_count, listen, dial, self._activity, deadlines)

    def _progress(self, phase: str, done: float, total: float) -> None:
        self._out.send({"kind": "progress", "phase": phase, "attempt": None, "done": done, "total": total})


def kind_of(load: Load, out: FrameWriter) -> Kind:
    if load.engine == "scripted":
        from .scripted_work import scripted_kind

        return scripted_kind(load)
    return mlx_kind(load, out)


def mlx_kind(load: Load, out: FrameWriter) -> Kind:
    """Imports MLX, and finds the rest of this stage's world where there is one: before the neighbours are there,
    because both keep threads from beating."""
    config = check_folder(Path(load.model_path))
    from ..hub_language import HubLanguage
    from ..loading import device_name, dtype_name, load_stage, open_tokenizer, versions
    from .mlx_work import MlxWork

    tokenizer = open_tokenizer(load, config) if load.first else None
    company = assembled(load, out) if load.world.size > 1 else None

    def facts() -> dict[str, str]:
        known = versions()
        return {**common_facts(load), "dtype": dtype_name(load.dtype), "mlx": known["mlx"], "mlx-lm": known["mlx-lm"]}

    def prepare(progress: Progress) -> Prepared:
        loaded = load_stage(load, config, progress, company)

        def head_service(engine: PipelineEngine, vocabulary: int) -> Service:
            return Service(
                engine=engine,
                language=HubLanguage(tokenizer, vocabulary),
                memory=loaded.memory,
                limits=load.limits,
                context_tokens=loaded.context_tokens,
                merging=loaded.merging,
                reading_together=loaded.together,
                tokens_per_second=loaded.tokens_per_second,
                device=device_name(loaded.on_cpu),
                versions=versions(),
                canary=[min(vocabulary - 1, 5), min(vocabulary - 1, 7)],
            )

        return Prepared(
            work=MlxWork(loaded.port, loaded.on_cpu),
            facts=loaded.facts(),
            memory=loaded.memory,
            device=device_name(loaded.on_cpu),
            versions=versions(),
            head_service=head_service,
        )

    return Kind(facts, prepare)


def common_facts(load: Load) -> dict[str, str]:
    from .. import VERSION

    return {
        "engine": load.engine,
        "model": load.model_name,
        "model digest": load.model_digest,
        "plan": load.plan,
        "number of stages": str(load.stage_count),
        "worker": VERSION,
    }


def as_group(service: Service, stages: list[dict[str, Any]]) -> Service:
    """The head's service, made to respect what the other stages can do. `stages` in order, the head first."""
    for before, after in zip(stages, stages[1:]):
        if before["layers"][1] != after["layers"][0]:
            raise ModelRefused(
                f"the split does not add up: one stage ends before layer {before['layers'][1]} and the next begins "
                f"with layer {after['layers'][0]}"
            )
    own = service.memory
    others = tuple(_plan(stage["memory"]) for stage in stages[1:])
    return replace(
        service,
        memory=GroupMemory(
            own.capacity_bytes, own.weights_bytes, own.working_bytes, own.costs, own.score_bytes, others=others
        ),
        merging=all(stage["merging"] for stage in stages),
        reading_together=all(stage["together"] for stage in stages),
        tokens_per_second=min(stage["tokensPerSecond"] for stage in stages),
        context_tokens=min(stage["contextTokens"] for stage in stages),
        trims=all(stage.get("trims", False) for stage in stages),
        spread=len(stages),
    )


def _plan(told: dict[str, Any]) -> MemoryPlan:
    return MemoryPlan(**{**told, "costs": tuple(CacheCost(**cost) for cost in told["costs"])})
