"""The life of a rank in a world: as the leader of a whole model, or as a follower of any stage's leader. (A
leader of one stage of several lives as a member of the pipeline.)"""

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..canary import one_token
from ..checks import FrameError
from ..folder import ModelRefused, check_folder
from ..frames import FrameWriter, Load, parse_line
from ..intake import Intake, refuse_line
from ..reporting import die, guarded, ready_frame

PULSE_SECONDS = 0.2
NAMED_SECONDS = 1.0


class WorldMember:
    def __init__(self, load: Load, lines: "queue.SimpleQueue[bytes]", out: FrameWriter) -> None:
        self._load, self._lines, self._out = load, lines, out
        self._began = time.monotonic()

    def run(self) -> None:
        """Raises CannotConnect, CannotJoin, GroupMismatch, ModelRefused, OutOfStep or PeerLost."""
        with blamed(self._load):
            self._run()

    def _run(self) -> None:
        load = self._load
        if load.engine == "scripted":
            self._play()
            return
        config = check_folder(Path(load.model_path))
        from ..loading import load_stage, open_tokenizer, service_of  # takes seconds: only when there is need
        from .engine import WorldEngine

        tokenizer = open_tokenizer(load, config) if load.leads else None
        company = assembled(load, self._out)
        loaded = load_stage(load, config, self._progress, company)
        if load.leads:
            self._lead(service_of(load, loaded, WorldEngine(loaded.port, loaded.on_cpu), tokenizer))
        else:
            self._follow(company, loaded)

    def _play(self) -> None:
        """A script needs nobody to compute with, but its ranks find, watch and lose each other like real ones."""
        from .. import VERSION
        from ..pipeline.link import PeerLost
        from ..scripted import build_scripted

        company = assembled(self._load, self._out)
        service = build_scripted(self._load, self._progress)
        company.together()
        if self._load.leads:
            self._lead(service)
            return
        self._out.send({**ready_frame(service, 0, 0), "versions": {"bushel": VERSION}})
        self._start(self._listen)
        while not isinstance(lost := company.inbox.get(), PeerLost):
            pass
        raise lost

    def _lead(self, service: Any) -> None:
        loaded = time.monotonic()
        self._progress("canary", 0, 1)
        if not one_token(service):
            raise ModelRefused("the model was loaded but gave no token with a probability; its weights may be damaged")
        self._progress("canary", 1, 1)
        loop = service.loop(self._out.send)
        intake = Intake(service, loop, self._out)
        tried = time.monotonic()
        self._out.send(ready_frame(service, (loaded - self._began) * 1000, (tried - loaded) * 1000))
        self._start(lambda: intake.run(self._lines))
        loop.run()

    def _follow(self, company: Any, loaded: Any) -> None:
        from ..loading import device_name, versions

        memory = loaded.memory
        self._out.send(
            {
                "kind": "ready",
                "pid": os.getpid(),
                "device": device_name(loaded.on_cpu),
                "versions": versions(),
                "contextTokens": min(loaded.context_tokens, memory.tokens_max()),
                "vocabulary": loaded.vocabulary,
                "rowsMax": self._load.limits.rows_max,
                "weightsBytes": memory.weights_bytes,
                "kvBytesPerToken": memory.per_token,
                "batching": "merged" if loaded.merging else "separate",
                "loadMs": round((time.monotonic() - self._began) * 1000, 1),
                "canaryMs": 0,
                "abilities": {"chat": False, "tools": False, "reasoning": False},
            }
        )
        follower = company.follow(loaded.port)
        self._start(self._listen)
        self._start(lambda: self._pulse(follower))
        follower.run(company.inbox)

    def _pulse(self, follower: Any) -> None:
        """Tells the agent of steps, from a thread of its own. A step that hangs leaves the counter where it is,
        and that is what the agent looks at; a world that is idle says so once and then nothing."""
        told = -1
        while True:
            follower.working.wait()
            step = follower.activity.step
            if step == told and not follower.activity.busy:
                follower.working.clear()
                self._out.send({"kind": "pulse", "step": step, "busy": False})
            else:
                self._out.send({"kind": "pulse", "step": step, "busy": True})
            told = step
            time.sleep(PULSE_SECONDS)

    def _listen(self) -> None:
        """The agent of a follower has little to say."""
        while True:
            line = self._lines.get()
            if not line.strip():
                continue
            try:
                kind = parse_line(line)["kind"]
            except FrameError as error:
                refuse_line(self._out, line, str(error))
                continue
            if kind == "close":
                os._exit(0)
            refuse_line(self._out, line, f"a frame of kind {kind} is not for a rank that follows another")

    def _start(self, work: Any) -> None:
        threading.Thread(target=guarded, args=(work, self._out), daemon=True).start()

    def _progress(self, phase: str, done: float, total: float) -> None:
        self._out.send({"kind": "progress", "phase": phase, "attempt": None, "done": done, "total": total})


@contextmanager
def blamed(load: Load) -> Iterator[None]:
    """MLX may notice a lost rank first, but cannot say which: those who watch the sockets can, in a moment, and
    end this process."""
    try:
        yield
    except RuntimeError as error:
        if load.world.size > 1 and f"[{load.world.backend}]" in str(error):
            time.sleep(NAMED_SECONDS)
        raise


def assembled(load: Load, out: FrameWriter) -> Any:
    """The company of this rank's world. Whoever is lost ends this process, whatever it is doing."""
    from ..pipeline.member import common_facts
    from .company import assemble

    facts = common_facts(load)
    if load.engine == "mlx":
        from ..loading import dtype_name, versions

        known = versions()
        facts.update({"dtype": dtype_name(load.dtype), "mlx": known["mlx"], "mlx-lm": known["mlx-lm"]})
    group = f'Cannot serve "{load.model_name}" in group {load.group}'
    progress = {"kind": "progress", "phase": "connect", "attempt": None, "total": 1}
    out.send({**progress, "done": 0})
    company = assemble(load, facts, lambda lost: die(out, "peer-lost", f"{group}: {lost}"))
    out.send({**progress, "done": 1})
    return company
