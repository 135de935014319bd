"""Random views of a batch, training passes of a network over them, and losses of one view."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from sterad.devices import to_device
from sterad.engine import Engine
from sterad.methods.base.parts import ReplayConfig, UnitLogitsConfig
from sterad.methods.base.teacher import distillation
from sterad.streams import Batch
from sterad.views.augmentations import Augmentation


class ViewPasses:
    """The passes of a replay method, one over all views or one for each, and losses of a view."""

    config: ReplayConfig
    engine: Engine
    augmentation: Augmentation
    rng: dict[str, torch.Generator]
    includes_raw: ClassVar[bool] = False
    """Whether the raw images are used beside a single view too, not only beside several."""
    chooses_views: ClassVar[bool] = True
    """Whether the fields `raw_view` and `view_size` choose the views; not if the method pairs an
    image with its view in one pass."""

    allows_preparatory_classes: ClassVar[bool] = False
    """Whether `preparatory_classes` may train labels of no class: the loss is over all outputs, or
    over those of the batch and of `other_labels`."""
    other_labels: Tensor | None = None
    """Labels (n,) on the CPU of samples in other passes of the step, with which a loss contrasts
    its own: see `base/preparatory`; None: there are none."""

    @classmethod
    def count_views(cls, config: ReplayConfig) -> tuple[int, int]:
        """Return the numbers of random and of raw views of an image that has random views."""
        if config.augmentation == "none":
            return 0, 1
        is_alone = config.views == 1 and not cls.includes_raw
        has_raw = not is_alone if config.raw_view is None else config.raw_view
        return config.views, int(has_raw)

    @property
    def label_count(self) -> int:
        """Number of labels that have an output of the head or a direction."""
        return self.engine.network.outputs

    @property
    def has_unit_logits(self) -> bool:
        """Whether logits are scaled to unit length."""
        return isinstance(self.config, UnitLogitsConfig) and self.config.unit_logits

    def view(self, x: Tensor) -> Tensor:
        """Return one random view of images on the device, in the size of views."""
        view = self.engine.to_device(self.augmentation(x, self.rng["views"]))
        return view if (side := self.config.view_size) is None else reduced(view, side)

    def views_of(self, x: Tensor) -> list[Tensor]:
        """Return `config.views` random views and, last, the raw images; a single view goes alone.

        Inputs that the augmentation does not change, such as feature vectors, are returned once.
        """
        if not self.augmentation.changes(x):
            return [x]
        views = [self.view(x) for _ in range(self.config.views)]
        is_alone = len(views) == 1 and not self.includes_raw
        has_raw = not is_alone if self.config.raw_view is None else self.config.raw_view
        return [*views, x] if has_raw else views

    def forward_views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return raw outputs of all views of a batch, from one pass, and their labels.

        Raw images that are larger than the views need a pass of their own.
        """
        if self.config.view_size is None:
            x, labels = self.stack_views(batch)
            return self.engine.forward([x], unit=self.has_unit_logits), labels
        views = self.views_of(self.engine.to_device(batch.x))
        small = [one for one in views if one.shape == views[0].shape]
        inputs = [torch.cat(small), *views[len(small) :]]
        labels = self.engine.to_device(batch.y.repeat(len(views)))
        return self.engine.forward(inputs, unit=self.has_unit_logits), labels

    def stack_views(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return all views of a batch one after the other, and their labels."""
        views = self.views_of(self.engine.to_device(batch.x))
        if len(views) == 1:  # avoid copies
            return views[0], self.engine.to_device(batch.y)
        return torch.cat(views), self.engine.to_device(batch.y.repeat(len(views)))

    def representations(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return unit-length outputs of all views, one pass per view, and their labels.

        The labels stay on the CPU, where a loss can list their classes without a synchronization.
        """
        views = self.views_of(self.engine.to_device(batch.x))
        return self.engine.forward(views, unit=True), batch.y.repeat(len(views))

    def contrasted(self, labels: Tensor) -> Tensor:
        """Return the labels of a loss and, after them, `other_labels`."""
        if self.other_labels is None:
            return labels
        return torch.cat([labels, to_device(self.other_labels, labels.device)])

    def loss_of_outputs(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the method's own loss of one view that an addition has passed.

        outputs: raw ones of the head, (n, outputs); labels: (n,) on the CPU.
        """
        outputs = F.normalize(outputs) if self.has_unit_logits else outputs
        return F.cross_entropy(outputs, self.engine.to_device(labels))

    def distillation_loss(self, target: Tensor, output: Tensor, temperature: float = 4.0) -> Tensor:
        """Return the distillation loss of raw outputs to a teacher's: (n, outputs) both."""
        return distillation(target, output, temperature)


def reduced(x: Tensor, side: int) -> Tensor:
    """Return images (n, c, h, w) in another size, (n, c, side, side), by bilinear interpolation.

    Each pixel is an average over the pixels that it replaces, so that none is skipped.
    """
    return F.interpolate(x, (side, side), mode="bilinear", antialias=True)
