"""Other classifiers of a run: results by hand, no effect on training, resume, records, tables."""

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from sterad.classifiers import LinearProbe, StandardizedProbe
from sterad.engine import Execution
from sterad.errors import SteradError
from sterad.evaluation.evaluate import evaluate
from sterad.evaluation.other_classifiers import OtherClassifiers
from sterad.experiments.config import RunConfig
from sterad.experiments.later_evaluation import evaluate_later
from sterad.experiments.run import prepare, run
from sterad.report.page import compose
from sterad.results.moments import with_other_classifiers
from sterad.results.record import RunRecord
from sterad.streams.batch import to_unit
from tests.methods.scaffold import build, open_stream, train

NAMES = ("nearest-mean", "nearest-unit-mean", "linear-probe", "train:linear-probe")
SMALL: dict[str, Any] = {
    "method": "er",
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 12,
    "test_per_class": 5,
    "tasks": 2,
    "width": 2,
    "memory": 20,
    "memory_batch": 5,
    "anytime": 3,
}


def test_the_nearest_mean_by_hand() -> None:
    stream, learner = open_stream(classes=4, tasks=2), build("er", classes=4)
    train(learner, stream)
    result = OtherClassifiers(learner, stream).evaluate("nearest-mean", stream.samples)
    data, network = stream.dataset, learner.network.eval()
    stored = next(learner.memory.everything())
    with torch.no_grad():
        h = F.normalize(network.features(stored.x))
        means = torch.stack([h[stored.y == c].mean(0) for c in range(4)])
        x = F.normalize(network.features(to_unit(torch.from_numpy(data.test_images))))
    predicted = torch.cdist(x, means).argmin(1).numpy()
    correct = predicted == data.test_labels
    assert result.accuracy == pytest.approx(correct.mean())
    wanted = [correct[one.indices].mean() for one in stream.evaluations()]
    assert result.cells == pytest.approx(wanted)


def test_a_classifier_of_a_run_equals_the_same_method_with_that_classifier() -> None:
    stream = open_stream(classes=4, tasks=2)
    learner, other = build("er", classes=4), build("er", classes=4, classifier="linear-probe")
    for one in (learner, other):
        train(one, stream)
    evaluate(learner, stream)
    result = OtherClassifiers(learner, stream).evaluate("linear-probe", stream.samples)
    assert result == evaluate(other, stream)
    head = OtherClassifiers(other, stream).evaluate("head", stream.samples)
    assert head == evaluate(learner, stream)


def test_the_probe_of_the_training_images_is_fitted_to_all_of_them() -> None:
    stream, learner = open_stream(classes=4, tasks=2), build("er", classes=4, memory=5)
    train(learner, stream)
    data = stream.dataset
    fitted = OtherClassifiers(learner, stream).fit("train:linear-probe")
    h = learner.features(to_unit(torch.from_numpy(data.train_images)))
    expected = LinearProbe.fit([(h, torch.from_numpy(data.train_labels))])
    assert isinstance(fitted, LinearProbe)
    assert torch.allclose(fitted.weight, expected.weight, atol=1e-5)


def test_training_and_other_results_do_not_depend_on_them(tmp_path: Path) -> None:
    alone, beside = (
        run(RunConfig.of(**SMALL, **more), tmp_path, Execution(threads=1))
        for more in ({}, {"also_evaluate": NAMES})
    )
    assert alone.id != beside.id
    assert alone.metrics() | {"classifiers": ()} == beside.metrics() | {"classifiers": ()}
    by_name = {one.name: one for one in beside.classifiers}
    assert set(by_name) == set(NAMES)
    for name in NAMES[:3]:
        assert [m.step for m in by_name[name].moments] == [m.step for m in beside.moments]
    (last,) = by_name["train:linear-probe"].moments
    assert last.step == beside.stream.steps
    assert RunRecord.from_json(beside.to_json()) == beside


def test_an_interrupted_run_has_the_same_results(tmp_path: Path) -> None:
    config = RunConfig.of(**SMALL, also_evaluate=NAMES)
    whole = run(config, tmp_path, Execution(threads=1))
    session = prepare(config, Execution(threads=1))
    for batch in session.batches():
        session.learn(batch)
        session.evaluate_if_planned()
        if session.step == 3:
            state, session = session.state_dict(), prepare(config, Execution(threads=1))
            session.load_state_dict(state)
            break
    for batch in session.batches():
        session.learn(batch)
        session.evaluate_if_planned()
    assert {one.name: list(one.moments) for one in whole.classifiers} == session.other_moments


def test_a_classifier_can_be_evaluated_after_the_run(tmp_path: Path) -> None:
    before, wanted = (
        RunConfig.of(**SMALL, also_evaluate=names)
        for names in (("knn",), ("knn", "train:standardized-probe"))
    )
    execution = Execution(threads=1)
    finished, expected = (
        run(config, tmp_path / folder, execution)
        for config, folder in ((before, "runs"), (wanted, "again"))
    )
    later = evaluate_later(tmp_path / "runs" / finished.id, ["train:standardized-probe"])
    assert later.id == expected.id
    assert later.classifiers == expected.classifiers
    assert later.changes == (f"train:standardized-probe: evaluated later, from {finished.id}",)
    assert run(wanted, tmp_path / "runs", execution) == later, "the study finds it"
    with pytest.raises(
        SteradError, match="is fitted to the memory along the stream, which is over"
    ):
        evaluate_later(tmp_path / "runs" / finished.id, ["linear-probe"])
    with pytest.raises(SteradError, match="has no record or no checkpoint"):
        evaluate_later(tmp_path / "runs" / "none", ["train:knn"])


def test_a_standardized_probe_does_not_depend_on_the_scale_of_its_features() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(60) % 3
    h = torch.randn(60, 5, generator=rng) + labels.unsqueeze(1)
    scale, shift = torch.tensor([1e-3, 1.0, 7.0, 1e-2, 3.0]), torch.arange(5.0)
    first = StandardizedProbe.fit([(h, labels)])
    second = StandardizedProbe.fit([(h * scale + shift, labels)])
    assert torch.allclose(first.scores(h), second.scores(h * scale + shift), atol=1e-3)
    z = (h - h.mean(0)) / h.std(0, correction=0)
    same = LinearProbe.fit([(z, labels)])
    assert torch.allclose(first.scores(h), same.scores(z), atol=1e-4)


def test_tables_have_a_row_for_each_classifier(tmp_path: Path) -> None:
    record = run(RunConfig.of(**SMALL, also_evaluate=NAMES), tmp_path, Execution(threads=1))
    table = compose([record]).tables[0]
    rows = {label.text: cells for label, cells in table.rows}
    assert list(rows) == [f"er, classifier {name}" for name in ("head", *sorted(NAMES))]
    for one in record.classifiers:
        (cell,) = rows[f"er, classifier {one.name}"]
        assert cell is not None
        assert cell.mean == one.final_average_accuracy
    assert next(one.id for one in with_other_classifiers([record])) == record.id


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"also_evaluate": ("nearest",)}, "also_evaluate names 'nearest', which is unknown"),
        ({"also_evaluate": ("head",)}, "also_evaluate names 'head', which is unknown or predicts"),
        ({"also_evaluate": ("knn", "knn")}, "also_evaluate names 'knn' twice: name it once"),
        (
            {"method": "ncm", "also_evaluate": ("knn",)},
            "also_evaluate=knn needs a network that is trained from images",
        ),
    ],
)
def test_names_that_cannot_be_evaluated_raise(values: dict[str, Any], message: str) -> None:
    small = {name: value for name, value in SMALL.items() if name != "memory_batch"}
    with pytest.raises(SteradError, match=message):
        prepare(RunConfig.of(**small | values), Execution(threads=1))
