"""One hop of a pipeline: a hidden state goes over a plain socket, a token comes back, both through MLX's hands.
Whoever listens proves nothing and takes random numbers only; it serves one peer, for a few seconds."""

import json
import secrets
import socket
import struct
import sys
import time

import mlx.core as mx
import numpy as np

HIDDEN = 4096
SKIPPED = 5
WAIT_SECONDS = 20.0
SECRET_BYTES = 16


def serve(host: str) -> None:
    secret = secrets.token_bytes(SECRET_BYTES)
    with socket.create_server((host, 0)) as door:
        door.settimeout(WAIT_SECONDS)
        print(json.dumps({"port": door.getsockname()[1], "secret": secret.hex()}), flush=True)
        peer, _ = door.accept()
    with peer:
        peer.settimeout(WAIT_SECONDS)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not secrets.compare_digest(bytes(_exactly(peer, SECRET_BYTES)), secret):
            sys.exit("a stranger connected")
        while True:
            size = struct.unpack("<I", _exactly(peer, 4))[0]
            if size != HIDDEN * 4:
                return
            hidden = mx.array(np.frombuffer(_exactly(peer, size), np.float32))
            peer.sendall(struct.pack("<I", mx.argmax(hidden).item()))


def dial(host: str, port: int, secret: str, rounds: int) -> dict[str, list[float]]:
    hidden = mx.random.normal((HIDDEN,))
    mx.eval(hidden)
    seconds = []
    with socket.create_connection((host, port), timeout=WAIT_SECONDS) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.sendall(bytes.fromhex(secret))
        for _ in range(SKIPPED + rounds):
            began = time.perf_counter()
            hidden = hidden + 1
            mx.eval(hidden)
            data = memoryview(hidden).cast("B")
            peer.sendall(struct.pack("<I", len(data)) + data)
            _exactly(peer, 4)
            # There and back are two hops.
            seconds.append((time.perf_counter() - began) / 2)
        peer.sendall(struct.pack("<I", 0))
    return {"seconds": seconds[SKIPPED:]}


def _exactly(peer: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        count = peer.recv_into(view[at:])
        if count == 0:
            sys.exit("the peer hung up")
        at += count
    return data
