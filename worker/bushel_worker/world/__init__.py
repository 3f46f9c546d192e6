"""A world: the ranks that hold one stage together, each with a part of every layer, in lockstep."""
