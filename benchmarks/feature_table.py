"""Learners on features beside replay, scikit-learn and river: accuracy and seconds, three seeds.

python benchmarks/feature_table.py pretrain --out DIR      an encoder, offline, on 50 classes
python benchmarks/feature_table.py run DATA --out DIR      DATA: digits, mnist or cifar100
python benchmarks/feature_table.py table --out DIR         the results as Markdown

The classes arrive one after the other (digits, mnist), or five at a time (cifar100), ten images a
batch; each image comes once. `digits` and `mnist` are raw pixels. `cifar100` is the 50 classes that
the encoder of `pretrain` has never seen: learners marked "frozen" get its 160 features, the others
train it further on the images. Batch LDA gets all rows at once. Seconds are processor time to learn
and to predict all test images with one thread; networks compute in float32. Results are appended to
DIR/results.jsonl, and runs that are there already are skipped. STERAD_DATA is the folder of the
datasets.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sterad import OnlineClassifier
from sterad.data import DATASETS, Dataset
from sterad.encoders import ResNet18
from sterad.engine import Execution
from sterad.methods import METHODS, Problem, build_learner
from sterad.streams import STREAMS, Batch
from sterad.streams.batch import to_unit

Rows = npt.NDArray[Any]
SEEDS = (0, 1, 2)
KNOWN_CLASSES = 50
"""Classes of CIFAR-100 that the encoder is trained on; the stream has the others."""
WIDTH, EPOCHS, MEMORY = 20, 20, 2000
RIVER_ROWS_PER_CLASS = 200
"""Test rows per class for river's learners, which predict one row at a time."""


def pretrain(out: Path) -> None:
    """Train an encoder offline on the first classes, as `sterad train joint` does."""
    data = load("cifar100", classes=KNOWN_CLASSES)
    execution = Execution.from_options(device="cpu", threads=1, precision="float32")
    shape, samples = data.input_shape, len(data.train_labels)
    problem = Problem(shape, KNOWN_CLASSES, samples, True, "resnet18", WIDTH, 0, False, execution)
    learner: Any = build_learner("joint", METHODS["joint"].Config(epochs=EPOCHS), problem, samples)
    x, y = torch.from_numpy(data.train_images.copy()), torch.from_numpy(data.train_labels.copy())
    for part in torch.randperm(samples, generator=torch.Generator().manual_seed(0)).split(500):
        learner.observe(Batch(to_unit(x[part]), y[part]))
    learner.consolidate()
    torch.save(learner.network.encoder.state_dict(), out / "encoder.pt")


def load(name: str, **fields: Any) -> Dataset:
    """Return a dataset of the folder STERAD_DATA."""
    dataset: Dataset = DATASETS[name](**fields).load()
    return dataset


@cache
def images_of(name: str) -> Dataset:
    """Return the images of a stream; for cifar100 those of the classes that are new."""
    if name == "digits":
        return load("digits")
    if name == "mnist":
        return load("mnist", per_class=1000)
    data = load("cifar100")
    train, test = (labels >= KNOWN_CLASSES for labels in (data.train_labels, data.test_labels))
    return Dataset.from_arrays(
        data.train_images[train],
        data.train_labels[train] - KNOWN_CLASSES,
        data.test_images[test],
        data.test_labels[test] - KNOWN_CLASSES,
    )


def encoder(out: Path) -> ResNet18:
    """Return the encoder of `pretrain`."""
    module = ResNet18((3, 32, 32), WIDTH)
    module.load_state_dict(torch.load(out / "encoder.pt", weights_only=True))
    return module.eval()


@cache
def rows_of(name: str, out: Path) -> tuple[Rows, Rows]:
    """Return training and test rows: pixels in [0, 1], or features of the encoder."""
    data = images_of(name)
    if name != "cifar100":
        return tuple(x.reshape(len(x), -1) / 255.0 for x in (data.train_images, data.test_images))  # type: ignore[return-value]
    module = encoder(out)

    def encode(images: Rows) -> Rows:
        parts = torch.from_numpy(images.copy()).split(200)
        with torch.inference_mode():
            return torch.cat([module(to_unit(part)) for part in parts]).double().numpy()

    return encode(data.train_images), encode(data.test_images)


def order_of(name: str, seed: int) -> list[npt.NDArray[np.int64]]:
    """Return the positions of the images of each batch: classes one after the other."""
    data = images_of(name)
    tasks = 10
    numbered = Dataset.from_arrays(
        np.arange(len(data.train_labels), dtype=np.float32)[:, None],
        data.train_labels,
        np.zeros((len(data.test_labels), 1), np.float32),
        data.test_labels,
    )
    stream = STREAMS["clear"](tasks=tasks).open(numbered, seed)  # type: ignore[call-arg]
    return [stream.batch(step).x[:, 0].long().numpy() for step in range(len(stream))]


def sterad(method: str, frozen: bool = True, **arguments: Any) -> Callable[..., Any]:
    """Return a function that makes an OnlineClassifier; `frozen`: it gets rows, not images."""

    def make(name: str, out: Path, seed: int) -> Any:
        extra = dict(arguments)
        if not frozen:
            extra |= {"encoder": encoder(out), "flip": True}
        return OnlineClassifier(method, seed=seed, threads=1, precision="float32", **extra)

    # The control learns no representation: it gets pixels also where others get features.
    make.uses_images = not frozen or method == "randumb"  # type: ignore[attr-defined]
    return make


def sklearn(make: Callable[[], Any]) -> Callable[..., Any]:
    """Return a function that makes a learner of scikit-learn."""
    return lambda name, out, seed: make()


class River:
    """A learner of river, one row at a time."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def partial_fit(self, x: Rows, y: Rows, classes: Any = None) -> None:
        """Learn from each row."""
        for row, label in zip(x, y, strict=True):
            self.model.learn_one(dict(enumerate(row.tolist())), int(label))

    def predict(self, x: Rows) -> Rows:
        """Return the label of each row; -1 where there is no prediction."""
        labels = (self.model.predict_one(dict(enumerate(row.tolist()))) for row in x)
        return np.array([-1 if label is None else label for label in labels])


def river(kind: str) -> Callable[..., Any]:
    """Return a function that makes a learner of river."""

    def make(name: str, out: Path, seed: int) -> Any:
        from river import linear_model, naive_bayes, neighbors, preprocessing  # type: ignore

        models = {
            "GaussianNB": naive_bayes.GaussianNB,
            "SoftmaxRegression": linear_model.SoftmaxRegression,
            "KNNClassifier": neighbors.KNNClassifier,
        }
        return River(preprocessing.StandardScaler() | models[kind]())

    return make


def batch_lda(**options: Any) -> Any:
    """Return scikit-learn's LDA, which needs all rows at once."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(**options)


def sgd() -> Any:
    """Return scikit-learn's SGDClassifier."""
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(random_state=0)


def naive_bayes() -> Any:
    """Return scikit-learn's GaussianNB."""
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


LEARNERS: dict[str, Callable[..., Any]] = {
    "ncm": sterad("ncm"),
    "slda": sterad("slda"),
    "ridge": sterad("ridge"),
    "ridge, projection 2000": sterad("ridge", projection=2000),
    "fecam": sterad("fecam"),
    "randumb": sterad("randumb"),
    "agd-fd, frozen": sterad(
        "agd-fd", memory=MEMORY, encoder="flatten", classifier="nearest-direction"
    ),
    "er, frozen": sterad("er", memory=MEMORY, encoder="flatten"),
    "agd-fd, trained": sterad("agd-fd", frozen=False, memory=MEMORY, views=1),
    "er, trained": sterad("er", frozen=False, memory=MEMORY),
    "scikit-learn batch LDA": sklearn(batch_lda),
    "scikit-learn batch LDA, shrinkage auto": sklearn(
        partial(batch_lda, solver="lsqr", shrinkage="auto")
    ),
    "scikit-learn SGDClassifier": sklearn(sgd),
    "scikit-learn GaussianNB": sklearn(naive_bayes),
    "river GaussianNB": river("GaussianNB"),
    "river SoftmaxRegression": river("SoftmaxRegression"),
    "river KNNClassifier": river("KNNClassifier"),
}


def measure(name: str, learner: str, seed: int, out: Path) -> dict[str, Any]:
    """Learn the stream, predict the test images, and return accuracy and seconds."""
    data, make = images_of(name), LEARNERS[learner]
    uses_images = getattr(make, "uses_images", False)
    pictures = (data.train_images, data.test_images)
    train, test = pictures if uses_images else rows_of(name, out)
    order, model = order_of(name, seed), make(name, out, seed)
    y, truth = data.train_labels, data.test_labels
    if learner.startswith("river"):
        kept = np.concatenate(
            [np.flatnonzero(truth == c)[:RIVER_ROWS_PER_CLASS] for c in range(data.classes)]
        )
        test, truth = test[kept], truth[kept]
    started = time.process_time()
    if hasattr(model, "partial_fit"):
        declared = {"classes": np.arange(data.classes)} if learner.startswith("scikit") else {}
        for batch in order:
            model.partial_fit(train[batch], y[batch], **declared)
    else:
        model.fit(train, y)
    learned = time.process_time()
    accuracy = float((model.predict(test) == truth).mean())
    return {
        "data": name,
        "learner": learner,
        "seed": seed,
        "accuracy": accuracy,
        "learn_seconds": learned - started,
        "predict_seconds": time.process_time() - learned,
        "rows": len(train),
        "tested": len(test),
    }


def run(name: str, out: Path, learners: list[str]) -> None:
    """Measure what is missing, and append each result."""
    if name != "cifar100":  # without an encoder there is nothing to train further
        learners = [learner for learner in learners if not learner.endswith("trained")]
    file = out / "results.jsonl"
    done = {(r["data"], r["learner"], r["seed"]) for r in read(file)}
    for learner in learners:
        for seed in SEEDS:
            if (name, learner, seed) not in done:
                result = measure(name, learner, seed, out)
                with open(file, "a") as lines:
                    lines.write(json.dumps(result) + "\n")
                print(json.dumps(result), flush=True)


def read(file: Path) -> list[dict[str, Any]]:
    """Return the results so far."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def print_table(out: Path) -> None:
    """Print mean ± standard deviation over seeds, and mean seconds."""
    results = read(out / "results.jsonl")
    names = [
        name for name in ("digits", "mnist", "cifar100") if any(r["data"] == name for r in results)
    ]
    print("| learner |" + "".join(f" {name} | seconds |" for name in names))
    print("|:--|" + "--:|--:|" * len(names))
    for learner in LEARNERS:
        cells = [[r for r in results if (r["data"], r["learner"]) == (n, learner)] for n in names]
        if any(cells):
            print(f"| {learner} |" + "".join(map(cell, cells)))


def cell(results: list[dict[str, Any]]) -> str:
    """Return accuracy and seconds of one learner on one dataset."""
    if not results:
        return " | |"
    accuracies = [100 * r["accuracy"] for r in results]
    deviation = np.std(accuracies, ddof=1) if len(accuracies) > 1 else 0.0
    spread = f" ± {deviation:.1f}" if deviation >= 0.05 else ""
    if len(accuracies) < len(SEEDS):
        spread += f" (seeds: {len(accuracies)})"
    seconds = np.mean([r["learn_seconds"] + r["predict_seconds"] for r in results])
    return f" {np.mean(accuracies):.1f}{spread} | {seconds:,.1f} |"


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("pretrain", "run", "table"))
    parser.add_argument("data", nargs="?", choices=("digits", "mnist", "cifar100"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    actions = {
        "pretrain": partial(pretrain, args.out),
        "run": partial(run, args.data, args.out, args.learners),
        "table": partial(print_table, args.out),
    }
    actions[args.action]()


if __name__ == "__main__":
    main()
