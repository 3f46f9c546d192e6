"""Encoders: the vectors that BERT's arithmetic gives, whatever the family, the pooling and the length of a text."""

import json
import tempfile
import unittest
from base64 import b64decode
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten

from bushel_worker.encoder.families import FAMILIES, shape_of, tensor_name
from bushel_worker.encoder.loading import open_encoder
from bushel_worker.encoder.pooling import pooled, pooling_of, tokens_told
from bushel_worker.folder import ModelRefused

from .encoders import SHAPE, states_of, write_encoder
from .rank import Rank, load_frame, submit_frame

IDS = [2, 5, 6, 7, 8, 9, 10, 15, 3]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


class Encoders(unittest.TestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name, "encoder")

    def states(self, config: dict[str, Any], ids: list[int], queries_max: int = 1000) -> np.ndarray:
        model, _ = open_encoder(self.folder, config, mx.float32, True)
        *_, last = model.states(ids, queries_max)
        return np.array(last[0])

    def test_the_states_are_those_of_the_arithmetic_in_every_family(self) -> None:
        cases = {
            "bert": ({}, "", 0),
            "roberta": ({"pad_token_id": 1, "type_vocab_size": 1, "layer_norm_eps": 1e-5}, "roberta.", 2),
            "xlm-roberta": ({"pad_token_id": 1, "type_vocab_size": 1}, "", 2),
            "camembert": ({"pad_token_id": 1, "type_vocab_size": 1}, "roberta.", 2),
        }
        for kind, (changes, prefix, first) in cases.items():
            with self.subTest(kind):
                config, tensors = write_encoder(self.folder, kind, prefix=prefix, **changes)
                wanted = states_of(config, tensors, IDS, first)
                self.assertLess(np.abs(self.states(config, IDS) - wanted).max(), 2e-5)
                self.assertEqual(shape_of(config).tokens_max, 64 - first)

    def test_a_distilled_model_is_found_under_its_own_names(self) -> None:
        config, tensors = write_encoder(self.folder, "bert", type_vocab_size=0)
        names = {
            "encoder.layer.": "transformer.layer.",
            "attention.self.query": "attention.q_lin",
            "attention.self.key": "attention.k_lin",
            "attention.self.value": "attention.v_lin",
            "attention.output.dense": "attention.out_lin",
            "attention.output.LayerNorm": "sa_layer_norm",
            "intermediate.dense": "ffn.lin1",
        }
        written = {}
        for name, value in tensors.items():
            for bert, own in names.items():
                name = name.replace(bert, own)
            if "transformer.layer" in name:
                name = name.replace(".output.dense", ".ffn.lin2").replace(".output.LayerNorm", ".output_layer_norm")
            written[f"distilbert.{name}"] = mx.array(value)
        mx.save_safetensors(str(self.folder / "model.safetensors"), written)
        own = {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48, "activation": "gelu"}
        sizes = {key: config[key] for key in ("vocab_size", "max_position_embeddings")}
        told = {"model_type": "distilbert", **own, **sizes}
        self.assertLess(np.abs(self.states(told, IDS) - states_of(config, tensors, IDS)).max(), 2e-5)

    def test_a_long_text_is_read_in_runs_with_the_same_result(self) -> None:
        config, tensors = write_encoder(self.folder)
        ids = [5 + at % 12 for at in range(60)]
        wanted = states_of(config, tensors, ids)
        for queries_max in (1, 7, 60):
            self.assertLess(np.abs(self.states(config, ids, queries_max) - wanted).max(), 2e-5)

    def test_a_quantised_model_is_close_to_the_one_it_was_made_of(self) -> None:
        config, tensors = write_encoder(self.folder, intermediate_size=64)
        model, _ = open_encoder(self.folder, config, mx.float32, True)
        nn.quantize(model, group_size=32, bits=8)
        mx.save_safetensors(str(self.folder / "model.safetensors"), dict(tree_flatten(model.parameters())))
        told = {**config, "quantization": {"group_size": 32, "bits": 8}}
        wanted = states_of(config, tensors, IDS)
        for on_cpu in (True, False):
            found, _ = open_encoder(self.folder, told, None, on_cpu)
            *_, last = found.states(IDS, 1000)
            self.assertLess(np.abs(np.array(last[0]) - wanted).max(), 0.2)
            self.assertGreater(np.corrcoef(np.array(last[0]).ravel(), wanted.ravel())[0, 1], 0.999)

    def test_pooling_is_as_the_files_say(self) -> None:
        states = np.random.default_rng(3).normal(size=(5, 8)).astype(np.float32)
        ways = {"cls": states[0], "mean": states.mean(0), "max": states.max(0), "lasttoken": states[-1]}
        for way, wanted in ways.items():
            write_encoder(self.folder, pooling=way)
            self.assertEqual(pooling_of(self.folder), (way,))
            got = np.frombuffer(pooled(mx.array(states), (way,)), "<f4")
            self.assertLess(np.abs(got - unit(wanted)).max(), 1e-6)
        several = np.frombuffer(pooled(mx.array(states), ("cls", "mean")), "<f4")
        self.assertLess(np.abs(several - unit(np.concatenate([states[0], states.mean(0)]))).max(), 1e-6)

    def test_without_a_word_about_pooling_it_is_the_mean_and_odd_words_are_refused(self) -> None:
        write_encoder(self.folder, pooling=None)
        self.assertEqual(pooling_of(self.folder), ("mean",))
        pooling = self.folder / "1_Pooling"
        pooling.mkdir()
        (pooling / "config.json").write_text('{"pooling_mode_weightedmean_tokens": true}')
        with self.assertRaisesRegex(ModelRefused, "weightedmean"):
            pooling_of(self.folder)
        (pooling / "config.json").write_text('{"pooling_mode": "cls"}')
        self.assertEqual(pooling_of(self.folder), ("cls",))
        modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "sentence_transformers.models.Dense"}]
        (self.folder / "modules.json").write_text(json.dumps(modules))
        with self.assertRaisesRegex(ModelRefused, '"Dense" module'):
            pooling_of(self.folder)
        (self.folder / "sentence_bert_config.json").write_text('{"max_seq_length": 48}')
        self.assertEqual(tokens_told(self.folder), 48)

    def test_what_would_mislead_or_is_not_whole_is_refused_by_name(self) -> None:
        config, _ = write_encoder(self.folder)
        for changes, words in (
            ({"architectures": ["BertForSequenceClassification"]}, "not trained to embed"),
            ({"position_embedding_type": "relative_key"}, "relative_key"),
            ({"is_decoder": True}, "decoder"),
            ({"hidden_act": "mish"}, "mish"),
            ({"num_attention_heads": 5}, "do not go together"),
            ({"num_hidden_layers": 4}, "no tensor"),
            ({"vocab_size": 99}, "shape"),
        ):
            with self.subTest(words), self.assertRaisesRegex(ModelRefused, words):
                open_encoder(self.folder, {**config, **changes}, mx.float32, True)

    def test_heads_for_other_tasks_are_left_out(self) -> None:
        for name in ("pooler.dense.weight", "cls.predictions.bias", "lm_head.bias", "bert.embeddings.position_ids"):
            self.assertIsNone(tensor_name(FAMILIES["bert"], name))
        old = "bert.embeddings.LayerNorm.gamma"
        self.assertEqual(tensor_name(FAMILIES["bert"], old), "embeddings.LayerNorm.weight")


class Ranks(unittest.TestCase):
    """A rank that holds an encoder."""

    def test_a_rank_embeds_and_refuses_to_write(self) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "encoder")
            config, tensors = write_encoder(folder, pooling="cls")
            with Rank(load_frame(str(folder), "mlx")) as rank:
                ready = rank.seen[-1]
                self.assertEqual((ready["contextTokens"], ready["abilities"]["embeddings"]), (64, True))
                text = {"kind": "text", "text": "A cat sat on the mat."}
                rank.send(submit_frame("a", text, purpose="embed"))
                finished = rank.answer("a").end
                vector = np.frombuffer(b64decode(finished["parts"][0]["data"]), "<f4")
                self.assertLess(np.abs(vector - unit(states_of(config, tensors, IDS)[0])).max(), 2e-5)
                self.assertEqual((finished["promptTokens"], len(vector)), (len(IDS), SHAPE["hidden_size"]))
                rank.send(submit_frame("b", text))
                self.assertEqual(rank.answer("b").end["code"], "unsupported")
                rank.send(submit_frame("c", {"kind": "text", "text": "cat " * 80}, purpose="embed"))
                refused = rank.answer("c").end
                self.assertEqual(refused["code"], "prompt-too-long")
                self.assertIn("82 tokens", refused["message"])
                rank.send(submit_frame("e", {"kind": "text", "text": "cat " * 80}, purpose="embed-start"))
                rank.send(submit_frame("f", {"kind": "text", "text": "cat " * 62}, purpose="embed"))
                cut, whole = rank.answer("e").end, rank.answer("f").end
                self.assertEqual((cut["promptTokens"], cut["parts"]), (64, whole["parts"]))
                rank.send(submit_frame("d", {"kind": "text", "text": "cat " * 62}, purpose="embed"))
                self.assertEqual(rank.answer("d").end["promptTokens"], 64)


if __name__ == "__main__":
    unittest.main()
