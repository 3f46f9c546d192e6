"""Turns one GGUF file of the Llama family into a folder that mlx-lm loads.

    python -m bushel_worker.importer SOURCE.gguf FOLDER

The same file gives the same bytes on every machine: names are sorted, nothing depends on a clock,
a hash seed or a library's iteration order, and the safetensors are written by us.

What the weights become
- Every tensor goes through the `gguf` package's dequantiser. `mx.load` reads some GGUF types wrongly
  without saying so (Q4_K from the 32nd value of a block on), and others not at all.
- They are stored as float16, or as bfloat16 when the file itself holds bfloat16 or a value is beyond
  float16. One rounding at the 11th bit is far below the error of any 4-bit block, so a small model
  (the starter: 270 MB) loses nothing, works on Metal as it is, and becomes float32 on a CPU at load.
  One type for all, norms too: a float32 norm would silently promote every activation on a GPU.
- A quantised file whose float16 form would pass 4 GiB stays quantised, in MLX's affine form with groups
  of 32. Q4_0, Q4_1 and Q4_K blocks lie on a grid of 16 steps, which four bits hold again (their scales
  rounded to float16); all other types become eight bits, which is finer than what they came from.
"""
