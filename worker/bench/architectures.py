"""Tries every architecture of mlx-lm cut into stages, and writes the table in docs/architectures.md.

    PYTHONPATH=worker python -m bench.architectures [NAME ...] [--write docs/architectures.md]

Each is built tiny with random weights, whole and cut in two and in three, and answers the same prompts while
rows join and leave. `equal`: the same tokens, and log probabilities that agree to 0.005 (a wrong mask is off by
about 1). `refused`: the worker says why when it is asked to cut it. `no tiny config`: nothing can be said."""

import gc
import random
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx

from bushel_worker.stage import CannotCut, Stage
from tests.loopback import Loopback
from tests.tiny import VOCABULARY, Drive, tiny_service
from tests.zoo import architectures, zoo_model

TOLERANCE = 5e-3
DISTINCT_MIN = 10
JOBS = [(11, 10), (3, 12), (19, 8), (1, 8)]  # prompt tokens, answer tokens


@dataclass(frozen=True)
class Verdict:
    word: str  # equal, refused, differs, fails, no tiny config
    why: str = ""
    difference: float = 0.0


def prompts() -> list[list[int]]:
    chance = random.Random(3)
    return [[chance.randrange(VOCABULARY) for _ in range(length)] for length, _ in JOBS]


def alone(service: Any) -> list[list[dict[str, Any]]]:
    answers = []
    for prompt, (_, count) in zip(prompts(), JOBS):
        drive = Drive(service)
        drive.submit("x", prompt, count, logprobs=20)
        answers.append(drive.run().shown("x"))
    return answers


def together(service: Any) -> list[list[dict[str, Any]]]:
    drive = Drive(service, 5)
    for index, prompt in enumerate(prompts()):
        drive.submit(str(index), prompt, JOBS[index][1], logprobs=20)
        drive.rounds(2)
    drive.run()
    return [drive.shown(str(index)) for index in range(len(JOBS))]


def pipeline(name: str) -> Verdict:
    try:
        stage = Stage(zoo_model(name))
        service = tiny_service(stage)
        wanted = alone(service)
        apart = max(_difference(mine, theirs) for mine, theirs in zip(together(service), wanted))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        said = str(error).splitlines()[0][:100] if str(error) else ""
        return Verdict("no tiny config", f"{type(error).__name__}: {said}")
    distinct = {row["token"] for answer in wanted for row in answer}
    if len(distinct) < DISTINCT_MIN:
        return Verdict("no tiny config", f"its answers have only {len(distinct)} distinct tokens")
    worst = 0.0
    try:
        for cuts in _cuts(stage.count):
            edges = [0, *cuts, stage.count]
            stages = [Stage(zoo_model(name), span) for span in zip(edges, edges[1:])]
            merging = service.merging and all(tiny_service_merges(part) for part in stages)
            loopback = Loopback(stages)
            changed = {"engine": loopback.engine, "spread": len(stages), "merging": merging}
            # Where mlx-lm's own answers depend on company and chunks, stages are compared without them.
            answers = together if apart < TOLERANCE else alone
            got = answers(_replaced(service, changed, merging))
            worst = max(worst, *(_difference(mine, theirs) for mine, theirs in zip(got, wanted, strict=True)))
    except CannotCut as refusal:
        return Verdict("refused", str(refusal))
    except Exception as error:
        return Verdict("fails", f"{type(error).__name__}: {str(error)[:100]}")
    why = ""
    if apart >= TOLERANCE:
        why = f"row by row; in chunks and company one process differs by {apart:.0e} from itself"
    return Verdict("equal" if worst < TOLERANCE else "differs", why, worst)


def tiny_service_merges(stage: Stage) -> bool:
    from bushel_worker.selftest import rows_agree

    return all(hasattr(cache, "merge") for cache in stage.new_caches()) and rows_agree(stage, VOCABULARY, 2)


def _replaced(service: Any, changed: dict[str, Any], merging: bool) -> Any:
    from dataclasses import replace

    return replace(service, **changed, reading_together=service.reading_together and merging)


def _cuts(count: int) -> list[tuple[int, ...]]:
    return [(count // 2,), (1, count - 2)] if count > 3 else [(1,)] if count > 1 else []


def _difference(got: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> float:
    if [row["token"] for row in got] != [row["token"] for row in wanted]:
        return float("inf")
    worst = 0.0
    for mine, theirs in zip(got, wanted):
        known = {entry["token"]: entry["logprob"] for entry in theirs["logprob"]["top"]}
        for entry in mine["logprob"]["top"][:10]:
            if entry["token"] in known:
                worst = max(worst, abs(entry["logprob"] - known[entry["token"]]))
    return worst


def expert(name: str) -> Verdict | None:
    """Whether its experts may be spread over the ranks of a world; None for a model without experts."""
    try:
        from tests.expert_zoo import expert_verdict  # of the worlds
    except ImportError:
        return None
    return expert_verdict(name)


def main(names: list[str], target: Path | None) -> None:
    rows = []
    for name in names or architectures():
        verdict, spread = pipeline(name), expert(name)
        rows.append((name, verdict, spread))
        print(f"{name}: {verdict.word} {verdict.difference:.1e} {verdict.why}", flush=True)
        gc.collect()
        mx.clear_cache()
    if target is not None:
        target.write_text(_table(rows))
        print(f"{sum(v.word == 'equal' for _, v, _ in rows)} equal of {len(rows)}; written to {target}")


def _table(rows: list[tuple[str, Verdict, Verdict | None]]) -> str:
    counted: dict[str, int] = {}
    for _, verdict, _ in rows:
        counted[verdict.word] = counted.get(verdict.word, 0) + 1
    lines = [
        "# Architectures",
        "",
        f"Every architecture of mlx-lm {version('mlx-lm')}, tried with tiny random weights on MLX {version('mlx')}. "
        "Made by `python -m bench.architectures --write docs/architectures.md` (see its head for what the words mean); "
        "do not edit.",
        "",
        ", ".join(f"{count} {word}" for word, count in sorted(counted.items())) + ".",
        "",
        "| architecture | pipeline | largest difference | expert |",
        "|---|---|---|---|",
    ]
    for name, verdict, spread in rows:
        word = verdict.word + (f": {verdict.why}" if verdict.why else "")
        difference = f"{verdict.difference:.0e}" if verdict.word == "equal" else ""
        told = "" if spread is None else spread.word + (f": {spread.why}" if spread.why else "")
        lines.append(f"| {name} | {word.replace('|', '/')} | {difference} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    where = Path(arguments.pop(arguments.index("--write") + 1)) if "--write" in arguments else None
    main([argument for argument in arguments if argument != "--write"], where)
