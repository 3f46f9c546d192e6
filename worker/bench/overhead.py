"""What the worker adds to a step and to a row, with a model that costs nearly nothing.

    PYTHONPATH=worker python -m bench.overhead [pairs]

A random one-layer model is stepped bare in this process (layers, argmax, read the token; one step ahead, as
mlx-lm does it), and then asked for through a worker process, whose frames are timed on arrival here. The
difference is the worker's: scheduling, sampling, text, JSON, the pipe, and this reader."""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import mlx.core as mx
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache

from tests.rank import Rank, load_frame, submit_frame

from .random_model import write_random_model

ROWS = (1, 8, 32)
STEPS = 400


def main(pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_random_model(Path(folder, "tiny"))
        model, tokenizer = load(str(Path(folder, "tiny")))
        prompt = tokenizer.encode("user: Hello\nassistant: ")

        def bare(rows: int) -> float:
            caches = make_prompt_cache(model)
            model(mx.array([prompt[:-1]]), cache=caches)
            if rows > 1:
                caches = [cache.merge([cache] * rows) for cache in caches]
            token = mx.array([prompt[-1]] * rows)
            times = []
            for _ in range(STEPS):
                following = mx.argmax(model(token[:, None], cache=caches)[:, -1], axis=-1)
                mx.async_eval(following)
                token.tolist()
                token = following
                times.append(time.perf_counter())
            return statistics.median(b - a for a, b in zip(times[50:], times[51:]))

        with Rank(load_frame(str(Path(folder, "tiny")), "mlx", rowsMax=64, waitingMax=64)) as rank:
            turn = 0

            def worker(rows: int) -> float:
                nonlocal turn
                turn += 1
                for index in range(rows):
                    rank.send(submit_frame(f"{turn}-{index}", tokensMax=STEPS, ignoreEos=True))
                for index in range(rows):
                    rank.answer(f"{turn}-{index}")
                mine = f"{turn}-"
                steps = [f for f in rank.seen if f["kind"] == "step" and f["rows"][0]["attempt"].startswith(mine)]
                full = [f["at"] for f in steps if len(f["rows"]) == rows]
                rank.seen.clear()
                return statistics.median(b - a for a, b in zip(full[50:], full[51:]))

            added: dict[int, list[float]] = {rows: [] for rows in ROWS}
            for pair in range(pairs):
                for rows in ROWS:
                    first, second = (bare(rows), worker(rows)) if pair % 2 else (worker(rows), bare(rows))[::-1]
                    added[rows].append(second - first)
            for rows in ROWS:
                middle = statistics.median(added[rows])
                print(
                    f"{rows} rows: {middle * 1e6:.0f} µs a step more than bare ({min(added[rows]) * 1e6:.0f} at best)"
                )
            few, many = ROWS[0], ROWS[-1]
            slope = (statistics.median(added[many]) - statistics.median(added[few])) / (many - few)
            print(f"a row: {slope * 1e6:.1f} µs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
