"""Parsing of command lines, hints for unknown options, and help texts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from sterad.cli import main
from sterad.cli.help import field_docs, metavar, print_help
from sterad.cli.options import parse_options, positional, split_arguments, unknown_option
from sterad.cli.train import OutputOptions, parse_train_request
from sterad.errors import SteradError
from sterad.experiments.config import RunConfig
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
    """Has a positional field."""

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


@pytest.mark.parametrize(
    ("argv", "options", "positionals"),
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
def test_arguments_are_split_by_option(
    argv: list[str], options: dict[str, list[str]], positionals: list[str]
) -> None:
    assert split_arguments(argv, HINTS, "sterad it") == (options, positionals)


@pytest.mark.parametrize(
    ("words", "message"),
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
def test_unknown_options_and_missing_values_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(SteradError) as caught:
        split_arguments(words, HINTS, "sterad it")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("learning-rate", "unknown option --learning-rate: use --lr"),
        ("learning_rate", "unknown option --learning_rate: use --lr"),
        (
            "epochs",
            "unknown option --epochs: a stream is seen once; --memory-iterations takes several "
            "steps on each batch",
        ),
        ("gpu", "unknown option --gpu: use --device cuda"),
        ("resume", "unknown option --resume: the same command continues an interrupted run"),
        (
            "model",
            "unknown option --model: use --encoder for the network; the method is ",
        ),
        ("width-mult", "unknown option --width-mult: did you mean --width?"),
        ("memory_bach", "unknown option --memory_bach: did you mean --memory-batch?"),
        ("alpha", "unknown option --alpha: it belongs to the method lump, the stream mine"),
        ("zzz", "unknown option --zzz: see `sterad it --help`"),
        ("-z", "unknown option -z: see `sterad it --help`"),
    ],
)
def test_an_unknown_option_gets_a_hint(name: str, message: str) -> None:
    owners = ["the method lump", "the stream mine"] if name == "alpha" else []
    error = unknown_option(name, ["width", "memory_batch", "lr"], "sterad it", owners)
    assert isinstance(error, SteradError)
    assert str(error).startswith(message)
    assert len(str(error)) == len(message) or message.endswith(" ")


def test_a_dataclass_is_parsed_from_arguments() -> None:
    options = parse_options(Options, ["a.toml"], "sterad it")
    assert options == Options(file=Path("a.toml"))
    words = ["--kind", "grid", "a", "--trials=3", "--no-prune", "b", "--dry-run", "c", "--lr", "1"]
    assert parse_options(Options, [*words, "--seeds", "4", "5"], "sterad it") == Options(
        Path("a"), 1.0, ("b", "c"), 3, "grid", False, True, (4, 5)
    )
    assert parse_options(Options, ["a", "--trials", "none"], "sterad it").trials is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "sterad it needs a FILE: see `sterad it --help`"),
        (
            ["a", "--trials", "0"],
            "--trials 0 is out of range: give an integer from 1 to 1,000,000",
        ),
        (
            ["a", "--trials", "few"],
            "--trials 'few' cannot be parsed: give an integer from 1 to 1,000,000",
        ),
        (["a", "--kind", "tpi"], "--kind 'tpi' is unknown: choose grid or tpe"),
        (["a", "--dry-run=perhaps"], "--dry-run 'perhaps' cannot be parsed: give true or false"),
        (["a", "--file", "b"], "unknown option --file: see `sterad it --help`"),
        (["a", "--trails", "b"], "unknown option --trails: did you mean --trials?"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(SteradError) as caught:
        parse_options(Options, words, "sterad it")
    assert str(caught.value) == message


def test_an_unexpected_argument_is_refused() -> None:
    with pytest.raises(SteradError, match=r"^unexpected argument 'b': see `sterad it --help`$"):
        parse_options(OneFile, ["a", "b"], "sterad it")


@dataclass(frozen=True)
class OneFile:
    """Read."""

    file: Path = positional("FILE")


@pytest.mark.parametrize("word", ["-h", "--help", "--help-all"])
def test_the_help_of_a_dataclass(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse_options(Options, ["--trials", "0", word], "sterad it")
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


def test_long_option_names_have_their_own_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    @dataclass(frozen=True)
    class Wide:
        very_long_name_of_an_option: int = 3

    print_help("it", "Says.", {"These": (Wide,)}, {"--one NAME": "word " * 12}, {}, frozenset())
    output = capsys.readouterr().out
    assert "\n  --very-long-name-of-an-option INT\n" + " " * 26 + "(default: 3)\n" in output
    assert max(map(len, output.splitlines())) <= 60
    print_help("it", "Says.", {"These": (Wide,)}, None, {"very_long_name_of_an_option": 4})
    assert "(default: 4)" in capsys.readouterr().out
    print_help("it", "Says.", {"These": (Wide,)}, hidden=frozenset(Wide.__annotations__))
    assert capsys.readouterr().out == "usage: it [options]\n\nSays.\n"


def test_the_docstring_below_a_field_is_its_help() -> None:
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
def test_placeholders_of_values(hint: Any, shown: str) -> None:
    assert metavar(hint) == shown


def test_components_and_values_are_parsed() -> None:
    argv = ["er", "--dataset=synthetic", "--per-class", "3", "--lr", "1", "--threads", "1"]
    request = parse_train_request(argv)
    assert dict(request.chosen) == {"method": "er", "dataset": "synthetic", "stream": "clear"}
    config = request.config()
    assert (config.method.name, config.method.fields.lr) == ("er", 1.0)
    assert (config.dataset.name, config.dataset.fields.per_class) == ("synthetic", 3)
    assert request.take(OutputOptions) == OutputOptions()
    assert request.execution().threads == 1
    assert parse_train_request([]).chosen["method"] == "agd-fd"


def test_the_command_line_overrides_the_config_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('method = "er"\nlr = 0.5\nmemory-batch = 7\nmem-size = 9\nout = "there"\n')
    request = parse_train_request(["--config", str(file), "--lr", "0.25"])
    config = request.config()
    assert config.method.name == "er"
    assert (config.method.fields.lr, config.method.fields.memory_batch) == (0.25, 7)
    assert config.settings.memory == 9
    assert request.take(OutputOptions).out == Path("there")
    assert parse_train_request(["scr", "--config", str(file)]).chosen["method"] == "scr"
    for text, message in (
        ("memory = -1\n", "^memory -1 is out of range: give an integer from 0 to"),
        ('lr = "x"\n', r"^lr 'x' is of type str: give a number in \(0, 1e\+06\]$"),
        ("lrr = 1\n", "unknown field 'lrr' in the config '.*mine.toml': did you mean 'lr'"),
    ):
        file.write_text(text)
        with pytest.raises(SteradError, match=message):
            parse_train_request(["--config", str(file)]).config()


@pytest.mark.parametrize(
    ("words", "message"),
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
        (["er", "scr"], "unexpected argument 'scr': see `sterad train --help`"),
        (["eer"], "unknown method 'eer': did you mean 'er'"),
        (["--dataset", "digitz"], "unknown dataset 'digitz': did you mean 'digits'"),
    ],
)
def test_invalid_command_lines_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(SteradError) as caught:
        parse_train_request(words)
    assert str(caught.value).startswith(message)


def test_help_has_a_section_for_each_component(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    short = capsys.readouterr().out
    titles = [line for line in short.splitlines() if line and line[0].isupper()]
    groups = ["Run", "Method: agd-fd", "Dataset: digits", "Stream: clear", "Execution"]
    assert titles[-5:] == groups
    assert short.startswith("usage: sterad train [METHOD] [options]\n")
    assert main(["train", "--help-all"]) == 0
    long = capsys.readouterr().out
    for text in (short, long):
        for noise in ("None", "{", "MISSING", "Annotated", "<", "Range("):
            assert noise not in text
    for advanced in ("--teacher-momentum FLOAT", "--memory-format channels_last|contiguous"):
        assert advanced in long
        assert advanced not in short
    options = [line for line in long.splitlines() if line.startswith("  --")]
    fewer = [line for line in short.splitlines() if line.startswith("  --")]
    assert set(fewer) < set(options)
    assert f"--help-all shows {len(options) - len(fewer)} more." in short
    assert "--help-all" not in long


def test_help_describes_the_chosen_components(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text("alpha = 0.75\nseed = 5\n")
    words = ["lump", "--dataset", "synthetic", "--stream", "blurry", "--help"]
    assert main(["train", *words, "--config", str(tmp_path / "mine.toml")]) == 0
    output = capsys.readouterr().out
    for group in ("Method: lump", "Dataset: synthetic", "Stream: blurry"):
        assert f"\n{group}\n" in output
    assert "(default: 0.75)" in output
    assert "--variance" not in output


@pytest.mark.parametrize(
    "words", [["list"], ["study"], ["search"], ["report"], ["verify"], ["stream"], ["data", "get"]]
)
def test_every_command_has_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for help_word in ("-h", "--help", "--help-all"):
        assert main([*words, help_word]) == 0
        output = capsys.readouterr()
        assert output.out.startswith(f"usage: sterad {' '.join(words)} ")
        assert "None" not in output.out
        assert output.err == ""


def test_a_config_file_can_choose_tuned_values(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('tuned = "digits"\nmemory = 7\n')
    config = parse_train_request(["er-ace", "--config", str(file)]).config()
    assert (config.method.fields.clip, config.settings.memory) == (20.0, 7)
    assert RunConfig.of(method="er-ace").method.fields.clip is None
