import pytest
import torch
from torch import Tensor

from sterad.data.synthetic import Synthetic
from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.loss_watch import WATCHED, LossWatch
from sterad.experiments.run import prepare
from sterad.methods import Learner
from sterad.streams import Batch, Clear, Domain, Stream


class Teller:
    """A learner that was watched: losses equal to labels."""

    records_sample_losses = False
    sample_losses: tuple[Tensor, Tensor] | None = None

    def show(self, *labels: int) -> None:
        self.sample_losses = torch.tensor(labels, dtype=torch.float32), torch.tensor(labels)


def stream(tasks: int = 2, per_class: int = 50) -> Stream:
    data = Synthetic(classes=4, per_class=per_class, test_per_class=1).load()
    order = (0, 1, 2, 3)
    return Clear(tasks=tasks, batch_size=10, label_order=order).open(data, seed=0)


def batch(*labels: int) -> Batch:
    return Batch(torch.zeros(len(labels), 1, 8, 8), torch.tensor(labels))


def test_old_classes_are_those_of_earlier_tasks() -> None:
    watch, learner = LossWatch(stream()), Teller()
    learner.show(1, 1, 0, 2, 3, 3, 3)
    watch.note(learner, batch(2, 3, 1), 7)  # type: ignore[arg-type]
    assert watch.losses == [(7, (2 + 3 + 3 + 3) / 4, 2 / 3)]


def test_the_first_task_has_no_old_classes() -> None:
    watch, learner = LossWatch(stream()), Teller()
    learner.show(0, 1, 1)
    watch.note(learner, batch(0, 1), 1)  # type: ignore[arg-type]
    assert watch.losses == []


def test_what_is_no_number_is_not_kept() -> None:
    watch, learner = LossWatch(stream()), Teller()
    learner.sample_losses = torch.tensor([1.0, torch.nan]), torch.tensor([0, 2])
    watch.note(learner, batch(2), 1)  # type: ignore[arg-type]
    assert watch.losses == []


def test_few_steps_are_watched() -> None:
    long = stream(per_class=1250)
    watch, learner = LossWatch(long), Teller()
    looks = []
    for step in range(len(long)):
        watch.look(learner, step)  # type: ignore[arg-type]
        looks.append(learner.records_sample_losses)
    assert 0.8 * WATCHED < sum(looks) <= WATCHED


def test_domains_share_their_classes_so_none_is_old() -> None:
    data = Synthetic(classes=4, per_class=5, test_per_class=1).load()
    watch, learner = LossWatch(Domain().open(data, seed=0)), Teller()
    watch.look(learner, 0)  # type: ignore[arg-type]
    assert not learner.records_sample_losses


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "scr", "er"])
def test_watching_changes_nothing_that_is_learned(method: str) -> None:
    config = RunConfig.of(
        method=method, dataset="synthetic", per_class=6, memory=8, width=2, views=1
    )
    watched, blind = (prepare(config, Execution(threads=1)) for _ in range(2))
    blind.watch = None
    for session in (watched, blind):
        for one in session.batches():
            session.learn(one)
    assert watched.watch is not None
    assert len(watched.watch.losses) > 3
    assert all(new > 0 and old > 0 for _, new, old in watched.watch.losses)
    assert _weights(watched.learner) == _weights(blind.learner)


def _weights(learner: Learner) -> list[float]:
    network = learner.state_dict()["network"]
    return [value for tensor in network.values() for value in tensor.double().flatten().tolist()]


def test_the_mean_over_watched_rows_is_the_loss() -> None:
    config = RunConfig.of(method="er", dataset="synthetic", per_class=6, memory=8, width=2)
    session = prepare(config, Execution(threads=1))
    for one in session.batches():
        loss = session.learn(one)
    session.learner.records_sample_losses = True
    loss = session.learner.observe(one)
    assert session.learner.sample_losses is not None
    assert loss is not None
    assert session.learner.sample_losses[0].mean() == pytest.approx(float(loss), rel=1e-5)
