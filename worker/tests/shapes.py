"""The shapes of the frames that a worker sends, as in src/wire/worker-frames.ts."""

from bushel_worker.checks import (
    anything,
    array,
    boolean,
    nullable,
    number,
    one_of,
    optional,
    record,
    shape,
    text,
    union,
)
from bushel_worker.frames import amount, count, token

_parts = array(
    union(
        "type",
        content=dict(text=text()),
        reasoning=dict(text=text()),
        tool_call=dict(name=text(), arguments=text()),
        tool_call_start=dict(name=text()),
        tool_call_delta=dict(arguments=text()),
        tool_call_end={},
        stop=dict(text=text()),
        embedding=dict(data=text()),
    )
)
_logprob = shape(
    text=text(),
    bytes=optional(array(number(low=0, high=255, whole=True))),
    logprob=number(),
    top=array(shape(token=token, text=text(), logprob=number())),
)
_row = shape(attempt=text(), position=count, token=token, parts=_parts, logprob=optional(_logprob))

FROM_WORKER = union(
    "kind",
    ready=dict(
        pid=count,
        device=text(),
        versions=record(text()),
        contextTokens=count,
        vocabulary=count,
        rowsMax=count,
        weightsBytes=count,
        kvBytesPerToken=amount,
        batching=one_of("merged", "separate"),
        loadMs=amount,
        canaryMs=amount,
        abilities=shape(
            chat=boolean,
            tools=boolean,
            reasoning=boolean,
            grammar=optional(boolean),
            embeddings=optional(boolean),
        ),
    ),
    progress=dict(
        phase=one_of("start", "load", "connect", "self-test", "canary", "prefill"),
        attempt=nullable(text()),
        done=amount,
        total=amount,
    ),
    accepted=dict(attempt=text(), promptTokens=count, cachedTokens=count),
    step=dict(step=count, rows=array(_row)),
    finished=dict(
        attempt=text(),
        reason=one_of("stop", "length", "tool-calls", "cancelled"),
        parts=_parts,
        promptTokens=count,
        cachedTokens=count,
        completionTokens=count,
        reasoningTokens=count,
    ),
    failed=dict(attempt=nullable(text()), code=text(), message=text()),
    pulse=dict(step=count, busy=boolean),
    stats=dict(
        step=count,
        rows=count,
        waiting=count,
        kvBytes=count,
        activeBytes=count,
        peakBytes=count,
        prefixCacheBytes=count,
        prefillTokensPerSecond=amount,
        decodeTokensPerSecond=amount,
    ),
    relay=dict(to=array(count), body=record(anything)),
    peer_lost=dict(rank=count, reason=text()),
    relinked=dict(formation=count, tokensReplayed=count, rowsAnew=count),
    paused=dict(attempts=array(text()), pause=shape(cause=text(), waitedMs=amount, reworkedMs=amount)),
)
