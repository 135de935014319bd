"""Small runs on real digits, what an undisturbed process makes of them, and ways to disturb."""

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
BAD = """
import os, resource, signal, sys
from pathlib import Path
import sterad
from sterad.methods import METHODS, Replay
from sterad.methods.er import ER

@METHODS.register({name!r})
class Bad(ER):
    def observe(self, batch):
        if self.problem.seed == 1:
            {act}
        return super().observe(batch)
"""


class Trial:
    """Makes jobs, launches them, and looks at what is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: dict[str, list[Mapping[str, Any]]] = {}

    def jobs(self, count: int, per_class: int = 8, **values: Any) -> list[Job]:
        """Return jobs of ER whose seeds count upwards, with a checkpoint after each step."""
        plugins, threads = values.pop("plugins", ()), values.pop("threads", 1)
        flat = SMALL | {"method": "er", "per_class": per_class} | values
        configs = [RunConfig.of(**flat, seed=seed) for seed in range(count)]
        execution = Execution(threads=threads)
        return [Job(one, self.folder / "runs", execution, 1, plugins) for one in configs]

    def plugin(self, name: str, act: str) -> Path:
        """Return a file with ER under another name, which does something more for the seed 1."""
        file = self.folder / f"{name}.py"
        file.write_text(BAD.format(name=name, act=act))
        load_plugin(file)
        return file

    def heard(self, run: str, event: Mapping[str, Any]) -> None:
        self.events.setdefault(run, []).append(event)

    def launched(self, launcher: Launcher, jobs: list[Job]) -> list[Outcome]:
        """Return the outcomes in the order of the jobs."""
        by_id = {one.job.id: one for one in launcher.launch(jobs, self.heard)}
        assert sorted(by_id) == sorted(job.id for job in jobs)
        return [by_id[job.id] for job in jobs]

    def check_told(self, job: Job) -> None:
        """Look for all that happens in a run, in its order."""
        kinds = [one["event"] for one in self.events[job.id]]
        assert kinds[0] in ("start", "resume")
        assert kinds[-1] == "end"
        assert {"progress", "evaluation"} < set(kinds)

    def written(self, job: Job) -> list[dict[str, Any]]:
        """Return the events of a run that are on disk."""
        return written(job.place)

    def check_equal(self, job: Job) -> None:
        """Compare the run in its directory with one in this process, to the bit."""
        expected = RunDirectory(self.folder / "expected", job.id)
        run(job.config, self.folder / "expected", Execution(threads=1), checkpoint_every=1000)
        ours, theirs = job.place.read_record(), expected.read_record()
        assert ours is not None
        assert theirs is not None
        assert ours.metrics() == theirs.metrics()
        assert ours.execution == theirs.execution
        assert losses(job.place) == losses(expected)

    def holder(self, found: Path, pattern: str = "*", steps: int = 3) -> int:
        """Wait until a run under a folder has learned so many steps; return its process."""
        until = time.monotonic() + 300
        while time.monotonic() < until:
            for folder in found.glob(pattern):
                place = RunDirectory(folder.parent, folder.name)
                if place.events.exists() and len(losses(place)) >= steps:
                    return int((place.path / "lock").read_text())
            time.sleep(0.01)
        raise AssertionError(f"nothing was learned in {found}")


def losses(place: RunDirectory) -> list[tuple[int, float]]:
    """Return the loss of each step: equal to the bit where all weights were."""
    return [(one["step"], one["loss"]) for one in written(place) if one["event"] == "progress"]


def written(place: RunDirectory) -> list[dict[str, Any]]:
    """Return the events on disk, without a line that is still being written."""
    lines = place.events.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """Return a trial in a folder of its own."""
    return Trial(tmp_path)
