"""Folders that lie, and prompts and tokenizers as mlx-lm brings them."""

import json
import struct
import tempfile
import unittest
from pathlib import Path
from typing import Any

from bushel_worker.folder import ModelRefused, check_folder


def safetensors(entries: dict[str, Any], data: bytes = b"", length: int | None = None) -> bytes:
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(shape: list[int], start: int, end: int, kind: str = "F32") -> dict[str, Any]:
    return {"dtype": kind, "shape": shape, "data_offsets": [start, end]}


class Folders(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name, "model")
        self.folder.mkdir()
        self.write("config.json", {"model_type": "llama", "num_hidden_layers": 2})
        self.write("model.safetensors", safetensors({"a": entry([2], 0, 8)}, b"\0" * 8))

    def write(self, name: str, content: Any) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        (self.folder / name).write_bytes(raw)

    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(ModelRefused, words):
            check_folder(self.folder)

    def test_a_sound_folder_gives_its_config(self) -> None:
        self.assertEqual(check_folder(self.folder)["model_type"], "llama")

    def test_what_is_not_there_is_named(self) -> None:
        with self.assertRaisesRegex(ModelRefused, "does not exist"):
            check_folder(self.folder / "none")
        (self.folder / "model.safetensors").unlink()
        self.refused("no model.*safetensors")
        (self.folder / "config.json").unlink()
        self.refused('"config.json" cannot be read')

    def test_configs_that_would_run_code_or_exhaust_memory_are_refused(self) -> None:
        for config, words in (
            ({"model_type": "llama", "model_file": "evil.py"}, "run code"),
            ({"model_type": "../evil"}, "model_type"),
            ({"model_type": "a.b"}, "model_type"),
            ({"model_type": 5}, "model_type"),
            ({}, "model_type"),
            ({"model_type": "llama", "num_hidden_layers": 10**9}, "num_hidden_layers.*no model has"),
            ({"model_type": "llava", "text_config": {"vocab_size": 10**12}}, "vocab_size"),
            ({"model_type": "llama", "hidden_size": -1}, "hidden_size"),
            ([1], "not a JSON object"),
            (b"{", "not JSON"),
            (b"[" * 100_000, "not JSON"),
        ):
            with self.subTest(str(config)[:40]):
                self.write("config.json", config)
                self.refused(words)

    def test_safetensors_that_lie_are_refused(self) -> None:
        for raw, words in (
            (b"", "cut short"),
            (b"\0\0\0", "cut short"),
            (safetensors({}, length=1 << 60), "cut short"),
            (safetensors({"a": entry([2], 0, 8)}, b"\0" * 4), "outside the file"),
            (safetensors({"a": entry([2], -8, 0)}, b"\0" * 8), "outside the file"),
            (safetensors({"a": entry([2], 8, 0)}, b"\0" * 8), "outside the file"),
            (safetensors({"a": entry([3], 0, 8)}, b"\0" * 8), "has shape"),
            (safetensors({"a": entry([1 << 40, 1 << 40], 0, 8)}, b"\0" * 8), "has shape"),
            (safetensors({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, b"\0" * 12), "overlap"),
            (safetensors({"a": entry([2], 0, 8, "F33")}, b"\0" * 8), "described wrongly"),
            (safetensors({"a": 5}, b""), "described wrongly"),
            (safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0]}}, b""), "described wrongly"),
            (struct.pack("<Q", 4) + b"nope", "not JSON"),
            (struct.pack("<Q", 2) + b"[]", "not JSON"),
        ):
            with self.subTest(words=words, raw=raw[:40]):
                self.write("model.safetensors", raw)
                self.refused(words)

    def test_files_outside_the_folder_are_refused(self) -> None:
        outside = self.folder.parent / "secret.safetensors"
        outside.write_bytes(safetensors({}))
        self.write("model.safetensors.index.json", {"weight_map": {"a": "../secret.safetensors"}})
        self.refused("outside the folder")
        self.write("model.safetensors.index.json", {"weight_map": {"a": "model-00002.safetensors"}})
        self.refused("missing")
        self.write("model.safetensors.index.json", {"weight_map": []})
        self.refused("no weight_map")
        (self.folder / "model.safetensors.index.json").unlink()
        (self.folder / "model-2.safetensors").symlink_to(outside)
        self.refused("link to a place outside")
        (self.folder / "model-2.safetensors").unlink()
        (self.folder / "model-2.safetensors").symlink_to("model.safetensors")
        check_folder(self.folder)

    def test_a_snapshot_of_a_hub_cache_may_link_into_its_blobs_and_nowhere_else(self) -> None:
        repository = self.folder.parent / "models--org--name"
        snapshot = repository / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        (repository / "blobs").mkdir()
        for number, path in enumerate(self.folder.iterdir()):
            blob = repository / "blobs" / str(number)
            path.rename(blob)
            (snapshot / path.name).symlink_to(Path("..", "..", "blobs", str(number)))
        self.assertEqual(check_folder(snapshot)["model_type"], "llama")
        outside = self.folder.parent / "secret.safetensors"
        outside.write_bytes(safetensors({}))
        (snapshot / "model-2.safetensors").symlink_to(outside)
        with self.assertRaisesRegex(ModelRefused, "link to a place outside"):
            check_folder(snapshot)


if __name__ == "__main__":
    unittest.main()
