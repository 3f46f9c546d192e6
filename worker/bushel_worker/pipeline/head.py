"""The engine of a pipeline, as the head's loop sees it. It holds the first stage, sends what leaves it round the
ring, and reads the drawn tokens when they come back. Operations are carried out by every stage in the order
in which they were sent, so rows may join, leave and move between micro-batches that are still under way."""

import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ..rows import Chunk, Draw, Row
from ..stage_port import Span
from .holding import Holding, Keep
from .ids_digest import IdsDigest
from .joining import described, masks_of
from .link import Activity, Message, PeerLost
from .orphans import Orphans
from .recovery import Anew, Held, Refill, Replay, remedy
from .ring import Ring
from .service import send_kept
from .wire import Tensor
from .work import Work

WAIT_SECONDS = 0.2  # between two signs of life while waiting for tokens
CHUNKS_AHEAD = 2  # prompt chunks that may be under way beyond one per stage
REFILL_CHUNK_TOKENS = 256


class PipelineEngine:
    reads_first = True
    reuses_prefixes = False  # until every stage has said that it can

    def __init__(self, work: Work, ring: Ring, stages: int, activity: Activity, kept_bytes_max: int) -> None:
        self._work, self._stages, self._activity = work, stages, activity
        self._holding = Holding(work.stage, kept_bytes_max)
        self.on_wait: Callable[[bool], None] = lambda progressed: None
        self.ring = ring
        self._heard = 0
        self._numbers: dict[Row, int] = {}
        self._digests: dict[Row, IdsDigest] = {}
        self._given = 0
        self._orphans = Orphans([])
        self._adopted: set[Row] = set()  # whose later stages hold all of the prompt already
        self._batches: dict[int, list[Row]] = {}
        self._flights: dict[int, list[tuple[int, list[Row]]]] = {}  # steps under way, by micro-batch
        self._drawn: dict[int, dict[str, Any]] = {}  # what came back, by the number of what was sent
        self._unwanted: set[int] = set()
        self._chunks: deque[int] = deque()  # prompt chunks under way
        self._sent = 0

    # --- the port

    def prefill(self, chunks: list[Chunk], slices: int) -> Iterator[None]:
        if len(chunks) > 1 and self._orphans.rows:
            for chunk in chunks:
                yield from self.prefill([chunk], slices)
            return
        if len(chunks) == 1 and self._adopts(chunks[0].row):
            yield from self._computed(chunks, slices)
            return
        tensor = yield from self._computed(chunks, slices)
        while len(self._chunks) >= self._stages + CHUNKS_AHEAD:
            self._receive()
        spans = self._spans(chunks)
        header = {"op": "prefill", "spans": spans, "slices": slices, "digests": self._digested(chunks)}
        self._chunks.append(self._send(header, tensor))

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        gone = set(leaving)
        rows = [row for row in self._batches.get(batch, []) if row not in gone] + joining
        self._batches[batch] = rows
        numbers = [self._number(row) for row in joining]
        left = [self._numbers[row] for row in leaving]
        keeps = self._keep(batch, leaving)
        self._forgotten(leaving)
        self._activity.busy = True
        tensor = self._work.packed(self._work.step(batch, left, numbers, self._work.tokens(rows)))
        chunks = [Chunk(row, row.length - 1, row.length) for row in rows]
        spans, digests = self._spans(chunks), self._digested(chunks)
        self._holding.grew(spans, digests)
        self._holding.sent(spans, tensor)
        header = {
            "op": "step",
            "batch": batch,
            "leave": left,
            "keep": keeps,
            "join": [described(row, number) for row, number in zip(joining, numbers)],
            "rows": [span.row for span in spans],
            "at": [span.end for span in spans],
            "digests": digests,
            "masks": masks_of(rows, [self._numbers[row] for row in rows]),
        }
        self._flights.setdefault(batch, []).append((self._send(header, tensor), rows))

    def read(self, batch: int) -> list[Draw]:
        draws = []
        for step, rows in self._flights.pop(batch, []):
            told = self._answer(step)
            for index, (row, token) in enumerate(zip(rows, told["tokens"], strict=True)):
                logprob, top = told["told"].get(str(index), (None, None))
                draws.append(Draw(row, token, logprob, None if top is None else [(t, p) for t, p in top]))
        return draws

    def merge(self, batch: int, other: int) -> None:
        self._batches[batch] = self._batches[batch] + self._batches.pop(other)
        self._flights[batch] = self._flights.pop(batch, []) + self._flights.pop(other, [])
        self._work.stage.merge(batch, other)
        self._tell({"op": "merge", "batch": batch, "other": other})

    def drop(self, batch: int) -> None:
        rows = self._batches.pop(batch, [])
        keeps = self._keep(batch, rows)
        self._forgotten(rows)
        self._unwanted.update(step for step, _ in self._flights.pop(batch, []))
        self._work.stage.drop(batch)
        self._tell({"op": "drop", "batch": batch, "keep": keeps})

    def park(self) -> None:
        self._batches.clear()
        self._work.stage.park()
        self._tell({"op": "park"})

    def forget(self, row: Row) -> None:
        number = self._numbers.get(row)
        if number is not None:
            keeps = self._keep(-1, [row])
            self._forgotten([row])
            self._work.stage.forget(number)
            self._tell({"op": "forget", "row": number, "keep": keeps})

    def held(self, row: Row) -> int:
        return self._holding.lengths.get(self._numbers[row], 0)

    def begin(self, row: Row, entry: int, tokens: int) -> None:
        number = self._number(row)
        digest = self._digests[row].at(row, tokens)
        self._holding.begin(number, entry, tokens, digest)
        self._tell({"op": "begin", "row": number, "entry": entry, "tokens": tokens, "digest": digest})

    def evict(self, entry: int) -> None:
        self._holding.evict(entry)
        self._tell({"op": "evict", "entry": entry})

    def _keep(self, batch: int, leaving: list[Row]) -> list[Keep]:
        """Of rows that leave: those whose caches are wanted for a next turn."""
        keeps = [
            (self._numbers[row], row.kept_as, row.kept_tokens)
            for row in leaving
            if row.kept_as is not None and row in self._numbers
        ]
        for row in leaving:
            row.kept_as = None
        self._holding.keep(batch, keeps)
        return keeps

    def memory(self) -> tuple[int, int]:
        return self._work.memory()

    # --- a group that forms, or forms again

    def gather(self, facts: dict[str, Any]) -> list[dict[str, Any]]:
        """What every stage says of itself once it is loaded, this one first. Stages that have lost their former
        head still hold its rows: who comes with the same ids goes on with them."""
        told = self._answer(self._send({"op": "gather", "facts": [facts]}))["facts"]
        self._orphans = Orphans([stage["rows"] for stage in told[1:]])
        self.reuses_prefixes = all(stage.get("keeps", False) for stage in told)
        self._given = self._orphans.highest
        return told

    def recover(self, ring: Ring, wanted: dict[Row, int], chunk: int) -> tuple[set[Row], int]:
        """Over a new ring: makes every stage hold so many tokens of each row, and nothing else. Returns the rows
        for which that cannot be done without prefilling them anew, and how many tokens were computed again."""
        self.ring = ring
        for known in (self._batches, self._flights, self._drawn, self._unwanted, self._chunks):
            known.clear()
        for row in list(self._numbers):
            if row not in wanted:
                self._forgotten([row])
        targets = {self._numbers[row]: tokens for row, tokens in wanted.items() if tokens and row in self._numbers}
        own = self._holding.settle(targets)
        survey = {"op": "survey", "rows": {str(n): tokens for n, tokens in targets.items()}, "held": [own]}
        stages = self._answer(self._send(survey))["held"]
        anew: set[Row] = set()
        again, pending = 0, []
        for row, tokens in wanted.items():
            number = self._numbers.get(row)
            if number not in targets:
                continue
            cure = remedy(tokens, [Held(*stage[str(number)]) for stage in stages])
            if isinstance(cure, Anew):
                anew.add(row)
            elif isinstance(cure, Refill):
                again += tokens - cure.start
                for at in range(cure.start, tokens, REFILL_CHUNK_TOKENS):
                    part = Chunk(row, at, min(tokens, at + REFILL_CHUNK_TOKENS))
                    for _ in self._computed([part], 1):
                        self.on_wait(True)
            elif isinstance(cure, Replay):
                again += tokens - cure.start
                pending.append(self._replay(row, tokens, cure, chunk))
        for number in pending:
            self._chunks.append(number)
        while self._chunks:
            self._receive()
        for row in anew:
            self.forget(row)
        return anew, again

    def _replay(self, row: Row, tokens: int, cure: Replay, chunk: int) -> int:
        order = {
            "op": "replay",
            "row": self._numbers[row],
            "start": cure.start,
            "end": tokens,
            "first": cure.first,
            "last": cure.last,
            "chunk": chunk,
            "digest": self._digests[row].at(row, tokens),
        }
        if cure.first > 1:
            return self._send(order)
        self._sent += 1
        send_kept(self.ring, self._holding, {**order, "number": self._sent})
        return self._sent

    def _adopts(self, row: Row) -> bool:
        """Whether the later stages hold this row's prompt already."""
        if row in self._adopted:
            return True
        for number in self._orphans.expired(time.monotonic()):
            self._tell({"op": "forget", "row": number, "keep": []})
        target = row.prefill_target
        if row in self._numbers or not self._orphans.rows:
            return False
        found = self._orphans.take(target, IdsDigest().at(row, target))
        if found is None:
            return False
        self._send({"op": "adopt", "row": self._number(row), "from": found, "tokens": target})
        self._adopted.add(row)
        return True

    # --- the ring

    def _computed(self, chunks: list[Chunk], slices: int) -> Any:
        """This stage's part of reading prompts, in its books too."""
        spans = self._spans(chunks)
        self._activity.busy = True
        out = yield from self._work.prefill(spans, self._work.prompts(chunks), slices)
        tensor: Tensor = self._work.packed(out)
        self._holding.grew(spans, self._digested(chunks))
        self._holding.sent(spans, tensor)
        return tensor

    def _answer(self, number: int) -> dict[str, Any]:
        while number not in self._drawn:
            self._receive()
        return self._drawn.pop(number)

    def _send(self, header: dict[str, Any], tensor: Tensor | None = None) -> int:
        self._activity.step += 1
        self._activity.busy = False
        self._sent += 1
        self.ring.outward.send({**header, "number": self._sent}, tensor)
        return self._sent

    def _tell(self, header: dict[str, Any]) -> None:
        """Of rows that go: should the ring be broken, that is noticed soon enough, and the rows go anyway."""
        try:
            self._send(header)
        except PeerLost:
            pass

    def _receive(self) -> None:
        self._activity.busy = False
        while True:
            try:
                came: Message | PeerLost = self.ring.inbox.get(timeout=WAIT_SECONDS)
                break
            except queue.Empty:
                heard = self.ring.inward.heard + self.ring.outward.heard
                self.on_wait(heard != self._heard)
                self._heard = heard
        if isinstance(came, PeerLost):
            raise came
        header = came.header
        number = header["number"]
        if header["op"] == "read":
            self._chunks.remove(number)
        elif number in self._unwanted:
            self._unwanted.remove(number)
        else:
            self._drawn[number] = header

    # --- rows

    def _number(self, row: Row) -> int:
        if row not in self._numbers:
            self._given += 1
            self._numbers[row] = self._given
            self._digests[row] = IdsDigest()
        return self._numbers[row]

    def _spans(self, chunks: list[Chunk]) -> list[Span]:
        return [Span(self._number(row), start, end) for row, start, end in chunks]

    def _digested(self, chunks: list[Chunk]) -> list[str]:
        return [self._digests[row].at(row, end) for row, _, end in chunks]

    def _forgotten(self, rows: list[Row]) -> None:
        for row in rows:
            self._digests.pop(row, None)
            self._adopted.discard(row)
            number = self._numbers.pop(row, None)
            if number is not None:
                self._holding.left([number])
