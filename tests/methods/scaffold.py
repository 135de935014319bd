"""What the tests of methods share: small learners and streams, and comparisons of whole steps."""

import io
from typing import Any, TypeVar, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.data.synthetic import Synthetic
from sterad.methods import METHODS, Learner, Problem, Replay, build_learner
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

R = TypeVar("R", bound=Replay)
SHAPE = (1, 8, 8)
ALL_OPTIONS: dict[str, Any] = {"views": 2, "memory_iterations": 2, "clip": 1.0, "teacher": "ema"}
"""Options of every replay method, all different from their defaults."""


@overload
def build(
    method: type[R],
    classes: int | None = ...,
    memory: int = ...,
    problem: dict[str, Any] | None = ...,
    parts: dict[str, Any] | None = ...,
    **fields: Any,
) -> R: ...
@overload
def build(
    method: str,
    classes: int | None = ...,
    memory: int = ...,
    problem: dict[str, Any] | None = ...,
    parts: dict[str, Any] | None = ...,
    **fields: Any,
) -> Replay: ...
def build(
    method: str | type[Replay],
    classes: int | None = 6,
    memory: int = 30,
    problem: dict[str, Any] | None = None,
    parts: dict[str, Any] | None = None,
    **fields: Any,
) -> Replay:
    """Return a learner with a network of width 2.

    problem: fields of its Problem; parts: objects for `build_learner`; fields: of its Config.
    """
    cls = METHODS[method] if isinstance(method, str) else method
    values: dict[str, Any] = {"input_shape": SHAPE, "width": 2, "seed": 3} | (problem or {})
    setting = Problem(classes=classes, memory=memory, **values)
    learner = build_learner(cls, cls.Config(**fields), setting, **(parts or {}))
    assert isinstance(learner, Replay)
    return learner


def open_stream(
    classes: int = 6, per_class: int = 10, tasks: int = 2, batch_size: int = 10
) -> Stream:
    """Return a stream of synthetic images of `SHAPE` with clear task boundaries."""
    data = Synthetic(classes=classes, per_class=per_class, test_per_class=4).load()
    return Clear(tasks=tasks, batch_size=batch_size).open(data, seed=0)


def random_images(n: int, seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Tensor:
    """Return n images of uniform noise."""
    return torch.rand(n, *shape, generator=torch.Generator().manual_seed(seed))


def train(learner: Learner, stream: Stream, stop: int | None = None, start: int = 0) -> None:
    """Observe the batches from `start` to `stop` and announce the task boundaries."""
    for step in range(start, len(stream) if stop is None else stop):
        learner.observe(stream.batch(step))
        if (boundary := stream.boundary(step + 1)) is not None:
            learner.boundary(boundary)


def take_step(learner: Learner, batch: Batch) -> Tensor:
    """Observe a batch and return its loss, which must exist."""
    loss = learner.observe(batch)
    assert loss is not None, "the learner took no step"
    return loss


def count_images(learner: Learner, batch: Batch) -> int:
    """Return the number of images that pass through the network for one batch."""
    before = learner.images
    learner.observe(batch)
    return learner.images - before


def draw_views(learner: Replay, x: Tensor) -> list[Tensor]:
    """Return `config.views` random views and the raw images; a single view comes alone."""
    views = [learner.augmentation(x, learner.rng["views"]) for _ in range(learner.config.views)]
    return views if len(views) == 1 else [*views, x]


def literal_cross_entropy(logits: Tensor, labels: list[int]) -> Tensor:
    """Return the mean of -log softmax of the labels, row by row."""
    rows = zip(logits, labels, strict=True)
    return torch.stack([row.exp().sum().log() - row[label] for row, label in rows]).mean()


def literal_expert(expert: nn.Module, x: Tensor) -> Tensor:
    """Return the features of a stage, from the weights of an expert by name."""
    weights = dict(expert.named_parameters())
    gate = F.conv2d(x, weights["gate.weight"], weights["gate.bias"])
    y = x / (1 + torch.exp(-gate))
    for layer in range(len(expert.get_submodule("layers")._modules)):
        own = {
            name[len(f"layers.{layer}.") :]: w
            for name, w in weights.items()
            if name.startswith(f"layers.{layer}.")
        }
        y = F.conv2d(y, own["0.weight"], stride=2, padding=1, groups=y.shape[1])
        y = F.conv2d(y, own["1.weight"])
        mean = y.mean(dim=(1, 2, 3), keepdim=True)
        variance = ((y - mean) ** 2).mean(dim=(1, 2, 3), keepdim=True)
        y = (y - mean) / (variance + 1e-5).sqrt()
        y = (y * own["2.weight"].view(1, -1, 1, 1) + own["2.bias"].view(1, -1, 1, 1)).clamp(min=0)
    return y.sum(dim=(2, 3)) / (y.shape[2] * y.shape[3])


def assert_networks_close(
    network: nn.Module, expected: nn.Module, atol: float, buffer_atol: float | None = None
) -> None:
    """Require close parameters, and close buffers if `buffer_atol` is given."""
    for value, wanted in zip(network.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(value, wanted, atol=atol)
    if buffer_atol is not None:
        for buffer, wanted_buffer in zip(network.buffers(), expected.buffers(), strict=True):
            assert torch.allclose(buffer.float(), wanted_buffer.float(), atol=buffer_atol)


def assert_resumes(learner: Learner, fresh: Learner, *batches: Batch) -> None:
    """Save the state, load it into `fresh`, and require equal bits after further batches."""
    file = io.BytesIO()
    torch.save(learner.state_dict(), file)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    assert same(learner.state_dict(), fresh.state_dict())
    for batch in batches:
        losses = learner.observe(batch), fresh.observe(batch)
        assert same(*losses)
    assert same(learner.state_dict(), fresh.state_dict())
