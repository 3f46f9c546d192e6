"""Starts a group of real worker processes on this machine, one for each stage."""

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from .rank import Answer, Rank, load_frame

# One thread per rank: a machine of its own would not be shared either.
ENVIRONMENT = {"MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def free_ports(count: int) -> list[int]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [door.getsockname()[1] for door in doors]
    for door in doors:
        door.close()
    return ports


def stage_frames(cuts: list[int], path: str = "", engine: str = "scripted", **limits: int) -> list[dict[str, Any]]:
    """The load frames of a pipeline whose stages begin at these layers; the last entry is the number of layers."""
    count = len(cuts) - 1
    ends = [{"host": "127.0.0.1", "port": port} for port in free_ports(count)]
    frames = []
    for index in range(count):
        last = index == count - 1
        frame = load_frame(path, engine, **{"peerTimeoutMsMax": 3000, **limits})
        links = {"listen": ends[index], "next": None if last else ends[index + 1], "followers": []}
        frame.update(
            rank=index,
            secret="a secret of this group",
            stage={"index": index, "count": count, "layers": cuts[index : index + 2]},
            links={**links, "back": ends[0] if last else None},
        )
        frames.append(frame)
    return frames


class Group:
    """`with Group(stage_frames(…)) as group:` waits until every rank is ready."""

    def __init__(self, frames: list[dict[str, Any]]) -> None:
        self.ranks = [Rank(frame, ENVIRONMENT) for frame in frames[:-1]]
        self.head = self.ranks[0]
        self.bare_bytes: list[int] = []  # of each rank before it has loaded anything
        if frames[0]["engine"] == "mlx":  # nobody loads before everyone is there
            for rank in self.ranks:
                while rank.next("progress", seconds=60)["phase"] != "connect":
                    pass
                self.bare_bytes.append(resident_bytes(rank.process.pid))
            self.bare_bytes.append(self.bare_bytes[-1])
        self.ranks.append(Rank(frames[-1], ENVIRONMENT))

    def ready(self, seconds: float = 90) -> list[dict[str, Any]]:
        told = [rank.next("ready", "failed", seconds=seconds) for rank in self.ranks]
        for frame in told:
            if frame["kind"] == "failed":
                raise AssertionError(frame["message"])
        return told

    def ends(self, seconds: float = 30) -> list[dict[str, Any]]:
        """The last words of every rank that is expected to fail."""
        return [rank.next("failed", seconds=seconds) for rank in self.ranks]

    def replace(self, victim: int, frames: list[dict[str, Any]], formation: int = 2) -> None:
        """Starts another rank in the place of a lost one and tells the others where everyone is now."""
        self.ranks[victim].close()
        self.ranks[victim] = Rank(frames[victim], ENVIRONMENT)
        self.head = self.ranks[0]
        for index, rank in enumerate(self.ranks):
            if index != victim:
                frame = frames[index]
                rank.send(
                    {
                        "kind": "relink",
                        "plan": frame["plan"],
                        "formation": formation,
                        "links": frame["links"],
                        "secret": frame["secret"],
                    }
                )

    def answer(self, attempt: str, seconds: float = 90) -> Answer:
        return self.head.answer(attempt, seconds)

    def close(self) -> None:
        for rank in self.ranks:
            rank.process.kill()
        for rank in self.ranks:
            rank.close()
            assert not rank.junk, rank.junk

    def __enter__(self) -> "Group":
        try:
            self.told = self.ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident_bytes(pid: int) -> int:
    """Memory of its own: pages of files that are only mapped (libraries) are not counted."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def gone(process: subprocess.Popen[bytes], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    return process.poll() is not None
