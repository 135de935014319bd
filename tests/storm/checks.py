"""What must hold after kills: equal results, consistent events, no damaged files, no tracebacks."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from sterad.errors import SteradError
from sterad.experiments.checkpoint import load_checkpoint
from sterad.results.run_directory import RunDirectory
from sterad.saved_state import tensors_of

TRACEBACK_MARKS = ("Traceback (most recent call last)", "Exception ignored")


@dataclass
class Tally:
    """Numbers of kills and of what went wrong; all but the first lines must be zero."""

    kills: int = 0
    sigkill: int = 0
    sigterm: int = 0
    runs: int = 0
    methods: set[str] = field(default_factory=set)
    streams: set[str] = field(default_factory=set)
    victims: dict[str, int] = field(default_factory=dict)
    """Kills by kind of process."""
    moments: dict[str, int] = field(default_factory=dict)
    """Kills by how their time was chosen."""
    differing_records: int = 0
    differing_bits: int = 0
    """Of the final weights, optimizer, memory and random generators."""
    inconsistent_events: int = 0
    damaged_files: int = 0
    lost_records: int = 0
    tracebacks: int = 0
    hanging: int = 0
    """Processes that neither ended nor made progress."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each of them."""

    def count_kill(self, number: int, victim: str, moment: str) -> None:
        """Count one process that a signal has ended."""
        self.kills += 1
        self.sigkill += number == 9
        self.sigterm += number == 15
        self.victims[victim] = self.victims.get(victim, 0) + 1
        self.moments[moment] = self.moments.get(moment, 0) + 1

    def add(self, other: "Tally") -> None:
        """Add the numbers of another tally."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, dict):
                mine.update({key: mine.get(key, 0) + theirs[key] for key in theirs})
            elif isinstance(mine, set):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)

    def report(self, name: str, case: str, details: object) -> None:
        """Count something that went wrong."""
        setattr(self, name, getattr(self, name) + 1)
        self.problems.append(f"{name.replace('_', ' ')}: {case}: {details}")

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers; sets as sorted lists."""
        return {
            name: sorted(value) if isinstance(value, set) else value
            for name, value in vars(self).items()
        }


def run_directories(out: Path) -> list[RunDirectory]:
    """Return the directories of runs in a folder."""
    folders = [file.parent for file in sorted(out.glob("**/config.json"))]
    return [RunDirectory(folder.parent, folder.name) for folder in folders]


def check_files(directory: RunDirectory, case: str, tally: Tally) -> None:
    """Check that each file of a run that may have been killed is absent or complete."""
    try:
        directory.read_config()
        directory.read_record()
        for file in directory.path.glob("checkpoint*.pt"):
            load_checkpoint(file, directory.path.name)
    except SteradError as error:
        tally.report("damaged_files", case, error)


def check_output(output: Path, case: str, tally: Tally) -> None:
    """Check that nothing a process printed is a traceback."""
    text = output.read_text(errors="replace") if output.exists() else ""
    if any(mark in text for mark in TRACEBACK_MARKS):
        tally.report("tracebacks", case, text[-3000:])


def check_finished(
    directory: RunDirectory, reference: RunDirectory, case: str, tally: Tally
) -> None:
    """Check that a finished run equals the uninterrupted one, to the last bit."""
    tally.runs += 1
    check_files(directory, case, tally)
    record, expected = directory.read_record(), reference.read_record()
    assert expected is not None, f"{case}: the uninterrupted run has no record"
    tally.methods.add(expected.config["method"]["name"])
    tally.streams.add(expected.config["stream"]["name"])
    if record is None:
        tally.report("lost_records", case, directory.path)
        return
    if record.metrics() != expected.metrics():
        tally.report("differing_records", case, directory.path)
    if directory.checkpoint.exists() and reference.checkpoint.exists():
        bits = differing_bits(read_learner(directory), read_learner(reference))
        if bits:
            tally.report("differing_bits", case, directory.path)
            tally.differing_bits += bits - 1
    for problem in find_event_problems(read_events(directory), read_events(reference)):
        tally.report("inconsistent_events", case, problem)
    if (directory.path / "traceback.txt").exists():
        tally.report("tracebacks", case, directory.path)


def read_learner(directory: RunDirectory) -> Any:
    """Return the learner's state in the last checkpoint."""
    return load_checkpoint(directory.checkpoint, directory.path.name)["session"]["learner"]


def differing_bits(state: Any, expected: Any) -> int:
    """Return the number of bits in which the tensors of two states differ."""
    pairs = zip(tensors_of(state), tensors_of(expected), strict=True)
    count = 0
    for one, other in pairs:
        left, right = (
            np.frombuffer(tensor.contiguous().numpy().tobytes(), np.uint8)
            for tensor in (one, other)
        )
        count += 8 * abs(len(left) - len(right))
        shared = min(len(left), len(right))
        count += int(np.unpackbits(left[:shared] ^ right[:shared]).sum())
    return count


def read_events(directory: RunDirectory) -> list[dict[str, Any]]:
    """Return the events of a run."""
    return [json.loads(line) for line in directory.events.read_text().splitlines()]


def find_event_problems(
    events: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> Iterator[str]:
    """Yield what is wrong with the events of a resumed run.

    expected: events of the uninterrupted run; losses and accuracies at each step must be equal.
    """
    kinds = [event["event"] for event in events]
    steps = [event["step"] for event in events]
    if steps != sorted(steps):
        yield f"the steps do not ascend: {steps}"
    if kinds.count("end") != 1 or kinds[-1] != "end":
        yield f"not one event 'end' at the end: {kinds[-5:]}"
    if kinds.count("start") != 1 or kinds[0] != "start":
        yield f"not one event 'start' at the start: {kinds[:5]}"
    for kind, name in (("progress", "loss"), ("evaluation", "accuracy")):
        values, expected_values = (
            [(event["step"], event[name]) for event in each if event["event"] == kind]
            for each in (events, expected)
        )
        if values != expected_values:
            yield f"{len(values)} events {kind!r} differ from the {len(expected_values)} expected"
