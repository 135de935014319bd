"""The first prediction after learning, the cost of a snapshot, and the accuracy of rolling means.

python benchmarks/prediction_after_learning.py [--images 4000] [--views 1] [--seeds 0 1]

Times: random images of 32 × 32 pixels, memory 5,000, width 20, `partial_fit` of 10 images at a
time. Accuracy: a stream of CIFAR-10, two classes at a time; at each fifth of the stream, 2,000 test
images of the classes seen so far are predicted with the rolling class means and with exact ones.
STERAD_DATA is the folder with CIFAR-10. A figure above its limit prints MISSED; then the exit code
is 1.
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from sterad import OnlineClassifier
from sterad.data import Dataset
from sterad.data.cifar import Cifar10

MAX_FIRST_TO_REPEATED = 3.0
MAX_SNAPSHOT_SHARE = 0.05
MAX_LOST_POINTS = 1.0
MEMORY, WIDTH, REPEATS, TESTED = 5000, 20, 15, 2000


def main() -> int:
    """Print the figures and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=4000, help="training images")
    parser.add_argument("--views", type=int, default=1, help="views of agd-fd")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="streams of CIFAR-10")
    options = parser.parse_args()
    missed = [measure_times(options.views)]
    data = Cifar10().load()
    missed += [
        measure_accuracy(data, options.images, options.views, seed) for seed in options.seeds
    ]
    return int(any(missed))


def seconds(call: Callable[[], object]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure_times(views: int) -> bool:
    """Print times with a full memory; return whether a limit is missed."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (MEMORY, 3, 32, 32), dtype=np.uint8)
    labels = np.arange(MEMORY) % 10
    classifier = OnlineClassifier("agd-fd", MEMORY, width=WIDTH, views=views, batch_size=500)
    classifier.partial_fit(images, labels).set_params(batch_size=10)
    times: dict[str, list[float]] = {}
    for number in range(REPEATS):
        rows = slice(10 * number, 10 * number + 10)
        figures = {
            "partial_fit of 10 images": lambda rows=rows: classifier.partial_fit(
                images[rows], labels[rows]
            ),
            "first predict of one image": lambda: classifier.predict(images[:1]),
            "repeated predict": lambda: classifier.predict(images[:1]),
            "snapshot": lambda: take_snapshot(classifier),
        }
        for name, call in figures.items():
            times.setdefault(name, []).append(seconds(call))
    medians = {name: median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name}: {1000 * value:.1f} ms", flush=True)
    print(f"consolidate(): {1000 * seconds(classifier.consolidate):.0f} ms")
    ratio = medians["first predict of one image"] / medians["repeated predict"]
    share = medians["snapshot"] / medians["partial_fit of 10 images"]
    is_slow, is_large = ratio > MAX_FIRST_TO_REPEATED, share > MAX_SNAPSHOT_SHARE
    print(f"first to repeated prediction: {ratio:.2f}{'  MISSED' * is_slow}")
    print(f"snapshot to call: {share:.1%}{'  MISSED' * is_large}", flush=True)
    return is_slow or is_large


def take_snapshot(classifier: OnlineClassifier) -> None:
    """Do again what each call does at its end."""
    state = classifier._state()
    state.followed_by(state.learner()).close()


def measure_accuracy(data: Dataset, count: int, views: int, seed: int) -> bool:
    """Print the accuracy of rolling and exact class means; return whether the limit is missed."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(data.train_labels))[:count]
    tasks = [chosen[np.asarray(data.train_labels)[chosen] // 2 == task] for task in range(5)]
    classifier = OnlineClassifier("agd-fd", MEMORY, width=WIDTH, views=views, seed=seed)
    lost: list[float] = []
    for rows in tasks:
        for part in np.array_split(rows, max(1, len(rows) // 10)):
            classifier.partial_fit(data.train_images[part], data.train_labels[part])
        seen = np.flatnonzero(np.isin(data.test_labels, classifier.classes_))
        seen = rng.permutation(seen)[:TESTED]
        x, y = data.test_images[seen], data.test_labels[seen]
        rolling = 100 * classifier.score(x, y)
        exact = 100 * exact_copy(classifier).score(x, y)
        lost.append(exact - rolling)
        is_far = lost[-1] > MAX_LOST_POINTS
        print(
            f"{len(classifier.classes_)} classes, {len(seen)} images: rolling {rolling:.2f} %, "
            f"exact {exact:.2f} %, lost {lost[-1]:+.2f} points{'  MISSED' * is_far}",
            flush=True,
        )
    print(f"lost on average: {np.mean(lost):+.2f} points")
    return max(lost) > MAX_LOST_POINTS


def exact_copy(classifier: OnlineClassifier) -> OnlineClassifier:
    """Return a copy whose class means are exact."""
    return copy.deepcopy(classifier).consolidate()


if __name__ == "__main__":
    sys.exit(main())
