"""The baseline of every accuracy table: ridge regression on random Fourier features of pixels.

python benchmarks/control.py cifar100 16     dataset and image size; STERAD_DATA is the data folder

No representation is learned and no image is stored. A method that is not clearly better has learned
nothing useful. The ridge penalty and the kernel width are chosen on a tenth of the training images;
the test images are used once.
"""

import itertools
import sys

import numpy as np
import numpy.typing as npt

from sterad.data import DATASETS, Dataset, held_out

FEATURES = 3000
PENALTIES = (1e-3, 1e-1, 1e1)
WIDTHS = (0.5, 1.0, 2.0)
"""Widths of the Gaussian kernel, relative to the median distance of two images."""
Floats = npt.NDArray[np.float64]


def pixels(images: npt.NDArray[np.uint8]) -> Floats:
    """Return images as rows of floats in [0, 1]."""
    rows: Floats = images.reshape(len(images), -1) / 255.0
    return rows


def accuracies(data: Dataset, width: float, seed: int) -> list[float]:
    """Return the test accuracy for each ridge penalty."""
    rng = np.random.default_rng(seed)
    train, test = pixels(data.train_images), pixels(data.test_images)
    sample = train[rng.permutation(len(train))[:500]]
    distances = np.linalg.norm(sample[:250] - sample[-250:], axis=1)
    frequencies = rng.standard_normal((train.shape[1], FEATURES)) / (width * np.median(distances))
    phases = rng.uniform(0, 2 * np.pi, FEATURES)
    h, h_test = (np.cos(x @ frequencies + phases) for x in (train, test))
    gram, targets = h.T @ h, h.T @ np.eye(data.classes)[data.train_labels]
    weights = (np.linalg.solve(gram + s * np.eye(FEATURES), targets) for s in PENALTIES)
    return [float(((h_test @ w).argmax(1) == data.test_labels).mean()) for w in weights]


def main(name: str, image_size: str, seed: str = "0") -> None:
    """Choose on held-out images, then print the accuracy on the test images."""
    data = DATASETS[name](image_size=int(image_size)).load()  # type: ignore[call-arg]
    validation = held_out(data, 0.1)
    results = {width: accuracies(validation, width, int(seed)) for width in WIDTHS}
    choices = itertools.product(WIDTHS, range(len(PENALTIES)))
    width, best = max(choices, key=lambda choice: results[choice[0]][choice[1]])
    accuracy = accuracies(data, width, int(seed))[best]
    print(
        f"{name} at {image_size} pixels: {accuracy:.2%} (width {width}, ridge {PENALTIES[best]:g})"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
