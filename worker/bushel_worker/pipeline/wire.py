"""What travels between two stages: a small header and, with it or not, one raw tensor.

    header length, body length (two little-endian uint32) | sealed header (JSON) | body (the tensor's bytes)

Headers carry token ids and sampling parameters, so they are sealed with keys that both ends derive from the
group's secret and this connection's nonces: a keystream by SHAKE-256 and a keyed BLAKE2b tag, both numbered.
Tensors go as they are: sealing them would cost more than sending them."""

import hashlib
import hmac
import json
import socket
import struct
import time
from typing import Any, NamedTuple

LENGTHS = struct.Struct("<II")
HEADER_BYTES_MAX = 16 << 20  # a prompt's distinct ids travel in one, for penalties
BODY_BYTES_MAX = 1 << 30
TAG_BYTES = 16
ITEM_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4}


class WireError(Exception):
    """What came is not what a stage sends."""


class Tensor(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    data: Any  # anything with the buffer protocol


class Seal:
    """One direction of one connection. The tag covers the header, its number and the length of the body."""

    def __init__(self, key: bytes) -> None:
        self._stream_key = hmac.digest(key, b"stream", "sha256")
        self._tag_key = hmac.digest(key, b"tag", "sha256")
        self._count = 0

    def close(self, header: bytes, body_bytes: int) -> bytes:
        number = self._next()
        sealed = self._mixed(header, number)
        return self._tag(sealed, number, body_bytes) + sealed

    def open(self, sealed: bytes, body_bytes: int) -> bytes:
        number = self._next()
        tag, rest = sealed[:TAG_BYTES], sealed[TAG_BYTES:]
        if not hmac.compare_digest(tag, self._tag(rest, number, body_bytes)):
            raise WireError("a header came that the peer did not seal")
        return self._mixed(rest, number)

    def _next(self) -> bytes:
        self._count += 1
        return self._count.to_bytes(8, "little")

    def _mixed(self, data: bytes, number: bytes) -> bytes:
        stream = hashlib.shake_256(self._stream_key + number).digest(len(data))
        mixed = int.from_bytes(data, "little") ^ int.from_bytes(stream, "little")
        return mixed.to_bytes(len(data), "little")

    def _tag(self, sealed: bytes, number: bytes, body_bytes: int) -> bytes:
        numbered = sealed + number + body_bytes.to_bytes(8, "little")
        return hashlib.blake2b(numbered, key=self._tag_key, digest_size=TAG_BYTES).digest()


def send_message(peer: socket.socket, seal: Seal, header: dict[str, Any], tensor: Tensor | None = None) -> None:
    body = memoryview(tensor.data).cast("B") if tensor is not None else memoryview(b"")
    if tensor is not None:
        header = {**header, "shape": tensor.shape, "dtype": tensor.dtype}
    sealed = seal.close(json.dumps(header, separators=(",", ":")).encode(), len(body))
    if len(sealed) > HEADER_BYTES_MAX or len(body) > BODY_BYTES_MAX:
        raise WireError(f"a message of {len(sealed)} and {len(body)} bytes is too large to be sent")
    start = LENGTHS.pack(len(sealed), len(body)) + sealed
    if len(body) <= 1 << 16:
        peer.sendall(start + body)
    else:
        peer.sendall(start)
        peer.sendall(body)


def read_message(peer: socket.socket, seal: Seal) -> tuple[dict[str, Any], Tensor | None]:
    header_bytes, body_bytes = LENGTHS.unpack(read_exactly(peer, LENGTHS.size))
    if header_bytes > HEADER_BYTES_MAX or body_bytes > BODY_BYTES_MAX or header_bytes < TAG_BYTES:
        raise WireError(f"a message of {header_bytes} and {body_bytes} bytes was announced")
    sealed = bytes(read_exactly(peer, header_bytes))
    header = json.loads(seal.open(sealed, body_bytes))
    if not body_bytes:
        return header, None
    shape, dtype = tuple(header.pop("shape")), header.pop("dtype")
    needed = ITEM_BYTES.get(dtype, 0)
    for size in shape:
        needed *= size
    if needed != body_bytes:
        raise WireError(f"a tensor of {shape} {dtype} came with {body_bytes} bytes")
    return header, Tensor(shape, dtype, read_exactly(peer, body_bytes))


def read_exactly(peer: socket.socket, size: int, deadline: float | None = None) -> bytearray:
    """With a deadline, of all the bytes together; else the socket's timeout is for each part of them."""
    data = bytearray(size)
    view = memoryview(data)
    at = 0
    while at < size:
        if deadline is not None:
            peer.settimeout(max(0.001, deadline - time.monotonic()))
        count = peer.recv_into(view[at:])
        if count == 0:
            raise ConnectionResetError("it closed the connection")
        at += count
    return data
