"""The program that a rank runs: an engine on mlx-lm's models, driven by frames on two pipes."""

VERSION = "0.1.0"
