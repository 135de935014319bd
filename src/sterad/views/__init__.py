"""Stage 4: augmentation, batched, with parameters per sample."""

from sterad.views.augmentations import (
    AUGMENTATIONS,
    Augmentation,
    Full,
    NoAugmentation,
    Noise,
    Partial,
    Transform,
)

__all__ = [
    "AUGMENTATIONS",
    "Augmentation",
    "Full",
    "NoAugmentation",
    "Noise",
    "Partial",
    "Transform",
]
