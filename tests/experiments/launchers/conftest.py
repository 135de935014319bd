"""Small runs on real digits, comparisons with undisturbed runs, and plugins that disturb runs."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sterad.engine.execution import Execution
from sterad.experiments.config import RunConfig
from sterad.experiments.launchers import Job, Launcher, Outcome
from sterad.experiments.run import run
from sterad.plugins import load_plugin
from sterad.results.run_directory import RunDirectory

SMALL = {"dataset": "digits", "memory": 20, "width": 2, "anytime": 2, "test_per_class": 5}
PLUGIN = """
import os, resource, signal, sys
from pathlib import Path
import sterad
from sterad.methods import METHODS, Replay
from sterad.methods.er import ER

@METHODS.register({name!r})
class Disturbed(ER):
    def observe(self, batch):
        if self.problem.seed == 1:
            {statement}
        return super().observe(batch)
"""


class Lab:
    """Creates jobs in a folder, launches them, and checks their results."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: dict[str, list[Mapping[str, Any]]] = {}

    def create_jobs(self, count: int, per_class: int = 8, **values: Any) -> list[Job]:
        """Return jobs of ER with seeds from 0 on, with a checkpoint after each step."""
        plugins, threads = values.pop("plugins", ()), values.pop("threads", 1)
        fields = SMALL | {"method": "er", "per_class": per_class} | values
        configs = [RunConfig.of(**fields, seed=seed) for seed in range(count)]
        execution = Execution(threads=threads)
        return [Job(config, self.folder / "runs", execution, 1, plugins) for config in configs]

    def write_plugin(self, name: str, statement: str) -> Path:
        """Return a plugin with a variant of ER that executes a statement if its seed is 1."""
        file = self.folder / f"{name}.py"
        file.write_text(PLUGIN.format(name=name, statement=statement))
        load_plugin(file)
        return file

    def on_event(self, run: str, event: Mapping[str, Any]) -> None:
        self.events.setdefault(run, []).append(event)

    def launch(self, launcher: Launcher, jobs: list[Job]) -> list[Outcome]:
        """Return the outcomes in the order of the jobs."""
        by_id = {outcome.job.id: outcome for outcome in launcher.launch(jobs, self.on_event)}
        assert sorted(by_id) == sorted(job.id for job in jobs)
        return [by_id[job.id] for job in jobs]

    def check_events(self, job: Job) -> None:
        """Check that all kinds of events of a run were received, in order."""
        kinds = [event["event"] for event in self.events[job.id]]
        assert kinds[0] in ("start", "resume")
        assert kinds[-1] == "end"
        assert {"progress", "evaluation"} < set(kinds)

    def read_events(self, job: Job) -> list[dict[str, Any]]:
        """Return the events of a run that are on disk."""
        return read_events(job.directory)

    def check_equal(self, job: Job) -> None:
        """Check that a run equals an undisturbed run in this process, to the last bit."""
        expected = RunDirectory(self.folder / "expected", job.id)
        run(job.config, self.folder / "expected", Execution(threads=1), checkpoint_every=1000)
        record, expected_record = job.directory.read_record(), expected.read_record()
        assert record is not None
        assert expected_record is not None
        assert record.metrics() == expected_record.metrics()
        assert record.execution == expected_record.execution
        assert read_losses(job.directory) == read_losses(expected)

    def wait_for_process(self, out: Path, pattern: str = "*", steps: int = 3) -> int:
        """Wait until a run under a folder has done some steps; return the id of its process."""
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            for folder in out.glob(pattern):
                directory = RunDirectory(folder.parent, folder.name)
                if directory.events.exists() and len(read_losses(directory)) >= steps:
                    return int((directory.path / "lock").read_text())
            time.sleep(0.01)
        raise AssertionError(f"no run in {out} has done {steps} steps")


def read_losses(directory: RunDirectory) -> list[tuple[int, float]]:
    """Return the loss of each step; equal losses mean equal weights."""
    events = read_events(directory)
    return [(event["step"], event["loss"]) for event in events if event["event"] == "progress"]


def read_events(directory: RunDirectory) -> list[dict[str, Any]]:
    """Return the events on disk, without an incomplete last line."""
    lines = directory.events.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
