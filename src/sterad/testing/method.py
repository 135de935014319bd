"""check_method: the contract of a method, which anyone can run on their own."""

import io
from itertools import product
from typing import Any

import torch
from torch import Tensor

from sterad.data import Dataset
from sterad.data.synthetic import Synthetic
from sterad.engine import Execution
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import STREAMS, Batch, Stream

CAPACITY = 12


def check_method(method: str | type[Learner], config: Any = None) -> None:
    """Walk a method through its whole contract; an AssertionError says in words what it breaks.

    method: a registered name or the class itself; config: its Config, the default one if None.
    """
    made = _Maker(METHODS[method] if isinstance(method, str) else method, config)
    for name in ("clear", "blurry", "iid", "domain"):
        stream = _stream(name)
        check_stream(made, stream)
        check_round_trip(made, stream)
    check_same_seed(made, _stream("clear"))
    check_each_sample_counts(made, _stream("clear"))
    check_answering_does_not_teach(made, _stream("clear"))
    check_answers_are_seen(made)
    check_batch_of_one(made)
    check_device(made, _stream("clear"))


class _Maker:
    """Makes equal learners again and again."""

    def __init__(self, cls: type[Learner], config: Any) -> None:
        self.cls, self.config = cls, cls.Config() if config is None else config

    def __call__(self, stream: Stream, seed: int = 0, device: str = "cpu") -> Learner:
        announced = bool(stream.boundary_steps)
        execution = Execution(device, threads=1, precision="float32", view_threads=1, compile=False)
        problem = Problem(
            (1, 8, 8), 4, CAPACITY, width=2, seed=seed, announced=announced, execution=execution
        )
        return build_learner(self.cls, self.config, problem)


def _dataset() -> Dataset:
    return Synthetic(classes=4, per_class=7, test_per_class=4, image_size=8, channels=1).load()


def _stream(name: str, tasks: int = 2) -> Stream:
    given: dict[str, Any] = {"batch_size": 5, "domains" if name == "domain" else "tasks": tasks}
    given |= {"scale": 4.0} if name == "blurry" else {}
    # 28 images in batches of 5: each stream ends with a partial batch.
    return STREAMS[name](**given).open(_dataset(), seed=0)


def _follow(learner: Learner, stream: Stream, start: int, stop: int) -> list[Tensor | None]:
    losses = []
    for step in range(start + 1, stop + 1):
        losses.append(learner.observe(stream.batch(step - 1)))
        if (boundary := stream.boundary(step)) is not None:
            learner.boundary(boundary)
    return losses


def check_stream(made: _Maker, stream: Stream) -> None:
    """Observe each batch once: inputs stay as they were, memory stays within its capacity."""
    learner, seen, offered = made(stream), set[int](), torch.zeros(4, dtype=torch.int64)
    noise = torch.random.get_rng_state()
    for step in range(len(stream)):
        batch = stream.batch(step)
        x, y = batch.x.clone(), batch.y.clone()
        loss = learner.observe(batch)
        seen |= set(y.tolist())
        assert torch.equal(batch.x, x), "observe changed the images that it was given"
        assert torch.equal(batch.y, y), "observe changed the labels that it was given"
        assert loss is None or bool(torch.isfinite(loss)), f"the loss is {loss} at step {step}"
        assert set(learner.seen.tolist()) == seen, "`seen` is not what has been seen"
        offered = offered + torch.bincount(y, minlength=4)
        counts = learner.memory_counts(4)
        kept = 0 if counts is None else int(counts.sum())
        assert kept <= CAPACITY, f"the memory holds {kept} images and may hold {CAPACITY}"
        twice = counts is not None and bool((counts > offered).any())
        assert not twice, "the memory holds an image more than once"
    learner.consolidate()
    answers = learner.predict(stream.batch(0).x)
    assert len(answers) == len(stream.batch(0)), "predict must give one label an image"
    assert set(answers.tolist()) <= seen, "predict answered a class that was never seen"
    assert torch.equal(noise, torch.random.get_rng_state()), "torch's global generator was used"


def check_same_seed(made: _Maker, stream: Stream) -> None:
    """Give the same seed twice: equal to the bit; another seed: another state."""
    first, second, other = made(stream), made(stream), made(stream, seed=1)
    for learner in (first, second, other):
        _follow(learner, stream, 0, len(stream))
    assert same(first.state_dict(), second.state_dict()), "the same seed gave another result"
    assert not same(first.state_dict(), other.state_dict()), "another seed gave the same result"


def check_each_sample_counts(made: _Maker, stream: Stream, batches: int = 2) -> None:
    """Change one of the first samples, which all fit into the memory: the state is another one."""
    plain = made(stream)
    _follow(plain, stream, 0, batches)
    for step, at in product(range(batches), range(len(stream.batch(0)))):
        other = made(stream)
        _follow(other, stream, 0, step)
        batch = stream.batch(step)
        batch.x[at] = 1 - batch.x[at]
        other.observe(batch)
        _follow(other, stream, step + 1, batches)
        assert not same(plain.state_dict(), other.state_dict()), (
            f"image {at} of batch {step} was neither learned from nor kept"
        )


def check_round_trip(made: _Maker, stream: Stream) -> None:
    """Save in mid-stream, load into a new learner and continue: equal to never stopping."""
    whole, half = made(stream), made(stream)
    _follow(whole, stream, 0, len(stream))
    middle = len(stream) // 2
    _follow(half, stream, 0, middle)
    file = io.BytesIO()
    torch.save(half.state_dict(), file)
    file.seek(0)
    resumed = made(stream)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    _follow(resumed, stream, middle, len(stream))
    missing = "continued from state_dict() the result differs: some state is missing from it"
    assert same(whole.state_dict(), resumed.state_dict()), missing
    for learner in (whole, resumed):
        learner.consolidate()
    assert same(_answers(whole, stream), _answers(resumed, stream)), missing


def _answers(learner: Learner, stream: Stream) -> list[tuple[Tensor, Tensor]]:
    x = stream.batch(0).x
    return [learner.scores(x), learner.instant_scores(x)]


def check_answering_does_not_teach(made: _Maker, stream: Stream) -> None:
    """Consolidate and predict on the way: what is learned stays as it is."""
    silent, asked = made(stream), made(stream)
    _follow(silent, stream, 0, len(stream))
    for step in range(len(stream)):
        _follow(asked, stream, step, step + 1)
        asked.consolidate()
        asked.predict(stream.batch(step).x)
        asked.instant_scores(stream.batch(step).x)
    assert same(silent.state_dict(), asked.state_dict()), "answering changed what is learned"


def check_answers_are_seen(made: _Maker) -> None:
    """See one class alone, each of them in turn: whatever is asked, it is the only answer."""
    stream = _stream("clear", tasks=4)
    for step in range(len(stream)):
        learner, batch = made(stream), stream.batch(step)
        learner.observe(batch)
        learner.consolidate()
        scores, labels = learner.instant_scores(stream.batch(0).x)
        for answers in (learner.predict(stream.batch(0).x), labels[scores.argmax(dim=1)]):
            assert set(answers.tolist()) <= set(batch.y.tolist()), (
                "predict answered a class that was never seen"
            )


def check_batch_of_one(made: _Maker) -> None:
    """Learn single images."""
    stream = _stream("clear")
    learner, batch = made(stream), stream.batch(0)
    for at in range(len(batch)):
        learner.observe(Batch(batch.x[at : at + 1], batch.y[at : at + 1]))
    learner.consolidate()
    assert len(learner.predict(batch.x[:1])) == 1, "predict must give one label an image"


def check_device(made: _Maker, stream: Stream) -> None:
    """Learn on the meta device, which holds no numbers: no tensor may have stayed elsewhere.

    A method that needs a number to go on, the sign of a product say, is followed up to there.
    """
    learner = made(stream, device="meta")
    try:
        _follow(learner, stream, 0, len(stream))
        learner.consolidate()
        learner.predict(stream.batch(0).x)
    except RuntimeError as error:
        if "meta tensor" in str(error).lower():  # torch has no number to give
            return
        message = f"on the device 'meta': {error}; is there a device in the code?"
        raise AssertionError(message) from error


def same(first: Any, second: Any) -> bool:
    """Return whether two states are equal to the bit."""
    if isinstance(first, Tensor):
        return isinstance(second, Tensor) and bool(torch.equal(first, second))
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)
