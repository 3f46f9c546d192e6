"""Rows that later stages still hold after their head was lost. A new head learns ids from requests that are
submitted again, and finds by their digest whether the caches are there already."""

import time

ORPHAN_SECONDS = 60.0  # for requests to come again; then the memory is wanted for others

Inventory = dict[str, list[list]]  # of a stage: row → [tokens, digest] that it can go on from


class Orphans:
    def __init__(self, stages: list[Inventory]) -> None:
        known = [{(int(t), str(d)): int(row) for row, ends in stage.items() for t, d in ends} for stage in stages]
        self._found: dict[tuple[int, str], int] = {}
        for end, row in known[0].items() if known else ():
            if all(stage.get(end) == row for stage in known):
                self._found[end] = row
        self.rows = {int(row) for stage in stages for row in stage}
        self.highest = max(self.rows, default=0)
        self._until = time.monotonic() + ORPHAN_SECONDS

    def take(self, tokens: int, digest: str) -> int | None:
        row = self._found.get((tokens, digest))
        if row is not None:
            self._found = {end: other for end, other in self._found.items() if other != row}
            self.rows.discard(row)
        return row

    def expired(self, now: float) -> list[int]:
        """Rows that nobody has come for; told once."""
        if now < self._until or not self.rows:
            return []
        gone, self.rows = sorted(self.rows), set()
        self._found = {}
        return gone
