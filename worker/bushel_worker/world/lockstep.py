"""What enters the layers of a world enters on every rank, in one order.

The leader's ids or hidden states are passed on by a collective on the stream of the layers, so a step can be
queued before the ids it begins with are known, and no rank ever draws a token of its own. The same collective
carries the step number of every rank: when the sum is not what it must be, ranks have come out of step, and
what they computed is thrown away with them."""

from collections import deque

import mlx.core as mx

from .errors import OutOfStep
from .slices import Group

NUMBERS = 1 << 20  # step numbers start again here, so that a sum of them stays an int32

IDS = "ids"
_DTYPES = {"float32": mx.float32, "float16": mx.float16, "bfloat16": mx.bfloat16}


def kind_of(entering: mx.array) -> str:
    return next((name for name, dtype in _DTYPES.items() if dtype == entering.dtype), IDS)


class Lockstep:
    def __init__(self, group: Group) -> None:
        self._group = group
        self._leads, self._size = group.rank() == 0, group.size()
        self.number = 0
        self._due: deque[tuple[int, mx.array]] = deque()

    def enter(self, entering: mx.array | None, shape: list[int], kind: str) -> mx.array:
        """What enters, from the leader's; others pass none."""
        number = self._next_number()
        dtype = _DTYPES.get(kind, mx.int32)
        mine = mx.zeros(shape, dtype) if entering is None else entering.astype(dtype)
        if kind == IDS:
            summed = mx.distributed.all_sum(mx.concatenate([number, mine.reshape(-1)]), group=self._group)
            self._due.append((self.number * self._size, summed[:1]))
            return summed[1:].reshape(shape)
        first = mx.distributed.all_sum(number, group=self._group)
        self._due.append((self.number * self._size, first))
        # One after the other: two collectives without an order may be run in either.
        return mx.distributed.all_sum(mx.depends(mine, first), group=self._group)

    def known(self, entering: mx.array) -> mx.array:
        """What enters is known to all ranks already; they agree on the number alone."""
        number = mx.distributed.all_sum(self._next_number(), group=self._group)
        self._due.append((self.number * self._size, number))
        return mx.depends(entering, number)

    def verify(self, unfinished: int = 0) -> None:
        """Looks at the numbers of all steps but the last few, which may still be computed."""
        while len(self._due) > unfinished:
            expected, summed = self._due.popleft()
            found = summed.item()
            if found != expected:
                at = f"at step {expected // self._size} the step numbers add up to {found} instead of {expected}"
                raise OutOfStep(f"the ranks of this world have lost step: {at}")

    def _next_number(self) -> mx.array:
        self.number = (self.number + 1) % NUMBERS
        return mx.array([self.number], mx.int32)
