"""Load frames of ranks that share a stage, on this machine."""

import json
from typing import Any

from .group import free_ports
from .rank import load_frame

SECRET = "a secret of this group"


def world_frames(
    size: int, path: str, strategy: str = "tensor", shares: list[float] | None = None, **limits: int
) -> list[dict[str, Any]]:
    """A whole model over one world."""
    return grouped_frames([size], [0, 1], path, strategy, shares, **limits)


def grouped_frames(
    sizes: list[int], cuts: list[int], path: str, strategy: str = "tensor", shares: list[float] | None = None, **limits: int
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
            world = {"rank": rank, "size": size, "backend": "none", "strategy": "none", "shares": [], "env": {}, "files": {}}
            if size > 1:
                world.update(backend="ring", strategy=strategy, shares=shares or [])
                world.update(env={"MLX_RANK": str(rank)}, files={"MLX_HOSTFILE": hosts})
            layers = cuts[stage : stage + 2]
            frame.update(rank=number, secret=SECRET, stage={"index": stage, "count": stages, "layers": layers})
            frame.update(links=links, world=world)
            frames.append(frame)
    return frames
