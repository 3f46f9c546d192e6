"""What can go wrong with a world, for those who cannot import MLX yet."""


class CannotJoin(Exception):
    """Why the ranks cannot form an MLX group, in one sentence."""


class OutOfStep(Exception):
    """Ranks of a world have computed different things."""
