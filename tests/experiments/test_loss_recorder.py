"""LossRecorder: losses of new and old classes during training."""

import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.run import prepare
from sterad.experiments.session import MAX_RECORDED_LOSSES, LossRecorder
from sterad.methods import Learner
from sterad.streams import Batch, Clear, Domain, Stream


class FakeLearner:
    """A learner whose losses equal its labels."""

    sample_losses: list[tuple[Tensor, Tensor]] | None = None

    def set_losses(self, *labels: int) -> None:
        self.sample_losses = [(torch.tensor(labels, dtype=torch.float32), torch.tensor(labels))]


def stream(tasks: int = 2, per_class: int = 50) -> Stream:
    data = Synthetic(classes=4, per_class=per_class, test_per_class=1).load()
    order = (0, 1, 2, 3)
    return Clear(tasks=tasks, batch_size=10, label_order=order).open(data, seed=0)


def make_recorder(stream: Stream) -> LossRecorder:
    return LossRecorder(stream.tasks, len(stream))


def make_batch(*labels: int) -> Batch:
    return Batch(torch.zeros(len(labels), 1, 8, 8), torch.tensor(labels))


def test_old_classes_are_those_of_earlier_tasks() -> None:
    recorder, learner = make_recorder(stream()), FakeLearner()
    learner.set_losses(1, 1, 0, 2, 3, 3, 3)
    recorder.record(learner, make_batch(2, 3, 1), 7)  # type: ignore[arg-type]
    assert recorder.losses == [(7, (2 + 3 + 3 + 3) / 4, 2 / 3)]


def test_the_first_task_has_no_old_classes() -> None:
    recorder, learner = make_recorder(stream()), FakeLearner()
    learner.set_losses(0, 1, 1)
    recorder.record(learner, make_batch(0, 1), 1)  # type: ignore[arg-type]
    assert recorder.losses == []


def test_losses_that_are_not_finite_are_not_recorded() -> None:
    recorder, learner = make_recorder(stream()), FakeLearner()
    learner.sample_losses = [(torch.tensor([1.0, torch.nan]), torch.tensor([0, 2]))]
    recorder.record(learner, make_batch(2), 1)  # type: ignore[arg-type]
    assert recorder.losses == []


def test_the_number_of_recorded_steps_is_limited() -> None:
    long = stream(per_class=1250)
    recorder, learner = make_recorder(long), FakeLearner()
    recorded = 0
    for step in range(len(long)):
        recorder.prepare(learner, step)  # type: ignore[arg-type]
        recorded += learner.sample_losses is not None
    assert 0.8 * MAX_RECORDED_LOSSES < recorded <= MAX_RECORDED_LOSSES


def test_domains_share_their_classes_so_nothing_is_recorded() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=1).load()
    recorder, learner = make_recorder(Domain().open(data, seed=0)), FakeLearner()
    recorder.prepare(learner, 0)  # type: ignore[arg-type]
    assert learner.sample_losses is None


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "scr", "er"])
def test_recording_does_not_change_the_weights(method: str) -> None:
    config = RunConfig.of(
        method=method, dataset="synthetic", per_class=6, memory=8, width=2, views=1
    )
    recorded, other = (prepare(config, Execution(threads=1)) for _ in range(2))
    other.loss_recorder = LossRecorder((), 0)
    for session in (recorded, other):
        for batch in session.batches():
            session.learn(batch)
    assert len(recorded.loss_recorder.losses) > 3
    assert all(new > 0 and old > 0 for _, new, old in recorded.loss_recorder.losses)
    assert _weights(recorded.learner) == _weights(other.learner)


def _weights(learner: Learner) -> list[float]:
    network = learner.state_dict()["network"]
    return [value for tensor in network.values() for value in tensor.double().flatten().tolist()]


def test_the_mean_of_recorded_losses_is_the_loss() -> None:
    config = RunConfig.of(method="er", dataset="synthetic", per_class=6, memory=8, width=2)
    session = prepare(config, Execution(threads=1))
    for batch in session.batches():
        session.learn(batch)
    session.learner.sample_losses = []
    loss = session.learner.observe(batch)
    assert session.learner.sample_losses
    assert loss is not None
    assert session.learner.sample_losses[0][0].mean() == pytest.approx(float(loss), rel=1e-5)
