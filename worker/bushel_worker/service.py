"""What loading gives, whichever engine: everything that the loop, the intake and the ready frame need."""

from dataclasses import dataclass

from .engine_port import Engine
from .frames import Limits
from .language import Language
from .loop import Loop, Send
from .memory import MemoryPlan
from .pace import Pace
from .prefix_cache import PrefixCache
from .scheduler import Scheduler


@dataclass(frozen=True)
class Service:
    engine: Engine
    language: Language
    memory: MemoryPlan
    limits: Limits
    context_tokens: int
    merging: bool  # whether rows may share a micro-batch
    reading_together: bool  # whether short prompts may be read in one pass
    tokens_per_second: float  # prompt reading, as measured at load
    device: str
    versions: dict[str, str]
    canary: list[int]  # a prompt to try before anyone else does
    spread: int = 1  # micro-batches that should be under way at once: as many as there are stages
    trims: bool = False  # whether caches can be cut short, so that part of a kept prefix is of use

    def loop(self, send: Send) -> Loop:
        scheduler = Scheduler(self.memory, self.limits.rows_max, self.merging, self.reading_together, self.spread)
        pace = Pace(self.limits.chunk_ms_max, self.tokens_per_second)
        loop = Loop(self.engine, self.language, self.memory, scheduler, pace, self._prefixes(), send)
        if self.engine.reads_first:
            self.engine.on_wait = loop.waited
        return loop

    def _prefixes(self) -> PrefixCache:
        budget = self.limits.prefix_cache_bytes_max if getattr(self.engine, "reuses_prefixes", False) else 0
        return PrefixCache(budget, self.memory.row_bytes, self.trims)
