"""Evaluate other classifiers of a finished run from its last checkpoint, without training again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.evaluation.other_classifiers import ON_TRAINING_IMAGES, OtherClassifiers
from sterad.experiments.checkpoint import load_checkpoint
from sterad.experiments.config import RunConfig
from sterad.experiments.run import prepare
from sterad.experiments.session import Session
from sterad.methods.base.replay import Replay
from sterad.results.moments import final_accuracy
from sterad.results.record import ClassifierResult, RunRecord
from sterad.results.run_directory import RunDirectory
from sterad.validation import build


def evaluate_later(run: str | Path, names: Sequence[str]) -> RunRecord:
    """Return the record of a run as if its settings had named other classifiers as well.

    names: classifiers that are fitted to all training images, `train:NAME`; of others the curve
    along the stream is lost. The new record is in a directory of its own beside the run, under the
    id of the settings with these names, and says in `changes` where it comes from.
    """
    path = Path(run)
    folder = RunDirectory(path.parent, path.name)
    record = _read_finished(folder)
    if wrong := [name for name in names if not name.startswith(ON_TRAINING_IMAGES)]:
        raise SteradError(
            f"{wrong[0]!r} is fitted to the memory along the stream, which is over: name it in "
            f"also_evaluate and run again, or use {ON_TRAINING_IMAGES}{wrong[0]}"
        )
    config = RunConfig.from_dict(record.config)
    settings = config.settings
    settings = replace(settings, also_evaluate=(*settings.also_evaluate, *names))
    config = replace(config, settings=settings)
    session = prepare(config, build(Execution, dict(record.execution)))
    saved = load_checkpoint(folder.checkpoint, path.name, f"run {path.name} again")
    session.load_state_dict(saved["session"])
    with session.learner.problem.execution.applied():
        added = [_evaluate(session, record, name) for name in names]
    result = replace(
        record,
        id=config.id,
        config=config.to_dict(),
        classifiers=(*record.classifiers, *added),
        changes=(*record.changes, f"{', '.join(names)}: evaluated later, from {record.id}"),
    )
    target = RunDirectory(path.parent, config.id)
    with target.locked():
        target.write_config(config.to_dict(), dict(record.execution))
        target.write_record(result)
    return result


def _read_finished(folder: RunDirectory) -> RunRecord:
    """Return the record of a run whose checkpoint still exists."""
    record = folder.read_record()
    if record is None or not folder.checkpoint.exists():
        raise SteradError(
            f"{str(folder.path)!r} has no record or no checkpoint: give the folder of a finished "
            "run"
        )
    return record


def _evaluate(session: Session, record: RunRecord, name: str) -> ClassifierResult:
    """Evaluate one classifier at the end of the stream."""
    assert isinstance(session.learner, Replay)
    last = record.moments[-1]
    result = OtherClassifiers(session.learner, session.stream).evaluate(name, last.samples)
    moment = replace(last, accuracy=result.accuracy, cells=result.cells, memory=())
    return ClassifierResult(name, final_accuracy([moment], record.stream.announced), (moment,))
