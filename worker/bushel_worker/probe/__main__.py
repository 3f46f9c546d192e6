"""python -m bushel_worker.probe machine [STEPS] | hop-serve HOST | hop-dial HOST PORT SECRET | world BACKEND

One JSON document per line on stdout. It ends by itself, and when its supervisor's pipe closes."""

import json
import os
import sys
import threading


def main(words: list[str]) -> None:
    threading.Thread(target=_end_with_supervisor, daemon=True).start()
    kind, rest = words[0], words[1:]
    if kind == "machine":
        from .machine import measure

        result = measure(int(rest[0]) if rest else 20)
    elif kind == "hop-serve":
        from .hop import serve

        return serve(rest[0])
    elif kind == "hop-dial":
        from .hop import dial

        result = dial(rest[0], int(rest[1]), rest[2], 40)
    elif kind == "world":
        from .world import measure as measure_world

        result = measure_world(rest[0], 30)
    else:
        sys.exit(f"unknown probe {kind!r}")
    print(json.dumps(result), flush=True)


def _end_with_supervisor() -> None:
    # Unbuffered: a thread that holds the buffer's lock would spoil the interpreter's own end.
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
