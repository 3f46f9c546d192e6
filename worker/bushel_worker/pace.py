"""Shares the engine's time between reading prompts and writing answers."""

DECODING_CHUNK_MS = 250  # while others write: long enough to be efficient, short enough not to be felt
CHUNK_TOKENS_MIN = 8  # a pass over so few costs hardly more than over one: smaller chunks only take longer
SPEED_MEMORY = 0.5  # of the last measurement in the running estimate


class Pace:
    """Reading is paid for with time for the answers: what a chunk took is a debt, and time spent writing
    pays it back. Reading stops while the debt is a full chunk's worth. So prompts that arrive together are
    soon all in one micro-batch, and in the long run answers get half of the time."""

    def __init__(self, chunk_ms_max: int, tokens_per_second: float) -> None:
        self._chunk_ms_max = chunk_ms_max
        self.tokens_per_second = max(tokens_per_second, 1.0)
        self._debt_seconds = 0.0

    def chunk_tokens(self, left: int, decoding: bool) -> int:
        """How much to read next of a prompt with so much left; 0: not now, answers have their turn. A chunk
        is planned at 0.6 of the limit, because the estimate may be off."""
        whole = max(CHUNK_TOKENS_MIN, int(self.tokens_per_second * self._chunk_ms_max * 0.6 / 1000))
        if not decoding:
            return whole
        if self._debt_seconds >= self._chunk_ms_max / 1000:
            return 0
        small = max(CHUNK_TOKENS_MIN, int(self.tokens_per_second * min(DECODING_CHUNK_MS, self._chunk_ms_max) / 1000))
        return whole if left <= whole else small

    def read(self, tokens: int, seconds: float, decoding: bool) -> None:
        speed = tokens / max(seconds, 1e-6)
        # A short rest of a prompt says little about speed: its fixed cost dominates.
        if seconds * 8 >= self._chunk_ms_max / 1000 or speed > self.tokens_per_second:
            self.tokens_per_second += (speed - self.tokens_per_second) * SPEED_MEMORY
        if decoding:
            self._debt_seconds += seconds

    def wrote(self, seconds: float) -> None:
        self._debt_seconds = max(0.0, self._debt_seconds - seconds)
