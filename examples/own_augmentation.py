"""Your own augmentation: any function of a batch of images in [0, 1]."""

import torch
from torch import Tensor

from sterad import OnlineClassifier
from sterad.data import Digits


def shift(images: Tensor) -> Tensor:
    """Move each image of a batch (n, c, h, w) up or down by a pixel at random.

    Random numbers of torch come from the seed of the run here, so that it can be repeated.
    """
    rows = torch.arange(images.shape[2])
    offsets = torch.randint(-1, 2, (len(images), 1))
    index = (rows + offsets).clamp(0, images.shape[2] - 1)
    return images[torch.arange(len(images))[:, None], :, index].movedim(1, 2)


digits = Digits(per_class=40).load()
classifier = OnlineClassifier("agd-fd", memory=100, augment=shift, views=1, encoder="mlp")
classifier.partial_fit(digits.train_images, digits.train_labels)
print(f"test accuracy {classifier.score(digits.test_images, digits.test_labels):.1%}")
