import numpy as np

from sterad.data import Synthetic
from sterad.streams import Boundary, Iid


def test_every_stretch_shows_every_class_and_no_end_is_announced() -> None:
    stream = Iid(tasks=5).open(Synthetic(per_class=200).load(), seed=0)
    assert (stream.proportions(10) > 5).all()
    assert stream.ends == ()
    assert not any(isinstance(event, Boundary) for _, event in stream.events())


def test_tasks_still_name_the_evaluations() -> None:
    stream = Iid(tasks=5).open(Synthetic().load(), seed=0)
    assert [e.classes for e in stream.evaluations()] == [(2, 8), (4, 9), (1, 6), (7, 3), (0, 5)]


def test_batches_run_across_tasks() -> None:
    stream = Iid(tasks=5, batch_size=7).open(Synthetic(per_class=10).load(), seed=0)
    assert len(stream) == int(np.ceil(100 / 7))
