"""The head's loop: takes orders, lets the engine read and write, turns what it drew into frames. It is
the only thread that touches the engine, and the only one that says how the engine is doing: when it
hangs, it falls silent, and that is how its agent notices."""

import base64
import math
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .engine_port import Engine
from .language import Language
from .memory import MemoryPlan
from .pace import Pace
from .prefix_cache import PrefixCache
from .rows import Chunk, Draw, Row
from .scheduler import Batch, Prefill, Scheduler

PULSE_SECONDS = 0.2
EMBED_TOKENS = 256  # of a text that becomes a vector, read between two signs of life
STATS_SECONDS = 1.0
LOGPROB_MIN = -9999.0  # JSON has no infinity

Send = Callable[[dict[str, Any]], None]


class OpenAttempts:
    """The attempts that were accepted and have not ended, shared with the intake."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()

    def add(self, attempt: str, count_max: int) -> str:
        """ "added", "full", or "known"."""
        with self._lock:
            if attempt in self._names:
                return "known"
            if len(self._names) >= count_max:
                return "full"
            self._names.add(attempt)
            return "added"

    def discard(self, attempt: str) -> None:
        with self._lock:
            self._names.discard(attempt)


class Loop:
    def __init__(
        self,
        engine: Engine,
        language: Language,
        memory: MemoryPlan,
        scheduler: Scheduler,
        pace: Pace,
        prefixes: PrefixCache,
        send: Send,
    ) -> None:
        self._engine, self._language, self._memory = engine, language, memory
        self.prefixes = prefixes
        self._scheduler, self._pace, self._send = scheduler, pace, send
        self.orders: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.open = OpenAttempts()
        self._steps = 0
        self._told_at = self._stats_at = time.monotonic()
        self._decoded = 0  # tokens since the last stats
        self._first_waits = False  # rows have joined an engine where nobody wrote, and have drawn nothing yet
        self._left = False  # whether rows have left since micro-batches were last compared

    def run(self) -> None:
        while True:
            if self._scheduler.idle:
                self._take_order(self.orders.get())
            self.work()

    def work(self) -> None:
        """Works until there is nothing to do."""
        self._stats_at = time.monotonic()
        while self._round():
            pass
        self._stats()
        self._tell({"kind": "pulse", "step": self._steps, "busy": False})

    def resume(self, recover: Callable[[dict[Row, int]], set[Row]]) -> None:
        """After the engine was interrupted: everyone who wrote goes on from the ids that are here. `recover` gets
        how much of each row must be in the caches, and returns the rows that have to be read anew."""
        for prefill in self._scheduler.prefills:
            prefill.done = 0
        self.prefixes.clear()
        anew = recover({row: row.prefill_target for row in self._scheduler.decoding})
        self._scheduler.rejoin()
        for row in anew:
            self._scheduler.remove(row.attempt)
            self._scheduler.add(row)
        self._drop_empty()

    def waited(self, progressed: bool) -> None:
        """The engine waits for other ranks; `progressed`: it has heard of a step of theirs meanwhile."""
        self._steps += progressed
        self._pulse()

    def _round(self) -> bool:
        while not self.orders.empty():
            self._take_order(self.orders.get())
        self._admit()
        self._read_prompts()
        self._relieve_memory()
        self._write_answers()
        if time.monotonic() - self._stats_at >= STATS_SECONDS:
            self._stats()
        return not self._scheduler.idle

    # --- orders

    def _take_order(self, order: tuple[str, Any]) -> None:
        kind, subject = order
        if kind == "submit":
            row: Row = subject
            if row.writer.stopped or len(row.ids) >= row.tokens_max:  # everything was said before this attempt
                self._unpromise(row)
                self._finish(row, "stop" if row.writer.stopped else "length")
            else:
                self._scheduler.add(row)
            return
        if kind == "embed":
            self._embed(*subject)
            return
        if kind == "lost":  # a neighbour went, perhaps while there was nothing to do
            subject()
            return
        found = self._scheduler.remove(subject)
        if found is not None:
            row, where = found
            self._unpromise(row)
            if where == "prefill":
                self._engine.forget(row)
            elif where == "decoding":
                self._keep(row, [])
            self._drop_empty()
            self._finish(row, "cancelled")

    def _embed(self, attempt: str, ids: list[int]) -> None:
        """Whole, between two rounds: models that embed answer nothing else."""
        work = self._engine.embed(ids, max(1, min(EMBED_TOKENS, self._memory.chunk_tokens_max(len(ids)))))
        while True:
            try:
                next(work)
            except StopIteration as done:
                data = done.value
                break
            self._steps += 1
            self._pulse()
        self.open.discard(attempt)
        parts = [{"type": "embedding", "data": base64.b64encode(data).decode()}]
        told = {"promptTokens": len(ids), "cachedTokens": 0, "completionTokens": 0, "reasoningTokens": 0}
        self._tell({"kind": "finished", "attempt": attempt, "reason": "stop", "parts": parts, **told})

    # --- prompts

    def _read_prompts(self) -> None:
        """Reads prompts for a turn: short ones as long as the pace allows, of a long one a single chunk."""
        if self._first_waits:  # whoever comes to an idle engine gets a first token before the next prompt is read
            self._first_waits = False
            return
        decoding = self._decoding()
        while (prefill := self._scheduler.next_prefill()) is not None:
            count = self._pace.chunk_tokens(prefill.left, decoding)
            count = min(count, self._memory.chunk_tokens_max(prefill.done))
            if count == 0:
                return
            whole = prefill.left <= count
            self._read_chunks(self._scheduler.beside(prefill, count), count, decoding)
            self._scheduler.take_turn()
            if not (whole and decoding) or not self.orders.empty():
                return
            self._admit()

    def _read_chunks(self, prefills: list[Prefill], count_max: int, decoding: bool) -> None:
        chunks = [Chunk(p.row, p.done, p.done + min(count_max, p.left)) for p in prefills if p.left > 0]
        tokens = sum(chunk.end - chunk.start for chunk in chunks)
        if tokens > 0:
            began = time.monotonic()
            slices = 1 + int(tokens / self._pace.tokens_per_second / PULSE_SECONDS)
            for _ in self._engine.prefill(chunks, slices):
                self._steps += 1
                self._pulse()
            self._pace.read(tokens, time.monotonic() - began, decoding)
        for prefill in prefills:
            row, total = prefill.row, prefill.row.prefill_target
            prefill.done = min(prefill.done + count_max, total)
            done = prefill.done
            self._tell({"kind": "progress", "phase": "prefill", "attempt": row.attempt, "done": done, "total": total})
            if prefill.left <= 0:
                self._scheduler.prefilled(prefill)

    # --- kept prefixes

    def _admit(self) -> None:
        for prefill in self._scheduler.admit():
            row, hit = prefill.row, prefill.row.prefix
            if hit is not None and self._unpromise(row):
                self._engine.begin(row, hit.entry, hit.tokens)
                row.cached = prefill.done = hit.tokens
        if self.prefixes.size:
            room = self._memory.capacity_bytes - self._scheduler.used_bytes()
            for entry in self.prefixes.make_room(room):
                self._engine.evict(entry)

    def _unpromise(self, row: Row) -> bool:
        """A row needs its promised entry no longer; False when there is none any more."""
        hit, row.prefix = row.prefix, None
        return hit is not None and self.prefixes.settle(hit)

    def _keep(self, row: Row, ended_by: list[int]) -> None:
        """What a row that leaves its micro-batch has in its caches is kept for the next turn."""
        if row.scope is not None and self.prefixes.bytes_max > 0:
            held = [*row.prompt, *row.ids, *ended_by][: self._engine.held(row)]
            row.kept_as, row.kept_tokens = self.prefixes.add(row.scope, held), len(held)

    # --- memory

    def _relieve_memory(self) -> None:
        while (row := self._scheduler.overdrawn()) is not None:
            found = self._scheduler.remove(row.attempt)
            assert found is not None
            if found[1] == "prefill":
                self._engine.forget(row)
            row.gave_up = True
            self._scheduler.add(row)
        self._drop_empty()

    def _drop_empty(self) -> None:
        for batch in self._scheduler.drop_empty():
            self._engine.drop(batch.number)

    # --- answers

    def _write_answers(self) -> None:
        self._first_waits = bool(self._scheduler.batches) and not self._decoding()
        for batch in list(self._scheduler.batches):
            began = time.monotonic()
            if self._engine.reads_first:
                self._read_tokens(batch)
            if not batch.members:
                self._left = True
            else:
                self._begin_step(batch)
                if not self._engine.reads_first:
                    self._read_tokens(batch)
            self._pace.wrote(time.monotonic() - began)
        self._drop_empty()
        if self._left and self._engine.reads_first and self._scheduler.lopsided():
            self._spread_out()
        if self._left and len(self._scheduler.batches) > 1:
            pair = self._scheduler.mergeable()
            if pair is None:
                self._left = False
            else:
                self._engine.merge(pair[0].number, pair[1].number)
                self._scheduler.merged(*pair)

    def _spread_out(self) -> None:
        for batch in self._scheduler.batches:
            self._read_tokens(batch)
        if not self._scheduler.lopsided():
            self._drop_empty()
            return
        self._engine.park()
        for batch in self._scheduler.batches:
            for row in batch.leaving:
                self._engine.forget(row)
        self._scheduler.spread_out()

    def _begin_step(self, batch: Batch) -> None:
        joining, leaving = batch.joining, batch.leaving
        self._left = self._left or bool(leaving)
        # A row that can draw only one more token needs no further step.
        goes_on = bool(joining) or any(len(row.ids) + 1 < row.tokens_max for row in batch.members)
        self._engine.step(batch.number, joining, leaving, goes_on)
        self._scheduler.settle(batch)

    def _read_tokens(self, batch: Batch) -> None:
        leaving = set(batch.leaving)
        draws = [draw for draw in self._engine.read(batch.number) if draw.row not in leaving]
        self._steps += 1
        if draws:
            self._deliver(batch, draws)

    def _decoding(self) -> bool:
        return any(batch.rows for batch in self._scheduler.batches)

    def _deliver(self, batch: Batch, draws: list[Draw]) -> None:
        shown: list[dict[str, Any]] = []
        finished: list[tuple[Row, str, list[int]]] = []  # with the token that ended it, if one did
        for draw in draws:
            row, token = draw.row, draw.token
            if row.constraint is not None and row.constraint.problem is not None:
                self._scheduler.leave(batch, row)
                self._refuse(row, "bad-grammar", f"the grammar cannot be followed further: {row.constraint.problem}")
                continue
            if token in row.ends:
                finished.append((row, "stop", [token]))
                continue
            try:
                parts = row.writer.push(token)
            except Exception as error:  # one answer's text must not end the others
                self._scheduler.leave(batch, row)
                self._fail(row, error)
                continue
            entry: dict[str, Any] = {
                "attempt": row.attempt,
                "position": len(row.ids),
                "token": token,
                "parts": parts,
            }
            if draw.logprob is not None:
                entry["logprob"] = self._log_probability(draw)
            row.ids.append(token)
            shown.append(entry)
            if row.writer.stopped:
                finished.append((row, "stop", []))
            elif len(row.ids) >= row.tokens_max:
                finished.append((row, "length", []))
        self._decoded += len(shown)
        if shown:
            self._tell({"kind": "step", "step": self._steps, "rows": shown})
        for row, reason, end in finished:
            self._scheduler.leave(batch, row)
            self._keep(row, end)
            self._finish(row, reason)

    def _log_probability(self, draw: Draw) -> dict[str, Any]:
        text, raw = self._language.label(draw.token)
        told: dict[str, Any] = {"text": text, "logprob": _finite(draw.logprob), "top": []}
        if raw is not None:
            told["bytes"] = raw
        for token, logprob in draw.top or ():
            told["top"].append({"token": token, "text": self._language.label(token)[0], "logprob": _finite(logprob)})
        return told

    # --- what the agent hears

    def _finish(self, row: Row, reason: str) -> None:
        try:
            parts, reason = row.writer.finish(reason)
        except Exception as error:
            self._fail(row, error)
            return
        self.open.discard(row.attempt)
        self._tell(
            {
                "kind": "finished",
                "attempt": row.attempt,
                "reason": reason,
                "parts": parts,
                "promptTokens": len(row.prompt),
                "cachedTokens": min(row.cached, len(row.prompt)),
                "completionTokens": len(row.ids),
                "reasoningTokens": row.writer.reasoning_tokens,
            }
        )

    def _fail(self, row: Row, error: Exception) -> None:
        print(f"text of one attempt failed: {type(error).__name__}", file=sys.stderr, flush=True)
        self._refuse(row, "internal", f"the answer's text cannot be read ({type(error).__name__})")

    def _refuse(self, row: Row, code: str, message: str) -> None:
        self.open.discard(row.attempt)
        self._tell({"kind": "failed", "attempt": row.attempt, "code": code, "message": message})

    def _tell(self, frame: dict[str, Any]) -> None:
        self._send(frame)
        self._told_at = time.monotonic()

    def _pulse(self) -> None:
        if time.monotonic() - self._told_at >= PULSE_SECONDS:
            self._tell({"kind": "pulse", "step": self._steps, "busy": True})

    def _stats(self) -> None:
        now = time.monotonic()
        active, peak = self._engine.memory()
        seconds = max(now - self._stats_at, 1e-3)
        self._tell(
            {
                "kind": "stats",
                "step": self._steps,
                "rows": len(self._scheduler.decoding),
                "waiting": len(self._scheduler.waiting) + len(self._scheduler.prefills),
                "kvBytes": self._scheduler.used_bytes(),
                "activeBytes": active,
                "peakBytes": peak,
                "prefixCacheBytes": self.prefixes.size,
                "prefillTokensPerSecond": round(self._pace.tokens_per_second, 1),
                "decodeTokensPerSecond": round(self._decoded / seconds, 1),
            }
        )
        self._stats_at, self._decoded = now, 0


def _finite(logprob: float | None) -> float:
    return max(logprob, LOGPROB_MIN) if logprob is not None and math.isfinite(logprob) else LOGPROB_MIN
