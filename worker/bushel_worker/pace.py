"""Shares the engine's time between reading prompts and writing answers."""

DECODING_CHUNK_MS = 250  # while others write: long enough to be efficient, short enough not to be felt
SPEED_MEMORY = 0.5  # of the last measurement in the running estimate


class Pace:
    """Reading is paid for with time for the answers: after a chunk of a long prompt, answers get as much
    time as it took. Prompts that fit into one chunk may run up a debt of one full chunk first, so that
    several people who ask at once are soon all in one micro-batch."""

    def __init__(self, chunk_ms_max: int, tokens_per_second: float) -> None:
        self._chunk_ms_max = chunk_ms_max
        self.tokens_per_second = max(tokens_per_second, 1.0)
        self._debt_seconds = 0.0

    def chunk_tokens(self, decoding: bool) -> int:
        """How much of a prompt to read at once. Half of the limit: the estimate may be off."""
        limit_ms = self._chunk_ms_max / 2
        milliseconds = min(DECODING_CHUNK_MS, limit_ms) if decoding else limit_ms
        return max(1, int(self.tokens_per_second * milliseconds / 1000))

    def may_read(self, decoding: bool, fits_one_chunk: bool) -> bool:
        if not decoding:
            return True
        return self._debt_seconds < self._chunk_ms_max / 1000 if fits_one_chunk else self._debt_seconds <= 0

    def read(self, tokens: int, seconds: float, decoding: bool) -> None:
        speed = tokens / max(seconds, 1e-6)
        # A short rest of a prompt says little about speed: its fixed cost dominates.
        if tokens * 4 >= self.chunk_tokens(decoding) or speed > self.tokens_per_second:
            self.tokens_per_second += (speed - self.tokens_per_second) * SPEED_MEMORY
        if decoding:
            self._debt_seconds += seconds

    def wrote(self, seconds: float) -> None:
        self._debt_seconds = max(0.0, self._debt_seconds - seconds)
