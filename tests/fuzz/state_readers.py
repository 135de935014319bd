"""Readers of what sterad itself writes: runs, checkpoints and searches."""

import csv
import hashlib
import io
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sterad import OnlineClassifier
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.checkpoint import HASH_LINE_SIZE, load_checkpoint, save_checkpoint
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers.slurm import _ArrayJob
from sterad.experiments.resume import describe_earlier_versions
from sterad.experiments.run import prepare
from sterad.experiments.search.plan import SearchPlan
from sterad.experiments.search.search import Search
from sterad.experiments.search.space import read_space
from sterad.experiments.session import Session
from sterad.files import content_hash, reading
from sterad.loggers import JsonLines
from sterad.report.page import compose
from sterad.report.table_formats import cells_csv, latex_document, runs_csv, terminal_table
from sterad.report.write import markdown_report
from sterad.results.record import Moment, RunRecord, SphereFrame, SpherePicture, StreamFacts
from sterad.results.run_directory import RunDirectory, read_records
from tests.fuzz.harness import Reader
from tests.fuzz.mutations import (
    ODD_VALUES,
    Mutation,
    mutate_bytes,
    mutate_json,
    mutate_json_line,
    mutate_zip,
    replace_node,
)

SMALL: dict[str, Any] = {
    "method": "er",
    "dataset": "synthetic",
    "classes": 4,
    "per_class": 10,
    "tasks": 2,
    "memory": 4,
    "width": 2,
    "anytime": 2,
    "encoder": "mlp",
}


@cache
def small_config() -> RunConfig:
    return RunConfig.of(**SMALL)


@cache
def small_session() -> Session:
    """Return a session after a few steps, with its evaluations."""
    session = prepare(small_config(), Execution(threads=1))
    for batch in session.batches():
        session.learn(batch)
    return session


def small_record() -> RunRecord:
    facts = StreamFacts("clear", 20, 2, ((0,), (1,)), True, ("a", "b"), ((10, 0), (0, 10)))
    moments = tuple(
        Moment(n, 10 * n, True, True, n, 0.5, (0.5, None if n == 1 else 0.5), (5, 0))
        for n in (1, 2)
    )
    return RunRecord(
        id="run",
        config={"method": {"name": "er", "lr": 0.1}, "dataset": {"name": "d"}, "seed": 0},
        stream=facts,
        evaluations=("task 1", "task 2"),
        moments=moments,
        accuracy_matrix=tuple(moment.cells for moment in moments),
        final_average_accuracy=0.5,
        average_forgetting=0.0,
        average_forgetting_released=0.0,
        backward_transfer=-0.1,
        anytime_accuracy=0.5,
        test_then_train_accuracy=None,
        seconds=1.5,
        images_per_second=20.0,
        peak_memory_bytes=1024,
        execution={"threads": 2},
        provenance={"torch": "2"},
        confusion=((3, 1), (2, 4)),
        losses=((1, 0.5, 0.25), (2, 0.25, 0.5)),
        sphere=SpherePicture((0, 1, 1), (SphereFrame(1, (0, 1), ((1.0, 0, 0), (0.5, 0.5, 0.1))),)),
    )


def write_run(name: str) -> Any:
    def write(folder: Path) -> Path:
        config = small_config()
        run = RunDirectory(folder, f"{config.id.rpartition('-')[0]}-other")
        with run.locked():
            values = config.to_dict() | {"digests": {"data": "x"}}
            run.write_config(values, {"threads": 1})
            run.write_record(small_record())
            with JsonLines(run.events) as events:
                for step in range(6):
                    common = {"event": "progress", "step": step, "steps": 6, "seconds": 0.1}
                    events.emit({**common, "loss": 0.5})
        return run.path / name

    return write


def read_config(file: Path) -> Any:
    describe_earlier_versions(small_config(), file.parents[1])
    return RunDirectory(file.parents[1], file.parent.name).read_config()


def read_events(file: Path) -> Any:
    """Return the events that a launcher and a resumed run read; both skip damaged lines."""
    watched = _ArrayJob.__new__(_ArrayJob)
    watched.__dict__ |= {"job": _JobAt(file), "events_inode": None, "events_read": 0}
    seen = [dict(event) for event in watched.read_new_events()]
    RunDirectory(file.parents[1], file.parent.name).trim_events(4)
    kept = file.read_bytes().splitlines()
    assert all(b'"step"' in line for line in kept)
    return len(seen), kept


class _JobAt:
    """A job whose directory is that of a file."""

    def __init__(self, file: Path) -> None:
        self.directory = RunDirectory(file.parents[1], file.parent.name)


def read_report(file: Path) -> Any:
    """Return all tables of a report, or raise the error that a report prints for the record."""
    records, left_out = read_records(file.parents[1])
    record = RunDirectory(file.parents[1], file.parent.name).read_record()
    assert len(left_out) == 0, left_out
    content = compose(records)
    # By column: the order of keys in a record decides that of the columns, and changes no value.
    rows = list(csv.DictReader(io.StringIO(runs_csv(records))))
    tables = [rows, cells_csv(content.tables), markdown_report(content)]
    terminal_table(records)
    return record, tables, latex_document(content.tables, [])


@cache
def small_plan() -> SearchPlan:
    space = Path(__file__).with_name("space.toml")
    return SearchPlan.create(small_config(), read_space(small_config().method, space), seeds=(0,))


def write_journal(folder: Path) -> Path:
    search = Search.open(small_plan(), str(folder / "search.journal"))
    for number in range(3):
        trial = search.study.ask(search.plan.space.distributions())
        trial.set_user_attr("owner", {"host": "x", "process": 1, "seen": 0.0})
        trial.report(0.5, 1)
        if number < 2:
            trial.set_user_attr("finals", [0.5])
            search.study.tell(trial, 0.5)
    return folder / "search.journal"


def read_journal(file: Path) -> Any:
    search = Search.open(small_plan(), str(file))
    best = search.ranked_trials()
    tried = search.sampler.count_untried(search.study)
    points = [search.plan.space.active_values(trial.params) for trial in best]
    return search.count_missing(), tried, points, [sum(t.user_attrs["finals"]) for t in best]


def write_checkpoint(folder: Path) -> Path:
    save_checkpoint(folder / "checkpoint.pt", "run", small_session().state_dict())
    return folder / "checkpoint.pt"


def read_checkpoint(file: Path) -> Any:
    session = small_session()
    with reading(file, "delete it"):
        session.load_state_dict(load_checkpoint(file, "run"))
        state = session.state_dict()
    return comparable({**state, "seconds": 0, "training_seconds": 0, "peak_memory_bytes": 0})


def write_classifier(folder: Path) -> Path:
    classifier = OnlineClassifier("er", memory=4, encoder="mlp", width=2)
    classifier.partial_fit(*_features())
    classifier.save(folder / "classifier.pt")
    return folder / "classifier.pt"


def _features() -> tuple[Any, list[str]]:
    return np.eye(3, dtype=np.float32).repeat(2, axis=0), [*"aabbcc"]


def read_classifier(file: Path) -> Any:
    loaded = OnlineClassifier.load(file)
    try:
        return loaded.classes_.tolist(), loaded.predict_proba(_features()[0]).tobytes()
    except SteradError as error:
        return str(error)  # weights of any value are valid, also those of a diverged network


def comparable(value: Any) -> Any:
    """Return nested values with tensors as bytes."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.contiguous().numpy().tobytes()
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(one) for one in value]
    return value


def hashed(mutation: Mutation) -> Mutation:
    """Return a mutation of what lies before the SHA-256 line, which is computed again."""

    def mutate(content: bytes, rng: random.Random) -> bytes:
        changed = mutation(content[:-HASH_LINE_SIZE], rng)
        return changed + b"\nsha256 " + hashlib.sha256(changed).hexdigest().encode() + b"\n"

    return mutate


def rehashed_json(content: bytes, rng: random.Random) -> bytes:
    """Mutate JSON and compute its SHA-256 again, as far as it still is an object."""
    try:
        values = json.loads(mutate_json(content, rng))
        del values["sha256"]
        return json.dumps(values | {"sha256": content_hash(values)}).encode()
    except (ValueError, TypeError, LookupError, RecursionError):
        return content


def mutate_state(content: bytes, rng: random.Random) -> bytes:
    """Save a checkpoint again with one value or tensor replaced."""
    tensors = (
        *(torch.zeros(()), torch.zeros(0), torch.full((2,), float("nan")), torch.ones(3, 3)),
        *(torch.tensor([5, 3]), torch.tensor([-1]), torch.ones(2, dtype=torch.complex64)),
        *(torch.empty(1).expand(1 << 40), torch.zeros(2, dtype=torch.bool)),
    )
    state, out = torch.load(io.BytesIO(content), weights_only=True), io.BytesIO()
    torch.save(replace_node(state, rng, lambda: rng.choice((*ODD_VALUES, *tensors))), out)
    return out.getvalue()


JSON = (mutate_bytes, mutate_json)
BEHIND_HASH = tuple(map(hashed, (mutate_bytes, mutate_zip, mutate_state, mutate_state)))
STATE_READERS = (
    Reader("config", write_run("config.json"), read_config, JSON, (rehashed_json,)),
    Reader("events", write_run("events.jsonl"), read_events, (), (mutate_bytes, mutate_json_line)),
    Reader("record", write_run("record.json"), read_report, JSON, (rehashed_json,)),
    Reader("checkpoint", write_checkpoint, read_checkpoint, (mutate_bytes,), BEHIND_HASH),
    Reader("classifier", write_classifier, read_classifier, (mutate_bytes,), BEHIND_HASH),
    Reader("journal", write_journal, read_journal, (), (mutate_bytes, mutate_json_line)),
)
