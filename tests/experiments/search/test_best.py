import tomllib
from pathlib import Path

import pytest

from sterad.errors import SteradError
from sterad.experiments.search.best import with_table, write_best
from sterad.experiments.tuned import read_tuned, tuned_files

FILE = """\
# of the whole file
like = "other"

[er]  # of er
source = "released"
lr = 0.1

# of er-ace
["er_ace"]
source = "ours"  # of the source
lr = 0.2
"""


def test_other_tables_and_comments_keep_every_byte() -> None:
    made = with_table(FILE, "er", {"source": "new", "lr": 0.5, "clip": None})
    assert made == FILE.replace(
        '[er]  # of er\nsource = "released"\nlr = 0.1', '[er]\nsource = "new"\nlr = 0.5'
    )
    last = with_table(FILE, "er-ace", {"source": "new"})
    assert last == FILE[: FILE.index('["er_ace"]')] + '[er-ace]\nsource = "new"\n'
    more = with_table(FILE, "scr", {"source": "new"})
    assert more == FILE + '\n[scr]\nsource = "new"\n'
    assert with_table("", "scr", {"lr": 1.0}) == "[scr]\nlr = 1.0\n"


def test_what_cannot_be_replaced_is_not() -> None:
    inline = 'er = { source = "a" }\n[scr]\nsource = "b"\n'
    with pytest.raises((SteradError, tomllib.TOMLDecodeError)):
        with_table(inline, "er", {"source": "c"})
    hidden = '[scr]\nsource = """\n[er]\n"""\nlr = 1\n'
    with pytest.raises((SteradError, tomllib.TOMLDecodeError)):
        with_table(hidden, "er", {"source": "c"})


def test_what_is_written_is_read_as_tuned_values(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "mine.toml"
    values = {"lr": 1e-05, "augmentation": "full", "views": 2}
    assert write_best(file, "er", 'a "quoted" source', values) is None
    assert write_best(file, "er", "later", values) == 'a "quoted" source'
    found = read_tuned(str(file))["er"]
    assert (found.source, found.values) == ("later", values)
    names = sorted(path.name for path in file.parent.iterdir())
    assert names == [".mine.toml.lock", "mine.toml"], "no temporary file is left"


def test_a_new_file_holds_what_was_found_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = tuned_files()["cifar100"]
    before, file = ours.read_bytes(), Path("found", "cifar100.toml")
    assert write_best(file, "er", "mine", {"lr": 0.5}) is None
    assert tomllib.loads(file.read_text()) == {"er": {"source": "mine", "lr": 0.5}}
    assert tuned_files()["cifar100"] == ours
    assert ours.read_bytes() == before


def test_a_broken_file_and_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    broken = tmp_path / "x.toml"
    broken.write_text("[er")
    told = r"are not TOML .* left untouched: mend the file, or choose another with --save-tuned"
    with pytest.raises(SteradError, match=told):
        write_best(broken, "er", "s", {})
    assert broken.read_text() == "[er"
    told = r"cannot write .*: (Not a directory|File exists)\. .* another place with --save-tuned"
    with pytest.raises(SteradError, match=told):
        write_best(broken / "y.toml", "er", "s", {})
