"""What rows cost in memory, and who may have some. The rank was promised `memory_bytes_max` in all:

    weights + working share + caches ≤ memory_bytes_max

The working share is for activations, for a copy of one layer's cache while it grows, and for the
buffers that MLX keeps for reuse. Prefill chunks are cut so that attention stays within it.

Caches are counted as they are really held: every row of a micro-batch is padded to its longest, and
buffers grow in steps of 256 tokens. A row is let in when its prompt, one step of growth, and one step of
growth for everyone already running fit; what it may still write is not reserved. When a micro-batch
must grow and nothing is left, the youngest row gives up its cache and waits in line again with the ids
it has; it is prefilled anew later and its reader sees a pause. It comes back only when everyone older
can finish beside it, so that nothing is prefilled over and over. The oldest row never gives up, and no
row is accepted that could not finish alone, so everyone finishes and the sum is never exceeded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

GROWTH = 256  # mlx-lm's caches are enlarged by this many tokens at a time


@dataclass(frozen=True)
class CacheCost:
    """Bytes of one kind of cache over all layers of the rank."""

    per_token: float
    tokens_max: int | None = None  # a sliding window
    fixed: int = 0  # the state of a recurrent layer

    def bytes_for(self, tokens: int) -> float:
        held = tokens if self.tokens_max is None else min(tokens, self.tokens_max)
        return self.fixed + self.per_token * held


@dataclass(frozen=True)
class MemoryPlan:
    capacity_bytes: int  # for caches
    weights_bytes: int
    working_bytes: int
    costs: tuple[CacheCost, ...]
    # Attention scores of one new token against one old one, over all heads, while a chunk is computed;
    # 0 where the backend never writes them out.
    score_bytes: int = 0

    @property
    def per_token(self) -> float:
        """What one more token of one row costs, windows not yet full."""
        return sum(cost.per_token for cost in self.costs)

    def row_bytes(self, tokens: int) -> int:
        """One row's caches, padded to `tokens`, with room to grow."""
        return int(sum(cost.bytes_for(tokens + GROWTH) for cost in self.costs))

    def tokens_max(self) -> int:
        """The longest row that fits alone."""
        low, high = 0, 1 << 40
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.row_bytes(middle) <= self.capacity_bytes else (low, middle - 1)
        return low

    def padding_bytes(self, lengths: Iterable[int]) -> float:
        """What is read for nothing in each step when rows of these lengths share a micro-batch."""
        known = list(lengths)
        longest = max(known, default=0)
        held = sum(cost.bytes_for(longest) for cost in self.costs) * len(known)
        return held - sum(cost.bytes_for(length) for length in known for cost in self.costs)

    def chunk_tokens_max(self, position: int) -> int:
        """The longest chunk at this position whose attention stays within half of the working share."""
        if self.score_bytes == 0:
            return 1 << 20
        # tokens * (position + tokens) * score_bytes ≤ working / 2
        room = self.working_bytes / 2 / self.score_bytes
        return max(1, int(((position * position + 4 * room) ** 0.5 - position) / 2))


@dataclass(frozen=True)
class GroupMemory(MemoryPlan):
    """The head's own plan, made to count what is tightest anywhere in the group: a row that costs a tenth of
    another stage's room costs a tenth here. Rows are held by all stages, and any may be the first to be full."""

    others: tuple[MemoryPlan, ...] = ()

    def row_bytes(self, tokens: int) -> int:
        own = super().row_bytes(tokens)
        shares = (other.row_bytes(tokens) / max(other.capacity_bytes, 1) for other in self.others)
        return max(own, int(max(shares, default=0.0) * self.capacity_bytes))

    def chunk_tokens_max(self, position: int) -> int:
        return min([super().chunk_tokens_max(position), *(o.chunk_tokens_max(position) for o in self.others)])
