"""What crosses the pipe between an agent and this rank, and the checks of it. The same shapes are in
src/wire/worker-frames.ts; both sides test the cases in test/contracts/frames."""

import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Check = Callable[[Any, str], Any]

WHOLE_MAX = (1 << 53) - 1  # what a JSON number holds exactly on the other side
LINE_BYTES_MAX = 64 << 20


class FrameError(Exception):
    """Where a frame differs from its shape."""


# --- checks: each takes a value and where it was found, and returns what is kept of it


def _refuse(where: str, wanted: str) -> Any:
    raise FrameError(f"{where or 'the frame'} must be {wanted}")


def anything(value: Any, where: str) -> Any:
    return value


def boolean(value: Any, where: str) -> bool:
    return value if isinstance(value, bool) else _refuse(where, "true or false")


def number(low: float | None = None, high: float | None = None, above: float | None = None, whole: bool = False) -> Check:
    def check(value: Any, where: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value or abs(value) == float("inf"):
            return _refuse(where, "a number")
        if whole and (value != int(value) or abs(value) > WHOLE_MAX):
            return _refuse(where, "a whole number")
        if low is not None and value < low or above is not None and value <= above or high is not None and value > high:
            return _refuse(where, f"between {low if above is None else above} and {high}")
        return int(value) if whole else float(value)

    return check


def text(pattern: str = "", length: int = 0) -> Check:
    def check(value: Any, where: str) -> str:
        if not isinstance(value, str) or len(value) < length:
            return _refuse(where, "a text" if length == 0 else "a text that is not empty")
        return value if not pattern or re.fullmatch(pattern, value, re.ASCII) else _refuse(where, f"like {pattern}")

    return check


def one_of(*values: str) -> Check:
    return lambda value, where: value if isinstance(value, str) and value in values else _refuse(where, " or ".join(values))


def array(item: Check, length: int = 0) -> Check:
    def check(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list) or len(value) < length:
            return _refuse(where, f"a list of at least {length}")
        return [item(entry, f"{where}[{index}]") for index, entry in enumerate(value)]

    return check


def pair(first: Check, second: Check) -> Check:
    def check(value: Any, where: str) -> tuple[Any, Any]:
        if not isinstance(value, list) or len(value) != 2:
            return _refuse(where, "a pair")
        return first(value[0], f"{where}[0]"), second(value[1], f"{where}[1]")

    return check


def record(item: Check) -> Check:
    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return _refuse(where, "an object")
        return {key: item(entry, f"{where}.{key}") for key, entry in value.items()}

    return check


def nullable(check: Check) -> Check:
    return lambda value, where: None if value is None else check(value, where)


class optional:
    """Marks a field that may be absent (but not null)."""

    def __init__(self, check: Check) -> None:
        self.check = check


def shape(**fields: Check | optional) -> Check:
    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            return _refuse(where, "an object")
        kept = {}
        for name, field in fields.items():
            inner = f"{where}.{name}" if where else name
            if name in value:
                kept[name] = (field.check if isinstance(field, optional) else field)(value[name], inner)
            elif not isinstance(field, optional):
                _refuse(inner, "present")
        return kept

    return check


def union(tag: str, **shapes: dict[str, Any]) -> Check:
    """An object whose `tag` says which of the shapes it has."""
    checks = {name.replace("_", "-"): shape(**{tag: anything}, **fields) for name, fields in shapes.items()}

    def check(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict) or not isinstance(value.get(tag), str) or value[tag] not in checks:
            return _refuse(f"{where}.{tag}" if where else tag, " or ".join(checks))
        return checks[value[tag]](value, where)

    return check


# --- the shapes

_count = number(low=0, whole=True)
_positive = number(low=1, whole=True)
_token = number(low=0, high=0xFFFFFFFF, whole=True)
_amount = number(low=0)
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
_prompt = union(
    "kind",
    chat=dict(messages=array(_message, 1), tools=array(anything), variables=record(anything), nowMs=number()),
    text=dict(text=text()),
    ids=dict(ids=array(_token, 1)),
)
_sampling = shape(
    temperature=_amount,
    topP=number(above=0, high=1),
    topK=_count,
    minP=number(low=0, high=1),
    repetitionPenalty=number(above=0),
    presencePenalty=number(),
    frequencyPenalty=number(),
    logitBias=array(pair(_token, number())),
    seed=text(pattern=r"\d{1,20}"),
)
_grammar = union(
    "kind", json_object={}, json_schema=dict(schema=anything), regex=dict(pattern=text()), lark=dict(text=text())
)
_limits = shape(
    contextTokensMax=_count,
    rowsMax=_positive,
    waitingMax=_count,
    memoryBytesMax=_count,
    chunkMsMax=_positive,
    prefixCacheBytesMax=_count,
    peerTimeoutMsMax=_positive,
)
_world = shape(
    rank=_count,
    size=_positive,
    backend=one_of("none", "ring", "jaccl", "nccl"),
    strategy=one_of("none", "tensor", "expert"),
    shares=array(number(above=0)),
    env=record(text()),
)

TO_WORKER = union(
    "kind",
    load=dict(
        group=text(),
        plan=text(),
        engine=one_of("mlx", "scripted"),
        model=shape(path=text(), digest=text(), name=text()),
        dtype=one_of("auto", "float32", "bfloat16", "float16"),
        stage=shape(index=_count, count=_positive, layers=pair(_count, _count)),
        world=_world,
        listen=nullable(_endpoint),
        next=array(_endpoint),
        secret=text(),
        limits=_limits,
    ),
    submit=dict(
        attempt=text(),
        prompt=_prompt,
        sampling=_sampling,
        tokensMax=nullable(_positive),
        stop=array(text(length=1)),
        ignoreEos=boolean,
        logprobs=nullable(number(low=0, high=20, whole=True)),
        grammar=nullable(_grammar),
        replay=array(_token),
        cacheScope=text(),
    ),
    cancel=dict(attempt=text()),
    close={},
    relayed=dict(**{"from": _count}, body=record(anything)),
)

_parts = array(
    union(
        "type", content=dict(text=text()), reasoning=dict(text=text()), tool_call=dict(name=text(), arguments=text())
    )
)
_logprob = shape(
    text=text(),
    bytes=optional(array(number(low=0, high=255, whole=True))),
    logprob=number(),
    top=array(shape(token=_token, text=text(), logprob=number())),
)
_row = shape(attempt=text(), position=_count, token=_token, parts=_parts, logprob=optional(_logprob))

FROM_WORKER = union(
    "kind",
    ready=dict(
        pid=_count,
        device=text(),
        versions=record(text()),
        contextTokens=_count,
        vocabulary=_count,
        rowsMax=_count,
        weightsBytes=_count,
        kvBytesPerToken=_amount,
        batching=one_of("merged", "separate"),
        loadMs=_amount,
        canaryMs=_amount,
        abilities=shape(chat=boolean, tools=boolean, reasoning=boolean),
    ),
    progress=dict(
        phase=one_of("start", "load", "connect", "self-test", "canary", "prefill"),
        attempt=nullable(text()),
        done=_amount,
        total=_amount,
    ),
    accepted=dict(attempt=text(), promptTokens=_count, cachedTokens=_count),
    step=dict(step=_count, rows=array(_row)),
    finished=dict(
        attempt=text(),
        reason=one_of("stop", "length", "tool-calls", "cancelled"),
        parts=_parts,
        promptTokens=_count,
        cachedTokens=_count,
        completionTokens=_count,
        reasoningTokens=_count,
    ),
    failed=dict(attempt=nullable(text()), code=text(), message=text()),
    pulse=dict(step=_count, busy=boolean),
    stats=dict(
        step=_count,
        rows=_count,
        waiting=_count,
        kvBytes=_count,
        activeBytes=_count,
        peakBytes=_count,
        prefixCacheBytes=_count,
        prefillTokensPerSecond=_amount,
        decodeTokensPerSecond=_amount,
    ),
    relay=dict(to=array(_count), body=record(anything)),
)


# --- what the rest of the worker sees


@dataclass(frozen=True)
class Limits:
    context_tokens_max: int
    rows_max: int
    waiting_max: int
    memory_bytes_max: int
    chunk_ms_max: int


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
class Load:
    engine: str
    model_path: str
    model_name: str
    dtype: str
    stage_count: int
    layers: tuple[int, int]
    world_size: int
    limits: Limits


@dataclass(frozen=True)
class Submit:
    attempt: str
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
    limits = frame["limits"]
    return Load(
        engine=frame["engine"],
        model_path=frame["model"]["path"],
        model_name=frame["model"]["name"],
        dtype=frame["dtype"],
        stage_count=frame["stage"]["count"],
        layers=frame["stage"]["layers"],
        world_size=frame["world"]["size"],
        limits=Limits(
            context_tokens_max=limits["contextTokensMax"],
            rows_max=limits["rowsMax"],
            waiting_max=limits["waitingMax"],
            memory_bytes_max=limits["memoryBytesMax"],
            chunk_ms_max=limits["chunkMsMax"],
        ),
    )


def submit_of(frame: dict[str, Any]) -> Submit:
    sampling = frame["sampling"]
    return Submit(
        attempt=frame["attempt"],
        prompt=frame["prompt"],
        sampling=Sampling(
            temperature=sampling["temperature"],
            top_p=sampling["topP"],
            top_k=sampling["topK"],
            min_p=sampling["minP"],
            repetition_penalty=sampling["repetitionPenalty"],
            presence_penalty=sampling["presencePenalty"],
            frequency_penalty=sampling["frequencyPenalty"],
            logit_bias=tuple(sampling["logitBias"]),
            seed=int(sampling["seed"]) & 0xFFFFFFFFFFFFFFFF,
        ),
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
