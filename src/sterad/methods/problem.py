"""Problem: what a method is told before the first image, and nothing of the stream's order."""

from dataclasses import dataclass

from sterad.engine import Execution


@dataclass(frozen=True)
class Problem:
    """Shape of the inputs, declared classes, memory, network and execution of one run."""

    input_shape: tuple[int, ...]
    """(channels, side, side) of images or (d,) of feature vectors."""
    classes: int | None
    """Number of classes declared beforehand; None where new ones may appear at any time."""
    memory: int
    """Size of the memory in images."""
    flip: bool = False
    """Whether a mirrored image keeps its class."""
    encoder: str = "resnet18"
    width: int = 64
    seed: int = 0
    announced: bool = False
    """Whether the stream announces the ends of tasks."""
    execution: Execution = Execution()  # noqa: RUF009 - it is frozen
    """How the network is computed: not part of a run's id."""
