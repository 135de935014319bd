"""Problem: what a method is told before the first image, and nothing of the stream's order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Shape of the inputs, declared classes, memory, network and execution of one run."""

    input_shape: tuple[int, ...]
    """(channels, side, side) of images or (d,) of feature vectors."""
    classes: int | None
    """Number of classes declared beforehand; None where new ones may appear at any time."""
    memory: int
    """Images that may be kept."""
    flip: bool = False
    """Whether a mirrored image keeps its class."""
    encoder: str = "resnet18"
    width: int = 64
    seed: int = 0
    device: str = "cpu"
    announced: bool = False
    """Whether the stream announces the ends of tasks."""
    channels_last: bool = True
    """Memory format of images and convolutions: part of the execution, not of the result's id."""
    view_threads: int = 1
    """Views that go through the network side by side: part of the execution as well."""
    precision: str = "float32"
    """What the network computes in: part of the execution as well."""
    compile: bool = False
    """Whether torch compiles what goes through the encoder often: part of the execution as well."""
