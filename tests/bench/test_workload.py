"""The workload of a step is what the method's paper says it is, and the bare network does it."""

import torch

from sterad.bench.bare import Bare
from sterad.bench.subject import Scene
from sterad.bench.workload import Pass, workload_of
from sterad.engine.execution import Execution
from sterad.methods.base.replay import Replay

SCENE = Scene(image_size=8, channels=1, classes=5, memory=300, width=2)
ONE = Execution(threads=1)


def subject(method: str) -> Replay:
    learner = SCENE.learner(method, ONE)
    assert isinstance(learner, Replay)
    return learner


def test_a_step_of_agd_fd_is_six_passes_of_74_images() -> None:
    learner = subject("agd-fd")
    found = workload_of(SCENE.act(learner))
    assert found.steps == ((Pass(74, True),) * 6,)
    assert (found.learning_images, found.looking_images) == (444, 0)


def test_what_is_only_looked_at_is_told_apart() -> None:
    found = workload_of(SCENE.act(subject("dvc")))
    assert found.looking_images == 2 * 128, "candidates are judged before and after a step"
    assert found.learning_images == 2 * (10 + 64)


def test_a_step_of_gdumb_is_one_of_its_consolidation() -> None:
    learner = subject("gdumb")
    found = workload_of(SCENE.act(learner))
    assert found.steps == ((Pass(learner.config.memory_batch, True),),)


def test_the_bare_network_steps_alike_in_turn_and_side_by_side() -> None:
    learner = subject("agd-fd")
    workload = workload_of(SCENE.act(learner))
    images = learner.engine.to_device(SCENE.batch(74).x)
    one, two = (Bare(learner.network, learner.config, workload, images) for _ in range(2))
    before = [weight.clone() for weight in one.weights]
    one.in_turn()
    two.side_by_side(2)
    assert any(not torch.equal(a, b) for a, b in zip(before, one.weights, strict=True))
    # Adam's first step is lr times the sign of the gradient, as good as zero for some weights.
    for a, b, start in zip(one.weights, two.weights, before, strict=True):
        agree = ((a - start) - (b - start)).abs() < 1e-5
        assert agree.float().mean() > 0.95
