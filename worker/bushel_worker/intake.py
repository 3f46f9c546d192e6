"""Everything between the pipe and the loop: reads lines, checks frames, renders and tokenises prompts, and
refuses at once what can never be served, even while the engine is busy."""

import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

from .checks import FrameError
from .frames import LINE_BYTES_MAX, FrameWriter, Submit, attempt_of, parse_line, submit_of
from .language import ConstraintRefused, PromptRefused
from .loop import Loop
from .rows import Row
from .service import Service
from .text import Writer


class Refused(Exception):
    """A request that is answered with `failed`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_lines(descriptor: int) -> "queue.SimpleQueue[bytes]":
    """Reads in a thread of its own, so that the end of the pipe is seen whatever the others do: an agent
    that is gone takes its rank with it."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        pending: list[bytes] = []
        size = 0
        try:
            while chunk := os.read(descriptor, 1 << 16):
                *whole, rest = chunk.split(b"\n")
                for part in whole:
                    lines.put(b"".join([*pending, part]))
                    pending, size = [], 0
                size += len(rest)
                if size <= LINE_BYTES_MAX:
                    pending.append(rest)
                else:
                    pending = [b"too long"]  # becomes a refused line
        finally:
            os._exit(0)

    threading.Thread(target=read, name="pipe", daemon=True).start()
    return lines


class Intake:
    def __init__(
        self, service: Service, loop: Loop, out: FrameWriter, relink: Callable[[dict[str, Any]], None] | None = None
    ) -> None:
        self._service, self._loop, self._out, self._relink = service, loop, out, relink
        self._arrivals = 0
        self._fitting = service.memory.tokens_max()  # prompt and answer together, with nobody else there

    def run(self, lines: "queue.SimpleQueue[bytes]") -> None:
        while True:
            line = lines.get()
            if line.strip():
                self.take(line)

    def take(self, line: bytes) -> None:
        try:
            frame = parse_line(line)
        except FrameError as error:
            refuse_line(self._out, line, str(error))
            return
        kind = frame["kind"]
        if kind == "submit":
            try:
                self._submit(submit_of(frame))
            except Exception as error:  # whatever one request does to us, the others go on
                log(f"a request was refused: {type(error).__name__}")
                self._fail(frame["attempt"], "internal", f"the request cannot be prepared ({type(error).__name__})")
        elif kind == "cancel":
            self._loop.orders.put(("cancel", frame["attempt"]))
        elif kind == "close":
            os._exit(0)
        elif kind == "relink" and self._relink is not None:
            self._relink(frame)
        else:
            refuse_line(self._out, line, f"a frame of kind {kind} is not expected now")

    def _submit(self, submit: Submit) -> None:
        try:
            if submit.purpose == "count":
                self._count(submit)
                return
            if submit.purpose in ("embed", "embed-start"):
                self._embed(submit)
                return
            if not getattr(self._service.engine, "writes", True):
                raise Refused("unsupported", "this model turns texts into vectors and writes no answers")
            row = self._row(submit)
        except Refused as refused:
            self._fail(submit.attempt, refused.code, str(refused))
            return
        limits = self._service.limits
        state = self._loop.open.add(submit.attempt, limits.rows_max + limits.waiting_max)
        if state == "known":  # answering would end the attempt that is running under this name
            log("an attempt was submitted twice; the second was ignored")
        elif state == "full":
            message = (
                f"{limits.rows_max} requests are being answered and {limits.waiting_max} are waiting; try again later"
            )
            self._fail(submit.attempt, "overloaded", message)
        else:
            row.scope = submit.cache_scope
            row.prefix = self._loop.prefixes.find(submit.cache_scope, [*row.prompt, *row.ids])
            tokens = len(row.prompt)
            cached = min(row.prefix.tokens, tokens) if row.prefix else 0
            told = {"attempt": row.attempt, "promptTokens": tokens, "cachedTokens": cached}
            self._out.send({"kind": "accepted", **told})
            self._loop.orders.put(("submit", row))

    def _count(self, submit: Submit) -> None:
        """A prompt's tokens are counted here: the engine has no part in it."""
        tokens = len(self._encode(submit))
        told = {"attempt": submit.attempt, "promptTokens": tokens, "cachedTokens": 0}
        self._out.send({"kind": "accepted", **told})
        nothing = {"reason": "stop", "parts": [], "completionTokens": 0, "reasoningTokens": 0}
        self._out.send({"kind": "finished", **told, **nothing})

    def _embed(self, submit: Submit) -> None:
        if not getattr(self._service.engine, "embeds", False):
            raise Refused("unsupported", "this model, or the way it is split, gives no vectors")
        if not self._service.language.abilities.get("embeddings"):
            raise Refused("unsupported", "this model was not trained to embed, or is read in a way that is not known")
        ids = self._encode(submit)
        context = self._service.context_tokens
        most = min(context, self._fitting)
        if submit.purpose == "embed-start" and len(ids) > most:
            ids = [*ids[: most - 1], ids[-1]]  # what closes a text is part of every text
        if len(ids) > context:
            raise Refused("prompt-too-long", f"the text has {len(ids)} tokens, but this model reads at most {context}")
        if len(ids) > self._fitting:
            message = f"the text has {len(ids)} tokens, but there is memory for {self._fitting} at a time"
            raise Refused("request-too-large", message)
        limits = self._service.limits
        if self._loop.open.add(submit.attempt, limits.rows_max + limits.waiting_max) == "full":
            raise Refused("overloaded", "too many texts are waiting; try again later")
        told = {"attempt": submit.attempt, "promptTokens": len(ids), "cachedTokens": 0}
        self._out.send({"kind": "accepted", **told})
        self._loop.orders.put(("embed", (submit.attempt, ids)))

    def _encode(self, submit: Submit) -> list[int]:
        try:
            return self._service.language.encode(submit.prompt)
        except PromptRefused as refused:
            raise Refused("bad-prompt", f"the prompt cannot be used: {refused}") from None

    def _row(self, submit: Submit) -> Row:
        language = self._service.language
        named = [*submit.replay, *(token for token, _ in submit.sampling.logit_bias)]
        if named and max(named) >= language.vocabulary:
            raise Refused("bad-request", f"token {max(named)} is not in the vocabulary of {language.vocabulary}")
        ids = self._encode(submit)
        tokens_max = self._allowance(len(ids), submit.tokens_max)
        try:
            constraint = language.constraint(submit.prompt, ids, submit.grammar)
        except ConstraintRefused as refused:
            raise Refused("bad-grammar", f"the answer cannot be kept to what was asked for: {refused}") from None
        writer = Writer(language.text_plan(submit.prompt, ids, submit.stop))
        for token in submit.replay:
            if not writer.stopped:
                writer.push(token)
        self._arrivals += 1
        return Row(
            attempt=submit.attempt,
            order=self._arrivals,
            prompt=ids,
            ids=list(submit.replay),
            tokens_max=tokens_max,
            sampling=submit.sampling,
            writer=writer,
            # A grammar that is through allows nothing but the end.
            ends=frozenset() if submit.ignore_eos and constraint is None else language.ends,
            constraint=constraint,
            logprobs=submit.logprobs,
        )

    def _allowance(self, prompt: int, wanted: int | None) -> int:
        """How many tokens may be written: as many as asked for, but not beyond the model's context. Memory is
        another matter: a request that names more than fits is refused; one that names nothing gets what fits."""
        context, fitting = self._service.context_tokens, self._fitting
        if prompt >= context:
            message = f"the prompt has {prompt} tokens, but this model's context holds {context}, answer included"
            raise Refused("prompt-too-long", message)
        room = context - prompt
        tokens = room if wanted is None else min(wanted, room)
        if prompt >= fitting or (wanted is not None and prompt + tokens > fitting):
            memory = self._service.memory
            needed, there = memory.row_bytes(prompt + tokens) / 1e6, memory.capacity_bytes / 1e6
            raise Refused(
                "request-too-large",
                f"{prompt} prompt tokens and {tokens} answer tokens need {needed:.0f} MB of cache, but only "
                f"{there:.0f} MB are there, enough for {fitting} tokens in all",
            )
        return min(tokens, fitting - prompt)

    def _fail(self, attempt: str, code: str, message: str) -> None:
        self._out.send({"kind": "failed", "attempt": attempt, "code": code, "message": message})


def refuse_line(out: FrameWriter, line: bytes, reason: str) -> None:
    """Junk is answered, to whomever it names, and never harms anyone else."""
    log(f"a line of {len(line)} bytes was refused: {reason}")
    out.send({"kind": "failed", "attempt": attempt_of(line), "code": "bad-frame", "message": reason[:300]})


def log(message: str) -> None:
    """Prompts and answers are never passed to this."""
    print(message, file=sys.stderr, flush=True)
