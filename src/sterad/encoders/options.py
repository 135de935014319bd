"""EncoderOptions: what is trained of an encoder, its first weights, and the inputs it expects."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from sterad.errors import SteradError
from sterad.validation import OMIT_DEFAULT_FROM_ID, Positive, Range

ImageSize = Annotated[int, Range(1, 4096)]
ChannelValues = tuple[Annotated[float, Range(-1e6, 1e6)], ...]


@dataclass(frozen=True)
class EncoderOptions:
    """Options of every encoder: registered, of a library, or the user's own."""

    frozen: bool = field(default=False, metadata=OMIT_DEFAULT_FROM_ID)
    """Do not train the encoder; without augmentation each image is encoded once and the memory
    keeps features."""
    train_from: str | None = field(default=None, metadata=OMIT_DEFAULT_FROM_ID)
    """Train only the encoder's layers of this name, such as layer4; several are separated by
    commas (default: all)."""
    encoder_lr: Positive | None = field(default=None, metadata=OMIT_DEFAULT_FROM_ID)
    """Learning rate of the encoder's weights (default: that of the head)."""
    weights: Path | None = field(default=None, metadata={"place": True} | OMIT_DEFAULT_FROM_ID)
    """File with the encoder's first weights: a state dict of torch, or safetensors."""
    input_mean: ChannelValues = field(default=(), metadata=OMIT_DEFAULT_FROM_ID)
    """Mean of each channel that the encoder subtracts from inputs in [0, 1]."""
    input_std: ChannelValues = field(default=(), metadata=OMIT_DEFAULT_FROM_ID)
    """Standard deviation of each channel by which the encoder divides its inputs."""
    input_size: ImageSize | None = field(default=None, metadata=OMIT_DEFAULT_FROM_ID)
    """Side in pixels to which the encoder resizes its images (default: not resized)."""

    def __post_init__(self) -> None:
        """Refuse options that exclude each other."""
        for name in ("train_from", "encoder_lr"):
            if self.frozen and (value := getattr(self, name)) is not None:
                raise SteradError(
                    f"{name}={value} has no effect on a frozen encoder: leave out {name} or frozen"
                )
        if self.train_from is not None and not self.trained_names:
            raise SteradError(f"train_from {self.train_from!r} names no layer: give one or several")
        if any(value <= 0 for value in self.input_std):
            raise SteradError(
                f"input_std {self.input_std} has values that are not positive: inputs are divided "
                "by them"
            )
        if self.input_mean and self.input_std and len(self.input_mean) != len(self.input_std):
            raise SteradError(
                f"input_mean has {len(self.input_mean)} values and input_std "
                f"{len(self.input_std)}: give one of each per channel"
            )

    @property
    def trained_names(self) -> tuple[str, ...]:
        """The names of `train_from`."""
        names = (name.strip().rstrip(".") for name in (self.train_from or "").split(","))
        return tuple(name for name in names if name)

    @property
    def changes_inputs(self) -> bool:
        """Whether inputs are normalized or resized."""
        return bool(self.input_mean or self.input_std or self.input_size)

    @classmethod
    def of(cls, settings: Any) -> "EncoderOptions":
        """Return the options among the fields of another dataclass, such as `RunSettings`."""
        return cls(**{one.name: getattr(settings, one.name) for one in fields(cls)})


DEFAULT_OPTIONS = EncoderOptions()
