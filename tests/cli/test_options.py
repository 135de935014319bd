"""Words of a command line: sorted, read, refused with a hint; and the help about them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from sterad.cli import main
from sterad.cli.components import Request, request
from sterad.cli.help import field_docs, metavar, print_help
from sterad.cli.options import Words, positional, read, sort_words, unknown_option
from sterad.cli.train import OutputOptions
from sterad.engine.execution import Execution
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig, RunSettings
from sterad.validation import ADVANCED, Count, Positive, Seed

HINTS: dict[str, Any] = {
    "seed": int,
    "memory": int,
    "prune": bool,
    "compile": bool | None,
    "seeds": tuple[Seed, ...],
    "order": tuple[int, ...] | None,
    "logger": tuple[str, ...],
    "out": Path,
}


@dataclass(frozen=True)
class Base:
    """Has a field."""

    file: Path = positional("FILE")
    """What to read."""


@dataclass(frozen=True)
class Options(Base):
    """Do this  and that."""

    lr: Positive = 0.1
    """How fast."""
    others: tuple[str, ...] = positional("OTHER ...", ())
    """What else."""
    trials: Count | None = None
    """How many."""
    kind: Literal["grid", "tpe"] = "tpe"
    """Which."""
    prune: bool = True
    """Stop none."""
    dry_run: bool = False
    seeds: tuple[Seed, ...] = field(default=(), metadata=ADVANCED)
    """Which seeds."""


def taken(*words: str) -> Words:
    return sort_words(words, HINTS, lambda name: unknown_option(name, HINTS, "sterad it"))


@pytest.mark.parametrize(
    ("words", "given", "positionals"),
    [
        ([], {}, []),
        (["er", "--seed", "1", "more"], {"seed": ["1"]}, ["er", "more"]),
        (["--seed=1"], {"seed": ["1"]}, []),
        (["--seed="], {"seed": [""]}, []),
        (["--out", "a=b"], {"out": ["a=b"]}, []),
        (["--out=a=b"], {"out": ["a=b"]}, []),
        (["--seed", "1", "--seed", "2"], {"seed": ["2"]}, []),
        (["--seed", "-1"], {"seed": ["-1"]}, []),
        (["--mem-size", "5"], {"memory": ["5"]}, []),
        (["--prune", "er"], {"prune": ["true"]}, ["er"]),
        (["--no-prune", "er"], {"prune": ["false"]}, ["er"]),
        (["--prune=false"], {"prune": ["false"]}, []),
        (["--no-compile"], {"compile": ["false"]}, []),
        (["--prune", "--no-prune"], {"prune": ["false"]}, []),
        (["--seeds", "1", "2", "er", "3"], {"seeds": ["1", "2"]}, ["er", "3"]),
        (["--seeds", "1", "--seeds=2"], {"seeds": ["1", "2"]}, []),
        (["--order", "1", "0", "--seed", "3"], {"order": ["1", "0"], "seed": ["3"]}, []),
        (["--logger", "a", "er", "--logger", "b"], {"logger": ["a", "b"]}, ["er"]),
        (["--logger", "a", "1"], {"logger": ["a"]}, ["1"]),
    ],
)
def test_words_are_sorted(
    words: list[str], given: dict[str, list[str]], positionals: list[str]
) -> None:
    assert taken(*words) == Words(given, positionals)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--sede", "1"], "unknown option --sede: did you mean --seed?"),
        (["-x"], "unknown option -x: see `sterad it --help`"),
        (["--no-seed"], "unknown option --no-seed: did you mean --seed?"),
        (["--no-prune=true"], "unknown option --no-prune: did you mean --prune?"),
        (["--seed"], "--seed has no value: give an integer"),
        (["--seed", "--prune"], "--seed has no value: give an integer"),
        (["--out", "--seed"], "--out has no value: give a path"),
    ],
)
def test_words_that_belong_nowhere(words: list[str], told: str) -> None:
    with pytest.raises(SteradError) as refused:
        taken(*words)
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("learning-rate", "unknown option --learning-rate: use --lr"),
        ("learning_rate", "unknown option --learning_rate: use --lr"),
        (
            "epochs",
            "unknown option --epochs: a stream is seen once; --memory-iterations takes several "
            "steps on each batch",
        ),
        ("gpu", "unknown option --gpu: use --device cuda"),
        ("resume", "unknown option --resume: the same command continues a run that was "),
        ("model", "unknown option --model: use --encoder for the network; the method is the "),
        ("width-mult", "unknown option --width-mult: did you mean --width?"),
        ("memory_bach", "unknown option --memory_bach: did you mean --memory-batch?"),
        ("alpha", "unknown option --alpha: it belongs to the method lump, the stream mine"),
        ("zzz", "unknown option --zzz: see `sterad it --help`"),
        ("-z", "unknown option -z: see `sterad it --help`"),
    ],
)
def test_an_unknown_option_meets_a_hint(name: str, told: str) -> None:
    owners = {"alpha": ["the method lump", "the stream mine"]}
    error = unknown_option(name, ["width", "memory_batch", "lr"], "sterad it", owners)
    assert isinstance(error, SteradError)
    assert str(error).startswith(told)
    assert len(str(error)) == len(told) or told.endswith(" ")


def test_a_dataclass_is_read_from_words() -> None:
    made = read(Options, ["a.toml"], "sterad it")
    assert made == Options(file=Path("a.toml"))
    words = ["--kind", "grid", "a", "--trials=3", "--no-prune", "b", "--dry-run", "c", "--lr", "1"]
    assert read(Options, [*words, "--seeds", "4", "5"], "sterad it") == Options(
        Path("a"), 1.0, ("b", "c"), 3, "grid", False, True, (4, 5)
    )
    assert read(Options, ["a", "--trials", "none"], "sterad it").trials is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "sterad it needs a FILE: see `sterad it --help`"),
        (
            ["a", "--trials", "0"],
            "--trials 0 is out of range: give an integer from 1 to 1,000,000",
        ),
        (
            ["a", "--trials", "few"],
            "--trials 'few' is not possible: give an integer from 1 to 1,000,000",
        ),
        (["a", "--kind", "tpi"], "--kind 'tpi' is unknown: choose grid or tpe"),
        (["a", "--dry-run=perhaps"], "--dry-run 'perhaps' is not possible: give true or false"),
        (["a", "--file", "b"], "unknown option --file: see `sterad it --help`"),
        (["a", "--trails", "b"], "unknown option --trails: did you mean --trials?"),
    ],
)
def test_words_that_cannot_be_read(words: list[str], told: str) -> None:
    with pytest.raises(SteradError) as refused:
        read(Options, words, "sterad it")
    assert str(refused.value) == told


def test_one_word_too_many_is_named() -> None:
    with pytest.raises(SteradError, match=r"^'b' is one word too many: see `sterad it --help`$"):
        read(OneFile, ["a", "b"], "sterad it")


@dataclass(frozen=True)
class OneFile:
    """Read."""

    file: Path = positional("FILE")


@pytest.mark.parametrize("word", ["-h", "--help", "--help-all"])
def test_the_help_of_a_dataclass(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read(Options, ["--trials", "0", word], "sterad it")
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "usage: sterad it FILE [OTHER ...] [options]"
    assert lines[2:5] == ["Do this and that.", "", "Options"]
    rows = [
        "  FILE                    What to read.",
        "  --lr FLOAT              How fast. (default: 0.1)",
        "  OTHER ...               What else.",
        "  --trials INT            How many.",
        "  --kind grid|tpe         Which. (default: tpe)",
        "  --no-prune              Stop none.",
        "  --dry-run               ",
    ]
    assert lines[5:12] == rows
    hidden = ["  --seeds INT ...         Which seeds."]
    assert lines[12:] == (hidden if word == "--help-all" else ["", "--help-all shows 1 more."])


def test_long_names_stand_on_lines_of_their_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    @dataclass(frozen=True)
    class Wide:
        very_long_name_of_an_option: int = 3

    print_help("it", "Says.", {"These": (Wide,)}, {"--one NAME": "word " * 12}, {}, frozenset())
    said = capsys.readouterr().out
    assert "\n  --very-long-name-of-an-option INT\n" + " " * 26 + "(default: 3)\n" in said
    assert max(map(len, said.splitlines())) <= 60
    print_help("it", "Says.", {"These": (Wide,)}, None, {"very_long_name_of_an_option": 4})
    assert "(default: 4)" in capsys.readouterr().out
    print_help("it", "Says.", {"These": (Wide,)}, hidden=frozenset(Wide.__annotations__))
    assert capsys.readouterr().out == "usage: it [options]\n\nSays.\n"


def test_docs_of_fields_are_those_below_them() -> None:
    docs = field_docs(Options)
    assert (docs["file"], docs["kind"]) == ("What to read.", "Which.")
    assert "dry_run" not in docs


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Count, "INT"),
        (Positive | None, "FLOAT"),
        (tuple[Seed, ...] | None, "INT ..."),
        (Literal[1, 3], "1|3"),
        (bool | None, ""),
        (Path | None, "PATH"),
        (str, "TEXT"),
    ],
)
def test_what_stands_for_a_value(hint: Any, shown: str) -> None:
    assert metavar(hint) == shown


def asked(*words: str) -> Request:
    own = {"Run": (RunSettings, OutputOptions), "Execution": (Execution,)}
    return request(words, "sterad train", "", "method", ("dataset", "stream"), own)


def test_a_request_is_what_the_words_ask_for() -> None:
    made = asked("er", "--dataset=synthetic", "--per-class", "3", "--lr", "1", "--threads", "1")
    assert dict(made.chosen) == {"method": "er", "dataset": "synthetic", "stream": "clear"}
    config = made.config()
    assert (config.method.name, config.method.fields.lr) == ("er", 1.0)
    assert (config.dataset.name, config.dataset.fields.per_class) == ("synthetic", 3)
    assert made.take(OutputOptions) == OutputOptions()
    assert made.execution().threads == 1
    assert asked().chosen["method"] == "agd-fd"


def test_values_of_a_file_stand_below_those_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('method = "er"\nlr = 0.5\nmemory-batch = 7\nmem-size = 9\nout = "there"\n')
    made = asked("--config", str(file), "--lr", "0.25")
    config = made.config()
    assert config.method.name == "er"
    assert (config.method.fields.lr, config.method.fields.memory_batch) == (0.25, 7)
    assert config.settings.memory == 9
    assert made.take(OutputOptions).out == Path("there")
    assert asked("scr", "--config", str(file)).chosen["method"] == "scr"
    for text, told in (
        ("memory = -1\n", "^memory -1 is out of range: give an integer from 0 to"),
        ('lr = "x"\n', r"^lr 'x' is of type str: give a number in \(0, 1e\+06\]$"),
        ("lrr = 1\n", "unknown field 'lrr' in the config '.*mine.toml': did you mean 'lr'"),
    ):
        file.write_text(text)
        with pytest.raises(SteradError, match=told):
            asked("--config", str(file)).config()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["er", "--learning-rate", "1"], "unknown option --learning-rate: use --lr"),
        (["--num-epochs", "3"], "unknown option --num-epochs: a stream is seen once; "),
        (
            ["er", "--epochs", "3"],
            "unknown option --epochs: a stream is seen once; --memory-iterations takes several "
            "steps on each batch; it belongs to the method gdumb, joint",
        ),
        (["er", "--alpha", "1"], "unknown option --alpha: it belongs to the method derpp, lump"),
        (["--overlap=1"], "unknown option --overlap: it belongs to the stream linear"),
        (["--noise", "1"], "unknown option --noise: it belongs to the dataset synthetic"),
        (["er", "--lr", "0"], "--lr 0.0 is out of range: give a number in (0, 1e+06]"),
        (["--per-class", "0"], "--per-class 0 is out of range: give an integer from 1 to "),
        (["--memory-format", "a"], "--memory-format 'a' is unknown: choose channels_last or "),
        (["er", "scr"], "'scr' is one word too many: see `sterad train --help`"),
        (["eer"], "unknown method 'eer': did you mean 'er'"),
        (["--dataset", "digitz"], "unknown dataset 'digitz': did you mean 'digits'"),
    ],
)
def test_a_request_that_cannot_be_met(words: list[str], told: str) -> None:
    with pytest.raises(SteradError) as refused:
        asked(*words)
    assert str(refused.value).startswith(told)


def test_help_has_a_group_for_each_component(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    short = capsys.readouterr().out
    titles = [line for line in short.splitlines() if line and line[0].isupper()]
    groups = ["Run", "Method: agd-fd", "Dataset: digits", "Stream: clear", "Execution"]
    assert titles[-5:] == groups
    assert short.startswith("usage: sterad train [METHOD] [options]\n")
    assert main(["train", "--help-all"]) == 0
    long = capsys.readouterr().out
    for said in (short, long):
        for noise in ("None", "{", "MISSING", "Annotated", "<", "Range("):
            assert noise not in said
    for advanced in ("--teacher-momentum FLOAT", "--memory-format channels_last|contiguous"):
        assert advanced in long
        assert advanced not in short
    options = [line for line in long.splitlines() if line.startswith("  --")]
    fewer = [line for line in short.splitlines() if line.startswith("  --")]
    assert set(fewer) < set(options)
    assert f"--help-all shows {len(options) - len(fewer)} more." in short
    assert "--help-all" not in long


def test_help_is_about_what_was_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.toml").write_text("alpha = 0.75\nseed = 5\n")
    words = ["lump", "--dataset", "synthetic", "--stream", "blurry", "--help"]
    assert main(["train", *words, "--config", str(tmp_path / "mine.toml")]) == 0
    said = capsys.readouterr().out
    for group in ("Method: lump", "Dataset: synthetic", "Stream: blurry"):
        assert f"\n{group}\n" in said
    assert "(default: 0.75)" in said
    assert "--variance" not in said


@pytest.mark.parametrize(
    "words", [["list"], ["study"], ["search"], ["report"], ["verify"], ["stream"], ["data", "get"]]
)
def test_every_command_has_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for help_word in ("-h", "--help", "--help-all"):
        assert main([*words, help_word]) == 0
        said = capsys.readouterr()
        assert said.out.startswith(f"usage: sterad {' '.join(words)} ")
        assert "None" not in said.out
        assert said.err == ""


def test_a_config_file_may_name_tuned_values(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('tuned = "digits"\nmemory = 7\n')
    own = {"Run": (RunSettings, OutputOptions), "Execution": (Execution,)}
    words = ["er-ace", "--config", str(file)]
    config = request(words, "sterad train", "", "method", ("dataset", "stream"), own).config()
    assert (config.method.fields.clip, config.settings.memory) == (20.0, 7)
    assert RunConfig.of(method="er-ace").method.fields.clip is None
