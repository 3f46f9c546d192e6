"""Every architecture gives the same answers batched, joined and left mid-way, and cut in two, as alone."""

import random
import unittest
from typing import Any

from bushel_worker.stage import CannotCut, Stage

from .tiny import ARCHITECTURES, LAYERS, VOCABULARY, Drive, TwoStages, tiny_model, tiny_service

TOLERANCE = 5e-3  # of log probabilities; a wrong mask gives about 1
JOBS = [(11, 10), (3, 14), (30, 8), (1, 8), (18, 10), (6, 12)]  # prompt tokens, answer tokens
ARRIVALS = [0, 1, 2, 4, 6, 8]  # rounds
SEPARATE = {"gemma2"}
# Caches of several kinds: where the cut falls decides which of them a stage has none of.
MIXED = {"gemma3_text", "gpt_oss", "qwen3_next", "cohere2", "nemotron_h", "lfm2", "falcon_h1"}
ONE_BY_ONE = {"gemma2", "mamba", "nemotron_h"}  # mlx-lm reads their padded prompts wrongly


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


def together(service: Any, chunk: int = 4) -> list[list[dict[str, Any]]]:
    """Rows arrive by and by, prompts are read in chunks, and row 1 is cancelled while it writes."""
    drive = Drive(service, chunk)
    for turn in range(max(ARRIVALS) + 1):
        for index, at in enumerate(ARRIVALS):
            if at == turn:
                drive.submit(str(index), prompts()[index], JOBS[index][1], logprobs=20)
        if turn == 7:
            drive.cancel("1")
        drive.rounds()
    drive.run()
    return [drive.shown(str(index)) for index in range(len(JOBS))]


def difference(got: dict[str, Any], wanted: dict[str, Any]) -> float:
    known = {entry["token"]: entry["logprob"] for entry in wanted["logprob"]["top"]}
    return max(abs(e["logprob"] - known[e["token"]]) for e in got["logprob"]["top"][:10] if e["token"] in known)


class Architectures(unittest.TestCase):
    def compare(self, got: list[list[dict[str, Any]]], wanted: list[list[dict[str, Any]]]) -> None:
        for index, (mine, theirs) in enumerate(zip(got, wanted)):
            self.assertGreater(len(mine), 2, f"row {index}")
            if index != 1:  # the cancelled one
                self.assertEqual(len(mine), len(theirs), f"row {index}")
            for place, (a, b) in enumerate(zip(mine, theirs)):
                self.assertEqual(a["token"], b["token"], f"row {index} token {place}")
                self.assertLess(difference(a, b), TOLERANCE, f"row {index} token {place}")


def add_tests(name: str) -> None:
    def test(self: Architectures) -> None:
        stage = Stage(tiny_model(name))
        service = tiny_service(stage)
        self.assertEqual(service.merging, name not in SEPARATE)
        self.assertEqual(service.reading_together, name not in ONE_BY_ONE)
        wanted = alone(service)
        distinct = {row["token"] for answer in wanted for row in answer}
        self.assertGreater(len(distinct), 16, "too repetitive to prove anything")
        self.compare(together(service), wanted)
        self.compare(together(service, chunk=60), wanted)  # short prompts are read in one pass
        for cut in (1, 4) if name in MIXED else (4,):
            halves = TwoStages(name, cut)
            self.compare(together(tiny_service(halves, merging=service.merging)), wanted)

    test.__doc__ = f"{name} answers alike alone, in micro-batches, and cut in two"
    setattr(Architectures, f"test_{name}", test)


for _name in ARCHITECTURES:
    add_tests(_name)


class Cutting(unittest.TestCase):
    def test_stage_refuses_layers_that_do_not_exist(self) -> None:
        with self.assertRaises(CannotCut):
            Stage(tiny_model(), (2, LAYERS + 1))

    def test_stage_in_the_middle_needs_no_embedding_and_no_head(self) -> None:
        whole = sum(a.nbytes for group in Stage(tiny_model()).parameter_groups() for a in group)
        middle = sum(a.nbytes for group in Stage(tiny_model(), (2, 4)).parameter_groups() for a in group)
        ends = 2 * VOCABULARY * 32 * 4 + 32 * 4
        self.assertEqual(middle, (whole - ends) * 2 // LAYERS)


if __name__ == "__main__":
    unittest.main()
