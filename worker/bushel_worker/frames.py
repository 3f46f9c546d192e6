"""What crosses the pipe between an agent and this rank. The same shapes are in src/wire/worker-frames.ts;
both sides test the cases in test/contracts/frames. (The shapes of what we send are in tests/shapes.py:
every frame of every test is held against them.)"""

import json
import os
import threading
from dataclasses import dataclass, field
from typing import Any

from .checks import (
    FrameError,
    anything,
    array,
    boolean,
    nullable,
    number,
    one_of,
    optional,
    pair,
    record,
    shape,
    text,
    union,
)

LINE_BYTES_MAX = 64 << 20

count = number(low=0, whole=True)
positive = number(low=1, whole=True)
token = number(low=0, high=0xFFFFFFFF, whole=True)
amount = number(low=0)
_endpoint = shape(host=text(), port=number(low=1, high=65535, whole=True))

_tool_call = shape(
    id=optional(text()), type=optional(one_of("function")), function=shape(name=text(), arguments=anything)
)
_message = shape(
    role=text(),
    content=text(),
    reasoning=optional(text()),
    name=optional(text()),
    toolCalls=optional(array(_tool_call)),
    toolCallId=optional(text()),
)
_named = shape(name=text(length=1))
_modes = one_of("auto", "none", "required")


def _tool_choice(value: Any, where: str) -> Any:
    return _named(value, where) if isinstance(value, dict) else _modes(value, where)


_prompt = union(
    "kind",
    chat=dict(
        messages=array(_message, 1),
        tools=array(anything),
        toolChoice=optional(_tool_choice),
        parallelToolCalls=optional(boolean),
        variables=record(anything),
        nowMs=number(),
    ),
    text=dict(text=text()),
    ids=dict(ids=array(token, 1)),
)
_sampling = shape(
    temperature=amount,
    topP=number(above=0, high=1),
    topK=count,
    minP=number(low=0, high=1),
    repetitionPenalty=number(above=0),
    presencePenalty=number(),
    frequencyPenalty=number(),
    logitBias=array(pair(token, number())),
    seed=text(pattern=r"\d{1,20}"),
)
_grammar = union(
    "kind", json_object={}, json_schema=dict(schema=anything), regex=dict(pattern=text()), lark=dict(text=text())
)
_limits = shape(
    contextTokensMax=count,
    rowsMax=positive,
    waitingMax=count,
    memoryBytesMax=count,
    chunkMsMax=positive,
    prefixCacheBytesMax=count,
    peerTimeoutMsMax=positive,
    connectTimeoutMsMax=optional(positive),
    relinkWaitMsMax=optional(count),
)
_world = shape(
    rank=count,
    size=positive,
    backend=one_of("none", "ring", "jaccl", "nccl"),
    strategy=one_of("none", "tensor", "expert"),
    shares=array(number(above=0)),
    env=record(text()),
    files=record(text()),
)
_links = shape(
    listen=nullable(_endpoint), next=nullable(_endpoint), followers=array(_endpoint), back=nullable(_endpoint)
)

TO_WORKER = union(
    "kind",
    load=dict(
        group=text(),
        plan=text(),
        engine=one_of("mlx", "scripted"),
        model=shape(path=text(), digest=text(), name=text()),
        dtype=one_of("auto", "float32", "bfloat16", "float16"),
        stage=shape(index=count, count=positive, layers=pair(count, count)),
        world=_world,
        rank=count,
        links=_links,
        secret=text(),
        limits=_limits,
    ),
    submit=dict(
        attempt=text(),
        purpose=optional(one_of("answer", "count", "embed", "embed-start")),
        prompt=_prompt,
        sampling=_sampling,
        tokensMax=nullable(positive),
        stop=array(text(length=1)),
        ignoreEos=boolean,
        logprobs=nullable(number(low=0, high=20, whole=True)),
        grammar=nullable(_grammar),
        replay=array(token),
        cacheScope=text(),
    ),
    cancel=dict(attempt=text()),
    close={},
    relayed=dict(**{"from": count}, body=record(anything)),
    relink=dict(plan=text(), formation=count, links=_links, secret=text(), layers=optional(pair(count, count))),
)


@dataclass(frozen=True)
class Limits:
    context_tokens_max: int
    rows_max: int
    waiting_max: int
    memory_bytes_max: int
    chunk_ms_max: int
    prefix_cache_bytes_max: int = 0
    peer_timeout_ms_max: int = 5000
    connect_timeout_ms_max: int = 30_000
    relink_wait_ms_max: int = 60_000


@dataclass(frozen=True)
class Sampling:
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    seed: int = 0


@dataclass(frozen=True)
class World:
    """The ranks that hold this stage together."""

    rank: int
    size: int
    backend: str
    strategy: str
    shares: tuple[float, ...]
    env: dict[str, str]
    files: dict[str, str]


Endpoint = tuple[str, int]


@dataclass(frozen=True)
class Links:
    listen: Endpoint | None
    next: Endpoint | None
    followers: tuple[Endpoint, ...]
    back: Endpoint | None


@dataclass(frozen=True)
class Load:
    group: str
    plan: str
    engine: str
    model_path: str
    model_digest: str
    model_name: str
    dtype: str
    stage_index: int
    stage_count: int
    layers: tuple[int, int]
    world: World
    rank: int
    links: Links
    secret: str = field(repr=False)
    limits: Limits

    @property
    def alone(self) -> bool:
        return self.stage_count == 1 and self.world.size == 1

    @property
    def first(self) -> bool:
        return self.stage_index == 0

    @property
    def last(self) -> bool:
        return self.stage_index == self.stage_count - 1

    @property
    def leads(self) -> bool:
        return self.world.rank == 0


@dataclass(frozen=True)
class Submit:
    attempt: str
    purpose: str
    prompt: dict[str, Any]
    sampling: Sampling
    tokens_max: int | None
    stop: list[str]
    ignore_eos: bool
    logprobs: int | None
    grammar: dict[str, Any] | None
    replay: list[int]
    cache_scope: str


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_line(line: bytes) -> dict[str, Any]:
    """One line of the pipe as a checked frame. Raises FrameError."""
    try:
        value = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise FrameError("the line is not JSON") from None
    return TO_WORKER(value, "")


def attempt_of(line: bytes) -> str:
    """The attempt that a refused line named, or "" when it named none: the answer needs an address."""
    try:
        value = json.loads(line)
        return value["attempt"] if isinstance(value["attempt"], str) else ""
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def load_of(frame: dict[str, Any]) -> Load:
    limits, world, links = frame["limits"], frame["world"], frame["links"]
    return Load(
        group=frame["group"],
        plan=frame["plan"],
        engine=frame["engine"],
        model_path=frame["model"]["path"],
        model_digest=frame["model"]["digest"],
        model_name=frame["model"]["name"],
        dtype=frame["dtype"],
        stage_index=frame["stage"]["index"],
        stage_count=frame["stage"]["count"],
        layers=frame["stage"]["layers"],
        world=World(**{**world, "shares": tuple(world["shares"])}),
        rank=frame["rank"],
        links=links_of(links),
        secret=frame["secret"],
        limits=Limits(
            context_tokens_max=limits["contextTokensMax"],
            rows_max=limits["rowsMax"],
            waiting_max=limits["waitingMax"],
            memory_bytes_max=limits["memoryBytesMax"],
            chunk_ms_max=limits["chunkMsMax"],
            prefix_cache_bytes_max=limits["prefixCacheBytesMax"],
            peer_timeout_ms_max=limits["peerTimeoutMsMax"],
            connect_timeout_ms_max=limits.get("connectTimeoutMsMax", 30_000),
            relink_wait_ms_max=limits.get("relinkWaitMsMax", 60_000),
        ),
    )


def links_of(links: dict[str, Any]) -> Links:
    return Links(
        listen=_address(links["listen"]),
        next=_address(links["next"]),
        followers=tuple((entry["host"], entry["port"]) for entry in links["followers"]),
        back=_address(links["back"]),
    )


def _address(entry: dict[str, Any] | None) -> Endpoint | None:
    return None if entry is None else (entry["host"], entry["port"])


def sampling_of(sampling: dict[str, Any]) -> Sampling:
    return Sampling(
        temperature=sampling["temperature"],
        top_p=sampling["topP"],
        top_k=sampling["topK"],
        min_p=sampling["minP"],
        repetition_penalty=sampling["repetitionPenalty"],
        presence_penalty=sampling["presencePenalty"],
        frequency_penalty=sampling["frequencyPenalty"],
        logit_bias=tuple((token, bias) for token, bias in sampling["logitBias"]),
        seed=int(sampling["seed"]) & 0xFFFFFFFFFFFFFFFF,
    )


def submit_of(frame: dict[str, Any]) -> Submit:
    return Submit(
        attempt=frame["attempt"],
        purpose=frame.get("purpose", "answer"),
        prompt=frame["prompt"],
        sampling=sampling_of(frame["sampling"]),
        tokens_max=frame["tokensMax"],
        stop=frame["stop"],
        ignore_eos=frame["ignoreEos"],
        logprobs=frame["logprobs"],
        grammar=frame["grammar"],
        replay=frame["replay"],
        cache_scope=frame["cacheScope"],
    )


class FrameWriter:
    """Writes whole lines to the agent from any thread. A closed pipe means that nobody wants this rank."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, frame: dict[str, Any]) -> None:
        # ASCII escapes: a lone surrogate from a template must not become broken UTF-8 on the pipe.
        self.send_bytes(json.dumps(frame, separators=(",", ":"), allow_nan=False).encode() + b"\n")

    def send_bytes(self, line: bytes) -> None:
        view = memoryview(line)
        try:
            with self._lock:
                while view:
                    view = view[os.write(self._descriptor, view) :]
        except OSError:
            os._exit(0)
