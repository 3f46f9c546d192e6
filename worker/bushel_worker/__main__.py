"""A rank: `python -m bushel_worker`. Frames come in on descriptor 3 and go out on 4 (BUSHEL_FRAMES_IN and
BUSHEL_FRAMES_OUT say otherwise); stdout and stderr are for logs. The first frame is `load`."""

import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

# Nothing that runs in this process may look for the network, and nothing asks questions on a terminal.
os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    TRANSFORMERS_VERBOSITY="error",
    TRANSFORMERS_NO_ADVISORY_WARNINGS="1",
    TOKENIZERS_PARALLELISM="false",
)

from .checks import FrameError  # noqa: E402
from .frames import FrameWriter, Load, load_of, parse_line  # noqa: E402
from .intake import Intake, log, read_lines  # noqa: E402
from .reporting import die, guarded, ready_frame  # noqa: E402
from .service import Service  # noqa: E402


class CannotStart(Exception):
    """Why this rank is about to exit, in one sentence."""


def main() -> None:
    reading = int(os.environ.get("BUSHEL_FRAMES_IN", "3"))
    writing = int(os.environ.get("BUSHEL_FRAMES_OUT", "4"))
    os.dup2(2, 1)  # libraries print; it must not reach whoever reads our stdout as data
    os.set_blocking(writing, True)
    out = FrameWriter(writing)
    try:
        serve(reading, out)
    except CannotStart as refused:
        die(out, "load-failed", str(refused))
    except BaseException as error:  # an evaluation that failed leaves MLX in no state to go on with
        trace = traceback.extract_tb(error.__traceback__)
        log(f"{type(error).__name__} at {' < '.join(f'{f.name}:{f.lineno}' for f in reversed(trace[-6:]))}")
        die(out, "engine-failed", f"the engine failed: {type(error).__name__}: {str(error)[:200]}")


def serve(reading: int, out: FrameWriter) -> None:
    began = time.monotonic()
    os.set_blocking(reading, True)
    lines = read_lines(reading)
    out.send({"kind": "progress", "phase": "start", "attempt": None, "done": 0, "total": 1})
    load = first_frame(lines.get())

    if not load.alone:
        serve_in_group(load, lines, out)
        return

    def progress(phase: str, done: float, total: float) -> None:
        out.send({"kind": "progress", "phase": phase, "attempt": None, "done": done, "total": total})

    service = build(load, progress)
    loaded = time.monotonic()
    progress("canary", 0, 1)
    try_canary(service)
    tried = time.monotonic()
    progress("canary", 1, 1)

    loop = service.loop(out.send)
    intake = Intake(service, loop, out)
    out.send(ready_frame(service, (loaded - began) * 1000, (tried - loaded) * 1000))
    threading.Thread(target=guarded, args=(lambda: intake.run(lines), out), name="intake", daemon=True).start()
    loop.run()


def serve_in_group(load: Load, lines: Any, out: FrameWriter) -> None:
    from .folder import ModelRefused
    from .pipeline.handshake import GroupMismatch
    from .pipeline.link import PeerLost
    from .pipeline.member import Member, kind_of
    from .pipeline.ring import CannotConnect
    from .world.errors import CannotJoin
    from .world.member import WorldMember, blamed

    group = f'Cannot serve "{load.model_name}" in group {load.group}'
    try:
        if load.world.size > 1 and (load.stage_count == 1 or not load.leads):
            WorldMember(load, lines, out).run()
        else:
            with blamed(load):
                Member(load, kind_of(load, out), lines, out).run()
    except ModelRefused as refused:
        raise CannotStart(f'Cannot load "{load.model_name}": {refused}') from None
    except GroupMismatch as mismatch:
        die(out, "group-mismatch", f"{group}: the ranks differ: {mismatch}")
    except (CannotConnect, CannotJoin) as alone:
        die(out, "group-unreachable", f"{group}: {alone}")
    except PeerLost as lost:
        die(out, "peer-lost", f"{group}: {lost}")


def first_frame(line: bytes) -> Load:
    try:
        frame = parse_line(line)
    except FrameError as error:
        raise CannotStart(f"the first frame cannot be read: {error}") from None
    if frame["kind"] == "close":
        os._exit(0)
    if frame["kind"] != "load":
        raise CannotStart(f"the first frame must be load, not {frame['kind']}")
    return load_of(frame)


def build(load: Load, progress: Any) -> Service:
    if load.engine == "scripted":
        from .scripted import build_scripted

        return build_scripted(load, progress)
    progress("load", 0, 1)
    from .folder import ModelRefused, check_folder

    try:
        config = check_folder(Path(load.model_path))
        from .loading import build_service  # takes seconds: only when there is something to load

        return build_service(load, config, progress)
    except ModelRefused as refused:
        raise CannotStart(f'Cannot load "{load.model_name}": {refused}') from None


def try_canary(service: Service) -> None:
    """One token, the way every other will be made."""
    from .canary import one_token

    if not one_token(service):
        raise CannotStart("the model was loaded but gave no token with a probability; its weights may be damaged")


if __name__ == "__main__":
    main()
    sys.exit(0)
