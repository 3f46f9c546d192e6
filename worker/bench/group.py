"""Pipelines on this machine, in alternating runs.

    PYTHONPATH=worker python -m bench.group FOLDER [pairs] [tokens]

flight two requests in a pipeline of two ranks, one core each, so that two micro-batches are under way, against one
       request, when one is: tokens of all requests per second. Goal: 1.4.
many   the same ranks with more requests against one rank with one core and as many: what a second core brings when
       no memory is short. Less than two, since two small micro-batches read the weights twice and one rank with
       all rows once.
one    a pipeline of two ranks that answers one request against the same cut made by hand with raw MLX and a bare
       socket (no frames, no text, no handshake): tokens per second. Goal: 0.95.

While one side of a pair runs, the other sleeps. The first stage has six tenths of the layers, a guess at equal
halves: the last one has the head and the draw as well. On a machine that others use the ratios mean nothing, so
the load is printed with them."""

import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.group import Group, stage_frames
from tests.rank import Rank, fast_blas, load_frame, submit_frame

ROWS = (4, 16)
SKIPPED = 4  # tokens before the clock starts
ANIMALS = ("dog", "cat", "cow", "owl", "fox", "bee", "elk", "ant")
ONE_CORE = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Asker:
    def __init__(self, rank: Rank, tokens: int) -> None:
        self._rank, self._tokens, self._turn = rank, tokens, 0

    def speed(self, rows: int) -> float:
        """Tokens per second of all rows together, while all of them write: from the fifth token of the last to begin
        to the last token of the first to end."""
        self._turn += 1
        names = [f"{self._turn}-{index}" for index in range(rows)]
        for name, animal in zip(names, ANIMALS * rows):
            question = f"Tell me a long story about a {animal}."
            self._rank.send(submit_frame(name, question, tokensMax=self._tokens, ignoreEos=True))
        for name in names:
            self._rank.answer(name, seconds=600)
        shown = [
            (frame["at"], row["attempt"], row["position"])
            for frame in self._rank.seen
            if frame["kind"] == "step"
            for row in frame["rows"]
            if row["attempt"] in names
        ]
        self._rank.seen.clear()
        began = max(at for at, _, position in shown if position == SKIPPED)
        ended = min(max(at for at, name, _ in shown if name == one) for one in names)
        times = sorted(at for at, _, _ in shown if began <= at <= ended)
        return (len(times) - 1) / (times[-1] - times[0])


def main(folder: str, pairs: int, tokens: int) -> None:
    path = str(Path(folder).resolve())
    layers = _layers(path)
    # The head's share of work that is no layer (embedding) is little, the last stage's (head, draw) is much.
    cut = round(layers * 0.6)
    print(f"{layers} layers, cut at {cut}; {tokens} tokens", flush=True)
    with Group(stage_frames([0, cut, layers], path, "mlx", peerTimeoutMsMax=20_000)) as group:
        _pin(group)
        pipeline = Asker(group.head, tokens)
        _compare("flight", "two under way", lambda: pipeline.speed(2), "one", lambda: pipeline.speed(1), pairs)
        with Rank(load_frame(path, "mlx"), ONE_CORE) as rank:
            _pin_process(rank.process.pid, 0)
            single = Asker(rank, tokens)
            for rows in ROWS:
                name = f"many, {rows} rows"
                _compare(name, "pipeline", lambda: pipeline.speed(rows), "one rank", lambda: single.speed(rows), pairs)
        raw = Raw(path, cut, tokens)
        try:
            _compare("one", "pipeline", lambda: pipeline.speed(1), "by hand", raw.speed, pairs)
        finally:
            raw.close()


def _pin(group: Group) -> None:
    for core, rank in enumerate(group.ranks):
        _pin_process(rank.process.pid, core)


def _pin_process(pid: int, core: int) -> None:
    """All its threads: MLX computes in one of its own."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core % (os.cpu_count() or 1)})


def _compare(name: str, ours: str, mine: Any, theirs: str, other: Any, pairs: int) -> None:
    ratios = []
    for pair in range(pairs + 1):
        if pair % 2:
            first, second = mine(), other()
        else:
            second, first = other(), mine()
        if pair:  # the first pair warms both up
            ratios.append(first / second)
            print(f"{name}: {ours} {first:.1f} tok/s, {theirs} {second:.1f}, ratio {ratios[-1]:.2f}", flush=True)
    print(f"{name}: median ratio {statistics.median(ratios):.2f} of {len(ratios)} pairs (load {os.getloadavg()[0]:.1f})", flush=True)


def _layers(path: str) -> int:
    import json

    return int(json.loads(Path(path, "config.json").read_text())["num_hidden_layers"])


class Raw:
    """The cut by hand: two processes, one socket, greedy, nothing else."""

    def __init__(self, path: str, cut: int, tokens: int) -> None:
        door = socket.create_server(("127.0.0.1", 0))
        port = str(door.getsockname()[1])
        environment = {**os.environ, **fast_blas(), **ONE_CORE}
        command = [sys.executable, "-m", "bench.raw_stage", path, str(cut), port, str(tokens)]
        self._front = subprocess.Popen(
            [*command, "front"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._back = subprocess.Popen([*command, "back"], env=environment)
        door.close()
        assert self._front.stdout is not None
        self._front.stdout.readline()
        for core, process in enumerate((self._front, self._back)):
            _pin_process(process.pid, core)

    def speed(self) -> float:
        assert self._front.stdin is not None and self._front.stdout is not None
        self._front.stdin.write(b"go\n")
        self._front.stdin.flush()
        return float(self._front.stdout.readline())

    def close(self) -> None:
        for process in (self._front, self._back):
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, [*sys.argv[2:], *["5", "60"][len(sys.argv) - 2 :]]))
