"""The recorded workload of a step is that of the paper, and the bare network runs it."""

from dataclasses import replace

import pytest
import torch

from sterad.bench.setup import BenchSetup
from sterad.bench.workload import BareNetwork, Pass, record_workload
from sterad.engine.execution import Execution
from sterad.methods.base.replay import Replay

SETUP = BenchSetup(image_size=8, channels=1, classes=5, memory=300, width=2)


def make_learner(method: str) -> Replay:
    return SETUP.learner(method, Execution(threads=1))


def test_a_step_of_agd_fd_has_six_passes_of_74_images() -> None:
    workload = record_workload(SETUP.step_function(make_learner("agd-fd")))
    assert workload.steps == ((Pass(74, True),) * 6,)
    assert (workload.trained_images, workload.forward_only_images) == (444, 0)


def test_forward_only_passes_are_counted_separately() -> None:
    workload = record_workload(SETUP.step_function(make_learner("dvc")))
    assert workload.forward_only_images == 2 * 128, "candidates are scored before and after a step"
    assert workload.trained_images == 2 * (10 + 64)


def test_a_step_of_gdumb_is_one_of_its_consolidation() -> None:
    learner = make_learner("gdumb")
    workload = record_workload(SETUP.step_function(learner))
    assert workload.steps == ((Pass(learner.config.memory_batch, True),),)


def test_the_bare_network_passes_small_views_in_their_size() -> None:
    learner = SETUP.learner("agd-fd", Execution(threads=1), views=1, view_size=6)
    workload = record_workload(SETUP.step_function(learner))
    assert [one.shape for one in workload.steps[0]] == [(1, 6, 6), (1, 8, 8)]
    images = learner.engine.to_device(SETUP.batch(74).x)
    bare = BareNetwork(learner.network, learner.config, workload, images)
    again = record_workload(bare.run_sequentially)
    assert [one.shape for one in again.steps[0]] == [(1, 6, 6), (1, 8, 8)]


@pytest.mark.parametrize("method", ["mose", "agd-fd"])
def test_passes_with_the_outputs_of_all_stages_are_recorded(method: str) -> None:
    setup = replace(SETUP, second_task=True)
    fields = {"views": 1, "stage_weight": 1.0} if method == "agd-fd" else {}
    learner = setup.learner(method, Execution(threads=1), **fields)
    workload = record_workload(setup.step_function(learner))
    # The current task has 30 images in memory, of which mose fills its 32 with the batch.
    (passes,) = workload.steps
    expected = [Pass(74, True, stages=True)] * 2
    assert [*passes] == expected if method == "agd-fd" else passes[0].images > 4 * 32
    images = learner.engine.to_device(setup.batch(4 * 200).x)
    bare = BareNetwork(learner.network, learner.config, workload, images)
    assert record_workload(bare.run_sequentially).steps == workload.steps
    assert all(weight.grad is not None for weight in bare.network.stage_heads.parameters())


def test_the_bare_network_takes_the_same_step_sequentially_and_in_parallel() -> None:
    learner = make_learner("agd-fd")
    workload = record_workload(SETUP.step_function(learner))
    images = learner.engine.to_device(SETUP.batch(74).x)
    sequential, parallel = (
        BareNetwork(learner.network, learner.config, workload, images) for _ in range(2)
    )
    before = [weight.clone() for weight in sequential.weights]
    sequential.run_sequentially()
    parallel.run_in_parallel(2)
    assert any(not torch.equal(a, b) for a, b in zip(before, sequential.weights, strict=True))
    # Adam's first step is lr times the sign of the gradient, which is almost zero for some weights.
    for a, b, start in zip(sequential.weights, parallel.weights, before, strict=True):
        agree = ((a - start) - (b - start)).abs() < 1e-5
        assert agree.float().mean() > 0.95
