"""Predictions use the current weights and memory, and nothing is encoded twice for them."""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.encoders import Network
from sterad.engine import Execution
from sterad.engine.evaluator import EVAL_BATCH_SIZE
from sterad.engine.parallel import ParallelForward
from sterad.evaluation.evaluate import evaluate
from sterad.methods import Replay
from sterad.methods.base.encoded_memory import EncodedMemory
from sterad.streams import Batch, Stream
from sterad.testing.method import same
from tests.methods.scaffold import build, open_stream, random_images, train

TEACHER = {"teacher": "ema", "teacher_momentum": 0.5}


def small_stream() -> Stream:
    return open_stream(classes=4, batch_size=5)


def trained(method: str, **fields: Any) -> Replay:
    """Return a learner after three steps."""
    problem = {"seed": 1, "execution": Execution(memory_format="contiguous")}
    learner = build(method, None, 12, problem, **({"memory_batch": 4} | fields))
    train(learner, small_stream(), 3)
    return learner


def inputs() -> Tensor:
    return torch.cat([small_stream().batch(step).x for step in range(4)])


def copy_for_evaluation(learner: Replay) -> Network:
    """Return a copy of the network that predicts, in evaluation mode and not folded."""
    return copy.deepcopy(learner.predictor).eval().requires_grad_(False)


def are_close(scores: Tensor, expected: Tensor) -> bool:
    """Return whether scores differ by rounding only, which many layers amplify."""
    return torch.allclose(scores, expected, rtol=0, atol=1e-4 * float(expected.abs().max()))


def check_head(learner: Replay) -> None:
    expected = copy_for_evaluation(learner)(inputs())[:, learner.seen]
    assert are_close(learner.scores(inputs())[0], expected)


def check_nearest_mean(learner: Replay) -> None:
    learner.consolidate()
    (stored,) = learner.memory.everything()
    network = copy_for_evaluation(learner)
    h, z = F.normalize(network.features(stored.x)), F.normalize(network.features(inputs()))
    means = torch.stack([h[stored.y == label].mean(0) for label in stored.y.unique()])
    scores = learner.scores(inputs())[0].softmax(1)
    variance = (h - means[stored.y.unique(return_inverse=True)[1]]).square().mean()
    expected = (-torch.cdist(z, means).square() / (2 * variance)).softmax(1)
    assert torch.allclose(scores, expected, atol=1e-3)


def take_a_step(learner: Replay) -> None:
    learner.observe(small_stream().batch(3))


def load_a_later_state(learner: Replay) -> None:
    later = copy.deepcopy(learner)
    take_a_step(later)
    learner.load_state_dict(later.state_dict())


def networks_of(learner: Replay) -> list[Network]:
    teacher = [] if learner.teacher is None else [learner.teacher.network]
    return [learner.network, *teacher]


def load_weights(learner: Replay) -> None:
    for network in networks_of(learner):
        state = network.state_dict()
        network.load_state_dict({k: 0.9 * v if v.ndim else v for k, v in state.items()})


def widen_head(learner: Replay) -> None:
    batch = small_stream().batch(0)
    learner.observe(Batch(batch.x, batch.y + 7))


def write_to_data(learner: Replay) -> None:
    """Change weights in place without a change of torch's version counters."""
    for network in networks_of(learner):
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.data[0] *= 1.5


def replace_data(learner: Replay) -> None:
    for network in networks_of(learner):
        for parameter in network.parameters():
            parameter.data = parameter.data * 0.9


def replace_network(learner: Replay) -> None:
    parts = learner.parts
    network = learner.make_network(learner.problem.classes or 1)
    learner.engine = parts.engine(network, learner.problem.execution, parts.optimizer)


CHANGES = [
    take_a_step, load_a_later_state, load_weights, widen_head, write_to_data, replace_data
]  # fmt: skip


@pytest.mark.parametrize("predict_with", ["no teacher", "student", "teacher", "average"])
@pytest.mark.parametrize("change", CHANGES)
def test_scores_of_the_head_follow_the_weights(
    change: Callable[[Replay], None], predict_with: str
) -> None:
    fields = {} if predict_with == "no teacher" else TEACHER | {"predict_with": predict_with}
    learner = trained("er", lr=0.1, **fields)
    check_head(learner)
    before, labels = learner.scores(inputs())
    change(learner)
    check_head(learner)
    after = learner.scores(inputs())[0][:, : len(labels)]
    assert not are_close(before, after)


@pytest.mark.parametrize("change", [*CHANGES, replace_network])
def test_fitted_classifiers_follow_weights_and_memory(change: Callable[[Replay], None]) -> None:
    learner = trained("er", lr=0.1, classifier="nearest-mean")
    check_nearest_mean(learner)
    change(learner)
    check_nearest_mean(learner)


def record_encodings(learner: Replay) -> list[int]:
    """Return a list to which each pass through the encoder appends its number of images."""
    sizes = list[int]()
    encoder = learner.network.encoder
    encoder.register_forward_hook(lambda module, args, out: sizes.append(len(out)))
    return sizes


@pytest.mark.parametrize("classifier", ["nearest-mean", "linear-probe", "knn"])
def test_the_memory_is_encoded_once(classifier: str) -> None:
    learner = trained("scr", classifier=classifier)
    sizes = record_encodings(learner)
    learner.consolidate()
    learner.consolidate()
    assert sum(sizes) == len(learner.memory)
    # Each call of immediate_scores consolidates.
    scores = learner.immediate_scores(inputs())
    assert same(scores, learner.immediate_scores(inputs()))
    assert sum(sizes) == len(learner.memory) + 2 * len(inputs())


@pytest.mark.parametrize("images", [0, 1, EVAL_BATCH_SIZE, 2 * EVAL_BATCH_SIZE + 7])
def test_many_images_are_evaluated_in_chunks(images: int) -> None:
    learner, x = trained("er"), random_images(images)
    sizes = record_encodings(learner)
    scores, labels = learner.scores(x)
    assert scores.shape == (images, len(labels))
    assert sum(sizes) == images
    assert max(sizes) <= EVAL_BATCH_SIZE
    assert not images or are_close(scores, copy_for_evaluation(learner)(x)[:, labels])


@pytest.mark.parametrize("classifier", ["head", "nearest-mean"])
def test_chunks_in_parallel_give_the_same_scores(classifier: str) -> None:
    learner, x = trained("er", classifier=classifier), random_images(3 * EVAL_BATCH_SIZE + 7)
    learner.consolidate()
    expected, _ = learner.scores(x)
    learner.engine.parallel = ParallelForward(2)
    learner.encoded_memory = EncodedMemory(learner.memory)
    learner.consolidate()
    scores, _ = learner.scores(x)
    assert not scores.requires_grad
    assert are_close(scores, expected)


def test_retrain_head_encodes_the_memory_once() -> None:
    learner = trained("agd-fd", views=1, classifier="nearest-direction", retrain_head=True)
    sizes = record_encodings(learner)
    learner.consolidate()
    learner.consolidate()
    assert sum(sizes) == len(learner.memory)


def update_memory(learner: Replay) -> None:
    learner.memory.update(small_stream().batch(3))


@pytest.mark.parametrize("change", [write_to_data, replace_data, load_weights, update_memory])
def test_a_change_of_weights_or_memory_encodes_again(change: Callable[[Replay], None]) -> None:
    learner = trained("scr")
    sizes = record_encodings(learner)
    learner.consolidate()
    before = sum(sizes)
    change(learner)
    learner.consolidate()
    assert sum(sizes) == before + len(learner.memory)


def test_a_copy_of_a_learner_predicts_with_its_own_weights() -> None:
    learner = trained("scr")
    learner.consolidate()
    learner.observe(small_stream().batch(3))
    other = copy.deepcopy(learner)
    take_a_step(other)
    check_nearest_mean(other)
    check_nearest_mean(learner)


def test_two_networks_can_be_evaluated_at_a_time() -> None:
    learner, x = trained("er", **TEACHER), inputs()
    assert learner.teacher is not None
    networks, evaluation = networks_of(learner), learner.engine.evaluation
    with evaluation() as student, evaluation(learner.teacher.network) as teacher, torch.no_grad():
        expected = [copy.deepcopy(network).eval()(x) for network in networks]
        assert are_close(student(x), expected[0])
        assert are_close(teacher(x), expected[1])


@pytest.mark.parametrize(("method", "views"), [("agd-fd", 2), ("scr", 1), ("er", 1)])
def test_evaluations_do_not_change_a_bit_of_what_is_learned(method: str, views: int) -> None:
    evaluated, other = (trained(method, views=views) for _ in range(2))
    for step in range(3, len(small_stream())):
        for learner in (evaluated, other):
            learner.observe(small_stream().batch(step))
        evaluate(evaluated, small_stream())
        evaluated.immediate_scores(inputs())
        assert all(module.training for module in evaluated.network.modules())
    assert same(evaluated.state_dict(), other.state_dict())


def test_nested_evaluations_restore_training_mode() -> None:
    learner = trained("er")
    assert learner.network.training
    with learner.engine.evaluation():
        with learner.engine.evaluation():
            assert not learner.network.training
        assert not learner.network.training, "the first evaluation has not ended"
    assert learner.network.training


def test_the_evaluation_that_began_first_may_end_first() -> None:
    learner, both_began, first_ended = trained("er"), Barrier(2), Event()

    def first() -> None:
        with learner.engine.evaluation():
            both_began.wait()
        first_ended.set()

    def second() -> None:
        with learner.engine.evaluation():
            both_began.wait()
            first_ended.wait()
            assert not learner.network.training

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(timeout=30)
    assert learner.network.training


def test_evaluations_in_threads_restore_training_mode_and_agree() -> None:
    learner, x = trained("er"), random_images(40)
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: learner.immediate_scores(x)[0], range(40)))
    assert learner.network.training
    assert all(torch.equal(scores[0], other) for other in scores)
