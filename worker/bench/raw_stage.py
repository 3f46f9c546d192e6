"""One half of a model cut by hand, for bench.group: raw MLX, a bare socket, greedy, nothing else.

    python -m bench.raw_stage FOLDER CUT PORT TOKENS front|back"""

import socket
import struct
import sys
import time
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models.base import create_attention_mask
from mlx_lm.models.cache import KVCache
from mlx_lm.utils import load_model, load_tokenizer

SKIPPED = 4
PROMPT = "Tell me a long story about a dog."


def main(folder: str, cut: int, port: int, tokens: int, end: str) -> None:
    model, _ = load_model(Path(folder), lazy=True)
    model.update(tree_map(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a, model.parameters()))
    layers = model.model.layers[:cut] if end == "front" else model.model.layers[cut:]
    mx.eval([layer.parameters() for layer in layers], model.model.embed_tokens.parameters(), model.model.norm.parameters())
    if end == "front":
        front(folder, model, layers, port, tokens)
    else:
        back(model, layers, port)


def front(folder: str, model: object, layers: list, port: int, tokens: int) -> None:
    tokenizer = load_tokenizer(Path(folder))
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": PROMPT}], add_generation_prompt=True)
    peer = _dial(port)
    print("ready", flush=True)
    for _ in sys.stdin:
        caches = [KVCache() for _ in layers]
        times = []
        ids = prompt
        for _ in range(tokens):
            hidden = model.model.embed_tokens(mx.array([ids]))  # type: ignore[attr-defined]
            hidden = _through(layers, hidden, caches)
            mx.eval(hidden)
            data = memoryview(hidden).cast("B")
            peer.sendall(struct.pack("<II", len(ids), len(data)) + data)
            ids = [struct.unpack("<I", _exactly(peer, 4))[0]]
            times.append(time.perf_counter())
        peer.sendall(struct.pack("<II", 0, 0))
        print((tokens - 1 - SKIPPED) / (times[-1] - times[SKIPPED]), flush=True)


def back(model: object, layers: list, port: int) -> None:
    door = socket.create_server(("127.0.0.1", port), reuse_port=False)
    peer, _ = door.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    caches = [KVCache() for _ in layers]
    while True:
        count, size = struct.unpack("<II", _exactly(peer, 8))
        if count == 0:
            caches = [KVCache() for _ in layers]
            continue
        hidden = mx.array(np.frombuffer(_exactly(peer, size), np.float32).reshape(1, count, -1))
        out = model.model.norm(_through(layers, hidden, caches)[:, -1])  # type: ignore[attr-defined]
        peer.sendall(struct.pack("<I", mx.argmax(model.model.embed_tokens.as_linear(out), axis=-1).item()))  # type: ignore[attr-defined]


def _through(layers: list, hidden: mx.array, caches: list) -> mx.array:
    mask = create_attention_mask(hidden, caches[0])
    for layer, cache in zip(layers, caches):
        hidden = layer(hidden, mask, cache)
    return hidden


def _dial(port: int) -> socket.socket:
    while True:
        try:
            peer = socket.create_connection(("127.0.0.1", port))
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return peer
        except OSError:
            time.sleep(0.1)


def _exactly(peer: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        count = peer.recv_into(view[at:])
        if count == 0:
            sys.exit(0)
        at += count
    return data


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
