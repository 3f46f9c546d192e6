"""The command: checks, converts into a folder beside the wanted one, and renames it when it is whole.
Progress and the outcome are JSON lines on stdout."""

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from .architecture import describe, family_of
from .gguf_file import ImportRefused, read_gguf
from .vocabulary import write_tokenizer
from .weights import BeyondFloat16, choose_recipe, write_weights


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def import_gguf(source: Path, folder: Path) -> None:
    if folder.exists():
        raise ImportRefused(f'the folder "{folder}" exists already; remove it or choose another')
    gguf = read_gguf(source)
    config, targets = describe(gguf, family_of(gguf))
    recipe = choose_recipe(gguf, targets)
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.parent / f".{folder.name}.importing-{os.getpid()}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        say(kind="progress", phase="tokenizer", done=0, total=1)
        config.update(write_tokenizer(gguf, unfinished))
        say(kind="progress", phase="tokenizer", done=1, total=1)
        report = lambda done, total: say(kind="progress", phase="weights", done=done, total=total)  # noqa: E731
        try:
            write_weights(gguf, targets, recipe, unfinished, report)
        except BeyondFloat16:
            recipe = replace(recipe, kind="BF16")
            write_weights(gguf, targets, recipe, unfinished, report)
        config["torch_dtype"] = "bfloat16" if recipe.kind == "BF16" else "float16"
        if recipe.quantise:
            # mlx-lm finds each tensor's own bits by its shape.
            config["quantization"] = {"group_size": 32, "bits": 4, "mode": "affine"}
        text = json.dumps(config, indent=2, sort_keys=True) + "\n"
        (unfinished / "config.json").write_text(text)
        _flush(unfinished)
        os.rename(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _flush(folder: Path) -> None:
    for path in [*sorted(folder.iterdir()), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m bushel_worker.importer SOURCE.gguf FOLDER", file=sys.stderr)
        return 2
    source, folder = Path(arguments[0]), Path(arguments[1])
    try:
        import_gguf(source, folder)
    except (ImportRefused, OSError) as error:
        message = f'Cannot import "{source.name}": {error}'
        say(kind="failed", code="import-refused", message=message)
        print(message, file=sys.stderr)
        return 1
    say(kind="done", folder=str(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
