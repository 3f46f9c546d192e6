"""Measurements of the worker against mlx-lm by itself, in alternating pairs on the same machine."""
