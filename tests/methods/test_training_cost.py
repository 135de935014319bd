"""The passes that a method counts are those that it makes, and the bytes those that it keeps."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sterad.encoders import EncoderOptions
from sterad.engine import Execution
from sterad.experiments.training_cost import training_cost
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import Batch, Boundary

SIDE, MEMORY = 8, 20
PIXELS = SIDE * SIDE


def build(method: str, options: EncoderOptions | None = None, **fields: Any) -> Learner:
    cls = METHODS[method]
    problem = Problem(
        input_shape=(3, SIDE, SIDE),
        classes=4,
        memory=MEMORY,
        encoder=cls.default_encoder,
        width=2,
        announced=True,
        execution=Execution(threads=1, precision="float32"),
        encoder_options=options or EncoderOptions(),
    )
    return build_learner(cls, cls.Config(**fields), problem)


def batch(images: int) -> Batch:
    rng = torch.Generator().manual_seed(images)
    x = torch.rand(images, 3, SIDE, SIDE, generator=rng)
    return Batch(x, torch.arange(images) % 4)


def step_pixels(learner: Learner) -> tuple[float, int]:
    """Return weighted and forward-only pixels of a step with a full memory, after a boundary."""
    learner.observe(batch(MEMORY))
    learner.boundary(Boundary(task=0, step=1))
    before = training_cost(learner)
    learner.observe(batch(10))
    after = training_cost(learner)
    assert before is not None
    assert after is not None
    return after.pixels - before.pixels, after.forward_pixels - before.forward_pixels


def test_pixels_of_a_method_with_several_views() -> None:
    learner = build("agd-fd", views=3, memory_batch=8)
    assert step_pixels(learner) == (4 * (10 + 8) * PIXELS, 0)


def test_pixels_of_a_teacher_are_forward_only() -> None:
    pixels, forward = step_pixels(build("er", teacher="ema", memory_batch=8))
    assert forward == 18 * PIXELS
    assert pixels == pytest.approx((3 * 18 + 18 / 3) * PIXELS)


def test_pixels_of_candidates_and_of_a_snapshot_are_forward_only() -> None:
    fields: dict[str, Any] = {"memory_batch": 4, "candidates": 6}
    assert step_pixels(build("dvc", **fields))[1] == 2 * 6 * PIXELS
    assert step_pixels(build("ocm", memory_batch=4))[1] == (16 + 1) * 4 * PIXELS
    fields = {"memory_batch": 4, "mir_candidates": 6}
    assert step_pixels(build("er", retrieval="mir", **fields))[1] == 2 * 6 * PIXELS


def test_views_of_another_size_count_with_their_own_pixels() -> None:
    learner = build("er", views=1, memory_batch=8)

    def shrink(x: Tensor, rng: torch.Generator) -> Tensor:
        return torch.nn.functional.avg_pool2d(x, 2)

    learner.augmentation = shrink  # type: ignore[attr-defined]
    shrink.changes = lambda x: True  # type: ignore[attr-defined]
    assert step_pixels(learner) == (18 * PIXELS / 4, 0)


def test_training_from_scratch_counts_its_consolidations() -> None:
    learner = build("gdumb", epochs=2, memory_batch=10)
    learner.observe(batch(MEMORY))
    learner.consolidate()
    cost = training_cost(learner)
    assert cost is not None
    assert cost.pixels == 2 * MEMORY * PIXELS
    network = sum(one.nbytes for one in learner.network.state_dict().values())  # type: ignore[attr-defined]
    assert cost.state_bytes >= network + MEMORY * 3 * PIXELS


def test_a_frozen_encoder_encodes_each_image_once() -> None:
    learner = build("er", EncoderOptions(frozen=True), augmentation="none", memory_batch=8)
    pixels, forward = step_pixels(learner)
    assert forward == 10 * PIXELS
    assert pixels == pytest.approx(10 * PIXELS / 3 + 18)  # and 18 feature vectors
    assert learner.fork().passes[0][1].images == 30


def test_a_method_without_a_network_has_no_pixels() -> None:
    learner = build("slda")
    learner.observe(batch(8))
    cost = training_cost(learner)
    assert cost is not None
    assert cost.forward_pixels == cost.multiply_adds == 0
    assert cost.state_bytes > 0


def test_the_state_has_network_optimizer_teacher_and_memory() -> None:
    plain, distilled = build("er", lr=0.1), build("er", lr=0.1, teacher="ema")
    more = distilled.state_bytes - plain.state_bytes
    assert more == sum(one.nbytes for one in plain.network.state_dict().values())  # type: ignore[attr-defined]
    before = plain.state_bytes
    plain.observe(batch(MEMORY))
    assert plain.state_bytes - before >= MEMORY * (3 * PIXELS + 8)


def test_a_state_of_a_version_without_counts_gives_no_cost() -> None:
    learner, resumed = build("er"), build("er")
    learner.observe(batch(10))
    state = learner.state_dict()
    del state["passes"]
    resumed.load_state_dict(state)
    resumed.observe(batch(10))
    assert training_cost(learner) is not None
    assert training_cost(resumed) is None
