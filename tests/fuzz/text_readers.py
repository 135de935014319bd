"""Readers of what users write: studies, tuned values, search spaces and plugins."""

from pathlib import Path
from typing import Any

from sterad.experiments.search.space import read_space
from sterad.experiments.study import Study
from sterad.experiments.tuned import Tuned, read_tuned, write_tuned
from sterad.plugins import load_plugin
from tests.fuzz.harness import Reader
from tests.fuzz.mutations import mutate_bytes, mutate_toml
from tests.fuzz.state_readers import small_config

STUDY = """title = "small"
[fixed]
dataset = "synthetic"
classes = 4
per_class = 10
tasks = 2
width = 2
label_order = [3, 2, 1, 0]
[axes]
method = ["er", "agd-fd"]
seed = [0, 1]
[method.er]
lr = 0.01
optimizer = "sgd"
[[grid]]
[grid.fixed]
memory = 10
"""
TUNED = '[er]\nsource = "a paper"\nlr = 0.01\n# comment\n["agd-fd"]\nsource = "mine"\nviews = 2\n'
SPACE = (
    "[er]\nlr = [0.01, 0.1]\nmemory_batch = { values = [5, 10], only = { optimizer = 'sgd' } }\n"
)
PLUGIN = """from dataclasses import dataclass
import math
VALUES = [math.sqrt(i) for i in range(3)]
@dataclass(frozen=True)
class Mine:
    share: float = 0.5
    def half(self) -> float:
        return self.share / 2
assert Mine().half() == 0.25, f"{VALUES!r}"
"""


def read_study(file: Path) -> Any:
    study = Study.from_toml(file)
    return study.title, [config.to_dict() for config in study.configs]


def read_tuned_file(file: Path) -> Any:
    found = read_tuned(str(file))
    write_tuned(file, "er", Tuned("new", {"lr": 0.5}))
    return {name: (one.source, dict(one.values)) for name, one in found.items()}


def read_space_file(file: Path) -> Any:
    return read_space(small_config().method, file).distributions()


def write_text(name: str, text: str) -> Any:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def read_plugin(file: Path) -> Any:
    load_plugin(file)


TOML = (mutate_bytes, mutate_toml)
TEXT_READERS = (
    Reader("study", write_text("study.toml", STUDY), read_study, (), TOML),
    Reader("tuned", write_text("tuned.toml", TUNED), read_tuned_file, (), TOML),
    Reader("space", write_text("space.toml", SPACE), read_space_file, (), TOML),
    Reader("plugin", write_text("mine.py", PLUGIN), read_plugin, (), (mutate_bytes,)),
)
