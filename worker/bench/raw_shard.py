"""One rank of raw mlx-lm with `shard` over ring, beside Bushel: answers measuring orders from its stdin.

    MLX_RANK=0 MLX_HOSTFILE=hosts.json PYTHONPATH=worker python -m bench.raw_shard MODEL_FOLDER

{"prompt": [ids], "tokens": n}  greedy, as mlx-lm generates: {"times": [seconds, ...], "tokens": [ids]}"""

import json
import sys
import time

import mlx.core as mx
from mlx_lm.generate import generate_step
from mlx_lm.utils import load_model


def main(folder: str) -> None:
    from pathlib import Path

    group = mx.distributed.init(backend="ring", strict=True)
    model, _ = load_model(Path(folder), lazy=True)
    model.set_dtype(mx.float32)
    model.shard(group)
    mx.eval(model.parameters())
    mx.eval(mx.distributed.all_sum(mx.zeros(1), group=group))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        times, tokens = [], []
        for token, _ in generate_step(mx.array(order["prompt"]), model, max_tokens=order["tokens"]):
            times.append(time.perf_counter())
            tokens.append(int(token))
        mx.synchronize()
        print(json.dumps({"times": times, "tokens": tokens}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
