"""check_method: the contract of a method, to run on your own ones too."""

import io
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.engine import Execution
from sterad.methods import METHODS, Learner, Problem, build_learner
from sterad.streams import STREAMS, Batch, Stream
from sterad.testing.device import simulated_device

CAPACITY = 12
MakeLearner = Callable[..., Learner]
"""Makes equal learners for a stream; optional arguments are the seed and the device."""


def check_method(method: str | type[Learner], config: Any = None) -> None:
    """Run all checks of the contract; an AssertionError names the one that fails.

    method: a registered name or the class itself; config: its Config (default: `Config()`).
    """
    cls = METHODS[method] if isinstance(method, str) else method
    make = partial(_make_learner, cls, cls.Config() if config is None else config)
    clear = _open_stream("clear")
    with Execution(threads=1, keeps_memory=False).applied():  # threads slow tiny networks down
        for stream in (clear, *map(_open_stream, ("blurry", "iid", "domain"))):
            check_stream(make, stream)
            check_round_trip(make, stream)
        check_passes(make, clear)
        check_same_seed(make, clear)
        check_each_sample_counts(make, clear)
        check_predictions_change_nothing(make, clear)
        check_predictions_are_seen(make, _open_stream("clear", tasks=4))
        check_batch_of_one(make, clear)
        check_device(make, clear)


def _make_learner(
    cls: type[Learner], config: Any, stream: Stream, seed: int = 0, device: str = "cpu"
) -> Learner:
    announced = bool(stream.boundary_steps)
    execution = Execution(device, threads=1, precision="float32", view_threads=1, compile=False)
    problem = Problem(
        input_shape=(1, 8, 8),
        classes=4,
        memory=CAPACITY,
        encoder=cls.default_encoder,
        width=2,
        seed=seed,
        announced=announced,
        execution=execution,
    )
    return build_learner(cls, config, problem)


def _open_stream(name: str, tasks: int = 2) -> Stream:
    dataset = Synthetic(classes=4, per_class=7, test_per_class=4, image_size=8, channels=1).load()
    fields: dict[str, Any] = {"batch_size": 5, "domains" if name == "domain" else "tasks": tasks}
    fields |= {"scale": 4.0} if name == "blurry" else {}
    # 28 images in batches of 5: each stream ends with a partial batch.
    return STREAMS[name](**fields).open(dataset, seed=0)


def _train(learner: Learner, stream: Stream, start: int, stop: int) -> list[Tensor | None]:
    losses = []
    for step in range(start + 1, stop + 1):
        losses.append(learner.observe(stream.batch(step - 1)))
        if (boundary := stream.boundary(step)) is not None:
            learner.boundary(boundary)
    return losses


def check_stream(make: MakeLearner, stream: Stream) -> None:
    """Observe each batch once: inputs stay unchanged, the memory stays within its capacity."""
    learner, seen, offered = make(stream), set[int](), torch.zeros(4, dtype=torch.int64)
    global_rng = torch.random.get_rng_state()
    for step in range(len(stream)):
        batch = stream.batch(step)
        x, y = batch.x.clone(), batch.y.clone()
        loss = learner.observe(batch)
        seen |= set(y.tolist())
        assert torch.equal(batch.x, x), "observe changed the images of its batch"
        assert torch.equal(batch.y, y), "observe changed the labels of its batch"
        assert loss is None or bool(torch.isfinite(loss)), f"the loss is {loss} at step {step}"
        assert set(learner.seen.tolist()) == seen, "`seen` differs from the labels observed"
        offered = offered + torch.bincount(y, minlength=4)
        counts = learner.memory_counts(4)
        stored = 0 if counts is None else int(counts.sum())
        assert stored <= CAPACITY, f"the memory holds {stored} images, more than {CAPACITY}"
        has_copies = counts is not None and bool((counts > offered).any())
        assert not has_copies, "the memory holds an image more than once"
    learner.consolidate()
    predicted = learner.predict(stream.batch(0).x)
    assert len(predicted) == len(stream.batch(0)), "predict must return one label per image"
    assert set(predicted.tolist()) <= seen, "predict returned a class that was never seen"
    assert torch.equal(global_rng, torch.random.get_rng_state()), "the global generator was used"


def check_passes(make: MakeLearner, stream: Stream) -> None:
    """Train: each image that was counted was counted with its shape, as the cost of a run needs."""
    learner = make(stream)
    _train(learner, stream, 0, len(stream))
    shaped = sum(passes.images for _, passes in learner.inner.passes)
    assert shaped == learner.images, (
        f"{learner.images} images went through the network, and {shaped} were counted with their "
        "pixels: count passes outside of engine.forward with engine.count(x, backward=False)"
    )


def check_same_seed(make: MakeLearner, stream: Stream) -> None:
    """Train twice with one seed: equal to the bit; with another seed: another state or scores.

    For a learner that declares `uses_seed` False both are equal with another seed too.
    """
    first, second, other = make(stream), make(stream), make(stream, seed=1)
    for learner in (first, second, other):
        _train(learner, stream, 0, len(stream))
    assert same(first.state_dict(), second.state_dict()), "the same seed gave another result"
    is_equal = same(first.state_dict(), other.state_dict())
    if is_equal:
        for learner in (first, other):
            learner.consolidate()
        is_equal = same(_all_scores(first, stream), _all_scores(other, stream))
    if first.uses_seed:
        assert not is_equal, "another seed gave the same result"
    else:
        assert is_equal, "another seed gave another result, and uses_seed is False"


def check_each_sample_counts(make: MakeLearner, stream: Stream, batches: int = 2) -> None:
    """Change one of the first samples, all of which fit into the memory: the state changes."""
    reference = make(stream)
    _train(reference, stream, 0, batches)
    for step, position in product(range(batches), range(len(stream.batch(0)))):
        other = make(stream)
        _train(other, stream, 0, step)
        batch = stream.batch(step)
        batch.x[position] = 1 - batch.x[position]
        other.observe(batch)
        _train(other, stream, step + 1, batches)
        assert not same(reference.state_dict(), other.state_dict()), (
            f"image {position} of batch {step} was neither learned from nor stored"
        )


def check_round_trip(make: MakeLearner, stream: Stream) -> None:
    """Save in mid-stream, load into a new learner and continue: equal to no interruption."""
    whole, half = make(stream), make(stream)
    _train(whole, stream, 0, len(stream))
    middle = len(stream) // 2
    _train(half, stream, 0, middle)
    file = io.BytesIO()
    torch.save(half.state_dict(), file)
    file.seek(0)
    resumed = make(stream)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    _train(resumed, stream, middle, len(stream))
    missing = "continued from state_dict() the result differs: some state is missing from it"
    assert same(whole.state_dict(), resumed.state_dict()), missing
    for learner in (whole, resumed):
        learner.consolidate()
    assert same(_all_scores(whole, stream), _all_scores(resumed, stream)), missing


def _all_scores(learner: Learner, stream: Stream) -> list[tuple[Tensor, Tensor]]:
    x = stream.batch(0).x
    return [learner.scores(x), learner.immediate_scores(x)]


def check_predictions_change_nothing(make: MakeLearner, stream: Stream) -> None:
    """Consolidate and predict after each batch: the state at the end is the same as without."""
    trained, evaluated = make(stream), make(stream)
    _train(trained, stream, 0, len(stream))
    for step in range(len(stream)):
        _train(evaluated, stream, step, step + 1)
        evaluated.consolidate()
        evaluated.predict(stream.batch(step).x)
        evaluated.immediate_scores(stream.batch(step).x)
    message = "consolidate, predict or immediate_scores changed what is learned"
    assert same(trained.state_dict(), evaluated.state_dict()), message


def check_predictions_are_seen(make: MakeLearner, stream: Stream) -> None:
    """Observe a single class: it is the only prediction."""
    for step in range(len(stream)):
        learner, batch = make(stream), stream.batch(step)
        learner.observe(batch)
        learner.consolidate()
        scores, labels = learner.immediate_scores(stream.batch(0).x)
        for predicted in (learner.predict(stream.batch(0).x), labels[scores.argmax(dim=1)]):
            assert set(predicted.tolist()) <= set(batch.y.tolist()), (
                "predict returned a class that was never seen"
            )


def check_batch_of_one(make: MakeLearner, stream: Stream) -> None:
    """Observe batches of a single image."""
    learner, batch = make(stream), stream.batch(0)
    for position in range(len(batch)):
        one = slice(position, position + 1)
        learner.observe(Batch(batch.x[one], batch.y[one]))
    learner.consolidate()
    assert len(learner.predict(batch.x[:1])) == 1, "predict must return one label per image"


def check_device(make: MakeLearner, stream: Stream) -> None:
    """Train and predict on a simulated second device: no tensor may stay on the CPU.

    Losses of the first steps, one of them after the end of a task, equal those on the CPU but for
    rounding: optimizers are fused on the CPU only.
    """
    expected = _train(make(stream), stream, 0, 4)
    try:
        with simulated_device() as device:
            learner = make(stream, device=device)
            losses = _train(learner, stream, 0, 4)
            learner.consolidate()
            learner.predict(stream.batch(0).x)
            learner.immediate_scores(stream.batch(0).x)
            for one, other in zip(expected, losses, strict=True):
                assert (one is None) == (other is None), "another device has other steps"
                if one is not None and other is not None:
                    torch.testing.assert_close(other.cpu(), one, rtol=1e-3, atol=1e-5)
    except RuntimeError as error:
        message = f"on another device: {error}; use self.engine.to_device for tensors that you make"
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
