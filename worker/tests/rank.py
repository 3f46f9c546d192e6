"""Starts a real worker process and speaks frames with it. Every frame that it sends is checked."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from .shapes import FROM_WORKER

ROOT = Path(__file__).resolve().parents[1]


def load_frame(path: str = "", engine: str = "scripted", **limits: int) -> dict[str, Any]:
    return {
        "kind": "load",
        "group": "g1",
        "plan": "p1",
        "engine": engine,
        "model": {"path": path, "digest": "", "name": "tried"},
        "dtype": "auto",
        "stage": {"index": 0, "count": 1, "layers": [0, 1]},
        "world": {"rank": 0, "size": 1, "backend": "none", "strategy": "none", "shares": [], "env": {}, "files": {}},
        "rank": 0,
        "links": {"listen": None, "next": None, "followers": [], "back": None},
        "secret": "",
        "limits": {
            "contextTokensMax": 0,
            "rowsMax": 16,
            "waitingMax": 16,
            "memoryBytesMax": 4_000_000_000,
            "chunkMsMax": 1000,
            "prefixCacheBytesMax": 0,
            "peerTimeoutMsMax": 1000,
            **limits,
        },
    }


def submit_frame(attempt: str, prompt: Any = "Hello", **changes: Any) -> dict[str, Any]:
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
        prompt = {"kind": "chat", "messages": messages, "tools": [], "variables": {}, "nowMs": 1_700_000_000_000}
    sampling = {
        "temperature": 0,
        "topP": 1,
        "topK": 0,
        "minP": 0,
        "repetitionPenalty": 1,
        "presencePenalty": 0,
        "frequencyPenalty": 0,
        "logitBias": [],
        "seed": "7",
        **changes.pop("sampling", {}),
    }
    return {
        "kind": "submit",
        "attempt": attempt,
        "prompt": prompt,
        "sampling": sampling,
        "tokensMax": None,
        "stop": [],
        "ignoreEos": False,
        "logprobs": None,
        "grammar": None,
        "replay": [],
        "cacheScope": "",
        **changes,
    }


def fast_blas() -> dict[str, str]:
    """On Linux MLX links the reference BLAS, which is five times slower than MKL; ranks are started with MKL."""
    found = sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))
    return {"LD_PRELOAD": str(found[0])} if found and not os.environ.get("LD_PRELOAD") else {}


class Rank:
    """A worker process. `with Rank(load_frame(…)) as rank:` waits until it is ready."""

    def __init__(self, load: dict[str, Any] | None, environment: dict[str, str] | None = None) -> None:
        to_rank, self._to = os.pipe()
        from_rank, writing = os.pipe()
        self.stderr = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bushel_worker"],
            env={
                **os.environ,
                **fast_blas(),
                "PYTHONPATH": str(ROOT),
                "BUSHEL_FRAMES_IN": str(to_rank),
                "BUSHEL_FRAMES_OUT": str(writing),
                **(environment or {}),
            },
            pass_fds=(to_rank, writing),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(to_rank)
        os.close(writing)
        self.frames: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.seen: list[dict[str, Any]] = []
        self.junk: list[bytes] = []
        threading.Thread(target=self._read, args=(from_rank,), daemon=True).start()
        self._log = threading.Thread(target=self._read_log, daemon=True)
        self._log.start()
        if load is not None:
            self.send(load)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as lines:
            for line in lines:
                try:
                    frame = json.loads(line)
                    FROM_WORKER(frame, "")
                except Exception:
                    self.junk.append(line)
                    continue
                frame["at"] = time.monotonic()
                self.seen.append(frame)
                self.frames.put(frame)
        self.frames.put(None)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        self.stderr = self.process.stderr.read()

    def send(self, frame: dict[str, Any] | bytes) -> None:
        line = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        os.write(self._to, line + b"\n")

    def next(self, *kinds: str, attempt: str | None = None, seconds: float = 30) -> dict[str, Any]:
        """The next frame of one of these kinds; others are passed over (they stay in `seen`)."""
        end = time.monotonic() + seconds
        while True:
            frame = self.frames.get(timeout=max(0.01, end - time.monotonic()))
            if frame is None:
                raise EOFError(f"the rank is gone while waiting for {kinds}")
            if frame["kind"] in kinds and (attempt is None or frame.get("attempt") == attempt):
                return frame

    def answer(self, attempt: str, seconds: float = 60) -> "Answer":
        """Waits for an attempt's end; what was seen of others stays in `seen`."""
        end = time.monotonic() + seconds
        while not any(f["kind"] in ("finished", "failed") and f["attempt"] == attempt for f in self.seen):
            if time.monotonic() > end:
                raise TimeoutError(attempt)
            time.sleep(0.005)
        return Answer(attempt, self.seen)

    def close(self) -> int:
        """Closes the pipe, which is how a rank is told to go."""
        if self._to >= 0:
            os.close(self._to)
            self._to = -1
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self._log.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code

    def __enter__(self) -> "Rank":
        try:
            self.ready = self.next("ready", "failed", seconds=60)
            if self.ready["kind"] == "failed":
                raise AssertionError(self.ready["message"])
        except BaseException:
            self.process.kill()
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Answer:
    """All that a rank said about one attempt."""

    def __init__(self, attempt: str, frames: list[dict[str, Any]]) -> None:
        self.rows = [
            row for frame in frames if frame["kind"] == "step" for row in frame["rows"] if row["attempt"] == attempt
        ]
        mine = [frame for frame in frames if frame.get("attempt") == attempt]
        self.end = next(frame for frame in mine if frame["kind"] in ("finished", "failed"))
        self.accepted = next((frame for frame in mine if frame["kind"] == "accepted"), None)
        self.tokens = [row["token"] for row in self.rows]
        self.parts = [part for row in self.rows for part in row["parts"]] + self.end.get("parts", [])
        self.reason = self.end.get("reason")

    def text(self, kind: str = "content") -> str:
        return "".join(part["text"] for part in self.parts if part["type"] == kind)
