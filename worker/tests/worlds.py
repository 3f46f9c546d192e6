"""Load frames of ranks that share a stage, on this machine."""

import json
from typing import Any

from .group import ENVIRONMENT, Group, free_ports, resident_bytes
from .rank import Rank, load_frame

SECRET = "a secret of this group"
RING_BYTES = 32 << 20  # buffers that MLX's ring keeps on every rank


class WorldGroup(Group):
    """A group that notes what each rank has in memory just before it is called together and loads."""

    def __init__(self, frames: list[dict[str, Any]]) -> None:
        self.ranks, self.bare_bytes = [], []
        for frame in frames:
            self.ranks.append(Rank(frame, ENVIRONMENT))
            if frame is not frames[-1]:
                self._note()
        self._note()
        self.head = self.ranks[0]

    def _note(self) -> None:
        while (told := self.ranks[-1].next("progress", "failed", seconds=60))["kind"] == "progress":
            if told["phase"] == "connect":
                break
        self.bare_bytes.append(resident_bytes(self.ranks[-1].process.pid))


def world_frames(
    size: int,
    path: str,
    strategy: str = "tensor",
    shares: list[float] | None = None,
    engine: str = "mlx",
    **limits: int,
) -> list[dict[str, Any]]:
    """A whole model over one world."""
    frames = grouped_frames([size], [0, 1], path, strategy, shares, **limits)
    return [{**frame, "engine": engine} for frame in frames]


def grouped_frames(
    sizes: list[int],
    cuts: list[int],
    path: str,
    strategy: str = "tensor",
    shares: list[float] | None = None,
    **limits: int,
) -> list[dict[str, Any]]:
    """One stage for each size, held by so many ranks; stages begin at these layers, the last entry is the end."""
    total, stages = sum(sizes), len(sizes)
    ends = [{"host": "127.0.0.1", "port": port} for port in free_ports(total)]
    leaders = [sum(sizes[:stage]) for stage in range(stages)]
    frames = []
    for stage, size in enumerate(sizes):
        hosts = json.dumps([[f"127.0.0.1:{port}"] for port in free_ports(size)])
        for rank in range(size):
            number = leaders[stage] + rank
            leads, last = rank == 0, stage == stages - 1
            frame = load_frame(path, "mlx", **{"peerTimeoutMsMax": 3000, **limits})
            links: dict[str, Any] = {"listen": ends[number], "next": None, "followers": [], "back": None}
            if leads:
                links["followers"] = ends[number + 1 : number + size]
                if stages > 1:
                    links["back" if last else "next"] = ends[0 if last else leaders[stage + 1]]
            if stages == 1 and leads:
                links["listen"] = None
            world = dict(rank=rank, size=size, backend="none", strategy="none", shares=[], env={}, files={})
            if size > 1:
                world.update(backend="ring", strategy=strategy, shares=shares or [])
                world.update(env={"MLX_RANK": str(rank)}, files={"MLX_HOSTFILE": hosts})
            layers = cuts[stage : stage + 2]
            frame.update(rank=number, secret=SECRET, stage={"index": stage, "count": stages, "layers": layers})
            frame.update(links=links, world=world)
            frames.append(frame)
    return frames
