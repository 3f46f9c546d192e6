"""Raw mlx-lm beside Bushel: one process that answers measuring orders, one JSON line each.

    PYTHONPATH=worker python -m bench.baseline MODEL_FOLDER

{"do": "stream", "prompt": text, "tokens": n}  stream_generate, greedy: {"first": s, "times": [s, ...]}
{"do": "steps", "rows": n, "steps": n}         bare batched steps: {"step": mean seconds}
The weights are cast to float32 first, as Bushel does on a CPU; both use the same BLAS and threads."""

import json
import sys
import time
from typing import Any

import mlx.core as mx
from mlx.utils import tree_map
from mlx_lm import load, stream_generate
from mlx_lm.models.cache import make_prompt_cache


def main(folder: str) -> None:
    model, tokenizer = load(folder)
    model.update(tree_map(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a, model.parameters()))
    mx.eval(model.parameters())
    tokenizer._eos_token_ids = set()  # both sides write exactly as many tokens as asked for
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = _stream(model, tokenizer, order) if order["do"] == "stream" else _steps(model, tokenizer, order)
        print(json.dumps(answer), flush=True)


def _stream(model: Any, tokenizer: Any, order: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": order["prompt"]}]
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    began = time.perf_counter()
    times = [time.perf_counter() - began for _ in stream_generate(model, tokenizer, prompt, max_tokens=order["tokens"])]
    return {"first": times[0], "times": times, "promptTokens": len(prompt)}


def _steps(model: Any, tokenizer: Any, order: dict[str, Any]) -> dict[str, Any]:
    rows, steps = order["rows"], order["steps"]
    prompt = tokenizer.encode("user: Hello\nassistant: ")
    caches = make_prompt_cache(model)
    model(mx.array([prompt[:-1]]), cache=caches)
    if rows > 1:
        caches = [cache.merge([cache] * rows) for cache in caches]
    token = mx.array([prompt[-1]] * rows)
    times = []
    for _ in range(steps):
        following = mx.argmax(model(token[:, None], cache=caches)[:, -1], axis=-1)
        mx.async_eval(following)
        token.tolist()
        token = following
        times.append(time.perf_counter())
    return {"step": (times[-1] - times[20]) / (len(times) - 21)}


if __name__ == "__main__":
    main(sys.argv[1])
