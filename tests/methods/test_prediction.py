"""Answers follow the weights and the memory of now, and nothing is encoded twice for them."""

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sterad.data.synthetic import Synthetic
from sterad.encoders import Network
from sterad.engine import Execution
from sterad.engine.engine import EVAL_BATCH_SIZE
from sterad.engine.parallel import ParallelForward
from sterad.evaluation.evaluate import evaluate
from sterad.methods import METHODS, Problem, Replay, build_learner
from sterad.methods.base.parts import EncodedMemory
from sterad.streams import Batch, Clear, Stream
from sterad.testing.method import same

TEACHER = {"teacher": "ema", "teacher_momentum": 0.5}


def stream() -> Stream:
    data = Synthetic(classes=4, per_class=10, test_per_class=4).load()
    return Clear(tasks=2, batch_size=5).open(data, seed=0)


def learner(name: str, **fields: Any) -> Replay:
    cls = METHODS[name]
    problem = Problem(
        (1, 8, 8), None, 12, width=2, seed=1, execution=Execution(memory_format="contiguous")
    )
    made = build_learner(cls, cls.Config(**({"memory_batch": 4} | fields)), problem)
    assert isinstance(made, Replay)
    for step in range(3):
        made.observe(stream().batch(step))
    return made


def asked() -> Tensor:
    return torch.cat([stream().batch(step).x for step in range(4)])


@contextmanager
def plain(made: Replay) -> Iterator[Network]:
    """Lend a copy of the network that answers, as it is and with all of its layers."""
    with torch.no_grad():
        yield copy.deepcopy(made.predictor).eval()


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Return whether two sets of answers differ by rounding alone, which many layers amplify."""
    return torch.allclose(ours, theirs, rtol=0, atol=1e-4 * float(theirs.abs().max()))


def check_head(made: Replay) -> None:
    with plain(made) as network:
        expected = network(asked())[:, made.seen]
    assert close(made.scores(asked())[0], expected)


def check_nearest_mean(made: Replay) -> None:
    made.consolidate()
    (kept,) = made.memory.everything()
    with plain(made) as network:
        h, z = F.normalize(network.features(kept.x)), F.normalize(network.features(asked()))
    means = torch.stack([h[kept.y == label].mean(0) for label in kept.y.unique()])
    ours = made.scores(asked())[0].softmax(1)
    spread = (h - means[kept.y.unique(return_inverse=True)[1]]).square().mean()
    expected = (-torch.cdist(z, means).square() / (2 * spread)).softmax(1)
    assert torch.allclose(ours, expected, atol=1e-3)


def step(made: Replay) -> None:
    made.observe(stream().batch(3))


def load(made: Replay) -> None:
    further = copy.deepcopy(made)
    step(further)
    made.load_state_dict(further.state_dict())


def networks(made: Replay) -> list[Network]:
    return [made.network] if made.teacher is None else [made.network, made.teacher.network]


def load_weights(made: Replay) -> None:
    for network in networks(made):
        state = network.state_dict()
        network.load_state_dict({k: 0.9 * v if v.ndim else v for k, v in state.items()})


def grow(made: Replay) -> None:
    batch = stream().batch(0)
    made.observe(Batch(batch.x, batch.y + 7))


def write_unseen(made: Replay) -> None:
    """Change weights in place, where torch's version counters do not see it."""
    for network in networks(made):
        for module in network.modules():
            if isinstance(module, nn.Conv2d):
                module.weight.data[0] *= 1.5


def replace_data(made: Replay) -> None:
    for network in networks(made):
        for parameter in network.parameters():
            parameter.data = parameter.data * 0.9


def another_network(made: Replay) -> None:
    parts = made.parts
    made.engine = parts.engine(made.make_network(), made.problem.execution, parts.optimizer)


CHANGES = [step, load, load_weights, grow, write_unseen, replace_data]


@pytest.mark.parametrize("predict_with", ["no teacher", "student", "teacher", "average"])
@pytest.mark.parametrize("change", CHANGES)
def test_answers_follow_the_weights(change: Callable[[Replay], None], predict_with: str) -> None:
    fields = {} if predict_with == "no teacher" else TEACHER | {"predict_with": predict_with}
    made = learner("er", lr=0.1, **fields)
    check_head(made)
    before, labels = made.scores(asked())
    change(made)
    check_head(made)
    after = made.scores(asked())[0][:, : len(labels)]
    assert not close(before, after)


@pytest.mark.parametrize("change", [*CHANGES, another_network])
def test_fitted_classifiers_follow_weights_and_memory(change: Callable[[Replay], None]) -> None:
    made = learner("er", lr=0.1, classifier="nearest-mean")
    check_nearest_mean(made)
    change(made)
    check_nearest_mean(made)


def encodings(made: Replay) -> list[int]:
    """Return a list to which each pass through the encoder will add its number of images."""
    counted = list[int]()
    encoder = made.network.encoder
    encoder.register_forward_hook(lambda module, given, out: counted.append(len(out)))
    return counted


@pytest.mark.parametrize("classifier", ["nearest-mean", "linear-probe", "knn"])
def test_a_memory_is_encoded_once(classifier: str) -> None:
    made = learner("scr", classifier=classifier)
    counted = encodings(made)
    made.consolidate()
    made.consolidate()
    assert sum(counted) == len(made.memory)
    first = made.immediate_scores(asked())
    assert same(first, made.immediate_scores(asked()))  # each of which consolidates
    assert sum(counted) == len(made.memory) + 2 * len(asked())


@pytest.mark.parametrize("images", [0, 1, EVAL_BATCH_SIZE, 2 * EVAL_BATCH_SIZE + 7])
def test_many_images_are_answered_in_chunks(images: int) -> None:
    made = learner("er")
    counted = encodings(made)
    x = torch.rand(images, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    scores, labels = made.scores(x)
    assert scores.shape == (images, len(labels))
    assert sum(counted) == images
    assert max(counted) <= EVAL_BATCH_SIZE
    with plain(made) as network:
        assert not images or close(scores, network(x)[:, labels])


@pytest.mark.parametrize("classifier", ["head", "nearest-mean"])
def test_chunks_on_threads_give_the_same_answers(classifier: str) -> None:
    made = learner("er", classifier=classifier)
    made.consolidate()
    x = torch.rand(3 * EVAL_BATCH_SIZE + 7, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    alone, _ = made.scores(x)
    made.engine.parallel = ParallelForward(2)
    made.encoded_memory = EncodedMemory(made.memory)
    made.consolidate()
    beside, _ = made.scores(x)
    assert not beside.requires_grad
    assert close(beside, alone)


def test_a_head_is_retrained_on_features_that_are_encoded_once() -> None:
    made = learner("agd-fd", views=1, classifier="nearest-direction", retrain_head=True)
    counted = encodings(made)
    made.consolidate()
    made.consolidate()
    assert sum(counted) == len(made.memory)


def remember(made: Replay) -> None:
    made.memory.update(stream().batch(3))


@pytest.mark.parametrize("change", [write_unseen, replace_data, load_weights, remember])
def test_what_has_changed_is_encoded_again(change: Callable[[Replay], None]) -> None:
    made = learner("scr")
    counted = encodings(made)
    made.consolidate()
    before = sum(counted)
    change(made)
    made.consolidate()
    assert sum(counted) == before + len(made.memory)


def test_a_copy_of_a_learner_answers_by_its_own_weights() -> None:
    made = learner("scr")
    made.consolidate()
    made.observe(stream().batch(3))
    twin = copy.deepcopy(made)
    step(twin)
    check_nearest_mean(twin)
    check_nearest_mean(made)


def test_two_networks_can_be_lent_at_a_time() -> None:
    made = learner("er", **TEACHER)
    assert made.teacher is not None
    x, student = asked(), made.network
    teacher = made.teacher.network
    lend = made.engine.evaluation
    with lend() as ours, lend(teacher) as theirs, torch.no_grad():
        expected = [copy.deepcopy(one).eval()(x) for one in (student, teacher)]
        assert close(ours(x), expected[0])
        assert close(theirs(x), expected[1])


@pytest.mark.parametrize(("name", "views"), [("agd-fd", 2), ("scr", 1), ("er", 1)])
def test_evaluations_between_steps_change_no_bit_of_what_is_learned(name: str, views: int) -> None:
    silent, evaluated = learner(name, views=views), learner(name, views=views)
    for number in range(3, len(stream())):
        for made in (silent, evaluated):
            made.observe(stream().batch(number))
        evaluate(evaluated, stream())
        evaluated.immediate_scores(asked())
        assert all(module.training for module in evaluated.network.modules())
    assert same(silent.state_dict(), evaluated.state_dict())


def test_overlapping_evaluations_leave_the_network_in_training_mode() -> None:
    made = learner("er")
    assert made.network.training
    with made.engine.evaluation():
        with made.engine.evaluation():
            assert not made.network.training
        assert not made.network.training, "the first evaluation still goes on"
    assert made.network.training


def test_the_evaluation_that_began_first_may_end_first() -> None:
    made, both, left = learner("er"), Barrier(2), Event()

    def first() -> None:
        with made.engine.evaluation():
            both.wait()
        left.set()

    def second() -> None:
        with made.engine.evaluation():
            both.wait()
            left.wait()
            assert not made.network.training

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(timeout=30)
    assert made.network.training


def test_evaluations_in_threads_leave_the_network_in_training_mode() -> None:
    made = learner("er")
    x = torch.rand(40, *made.problem.input_shape)
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: made.immediate_scores(x)[0], range(40)))
    assert made.network.training
    assert all(torch.equal(scores[0], one) for one in scores)
