"""Every command and code block of the README and the docs runs, with small settings."""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from sterad.cli import COMMANDS, main
from sterad.cli.train import parse_train_request
from sterad.experiments.study_files import find_study

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("reproduction/*.md")),
]
COMMAND = re.compile(
    r"^    (?:\.venv/bin/)?((?:sterad|make|python|pip) .*?)(?:  +#.*)?$", re.MULTILINE
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNTESTED_BLOCKS = ("bibtex", "sh", "console", "toml")
"""Blocks that are not run: those of sh are parsed, a console shows commands with placeholders."""

RUN = "--per-class 6 --test-per-class 2 --memory 10 --width 2 --threads 1"
FIXED = f"{RUN} --views 1 --projection 16"
BENCH = "er --image-size 8 --rounds 1 --seconds 0 --images 10"
OWN = "--encoder examples/pretrained_backbone.py:backbone"
SMALL_VARIANTS = {
    f"sterad train slda {OWN}": f"+ {RUN}",
    f"sterad train agd-fd {OWN} --frozen --augmentation none": f"+ {FIXED}",
    "sterad train er --optimizer adamw --memory-policy class-balanced --retrieval mir": f"+ {RUN}",
    "sterad train agd-fd --directions simplex --law power-spherical": f"+ {FIXED}",
    "make demo": "make --dry-run demo",
    "make test": "make --dry-run test",
    "make check": "make --dry-run check",
    "make fuzz": "make --dry-run fuzz",
    "make storm KILLS=1000": "make --dry-run storm",
    "make soak SAMPLES=10000000": "make --dry-run soak",
    "sterad train agd-fd": f"sterad train agd-fd {FIXED}",
    "sterad train vmf-fd --stream blurry --memory 100 --seed 3": f"+ {FIXED}",
    "sterad data get cifar100 --root DATA": "sterad data get mnist --root DATA",
    "sterad train agd-fd --dataset cifar100 --root DATA --memory 5000 --stream blurry": (
        f"+ --dataset npz --npz-file own.npz {FIXED}"
    ),
    "sterad train vmf-fd --dataset cifar10 --root DATA --per-class 300 --image-size 16"
    " --width 20": f"+ --dataset npz --npz-file own.npz {FIXED}",
    "sterad train margin --plugin examples/my_method.py --margin 0.5": f"+ {RUN}",
    "sterad study studies/digits.toml --workers 2": "sterad study small.toml --workers 2",
    "sterad study paper-blurry --launcher ray --address HOST:PORT": (
        "sterad study paper-blurry --launcher ray --dry-run"
    ),
    "sterad study paper-blurry --launcher slurm --partition gpu": "+ --dry-run",
    "sterad study demo": "+ --dry-run",
    "sterad study demo --out runs": "+ --dry-run",
    "sterad train er --stream blurry --seed 1": f"+ {RUN}",
    "sterad bench er": f"sterad bench {BENCH}",
    "pip install '.[report]'": "pip --version",
    "make docs": "make --dry-run docs",
    "make install": "make --dry-run install",
    "sterad search agd-fd --dataset cifar100 --root DATA": (
        f"sterad search agd-fd {FIXED} --per-class 12 --trials 1 --seeds 7 --workers 1"
    ),
    "sterad search agd-fd --space combinations --dataset cifar100 --root DATA": (
        "sterad search agd-fd --space combinations --dataset synthetic --image-size 16 --width 2 "
        "--per-class 12 --projection 16 --threads 1 --trials 1 --seeds 7 --workers 1"
    ),
    "sterad search er --save-tuned my-values.toml": (
        f"+ {RUN} --per-class 12 --trials 1 --seeds 7 --workers 1"
    ),
    "sterad train er --tuned cifar100 --dataset cifar100 --root DATA": (
        f"sterad train er --tuned cifar100 {RUN}"
    ),
    "sterad bench": f"+ {BENCH}",
    "sterad bench --thorough": f"+ {BENCH}",
    "sterad bench --thorough --full": f"+ {BENCH}",
    "sterad bench agd-fd --rounds 40": "+ --image-size 8 --rounds 1 --seconds 0 --images 10",
    "sterad bench --precision float32": f"+ {BENCH}",
    "sterad bench --json bench.json": f"+ {BENCH}",
    "python benchmarks/peers.py": "python -m py_compile benchmarks/peers.py",
    "python benchmarks/control.py cifar100 16": "python benchmarks/control.py synthetic 8",
    **{
        f"sterad study studies/{name}.toml --out runs/{name}": "+ --dry-run"
        for name in (
            *(
                "digits",
                "digits-later",
                "box-cifar100",
                "ablation-directions",
                "ablation-concentration",
            ),
            *("ablation-views", "full-cifar100", "reference-scr-paper", "reference-scr-paper-more"),
            *("grid-pfc", "grid-lump", "grid-pcr", "reference-controls"),
            "paper-cifar100-width64",
            *("reference-survey-20-tasks", "reference-ocl-survey"),
        )
    },
}
"""Small variants of commands that take long or need data or a cluster; + appends to the command."""
SLOW_COMMANDS = {
    *(f"sterad bench{options}" for options in ("", " er", " --thorough", " --thorough --full")),
    "sterad search agd-fd --dataset cifar100 --root DATA",
    "sterad search er --save-tuned my-values.toml",
    *("sterad bench agd-fd --rounds 40", "sterad bench --json bench.json"),
    "sterad bench --precision float32",
    "sterad search agd-fd --space combinations --dataset cifar100 --root DATA",
    *("python benchmarks/control.py cifar100 16", "sterad study studies/digits.toml --workers 2"),
}
STUDY = """
[fixed]
dataset = "synthetic"
classes = 2
per_class = 6
test_per_class = 2
memory = 4
width = 2
[axes]
method = ["finetune", "er"]
"""


def commands() -> list[str]:
    """Return all commands of the pages, each once."""
    found = [line.strip() for page in PAGES for line in COMMAND.findall(page.read_text())]
    return list(dict.fromkeys(found))


def blocks() -> list[tuple[str, str]]:
    """Return the name and text of all Python blocks of the pages, each text once."""
    found: dict[str, str] = {}
    for page in PAGES:
        for i, (kind, text) in enumerate(BLOCK.findall(page.read_text())):
            if kind == "python":
                found.setdefault(text, f"{page.name}-{i}")
            else:
                assert kind in UNTESTED_BLOCKS, f"{page.name} has a block of {kind}: test it"
    return [(name, text) for text, name in found.items()]


def is_quick(block: str) -> bool:
    """Return whether a block is in the quick tests: those that a new user meets first."""
    return block.startswith(("README", "quickstart", "own_parts"))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a copy of the checkout with small data files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names = ("Makefile", "pyproject.toml", "requirements", "studies", "examples", "benchmarks")
    for name in names:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "reproduction").mkdir()
    for name in ("pyproject.toml", "records"):
        (tmp_path / "reproduction" / name).symlink_to(ROOT / "reproduction" / name)
    shutil.copy(ROOT / "reproduction" / "README.md", tmp_path / "reproduction")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8)
    labels = np.arange(60) % 4
    np.savez(
        tmp_path / "own.npz",
        train_images=images[:40],
        train_labels=labels[:40],
        test_images=images[40:],
        test_labels=labels[40:],
    )
    (tmp_path / "small.toml").write_text(STUDY)
    return tmp_path


def exit_code_of(words: list[str], folder: Path) -> int:
    """Run a command; those of sterad run in this process, which has imported torch."""
    if words[0] == "sterad":
        return main(words[1:])
    program = sys.executable if words[0] == "python" else words[0]
    return subprocess.run([program, *words[1:]], cwd=folder, capture_output=True).returncode


@pytest.mark.parametrize(
    "line",
    [pytest.param(c, marks=pytest.mark.slow) if c in SLOW_COMMANDS else c for c in commands()],
)
def test_every_command_runs(line: str, folder: Path, mnist: Path) -> None:
    small = SMALL_VARIANTS.get(line, line)
    small = f"{line} {small[2:]}" if small.startswith("+ ") else small
    words = shlex.split(small)[1:]
    if ("runs" in words[1:] or words == ["runs"]) and not (folder / "runs").exists():
        assert main(["train", "finetune", *shlex.split(RUN)]) == 0, "`report runs` needs a run"
    assert exit_code_of(shlex.split(small.replace("DATA", str(mnist))), folder) == 0, small


@pytest.fixture
def mnist(folder: Path) -> Path:
    """Return a data folder with a few images in the layout of MNIST."""
    root = folder / "official"
    (root / "mnist").mkdir(parents=True)
    for split in ("train", "t10k"):
        header = b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (10, 28, 28))
        (root / "mnist" / f"{split}-images-idx3-ubyte").write_bytes(header + bytes(7840))
        header = b"\0\0\x08\x01" + (10).to_bytes(4, "big")
        (root / "mnist" / f"{split}-labels-idx1-ubyte").write_bytes(header + bytes(range(10)))
    return root


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param(name, text, id=name, marks=() if is_quick(name) else pytest.mark.slow)
        for name, text in blocks()
    ],
)
def test_every_python_block_runs(name: str, text: str, folder: Path) -> None:
    file = folder / "block.py"
    file.write_text(text)
    runpy.run_path(str(file))


def test_the_commands_of_shell_blocks_are_parsed(folder: Path) -> None:
    """The runs of the paper take hours each, so their commands are only parsed."""
    blocks = [
        text for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == "sh"
    ]
    lines = [line.strip() for text in blocks for line in re.split(r"\n|&&|;", text)]
    found = [
        line.partition("sterad ")[2].replace("$seed", "0") for line in lines if "sterad " in line
    ]
    assert len(found) > 200
    for command, *words in map(shlex.split, found):
        if command == "train":
            parse_train_request(words).config()
        elif command == "study":
            assert find_study(words[0]).exists()
        else:
            assert command in COMMANDS


def test_every_small_variant_has_its_command_in_the_pages() -> None:
    assert set(SMALL_VARIANTS) | SLOW_COMMANDS <= set(commands())


def test_extras_files_and_make_targets_of_the_pages_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        text = page.read_text()
        for named in re.findall(r"(?:sterad|\.)\[([a-z,]+)\]", text):
            assert set(named.split(",")) <= extras, f"{page.name} names the extra {named}"
        for named in re.findall(r"`make (\w+)", text):
            assert named in targets, f"{page.name} names `make {named}`"
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_paths_and_names_of_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "src" / "sterad"
    source = "".join(path.read_text() for path in package.rglob("*.py"))
    named = set(re.findall(r"`([^`\n]+)`", text))
    paths = {name for name in named if re.fullmatch(r"[\w/]+(/|\.py)", name) and "NAME" not in name}
    assert len(paths) > 30
    for name in paths:
        bases = (ROOT, package, package / "methods")
        assert any((base / name).exists() for base in bases), f"there is no {name}"
    identifiers = {name for name in named if re.fullmatch(r"[A-Z]\w+|[a-z]+(_[a-z]+)+", name)}
    assert len(identifiers) > 30
    for name in identifiers:
        assert re.search(rf"\b{name}\b", source), f"the package has no {name}"
    folders = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    assert {f"{name}/" for name in folders} <= paths, "a package is not described"
