"""The importer: what it reads is what the file holds, the same bytes every time, or nothing at all."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from typing import Any

import gguf
import mlx.core as mx
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes, load

from bushel_worker.folder import check_folder
from bushel_worker.importer.__main__ import import_gguf
from bushel_worker.importer.architecture import describe, family_of, split_pairs
from bushel_worker.importer.gguf_file import ImportRefused, read_gguf
from bushel_worker.importer.weights import Recipe, _as_kind, convert

from .rank import ROOT

HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 64, 2, 4, 2, 96
LLAMA3_FACTORS = (8.0, 1.0, 4.0, 8192)


def byte_tokens() -> tuple[list[str], list[str]]:
    """GPT-2's alphabet and a few merges."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [chr(b) for b in printable] + [chr(256 + n) for n in range(256 - len(printable))]
    merges = ["h e", "l l", "he ll", "hell o", "Ġ w"]
    return alphabet + ["he", "ll", "hell", "hello", "Ġw"] + ["<|end|>", "<|start|>"], merges


def tiny_weights(kind: str, tied: bool) -> tuple[Any, dict[str, np.ndarray]]:
    """A random mlx-lm model and its weights by mlx-lm's names."""
    tokens, _ = byte_tokens()
    config = dict(
        model_type=kind, hidden_size=HIDDEN, num_hidden_layers=LAYERS, intermediate_size=INNER,
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, head_dim=HIDDEN // HEADS, rms_norm_eps=1e-5,
        vocab_size=len(tokens), rope_theta=1e4, tie_word_embeddings=tied, max_position_embeddings=512,
    )  # fmt: skip
    model_class, args = _get_classes(config)
    mx.random.seed(3)
    model = model_class(args.from_dict(config))
    drawn = [(name, mx.random.normal(v.shape) * 0.2 + (v.ndim == 1)) for name, v in tree_flatten(model.parameters())]
    model.load_weights(drawn)
    return model, {name: np.array(value) for name, value in drawn}


def gguf_name(name: str) -> str:
    for mine, theirs in (
        ("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output"),
        ("model.layers.", "blk."), ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm"),
        ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"), ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"),
    ):  # fmt: skip
        name = name.replace(mine, theirs)
    return name


def write_gguf(path: Path, kind: str = "llama", store: Kind = Kind.F32, tied: bool = True, **changes: Any) -> Any:
    """A GGUF of a tiny model; returns the model."""
    model, weights = tiny_weights(kind, tied)
    writer = gguf.GGUFWriter(path, changes.get("architecture", kind))
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(1e4)
    tokens, merges = byte_tokens()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(changes.get("pre", "gpt-2"))
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - 2) + [3, 3])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(len(tokens) - 2)
    writer.add_bos_token_id(len(tokens) - 1)
    writer.add_chat_template("{% for m in messages %}<|start|>{{ m.content }}<|end|>{% endfor %}")
    for name, value in weights.items():
        if kind == "llama" and ("q_proj" in name or "k_proj" in name):
            heads = HEADS if "q_proj" in name else KV_HEADS
            value = value.reshape(heads, 2, -1, HIDDEN).swapaxes(1, 2).reshape(value.shape)
        if value.ndim == 1 or store == Kind.F32:
            writer.add_tensor(gguf_name(name), value.astype(np.float32))
        elif store == Kind.F16:
            writer.add_tensor(gguf_name(name), value.astype(np.float16))
        else:
            writer.add_tensor(gguf_name(name), quantize(value.astype(np.float32), store), raw_dtype=store)
    for name, value in changes.get("more", {}).items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


class ImporterCase(unittest.TestCase):
    def setUp(self) -> None:
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.folder = Path(self._temporary.name)
        self.source = self.folder / "model.gguf"

    def imported(self, name: str = "out") -> Path:
        target = self.folder / name
        stdout = os.dup(1)
        with open(os.devnull, "w") as silent:
            os.dup2(silent.fileno(), 1)
            try:
                import_gguf(self.source, target)
            finally:
                os.dup2(stdout, 1)
                os.close(stdout)
        return target

    def run_command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bushel_worker.importer", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)


class Models(ImporterCase):
    def check_logits(self, model: Any, folder: Path, tolerance: float) -> None:
        again, tokenizer = load(str(folder))
        again.set_dtype(mx.float32)
        ids = mx.array([[5, 9, 77, 200, 31]])
        wanted, got = model(ids), again(ids)
        scale = mx.max(mx.abs(wanted)).item()
        self.assertLess(mx.max(mx.abs(wanted - got)).item(), tolerance * scale)
        self.assertEqual(tokenizer.decode(tokenizer.encode("hello wörld")), "hello wörld")
        self.assertEqual(len(tokenizer.encode("hello w")), 2)

    def test_every_family_computes_what_the_original_does(self) -> None:
        for kind in ("llama", "qwen2", "qwen3"):
            for tied in (True, False):
                with self.subTest(kind=kind, tied=tied):
                    self.source.unlink(missing_ok=True)
                    model = write_gguf(self.source, kind, tied=tied)
                    self.check_logits(model, self.imported(f"{kind}-{tied}"), 5e-3)

    def test_every_storage_type_is_read(self) -> None:
        for store in (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q5_0, Kind.Q5_1, Kind.Q4_0, Kind.Q4_1, Kind.MXFP4):
            with self.subTest(store.name):
                self.source.unlink(missing_ok=True)
                model = write_gguf(self.source, "llama", store)
                # What the file really holds: the types that lose most have changed it a lot.
                held = {
                    name: mx.array(dequantize(quantize(np.array(value), store), store)) if value.ndim > 1 else value
                    for name, value in tree_flatten(model.parameters())
                }
                model.load_weights(list(held.items()))
                folder = self.imported(store.name)
                self.check_logits(model, folder, 0.05 if store == Kind.BF16 else 0.01)
                config = json.loads((folder / "config.json").read_text())
                self.assertEqual(config["torch_dtype"], "bfloat16" if store == Kind.BF16 else "float16")

    def test_values_are_the_dequantised_ones_rounded_once(self) -> None:
        write_gguf(self.source, "qwen2", Kind.Q4_1)
        held = read_gguf(self.source)
        folder = self.imported()
        got = mx.load(str(folder / "model.safetensors"))["model.layers.1.mlp.up_proj.weight"]
        tensor = held.tensors["blk.1.ffn_up.weight"]
        wanted = dequantize(held.raw(tensor).reshape(INNER, -1), Kind.Q4_1).astype(np.float16)
        self.assertTrue(np.array_equal(np.array(got), wanted))

    def test_split_pairs_undoes_the_order_of_gguf(self) -> None:
        rows = np.arange(16).reshape(16, 1)
        mixed = rows.reshape(2, 2, 4, 1).swapaxes(1, 2).reshape(16, 1)
        self.assertTrue(np.array_equal(split_pairs(mixed, 2), rows))

    def test_large_quantised_files_stay_quantised(self) -> None:
        for store, bits in ((Kind.Q8_0, 8), (Kind.Q5_1, 8), (Kind.Q4_0, 4), (Kind.Q4_1, 4)):
            with self.subTest(store.name):
                self.source.unlink(missing_ok=True)
                write_gguf(self.source, "qwen2", store)
                held = read_gguf(self.source)
                _, targets = describe(held, family_of(held))
                recipe = Recipe("F16", quantise=True)
                for target in targets:
                    if not target.name.endswith("_proj.weight"):
                        continue
                    packed, scales, biases = (mx.array(part) for part in convert(held, target, recipe))
                    back = np.array(mx.dequantize(packed, scales, biases, group_size=32, bits=bits), np.float32)
                    wanted = convert(held, target, Recipe("F16", quantise=False))[0].astype(np.float32)
                    step = np.repeat(np.array(scales, np.float32), 32, axis=1)
                    # Q4_0 and Q4_1 keep their levels; the others are within half a (finer) step.
                    self.assertLess(np.abs(back - wanted).max(), (0.02 if bits == 4 else 0.7) * step.max())
                with unittest.mock.patch("bushel_worker.importer.weights.FLOAT_BYTES_MAX", 0):
                    folder = self.imported(store.name)
                plain = self.imported(store.name + "-plain")
                ids = mx.array([[5, 9, 77]])
                a, b = load(str(folder))[0](ids).astype(mx.float32), load(str(plain))[0](ids).astype(mx.float32)
                self.assertLess(mx.max(mx.abs(a - b)).item(), 0.06 * mx.max(mx.abs(b)).item())
                size = (folder / "model.safetensors").stat().st_size
                self.assertLess(size, (plain / "model.safetensors").stat().st_size * (0.75 if bits == 8 else 0.55))

    def test_values_beyond_float16_make_it_bfloat16(self) -> None:
        write_gguf(self.source)
        held = read_gguf(self.source)
        raw = bytearray(self.source.read_bytes())
        struct.pack_into("<f", raw, held.tensors["blk.1.ffn_down.weight"].start, 1e6)
        self.source.write_bytes(raw)
        folder = self.imported()
        self.assertEqual(json.loads((folder / "config.json").read_text())["torch_dtype"], "bfloat16")
        weights = mx.load(str(folder / "model.safetensors"))
        self.assertEqual(weights["model.layers.1.mlp.down_proj.weight"][0, 0].item(), mx.array(1e6, mx.bfloat16).item())
        values = np.array([1.0, -2.5, 1 + 2**-9, 1 + 3 * 2**-9, 3e38], np.float32)
        wanted = np.array(mx.array(values).astype(mx.bfloat16).view(mx.uint16))
        self.assertTrue(np.array_equal(_as_kind(values, "BF16"), wanted))

    def test_large_folders_are_cut_into_files_with_an_index(self) -> None:
        model = write_gguf(self.source, tied=False)
        with unittest.mock.patch("bushel_worker.importer.weights.SHARD_BYTES_MAX", 60_000):
            folder = self.imported()
        self.assertGreater(len(list(folder.glob("model-*.safetensors"))), 2)
        check_folder(folder)
        self.check_logits(model, folder, 5e-3)

    def test_llama3_rotary_factors_become_their_parameters(self) -> None:
        half = HIDDEN // HEADS // 2
        wavelength = 2 * np.pi * 1e4 ** (np.arange(half) / half)
        smooth = np.clip((8192 / wavelength - 1) / 3, 0, 1)
        factors = (1 / ((1 - smooth) / 32 + smooth)).astype(np.float32)
        write_gguf(self.source, more={"rope_freqs.weight": factors})
        config = json.loads((self.imported() / "config.json").read_text())
        self.assertEqual((config["rope_scaling"]["rope_type"], config["rope_scaling"]["factor"]), ("llama3", 32))
        self.source.unlink()
        write_gguf(self.source, more={"rope_freqs.weight": np.linspace(1, 3, half).astype(np.float32)})
        with self.assertRaisesRegex(ImportRefused, "rotary factors"):
            self.imported("other")

    def test_sentence_piece_vocabularies_get_their_merges(self) -> None:
        from bushel_worker.importer.gguf_file import GgufFile
        from bushel_worker.importer.vocabulary import write_tokenizer

        words = ["<unk>", "<s>", "</s>"] + [f"<0x{n:02X}>" for n in range(256)]
        words += ["▁", "h", "e", "l", "o", "he", "ll", "llo", "hello", "▁hello", "▁h", "w", "▁w"]
        scores = [0.0] * 259 + [-1000.0] * 5 + [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -1000.0, -7.0]
        kinds = [2, 3, 3] + [6] * 256 + [1] * 13
        metadata = {
            "general.architecture": "llama", "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": words,
            "tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
        }  # fmt: skip
        about = write_tokenizer(GgufFile(self.source, metadata, {}, None), self.folder)  # type: ignore[arg-type]
        self.assertEqual(about, {"eos_token_id": 2, "bos_token_id": 1})
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder)
        ids = tokenizer.encode("hello hello é")
        self.assertEqual(ids[:3], [1, words.index("▁hello"), words.index("▁hello")])
        self.assertEqual(tokenizer.decode(ids, skip_special_tokens=True), "hello hello é")

    def test_the_same_file_gives_the_same_bytes(self) -> None:
        write_gguf(self.source, "llama", Kind.Q4_1)
        outcomes = []
        for name, seed in (("a", "1"), ("b", "2")):
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
            command = [sys.executable, "-m", "bushel_worker.importer", str(self.source), str(self.folder / name)]
            subprocess.run(command, check=True, capture_output=True, env=environment)
            outcomes.append(digest(self.folder / name))
        self.assertEqual(outcomes[0], outcomes[1])
        self.assertEqual(
            set(outcomes[0]), {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
        )

    def test_the_command_tells_its_progress(self) -> None:
        write_gguf(self.source)
        done = self.run_command(str(self.source), str(self.folder / "out"))
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual((done.returncode, lines[-1]), (0, {"kind": "done", "folder": str(self.folder / "out")}))
        weights = [line for line in lines if line.get("phase") == "weights"]
        self.assertEqual(weights[-1]["done"], weights[-1]["total"])
        self.assertEqual([line["done"] for line in weights], sorted(line["done"] for line in weights))
        again = self.run_command(str(self.source), str(self.folder / "out"))
        self.assertEqual(again.returncode, 1)
        self.assertIn("exists already", again.stderr)
        self.assertEqual(self.run_command("x").returncode, 2)


class Damage(ImporterCase):
    def refused(self, words: str) -> None:
        with self.assertRaisesRegex(ImportRefused, words):
            self.imported()
        self.assertEqual([path.name for path in self.folder.iterdir()], ["model.gguf"])

    def test_other_architectures_are_refused_by_name(self) -> None:
        write_gguf(self.source, architecture="mamba")
        self.refused('"mamba" is not supported; llama, qwen2, qwen3 are')

    def test_unknown_ways_of_cutting_words_are_refused_by_name(self) -> None:
        write_gguf(self.source, pre="viking")
        self.refused('"viking"')

    def test_a_cut_file_is_refused_wherever_it_is_cut(self) -> None:
        write_gguf(self.source, "llama", Kind.Q8_0)
        whole = self.source.read_bytes()
        for size in [0, 3, 4, 8, 20, 24, 60, 300, 2000, 5000, len(whole) // 2, len(whole) - 40]:
            self.source.write_bytes(whole[:size])
            with self.subTest(size):
                self.refused("ends|cannot be read|begin with GGUF|announces")

    def test_lies_in_the_header_are_refused(self) -> None:
        write_gguf(self.source)
        whole = bytearray(self.source.read_bytes())

        def changed(place: int, layout: str, value: int) -> None:
            lie = bytearray(whole)
            struct.pack_into(layout, lie, place, value)
            self.source.write_bytes(lie)

        changed(4, "<I", 1)
        self.refused("version 1")
        changed(8, "<Q", 1 << 60)
        self.refused("announces")
        changed(16, "<Q", 1 << 19)
        self.refused("ends|announces|unknown|damaged")
        name = b"token_embd.weight"
        place = whole.index(name) + len(name)  # then: dimensions, two lengths, type, offset
        changed(place, "<I", 9)
        self.refused("9 dimensions")
        changed(place + 4, "<Q", 1 << 62)
        self.refused("impossible|should end|columns")
        changed(place + 20, "<I", 77)
        self.refused("unknown type 77")
        changed(place + 24, "<Q", 1 << 40)
        self.refused("should end at byte")
        changed(place + 24, "<Q", 128)
        self.refused("overlap")
        key = b"llama.block_count"
        changed(whole.index(key) + len(key) + 4, "<I", 1_000_000_000)
        self.refused("1000000000 layers")
        key = b"llama.attention.head_count"
        changed(whole.index(key) + len(key) + 4, "<I", 0)
        self.refused("not a size")
        key = b"tokenizer.ggml.tokens"
        changed(whole.index(key) + len(key) + 8, "<Q", 1 << 50)
        self.refused("announces")

    def test_random_damage_gives_a_reason_or_a_folder_never_anything_else(self) -> None:
        write_gguf(self.source)
        whole = self.source.read_bytes()
        header = whole.index(b"blk.1.ffn_up") + 200
        chance = np.random.default_rng(1)
        for _ in range(150):
            damaged = bytearray(whole)
            for place in chance.integers(0, header, 3):
                damaged[place] = chance.integers(0, 256)
            self.source.write_bytes(damaged)
            try:
                for path in self.imported().iterdir():
                    path.unlink()
                (self.folder / "out").rmdir()
            except ImportRefused:
                pass
            self.assertEqual([path.name for path in self.folder.iterdir()], ["model.gguf"])

    def test_values_that_are_not_numbers_are_refused(self) -> None:
        write_gguf(self.source)
        held = read_gguf(self.source)
        tensor = held.tensors["blk.0.ffn_up.weight"]
        damaged = bytearray(self.source.read_bytes())
        struct.pack_into("<f", damaged, tensor.start + 40, float("nan"))
        self.source.write_bytes(damaged)
        self.refused('"blk.0.ffn_up.weight" holds values that are not numbers')

    def test_tensors_that_do_not_belong_are_refused(self) -> None:
        write_gguf(self.source, more={"blk.0.ffn_gate_exps.weight": np.zeros((2, 32), np.float32)})
        self.refused("has no place")

    def test_the_command_says_one_sentence(self) -> None:
        self.source.write_bytes(b"GGUF" + b"\0" * 8)
        done = self.run_command(str(self.source), str(self.folder / "out"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr.strip(), 'Cannot import "model.gguf": GGUF version 0 is not supported; versions 2 and 3 are'
        )
        self.assertEqual(json.loads(done.stdout)["kind"], "failed")


if __name__ == "__main__":
    unittest.main()
