"""Decode speed of one request, by turns: one rank with the whole model, then a pipeline of two ranks.

    PYTHONPATH=worker python -m bench.rates FOLDER CUT [pairs] [tokens]

One JSON line per pair, after one that warms both up. One core per rank, as two machines would have."""

import json
import os
import sys
from pathlib import Path

from tests.group import Group, stage_frames
from tests.rank import Rank, load_frame

from .group import ONE_CORE, Asker


def main(folder: str, cut: int, pairs: int, tokens: int) -> None:
    path = str(Path(folder).resolve())
    layers = int(json.loads(Path(path, "config.json").read_text())["num_hidden_layers"])
    with Group(stage_frames([0, cut, layers], path, "mlx", peerTimeoutMsMax=60_000)) as group:
        pipeline = Asker(group.head, tokens)
        with Rank(load_frame(path, "mlx"), ONE_CORE) as rank:
            single = Asker(rank, tokens)
            for pair in range(pairs + 1):
                first, second = (single, pipeline) if pair % 2 else (pipeline, single)
                speeds = {id(first): first.speed(1), id(second): second.speed(1)}
                if pair:
                    result = {
                        "single": speeds[id(single)],
                        "pipeline": speeds[id(pipeline)],
                        "load": os.getloadavg()[0],
                    }
                    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, [*sys.argv[2:], *["5", "40"][len(sys.argv) - 3 :]]))
