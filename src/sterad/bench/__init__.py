"""Benchmarks: the time of a training step relative to the bare network."""
