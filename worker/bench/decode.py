"""Decode speed of a whole worker process (frames, text, pipes and all) against mlx-lm in this one.

    PYTHONPATH=worker python -m bench.decode FOLDER [pairs] [tokens]

One stream against `mlx_lm.stream_generate`, then eight against mlx-lm's BatchGenerator: the same weights
in float32, the same prompts, greedy. While one runs, the other process sleeps. Run it with the same
LD_PRELOAD and MKL_NUM_THREADS for both (they are inherited)."""

import statistics
import sys
import time
from pathlib import Path

import mlx.core as mx
from mlx_lm import load, stream_generate
from mlx_lm.generate import BatchGenerator

from tests.rank import Rank, load_frame, submit_frame

STREAMS = 8
ANIMALS = ("dog", "cat", "cow", "owl", "fox", "bee", "elk", "ant")
SKIPPED = 8  # tokens before the clock starts: the first ones include the prompt


def main(folder: str, pairs: int, tokens: int) -> None:
    model, tokenizer = load(folder)
    model.set_dtype(mx.float32)
    mx.eval(model.parameters())
    questions = [f"Tell me a long story about {animal}." for animal in ANIMALS]
    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": q}], add_generation_prompt=True) for q in questions
    ]

    def raw_one() -> float:
        times = [time.perf_counter() for _ in stream_generate(model, tokenizer, prompts[0], max_tokens=tokens)]
        return (len(times) - 1 - SKIPPED) / (times[-1] - times[SKIPPED])

    def raw_many() -> float:
        """Rows together per second, from the moment that all are decoding."""
        generator = BatchGenerator(model)
        generator.insert(prompts, max_tokens=[tokens] * STREAMS)
        times = []
        began = time.perf_counter()
        done = 0
        while done < STREAMS:
            _, drawn = generator.next()
            done += sum(response.finish_reason is not None for response in drawn)
            times += [time.perf_counter()] * len(drawn)
        return len(times) / (times[-1] - began)

    with Rank(load_frame(str(Path(folder).resolve()), "mlx")) as rank:
        turn = 0

        def own(count: int) -> list[list[float]]:
            nonlocal turn
            turn += 1
            for index in range(count):
                rank.send(submit_frame(f"{turn}-{index}", questions[index], tokensMax=tokens, ignoreEos=True))
            for index in range(count):
                rank.answer(f"{turn}-{index}", seconds=600)
            steps = [f for f in rank.seen if f["kind"] == "step"]
            return [
                [f["at"] for f in steps for row in f["rows"] if row["attempt"] == f"{turn}-{index}"]
                for index in range(count)
            ]

        def own_one() -> float:
            times = own(1)[0]
            return (len(times) - 1 - SKIPPED) / (times[-1] - times[SKIPPED])

        def own_many() -> float:
            began = time.monotonic()
            times = own(STREAMS)
            return sum(map(len, times)) / (max(t[-1] for t in times) - began)

        for name, mine, theirs in (("1 stream", own_one, raw_one), ("8 streams", own_many, raw_many)):
            ratios = []
            for pair in range(pairs + 1):
                first, second = (mine, theirs) if pair % 2 else (theirs, mine)
                a, b = first(), second()
                own_speed, raw_speed = (a, b) if pair % 2 else (b, a)
                if pair:  # the first pair warms both up
                    ratios.append(own_speed / raw_speed)
                    print(
                        f"{name}: worker {own_speed:.2f} tok/s, mlx-lm {raw_speed:.2f}, ratio {ratios[-1]:.3f}",
                        flush=True,
                    )
            print(f"{name}: median ratio {statistics.median(ratios):.3f} of {len(ratios)} pairs", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, [*sys.argv[2:], *["5", "100"][len(sys.argv) - 2 :]]))
