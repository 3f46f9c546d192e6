"""How a model is shared: the arithmetic, what is read of a file, and tiny models over a real ring."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model, save_model

from bench.random_model import write_random_model
from bushel_worker.frames import World
from bushel_worker.world.backend import check, join
from bushel_worker.world.errors import CannotJoin, OutOfStep
from bushel_worker.world.library import PretendedGroup, shard_evenly
from bushel_worker.world.lockstep import IDS, Lockstep
from bushel_worker.world.parts import Parts
from bushel_worker.world.shares import CannotShare, cut, fractions, make_up, sizes
from bushel_worker.world.slices import keep_inputs, keep_outputs
from bushel_worker.world.tensor import llama_shaped

from .expert_zoo import expert_difference, spread
from .group import ENVIRONMENT, free_ports
from .rank import ROOT, fast_blas
from .ring_ranks import CASES
from .tiny import VOCABULARY, tiny_model


class Arithmetic(unittest.TestCase):
    def test_cut_gives_everyone_something_and_comes_as_near_as_it_can(self) -> None:
        self.assertEqual(cut(3, [0.5, 0.5]), [0, 2, 3])
        self.assertEqual(cut(3, [0.9, 0.1]), [0, 2, 3])
        self.assertEqual(cut(8, fractions([], 3)), [0, 3, 6, 8])
        self.assertEqual(cut(100, [0.6, 0.4], unit=16), [0, 64, 100])
        for count in range(3, 40):
            for parts in ([0.2, 0.3, 0.5], [0.98, 0.01, 0.01], [1 / 3] * 3):
                given = sizes(cut(count, parts))
                self.assertEqual(sum(given), count)
                self.assertGreaterEqual(min(given), 1)
                wanted = [max(1, count * part) for part in parts]
                self.assertTrue(all(abs(a - b) < 3 for a, b in zip(given, wanted)), (count, parts, given))

    def test_cut_refuses_more_ranks_than_things(self) -> None:
        with self.assertRaises(CannotShare):
            cut(2, [0.4, 0.3, 0.3])
        with self.assertRaisesRegex(CannotShare, "2 shares were given for 3 ranks"):
            fractions([1, 1], 3)

    def test_make_up_brings_everyone_to_its_part(self) -> None:
        rest = make_up([0.5, 0.5], [2 / 3, 1 / 3], first_weight=1, rest_weight=3)
        for part, first, other in zip([0.5, 0.5], [2 / 3, 1 / 3], rest):
            self.assertAlmostEqual(first * 1 + other * 3, part * 4)
        self.assertGreater(min(make_up([0.5, 0.5], [1, 0], 9, 1)), 0)


class ReadParts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "model")

    def opened(self) -> tuple[Any, Parts]:
        parts = Parts(self.folder)
        return load_model(self.folder, lazy=True, get_model_classes=parts.model_classes)[0], parts

    def test_only_the_bytes_of_the_part_are_read_and_they_are_the_right_ones(self) -> None:
        for dtype in (mx.float32, mx.bfloat16, mx.float16):
            write_random_model(self.folder, dtype)
            whole = load_model(self.folder)[0].layers[0].mlp
            model, parts = self.opened()
            mlp = model.layers[0].mlp
            keep_outputs(mlp.up_proj, [(8, 20), (30, 40)], parts)
            keep_inputs(mlp.down_proj, [(16, 48)], parts)
            self.assertEqual(mlp.up_proj.weight.dtype, dtype)
            wanted = mx.concatenate([whole.up_proj.weight[8:20], whole.up_proj.weight[30:40]])
            self.assertTrue(mx.array_equal(mlp.up_proj.weight, wanted))
            self.assertTrue(mx.array_equal(mlp.down_proj.weight, whole.down_proj.weight[:, 16:48]))
            self.assertEqual(parts.bytes_read, (22 * 32 + 32 * 32) * dtype.size)

    def test_quantised_matrices_are_cut_between_groups_only(self) -> None:
        write_random_model(self.folder, intermediate_size=128, hidden_size=64)
        model, config = load_model(self.folder)
        config = json.loads((self.folder / "config.json").read_text())
        nn.quantize(model, 32, 4)
        config["quantization"] = {"group_size": 32, "bits": 4}
        (self.folder / "model.safetensors").unlink()
        save_model(self.folder, model)
        (self.folder / "config.json").write_text(json.dumps(config))
        shared, parts = self.opened()
        linear, x = shared.layers[0].mlp.down_proj, mx.random.normal((1, 128))
        keep_inputs(linear, [(32, 96)], parts)
        whole = model.layers[0].mlp.down_proj
        alone = mx.dequantize(whole.weight, whole.scales, whole.biases, 32, 4)[:, 32:96]
        self.assertLess(float(mx.max(mx.abs(linear(x[:, 32:96]) - x[:, 32:96] @ alone.T))), 1e-4)
        self.assertGreater(parts.bytes_read, 0)
        with self.assertRaisesRegex(CannotShare, "groups of 32"):
            keep_inputs(shared.layers[0].mlp.gate_proj, [(0, 16)], parts)

    def test_what_sanitize_has_changed_is_sliced_and_not_read_from_the_file(self) -> None:
        write_random_model(self.folder)
        model, parts = self.opened()
        linear = model.layers[0].mlp.up_proj
        linear.weight = linear.weight * 2  # as a sanitize would
        keep_outputs(linear, [(0, 4)], parts)
        self.assertEqual(parts.bytes_read, 0)
        whole = load_model(self.folder)[0].layers[0].mlp.up_proj.weight
        self.assertTrue(mx.array_equal(linear.weight, whole[:4] * 2))


class Refusals(unittest.TestCase):
    def test_heads_that_do_not_divide_are_refused_with_the_counts_that_would(self) -> None:
        model = tiny_model("qwen3_moe", num_attention_heads=12, num_key_value_heads=6, moe_intermediate_size=36)
        before = dict(tree_flatten(model.parameters()))
        with self.assertRaisesRegex(CannotShare, "do not divide by 4; 2, 3, 6 ranks would work"):
            shard_evenly(model, PretendedGroup(4))  # type: ignore[arg-type]
        for name, array in tree_flatten(model.parameters()):
            self.assertIs(array, before[name])

    def test_llama_shaped_is_told_by_structure(self) -> None:
        for name, wanted in (("llama", True), ("qwen3", True), ("phi3", False), ("olmo2", False), ("mixtral", False)):
            self.assertEqual(llama_shaped(tiny_model(name).layers[0]), wanted, name)

    def test_a_missing_backend_and_a_taken_port_are_named_before_anyone_is_called(self) -> None:
        ports = free_ports(2)
        hosts = json.dumps([[f"127.0.0.1:{port}"] for port in ports])
        world = World(0, 2, "ring", "tensor", (), {"MLX_RANK": "0"}, {"MLX_HOSTFILE": hosts})
        check(world)
        import socket

        with socket.create_server(("127.0.0.1", ports[0])):
            with self.assertRaisesRegex(CannotJoin, f"127.0.0.1:{ports[0]} cannot be used for ring"):
                check(world)
        with self.assertRaisesRegex(CannotJoin, "says nothing usable about rank 0"):
            check(World(0, 2, "ring", "tensor", (), {}, {"MLX_HOSTFILE": "[]"}))
        if not mx.distributed.is_available("jaccl"):
            with self.assertRaisesRegex(CannotJoin, "no jaccl backend"):
                check(World(0, 2, "jaccl", "tensor", (), {}, {}))

    def test_join_points_the_backend_to_private_files_that_are_gone_afterwards(self) -> None:
        seen: dict[str, Any] = {}
        real = mx.distributed.init

        def init(strict: bool, backend: str) -> Any:
            path = os.environ["MLX_IBV_DEVICES"]
            with open(path) as file:
                seen.update(path=path, content=file.read(), mode=os.stat(path).st_mode & 0o777, backend=backend)
            return PretendedGroup(2, 1)

        mx.distributed.init = init  # type: ignore[assignment]
        try:
            files = {"MLX_IBV_DEVICES": '[[null,"rdma_en5"],["rdma_en5",null]]'}
            env = {"MLX_RANK": "1", "MLX_JACCL_COORDINATOR": "10.0.0.1:7000"}
            join(World(1, 2, "jaccl", "tensor", (), env, files))
            with self.assertRaisesRegex(CannotJoin, "rank 1 of 2, not rank 0 of 2"):
                join(World(0, 2, "jaccl", "tensor", (), env, files))
        finally:
            mx.distributed.init = real  # type: ignore[assignment]
        self.assertEqual((seen["backend"], seen["mode"]), ("jaccl", 0o600))
        self.assertEqual(seen["content"], files["MLX_IBV_DEVICES"])
        self.assertEqual(os.environ["MLX_JACCL_COORDINATOR"], "10.0.0.1:7000")
        self.assertFalse(os.path.exists(seen["path"]))


class InStep(unittest.TestCase):
    def test_what_enters_is_the_leaders_and_a_wrong_number_is_noticed(self) -> None:
        lockstep = Lockstep(mx.distributed.init())  # of this process alone
        entered = lockstep.enter(mx.array([[3], [4]], mx.uint32), [2, 1], IDS)
        self.assertEqual(entered.tolist(), [[3], [4]])
        hidden = lockstep.enter(mx.ones((1, 2, 3)), [1, 2, 3], "float32")
        self.assertEqual(hidden.shape, (1, 2, 3))
        lockstep.known(mx.array([[1]]))
        lockstep.verify()
        lockstep.enter(mx.array([[1]]), [1, 1], IDS)
        lockstep._due[0] = (lockstep._due[0][0] + 1, lockstep._due[0][1])
        lockstep.verify(unfinished=1)
        with self.assertRaises(OutOfStep):
            lockstep.verify()


class OverARing(unittest.TestCase):
    def test_models_of_many_kinds_shared_by_two_ranks_give_what_they_give_whole(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as hosts:
            json.dump([[f"127.0.0.1:{port}"] for port in free_ports(2)], hosts)
            hosts.flush()
            environment = {**os.environ, **fast_blas(), **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
            environment["MLX_HOSTFILE"] = hosts.name
            ranks = [
                subprocess.Popen(
                    [sys.executable, "-m", "tests.ring_ranks"],
                    env={**environment, "MLX_RANK": str(rank)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for rank in range(2)
            ]
            said = [rank.communicate(timeout=120) for rank in ranks]
        for (out, log), rank in zip(said, ranks):
            self.assertEqual(rank.returncode, 0, log[-1000:])
        told = [[json.loads(line) for line in out.splitlines()] for out, _ in said]
        self.assertEqual([len(lines) for lines in told], [len(CASES)] * 2)
        for first, second, (_, how, _, _, shares) in zip(*told, CASES):
            with self.subTest(first["case"]):
                self.assertLess(max(first["difference"], second["difference"]), 1e-4)
                self.assertLess(max(first["share"], second["share"]), 0.85 if how == "expert" else 0.8)
                if how == "tensor" and not shares:
                    self.assertAlmostEqual(first["share"], 0.5, delta=0.05)


class Experts(unittest.TestCase):
    def test_the_parts_of_three_ranks_add_up_to_the_whole(self) -> None:
        for name in ("mixtral", "qwen3_moe", "gpt_oss"):
            with self.subTest(name):
                models = [tiny_model(name) for _ in range(3)]
                self.assertLess(expert_difference(tiny_model(name), spread(models), VOCABULARY), 1e-5)

    def test_more_ranks_than_experts_are_refused(self) -> None:
        from bushel_worker.world.experts import share_experts

        group: Any = PretendedGroup(5)
        with self.assertRaisesRegex(CannotShare, "its 4 experts can be shared by at most 4 ranks, not 5"):
            share_experts(tiny_model("mixtral").layers[0], group, [0.2] * 5, Parts())
