"""Groups that compute together against raw mlx-lm with `shard` over ring on as many ranks: the same random model in
float32, one thread a rank, greedy, in alternating pairs. Whoever is not measured sleeps.

    PYTHONPATH=worker python -m bench.world tensor|expert|tensor-pipeline [pairs] [tokens]

mlx-lm cannot spread experts or put a world into a pipeline, so these stand beside what it can do with the same model
and ranks. On a machine with fewer free cores than ranks both are slowed by ring's waiting, which burns a core; trust
the ratio, and that of three ranks on two cores not even as one. Both sides must say the same tokens, or there is
nothing to compare."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.group import ENVIRONMENT, Group, free_ports
from tests.rank import ROOT, fast_blas, submit_frame
from tests.worlds import grouped_frames

from .random_model import write_random_model

SKIPPED = 8  # tokens before the clock starts
LLAMA: dict[str, Any] = dict(
    hidden_size=512, num_hidden_layers=16, intermediate_size=1536, num_attention_heads=8, num_key_value_heads=4,
    vocab_size=16384, tie_word_embeddings=True,
)  # fmt: skip
EXPERTS: dict[str, Any] = dict(
    LLAMA, model_type="qwen3_moe", head_dim=64, num_experts=16, num_experts_per_tok=4, moe_intermediate_size=384,
    decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    model: dict[str, Any]
    sizes: list[int]  # ranks of each stage
    cuts: list[int]  # where stages begin, and the number of layers
    strategy: str = "tensor"

    @property
    def ranks(self) -> int:
        return sum(self.sizes)


CASES = {
    "tensor": Case(LLAMA, [2], [0, 16]),
    "expert": Case(EXPERTS, [2], [0, 16], "expert"),
    "tensor-pipeline": Case(
        {**LLAMA, "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 6}, [2, 1], [0, 10, 16]
    ),
}


class Raw:
    """mlx-lm by itself, a process for each rank."""

    def __init__(self, folder: str, ranks: int) -> None:
        self._hosts = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump([[f"127.0.0.1:{port}"] for port in free_ports(ranks)], self._hosts)
        self._hosts.flush()
        known = {**os.environ, **fast_blas(), **ENVIRONMENT, "PYTHONPATH": str(ROOT), "MLX_HOSTFILE": self._hosts.name}
        self._ranks = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.raw_shard", folder],
                env={**known, "MLX_RANK": str(rank)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        for rank in self._ranks:
            self._read(rank)

    def ask(self, prompt: list[int], tokens: int) -> dict[str, Any]:
        for rank in self._ranks:
            assert rank.stdin is not None
            rank.stdin.write(json.dumps({"prompt": prompt, "tokens": tokens}) + "\n")
            rank.stdin.flush()
        return [self._read(rank) for rank in self._ranks][0]

    def close(self) -> None:
        for rank in self._ranks:
            rank.kill()
            rank.wait()

    @staticmethod
    def _read(rank: Any) -> dict[str, Any]:
        line = rank.stdout.readline()
        if not line:
            raise EOFError("a rank of raw mlx-lm is gone")
        return json.loads(line)


def speed(times: list[float]) -> float:
    return (len(times) - 1 - SKIPPED) / (times[-1] - times[SKIPPED])


def main(name: str, pairs: int, tokens: int) -> None:
    case = CASES[name]
    prompt = list(range(40, 72))
    with tempfile.TemporaryDirectory() as parent:
        folder = str(Path(parent, "model"))
        write_random_model(Path(folder), **case.model)
        raw = Raw(folder, case.ranks)
        try:
            with Group(grouped_frames(case.sizes, case.cuts, folder, case.strategy, peerTimeoutMsMax=20_000)) as group:
                ratios, turn = [], 0

                def own() -> tuple[float, list[int]]:
                    attempt = f"a{turn}"
                    asked = {"kind": "ids", "ids": prompt}
                    group.head.send(submit_frame(attempt, asked, tokensMax=tokens, ignoreEos=True))
                    answer = group.answer(attempt, 600)
                    steps = [f for f in group.head.seen if f["kind"] == "step"]
                    return speed([f["at"] for f in steps if f["rows"][0]["attempt"] == attempt]), answer.tokens

                def theirs() -> tuple[float, list[int]]:
                    told = raw.ask(prompt, tokens)
                    return speed(told["times"]), told["tokens"]

                for turn in range(pairs + 1):
                    first, second = (own, theirs) if turn % 2 else (theirs, own)
                    a, b = first(), second()
                    mine, other = (a, b) if turn % 2 else (b, a)
                    if mine[1] != other[1]:
                        raise AssertionError("the two say different tokens")
                    if turn:  # the first pair warms both up
                        ratios.append(mine[0] / other[0])
                        told = f"{name} {mine[0]:.2f} tok/s, mlx-lm with shard {other[0]:.2f}, ratio {ratios[-1]:.3f}"
                        print(told, flush=True)
                over = "+".join(map(str, case.sizes))
                print(f"{name} over {over}: median ratio {statistics.median(ratios):.3f} of {len(ratios)} pairs")
        finally:
            raw.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, [*sys.argv[2:], *["5", "60"][len(sys.argv) - 2 :]]))
