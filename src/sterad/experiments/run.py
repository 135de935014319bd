"""run: one config from the stream to the record, resumed from the last checkpoint."""

import contextlib
import dataclasses
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sterad.data import held_out
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.checkpoint import CheckpointSchedule, save_checkpoint
from sterad.experiments.config import RunConfig
from sterad.experiments.defaults import changed_fields
from sterad.experiments.live import LiveSession
from sterad.experiments.resume import Start, find_start
from sterad.experiments.session import Session
from sterad.experiments.training_cost import training_cost
from sterad.files import reading
from sterad.loggers import JsonLines, Logger
from sterad.results.moments import final_accuracy, summarize_moments
from sterad.results.record import ClassifierResult, Moment, RunRecord, SpherePicture
from sterad.results.run_directory import RunDirectory
from sterad.streams import Stream
from sterad.streams.live import LiveStream
from sterad.validation import build

MAX_PROGRESS_EVENTS = 200
"""Progress events of a run with fast steps."""
PROGRESS_INTERVAL_S = 1.0
"""Seconds after which a run with slow steps reports its progress."""
DIVERGED = "the method has diverged"
"""Part of the error message of a run whose loss is not finite."""
CODE_VERSION_VARIABLE = "STERAD_SHIPPED"
"""Environment variable with the `code_version()` of the machine that sent the code."""


def run(
    config: RunConfig | None = None,
    out: str | Path = "runs",
    execution: Execution | None = None,
    checkpoint_every: int | None = None,
    loggers: Sequence[Logger] = (),
    feed: Iterable[tuple[Any, Any]] | None = None,
    accept_changes: bool = False,
    **values: Any,
) -> RunRecord:
    """Return the record of `config`: read it if finished, else start or resume the run.

    values: names and objects for `RunConfig.of`, in place of a config, for example
        `run(method=ER, dataset=Dataset.from_arrays(...), stream=Blurry(tasks=5), memory=100)`.
    checkpoint_every: steps between checkpoints, beside those at the ends of tasks (default: so
        that they take less than 1 % of the time).
    feed: pairs of (images, labels) without a known end, for a config of `live_config`.
    accept_changes: whether to continue an interrupted run although its data or code, a library or
        the processor has changed; the record says so.

    Whatever kills the process, the next call continues from the last checkpoint, and the metrics
    are those of an uninterrupted run to the last bit.
    """
    config = _config_of(config, values)
    schedule = CheckpointSchedule(checkpoint_every)
    folder = RunDirectory(Path(out), config.id)
    if (finished := folder.read_record()) is not None:
        return finished
    started = folder.read_config()
    if execution is not None:
        execution.check_cores()
    if started is not None:  # a resumed run keeps its execution
        with reading(folder.config, f"delete {str(folder.path)!r} to start again"):
            execution = build(Execution, started["execution"])
    execution = execution or Execution.from_options()
    shape = None if started is None else started.get("input_shape")
    session = prepare(config, execution, feed, shape)  # before anything is written
    execution = session.learner.problem.execution
    start = find_start(session, folder, config, accept_changes)
    with execution.applied(), folder.locked():
        if (finished := folder.read_record()) is not None:
            return finished
        start.restore(session)
        shape = session.learner.problem.input_shape if feed is not None else None
        folder.write_config(config.to_dict(), dataclasses.asdict(execution), shape)
        folder.trim_events(session.step)
        with contextlib.ExitStack() as stack:
            opened = [
                stack.enter_context(logger) for logger in (JsonLines(folder.events), *loggers)
            ]
            session.started = time.perf_counter()  # opening loggers does not count
            _train(session, start, folder, schedule, opened)
            record = _record(config, session, execution, start.changes)
            names = ("final_average_accuracy", "anytime_accuracy")
            _emit(opened, session, "end", **{name: getattr(record, name) for name in names})
        folder.write_record(record)
    return record


def _config_of(config: RunConfig | None, values: Mapping[str, Any]) -> RunConfig:
    if config is None and values:
        return RunConfig.of(**values)
    if not isinstance(config, RunConfig):
        raise SteradError(
            f"run was given a {type(config).__name__} and takes a RunConfig, or its values: "
            'run(method="agd-fd", dataset="digits")'
        )
    if values:
        raise SteradError(
            f"run was given a RunConfig and {', '.join(values)}: give these to RunConfig.of"
        )
    return config


def prepare(
    config: RunConfig,
    execution: Execution,
    feed: Iterable[tuple[Any, Any]] | None = None,
    input_shape: tuple[int, ...] | None = None,
) -> Session:
    """Return a session at its beginning: dataset loaded, stream ordered, network initialized.

    input_shape: of the inputs of a feed, if it is known and the feed may have ended.
    """
    if (config.stream.name == "live") != (feed is not None):
        raise SteradError(
            f"the stream is {config.stream.name!r} and a feed is {'not ' * (feed is None)}given: "
            "a feed goes with the stream live, as in run(live_config(...), feed=feed)"
        )
    if feed is not None:
        if config.settings.also_evaluate:
            raise SteradError("a live run has no test images: leave also_evaluate out")
        return LiveSession(config, execution, LiveStream(feed), input_shape)
    whole = config.dataset.fields.load()
    if whole.digest != dict(config.digests).get("data", whole.digest):
        raise SteradError(
            f"the data of {config.dataset.name!r} changed while the run was prepared: try again"
        )
    settings = config.settings
    dataset = held_out(whole, settings.validation)
    stream: Stream = config.stream.fields.open(dataset, settings.seed)
    announced = bool(stream.boundary_steps)
    problem = config.problem(
        dataset.input_shape, execution, dataset.classes, dataset.flip, announced
    )
    learner = config.build_learner(problem, len(stream))
    session = Session(
        learner, stream, settings.anytime, settings.test_then_train, settings.also_evaluate
    )
    session.data_digest = whole.digest
    return session


def _train(
    session: Session,
    start: Start,
    folder: RunDirectory,
    schedule: CheckpointSchedule,
    loggers: Sequence[Logger],
) -> None:
    _emit(loggers, session, "resume" if session.step else "start", run=folder.path.name)
    interval = max(1, (session.total_steps or 0) // MAX_PROGRESS_EVENTS)
    reported = session.elapsed
    for batch in session.batches():
        loss = session.learn(batch)
        last = session.step == session.total_steps
        is_late = session.elapsed - reported > PROGRESS_INTERVAL_S
        if last or session.step % interval == 0 or is_late:
            reported = session.elapsed
            _emit(loggers, session, "progress", loss=_finite(loss, session.step))
        _report(loggers, session, session.evaluate_if_planned())
        if schedule.is_due(session.step, session.boundary_steps):
            with schedule.measure():
                _save(loggers, session, start, folder)
    _report(loggers, session, session.finish())
    _save(loggers, session, start, folder)


def _save(loggers: Sequence[Logger], session: Session, start: Start, folder: RunDirectory) -> None:
    """Write a checkpoint and keep the one before; the event marks what it contains."""
    _emit(loggers, session, "checkpoint")
    state, previous = start.state_dict(session), folder.previous_checkpoint
    save_checkpoint(folder.checkpoint, folder.path.name, state, previous)


def _report(loggers: Sequence[Logger], session: Session, moment: Moment | None) -> None:
    if moment is not None:
        values = dataclasses.asdict(moment) | {"total_samples": session.total_samples}
        _emit(loggers, session, "evaluation", **values)


def _finite(loss: Any, step: int) -> float | None:
    value = None if loss is None else float(loss)
    if value is not None and not math.isfinite(value):
        raise SteradError(f"the loss is {value} at step {step}: {DIVERGED}; try a smaller lr")
    return value


def _emit(loggers: Sequence[Logger], session: Session, event: str, **values: Any) -> None:
    common = {"event": event, "step": session.step, "steps": session.total_steps}
    for logger in loggers:
        logger.emit(common | {"seconds": round(session.elapsed, 3)} | values)


def _record(
    config: RunConfig, session: Session, execution: Execution, changes: tuple[str, ...]
) -> RunRecord:
    frames, announced = tuple(session.frames), bool(session.boundary_steps)
    classifiers = tuple(
        ClassifierResult(name, final_accuracy(moments, announced), tuple(moments))
        for name, moments in session.other_moments.items()
    )
    return RunRecord(
        id=config.id,
        config=config.to_dict(),
        stream=session.facts(),
        evaluations=session.evaluations,
        **summarize_moments(session.moments, announced),
        test_then_train_accuracy=session.correct / session.tested if session.tested else None,
        seconds=session.elapsed,
        images_per_second=session.learner.images / session.training_seconds,
        peak_memory_bytes=session.peak_memory_bytes,
        execution=dataclasses.asdict(execution),
        provenance=provenance() | {"changed": changed_fields(config)},
        images_per_step=session.learner.images / session.step,
        consolidation_images=session.learner.consolidation_images,
        cost=training_cost(session.learner),
        confusion=session.confusion,
        losses=tuple(session.loss_recorder.losses),
        data_digest=session.data_digest,
        classifiers=classifiers,
        changes=changes,
        sphere=SpherePicture(session.axes, frames) if session.axes and frames else None,
    )


def provenance() -> dict[str, Any]:
    """Return version, git commit, library versions and machine that a number comes from."""
    libraries = {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
    return {
        **code_version(),
        "python": platform.python_version(),
        **libraries,
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "cores": os.cpu_count(),
    }


def code_version() -> dict[str, Any]:
    """Return version and git commit, also on a machine where the package is not installed."""
    if CODE_VERSION_VARIABLE in os.environ:
        sent: dict[str, Any] = json.loads(os.environ[CODE_VERSION_VARIABLE])
        return sent
    return {"version": importlib.metadata.version("sterad"), "git_commit": _git_commit()}


def _git_commit() -> str | None:
    folder = Path(__file__).parents[1]
    command = ["git", "-C", str(folder), "log", "-1", "--format=%H", "--", "."]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown processor"
