from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
from sterad.experiments.execution import Execution
from sterad.experiments.launchers import Job, Local
from sterad.experiments.run import run
from sterad.experiments.study import Study
from sterad.results.run_directory import RunDirectory

STUDIES = Path(__file__).parents[2] / "studies"
TINY = """
title = "Small"
[fixed]
dataset = "synthetic"
classes = 2
per_class = 6
test-per-class = 2
tasks = 2
memory = 4
width = 2
anytime = 2
[axes]
method = ["finetune", "agd-fd"]
seed = [0, 1]
[method.agd-fd]
views = 1
projection = 16
memory-batch = 2
"""


def written(folder: Path, text: str, name: str = "grid.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def study(folder: Path, text: str) -> Study:
    return Study.from_toml(written(folder, text))


def test_the_product_of_the_axes_in_their_order(tmp_path: Path) -> None:
    made = study(
        tmp_path, '[axes]\nmethod = ["agd-fd", "finetune"]\nseed = [0, 1, 2]\nmemory = [9]'
    )
    assert [(c.method.name, c.protocol.seed) for c in made.configs] == [
        ("agd-fd", 0),
        ("agd-fd", 1),
        ("agd-fd", 2),
        ("finetune", 0),
        ("finetune", 1),
        ("finetune", 2),
    ]
    assert {c.protocol.memory for c in made.configs} == {9}


def test_title_and_single_run(tmp_path: Path) -> None:
    assert study(tmp_path, "").configs == (RunConfig.of(),)
    assert study(tmp_path, "").title == "grid"
    assert study(tmp_path, 'title = "Mine"').title == "Mine"
    assert study(tmp_path, "[fixed]\nseed = 3").configs == (RunConfig.of(seed=3),)


def test_fields_of_one_method_go_to_it_alone(tmp_path: Path) -> None:
    made = study(tmp_path, TINY)
    by_name = {c.method.name: c for c in made.configs}
    assert by_name["agd-fd"].method.fields.views == 1
    assert not hasattr(by_name["finetune"].method.fields, "projection")


def test_fixed_then_method_then_axes(tmp_path: Path) -> None:
    text = "[fixed]\nlr = 0.1\nmemory = 7\n[method.AGD_FD]\nlr = 0.2\nmemory = 8\n[axes]\n"
    both = 'method = ["agd-fd", "finetune"]\n'
    agd, finetune = study(tmp_path, text + both).configs
    assert (agd.method.fields.lr, agd.protocol.memory) == (0.2, 8)
    assert (finetune.method.fields.lr, finetune.protocol.memory) == (0.1, 7)
    agd, finetune = study(tmp_path, text + both + "lr = [0.3]").configs
    assert (agd.method.fields.lr, finetune.method.fields.lr) == (0.3, 0.3)


def test_the_same_run_twice_is_one(tmp_path: Path) -> None:
    made = study(tmp_path, '[axes]\nseed = [0, 0]\nmethod = ["agd-fd", "AGD_FD"]')
    assert made.configs == (RunConfig.of(),)


def test_aliases_hold_in_files(tmp_path: Path) -> None:
    made = study(tmp_path, "[axes]\nmem_size = [3, 4]")
    assert [c.protocol.memory for c in made.configs] == [3, 4]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[fixd]\nseed = 1", "unknown field 'fixd' in the study .*: did you mean 'fixed'"),
        ("seed = 1", "unknown field 'seed' in the study"),
        ("[axes]\nseed = []", r"the axis 'seed' is \[\]: give a list with at least one value"),
        ("[axes]\nseed = 3", "the axis 'seed' is 3: give a list"),
        ('[axes]\nmethod = "agd-fd"', "the axis 'method' is 'agd-fd': give a list"),
        ('[axes]\nmethod = ["agdfd"]', "unknown method 'agdfd': did you mean 'agd-fd'"),
        ("[method.agdfd]\nlr = 1", "unknown method 'agdfd'"),
        ("[fixed]\nmethod = 3", "method = 3 is a int: give it as str"),
        ("[fixed]\nmemry = 3", "unknown field 'memry' .*: did you mean 'memory'"),
        ('[fixed]\nseed = "x"', "seed = 'x' is a str: give it as int"),
        ('method = "agd-fd"', r"method = 'agd-fd' is not a table: .* \[fixed\] or \[axes\]"),
        ("[method]\nagd-fd = 3", "method.agd-fd = 3 is not a table"),
        ("fixed = 3", "fixed = 3 is not a table"),
        ("axes = [1]", r"axes = \[1\] is not a table"),
        ('tuned = "none"', "no tuned values are called 'none': known are "),
        ("tuned = 3", "tuned = 3 is a int: give it as str"),
        ("[fixed", "is not TOML"),
        ("seed: 1", "is not TOML"),
    ],
)
def test_a_wrong_study_is_named_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SteradError, match=told) as caught:
        study(tmp_path, text)
    assert repr(str(tmp_path / "grid.toml")) in str(caught.value)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SteradError, match=r"binary.toml' is not TOML"):
        Study.from_toml(tmp_path / "binary.toml")
    with pytest.raises(SteradError, match=r"cannot read the study .*no.toml': No such file"):
        Study.from_toml(str(tmp_path / "no.toml"))
    with pytest.raises(SteradError, match=r"cannot read the study .*: Is a directory"):
        Study.from_toml(tmp_path)


def test_only_missing_runs_are_missing(tmp_path: Path) -> None:
    made = study(tmp_path, TINY)
    first, *others = made.configs
    assert made.missing(tmp_path) == made.configs
    assert made.records(tmp_path) == []
    earlier = run(first, tmp_path, Execution(threads=1))
    assert made.missing(tmp_path) == tuple(others)
    assert made.records(tmp_path) == [earlier]
    jobs = [Job(config, tmp_path, Execution(threads=1)) for config in made.missing(tmp_path)]
    outcomes = list(Local(2).launch(jobs, lambda run, event: None))
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert [record.id for record in made.records(tmp_path)] == [c.id for c in made.configs]
    assert made.missing(tmp_path) == ()
    RunDirectory(tmp_path, others[-1].id).record.unlink()
    assert made.missing(tmp_path) == (others[-1],)


def test_tuned_values_lie_below_everything_else(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        '[er]\nsource = "me"\nlr = 0.5\nmomentum = 0.5\nweight_decay = 0.5\nclip = 5.0\n'
        '[scr]\nsource = "me"\nlr = 0.25\n'
    )
    text = f"""
    tuned = "{tmp_path / "mine.toml"}"
    [fixed]
    momentum = 0.1
    [axes]
    method = ["er", "scr"]
    clip = [1.0]
    [method.er]
    weight_decay = 0.2
    """
    er, scr = (config.method.fields for config in study(tmp_path, text).configs)
    assert (er.lr, er.momentum, er.weight_decay, er.clip) == (0.5, 0.1, 0.2, 1.0)
    assert (scr.lr, scr.momentum) == (0.25, 0.1)


@pytest.mark.parametrize("file", sorted(STUDIES.glob("*.toml")), ids=lambda file: file.stem)
def test_our_own_studies_read(file: Path) -> None:
    made = Study.from_toml(file)
    assert made.configs
    assert made.title != file.stem, "a study has a title"
