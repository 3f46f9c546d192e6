"""What the probe says of its synthetic models is what they are."""

import unittest
from unittest import mock

import mlx.core as mx
from mlx.utils import tree_flatten

from bushel_worker.probe import machine
from bushel_worker.probe.synthetic import CPU_SHAPES, GPU_SHAPES, VOCABULARY, Shape, build

TINY = (Shape(128, 3), Shape(64, 5))


class Synthetic(unittest.TestCase):
    def test_counts_the_matrices_that_a_step_reads(self) -> None:
        for shape in TINY:
            arrays = dict(tree_flatten(build(shape, mx.float32).parameters()))
            matrices = sum(array.size for array in arrays.values() if array.ndim > 1)
            self.assertEqual(shape.parameters_read, matrices - VOCABULARY * shape.hidden)

    def test_shapes_differ_in_what_they_read_for_each_kernel(self) -> None:
        for shapes in (CPU_SHAPES, GPU_SHAPES):
            ratios = [shape.parameters_read / shape.kernels for shape in shapes]
            self.assertGreater(max(ratios) / min(ratios), 10)


class Machine(unittest.TestCase):
    def test_times_every_shape(self) -> None:
        with mock.patch.multiple(machine, CPU_SHAPES=TINY, GPU_SHAPES=TINY):
            result = machine.measure(4)
        self.assertEqual([one["shape"] for one in result["decode"]], ["3x128", "5x64"])
        for one in result["decode"]:
            self.assertEqual(len(one["seconds"]), 4)
            self.assertTrue(all(second > 0 for second in one["seconds"]))
        self.assertEqual(len(result["prefill"]), 1)
        self.assertEqual(result["versions"]["mlx"], mx.__version__)


if __name__ == "__main__":
    unittest.main()
