"""The engine of a whole model that a world holds: nothing that a step gave leaves before the step numbers of
all ranks have been looked at."""

from ..engine import MlxEngine
from ..rows import Draw, Row
from .leader import LeadingStage


class WorldEngine(MlxEngine):
    def __init__(self, stage: LeadingStage, on_cpu: bool) -> None:
        super().__init__(stage, on_cpu)
        self._leading, self._under_way = stage, 0

    def step(self, batch: int, joining: list[Row], leaving: list[Row], forward: bool) -> None:
        super().step(batch, joining, leaving, forward)
        self._under_way = int(forward)

    def read(self, batch: int) -> list[Draw]:
        draws = super().read(batch)
        self._leading.verify(unfinished=self._under_way)
        return draws
