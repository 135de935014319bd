"""Studies: TOML files of runs, their grids, their errors and their records."""

from pathlib import Path

import pytest

from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
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


def read_study(folder: Path, text: str) -> Study:
    (folder / "grid.toml").write_text(text)
    return Study.from_toml(folder / "grid.toml")


def test_runs_are_the_product_of_the_axes_in_order(tmp_path: Path) -> None:
    study = read_study(
        tmp_path, '[axes]\nmethod = ["agd-fd", "finetune"]\nseed = [0, 1, 2]\nmemory = [9]'
    )
    assert [(c.method.name, c.settings.seed) for c in study.configs] == [
        ("agd-fd", 0),
        ("agd-fd", 1),
        ("agd-fd", 2),
        ("finetune", 0),
        ("finetune", 1),
        ("finetune", 2),
    ]
    assert {c.settings.memory for c in study.configs} == {9}


def test_a_study_of_one_run_and_its_title(tmp_path: Path) -> None:
    study = read_study(tmp_path, "[fixed]\nseed = 3")
    assert study.configs == (RunConfig.of(seed=3),)
    assert study.title == "grid"
    assert read_study(tmp_path, 'title = "Mine"\n[fixed]\nseed = 3').title == "Mine"


def test_method_tables_apply_to_one_method(tmp_path: Path) -> None:
    study = read_study(tmp_path, TINY)
    by_name = {c.method.name: c for c in study.configs}
    assert by_name["agd-fd"].method.fields.views == 1
    assert not hasattr(by_name["finetune"].method.fields, "projection")


def test_axes_override_method_tables_and_these_override_fixed(tmp_path: Path) -> None:
    text = "[fixed]\nlr = 0.1\nmemory = 7\n[method.AGD_FD]\nlr = 0.2\nmemory = 8\n[axes]\n"
    both = 'method = ["agd-fd", "finetune"]\n'
    agd, finetune = read_study(tmp_path, text + both).configs
    assert (agd.method.fields.lr, agd.settings.memory) == (0.2, 8)
    assert (finetune.method.fields.lr, finetune.settings.memory) == (0.1, 7)
    agd, finetune = read_study(tmp_path, text + both + "lr = [0.3]").configs
    assert (agd.method.fields.lr, finetune.method.fields.lr) == (0.3, 0.3)


def test_duplicate_runs_are_removed(tmp_path: Path) -> None:
    study = read_study(tmp_path, '[axes]\nseed = [0, 0]\nmethod = ["agd-fd", "AGD_FD"]')
    assert study.configs == (RunConfig.of(),)


def test_old_names_of_fields_are_accepted(tmp_path: Path) -> None:
    study = read_study(tmp_path, "[axes]\nmem_size = [3, 4]")
    assert [c.settings.memory for c in study.configs] == [3, 4]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[fixd]\nseed = 1", "unknown field 'fixd' in the study: did you mean 'fixed'"),
        ("seed = 1", "unknown field 'seed' in the study"),
        ("[axes]\nseed = []", r"the axis 'seed' is \[\]: give a list with at least one value"),
        ("[axes]\nseed = 3", "the axis 'seed' is 3: give a list"),
        ('[axes]\nmethod = "agd-fd"', "the axis 'method' is 'agd-fd': give a list"),
        ('[axes]\nmethod = ["agdfd"]', "unknown method 'agdfd': did you mean 'agd-fd'"),
        ("[method.agdfd]\nlr = 1", "unknown method 'agdfd'"),
        ("[fixed]\nmethod = 3", "line 2: method 3 is of type int: give text$"),
        ("[fixed]\nmemry = 3", "unknown field 'memry' .*: did you mean 'memory'"),
        ('[fixed]\nseed = "x"', "line 2: seed 'x' is of type str: give an integer from 0 to "),
        ('method = "agd-fd"', r"method = 'agd-fd' is not a table: .* \[fixed\] or \[axes\]"),
        ("[method]\nagd-fd = 3", "method.agd-fd = 3 is not a table"),
        ("fixed = 3", "fixed = 3 is not a table"),
        ("axes = [1]", r"axes = \[1\] is not a table"),
        ("title = 3", "line 1: title 3 is of type int: give text$"),
        ('tuned = "none"\n[fixed]\nseed = 1', "unknown tuned values 'none': known are "),
        ("tuned = 3\n[fixed]\nseed = 1", "line 1: tuned 3 is of type int: give text$"),
        ("", "it has no runs: give values under .fixed. or lists under .axes.$"),
        ('title = "Mine"\ntuned = "digits"', "it has no runs: give values under "),
        ("[fixed", "is not TOML"),
        ("title = " + "9" * 5000, "is not TOML"),
        ("title = 0x" + "f" * 5000, "an integer of 20000 bits, more than 64"),
        ("title = " + "[" * 5000, "is not TOML"),
        ("seed: 1", "is not TOML"),
        (
            f"[axes]\nseed = {[*range(500)]}\nmemory = {[*range(500)]}",
            "it has 250,000 runs, more than 100,000: shorten the lists",
        ),
    ],
)
def test_an_invalid_study_is_an_error_with_its_file(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(SteradError, match=error) as caught:
        read_study(tmp_path, text)
    assert repr(str(tmp_path / "grid.toml")) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "near"),
    [
        ("# fixd\n\n[fixd]\nseed = 1", 3, "'fixed'"),
        ("[fixed]\nseed = 1\nmemry = 3", 3, "'memory'"),
        ('[fixed]\nmemory = 3\n\ndataset = "cifr100"', 4, "'cifar100'"),
        ('[axes]\nseed = [0]\nmethod = [\n  "er",\n  "agdfd",\n]', 5, "'agd-fd'"),
        ("[fixed]\nseed = 1\n[axes]\nmemory = [3]\nseed = []", 5, "at least one value"),
        ("[method.agd-fd]\nlr = 1\n[method.vmffd]\nlr = 1", 3, "'vmf-fd'"),
        ("[fixed]\nseed = 1\n[[grid]]\nfixed = { memry = 3 }", 4, "'memory'"),
        ("[fixed]\nseed = 1\n[[grid]]\naxs.seed = [3]", 4, "'axes'"),
        ('[fixed]\nseed = 1\nmemory = "many"', 3, "memory 'many' is of type str: give an integer"),
        ("[fixed]\nseed = 1\nmemory: 3", 3, "not TOML"),
        (
            "[fixed]\nmemory = 1\n[axes]\nseed = [-1]",
            4,
            "seed -1 is out of range: give an integer from 0 to",
        ),
        (
            "[fixed]\nseed = 1\nper-class = 0",
            3,
            "per_class 0 is out of range: give an integer from 1",
        ),
        ("[axes]\nseed = [0]\nmem-size = []", 3, "at least one value"),
        ("[fixed]\nmemory = 1\nmem-size = 2", 3, "another name of memory"),
        ("[method.er_ace]\nlr = 1\n[method.er-ace]\nlr = 2", 1, "another name of er-ace"),
    ],
)
def test_an_error_names_the_line_and_the_nearest_name(
    tmp_path: Path, text: str, line: int, near: str
) -> None:
    with pytest.raises(SteradError, match=rf"line {line}\b") as caught:
        read_study(tmp_path, text)
    assert near in str(caught.value)


GRIDS = """
[fixed]
memory = 5
views = 2
[axes]
method = ["agd-fd", "er"]
seed = [0, 1]
[method.er]
lr = 0.5
[[grid]]
fixed = { dataset = "digits", tasks = 2 }
axes.memory = [3, 4]
[[grid]]
fixed = { dataset = "synthetic", seed = 7 }
method.er = { momentum = 0.1 }
[[grid]]
fixed = { tasks = 2, memory = 3 }
"""


def test_a_study_is_the_union_of_its_grids(tmp_path: Path) -> None:
    study = read_study(tmp_path, GRIDS).configs
    assert [(c.dataset.name, c.method.name, c.settings.memory, c.settings.seed) for c in study] == [
        *(("digits", method, memory, seed) for method in ("agd-fd", "er") for seed in (0, 1)
          for memory in (3, 4)),
        ("synthetic", "agd-fd", 5, 7),
        ("synthetic", "er", 5, 7),
    ], "the runs of the third grid are in the first"  # fmt: skip
    assert {c.stream.fields.tasks for c in study if c.dataset.name == "digits"} == {2}
    last = study[-1].method.fields
    assert (last.lr, last.momentum, last.views) == (0.5, 0.1, 2)


def test_spellings_of_a_name_are_merged(tmp_path: Path) -> None:
    text = "[axes]\nmemory-batch = [3, 4]\n[method.AGD_FD]\nlr = 0.5\n"
    grid = "[[grid]]\nfixed.memory_batch = 9\nmethod.agd-fd.momentum = 0.1"
    (study,) = read_study(tmp_path, text + grid).configs
    fields = study.method.fields
    assert (fields.memory_batch, fields.lr, fields.momentum) == (9, 0.5, 0.1)


def test_grid_must_be_a_list_of_tables(tmp_path: Path) -> None:
    with pytest.raises(SteradError, match=r"grid = .* is not a list of tables: head each one \[\["):
        read_study(tmp_path, "[grid]\nfixed = { seed = 1 }")


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SteradError, match=r"binary.toml' is not TOML"):
        Study.from_toml(tmp_path / "binary.toml")
    with pytest.raises(SteradError, match=r"cannot read the study .*no.toml': No such file"):
        Study.from_toml(str(tmp_path / "no.toml"))
    with pytest.raises(SteradError, match=r"cannot read the study .*: Is a directory"):
        Study.from_toml(tmp_path)


def test_missing_runs_and_records(tmp_path: Path) -> None:
    study = read_study(tmp_path, TINY)
    first, *others = study.configs
    assert study.missing(tmp_path) == study.configs
    assert study.records(tmp_path) == ([], [])
    earlier = run(first, tmp_path, Execution(threads=1))
    assert study.missing(tmp_path) == tuple(others)
    assert study.records(tmp_path) == ([earlier], [])
    jobs = [Job(config, tmp_path, Execution(threads=1)) for config in study.missing(tmp_path)]
    outcomes = list(Local(2).launch(jobs, lambda run, event: None))
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert [record.id for record in study.records(tmp_path)[0]] == [c.id for c in study.configs]
    assert study.missing(tmp_path) == ()
    RunDirectory(tmp_path, others[-1].id).record.unlink()
    assert study.missing(tmp_path) == (others[-1],)


def test_every_other_value_overrides_tuned_values(tmp_path: Path) -> None:
    (tmp_path / "custom.toml").write_text(
        '[er]\nsource = "me"\nlr = 0.5\nmomentum = 0.5\nweight_decay = 0.5\nclip = 5.0\n'
        '[scr]\nsource = "me"\nlr = 0.25\n'
    )
    text = f"""
    tuned = "{tmp_path / "custom.toml"}"
    [fixed]
    momentum = 0.1
    [axes]
    method = ["er", "scr"]
    clip = [1.0]
    [method.er]
    weight_decay = 0.2
    """
    er, scr = (config.method.fields for config in read_study(tmp_path, text).configs)
    assert (er.lr, er.momentum, er.weight_decay, er.clip) == (0.5, 0.1, 0.2, 1.0)
    assert (scr.lr, scr.momentum) == (0.25, 0.1)


@pytest.mark.parametrize("file", sorted(STUDIES.glob("*.toml")), ids=lambda file: file.stem)
def test_the_studies_of_the_package_are_valid(file: Path) -> None:
    study = Study.from_toml(file)
    assert study.configs
    assert study.title != file.stem
