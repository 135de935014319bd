"""The built wheel does what the README says, in an empty environment without the checkout."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

import pytest

from tests.end_to_end.test_documentation import BENCH, BLOCK, COMMAND, FIXED, ROOT, RUN

SMALL = {
    "sterad train agd-fd": f"sterad train agd-fd {FIXED}",
    "sterad train vmf-fd --stream blurry --memory 100 --seed 3": f"+ {FIXED}",
    "sterad bench er": f"sterad bench {BENCH}",
    "sterad study demo": "sterad study demo --dry-run",
}
"""Small variants of long commands; all others run as they are written."""
CONSUMER = """
    from pathlib import Path

    import numpy as np

    from sterad import OnlineClassifier, RunRecord, Study, run
    from sterad.data import Digits

    classifier: OnlineClassifier = OnlineClassifier("slda").fit(np.eye(3), [0, 1, 2])
    record: RunRecord = run(method="ncm", dataset="digits")
    accuracy: float = record.final_average_accuracy
    study: Study = Study.from_toml(Path("a.toml"))
    reveal_type(Digits().load().train_images)
    wrong: int = record.final_average_accuracy
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of the checkout."""
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "-o",
        str(out),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("sterad-*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new environment with the wheel; its dependencies are those of this environment.

    The present site-packages follow on the path, without their .pth files, so that the editable
    installation of the checkout is not found.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    target = next(folder.glob("lib/python*/site-packages"))
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "-q"]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True, capture_output=True)
    (target / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    script = folder / "bin" / "sterad"
    script.write_text(
        f"#!{folder}/bin/python\nimport sys\nfrom sterad.cli import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    return folder


def run_there(environment: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in a folder, without the paths of this process."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STERAD"))}
    variables |= {"PATH": f"{environment}/bin:/usr/bin:/bin", "XDG_CACHE_HOME": str(folder / "c")}
    program = str(environment / "bin" / words[0])
    return subprocess.run(
        [program, *words[1:]],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_package_is_imported_from_the_wheel(environment: Path, tmp_path: Path) -> None:
    done = run_there(environment, tmp_path, "python", "-c", "import sterad; print(sterad.__file__)")
    assert done.stdout.startswith(str(environment)), done.stdout + done.stderr


@pytest.mark.slow
def test_every_command_and_block_of_the_readme_works(environment: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    commands = [line for line in COMMAND.findall(text) if line.startswith("sterad ")]
    assert len(commands) == 10
    for line in commands:
        small = SMALL.get(line, line)
        small = f"{line} {small[2:]}" if small.startswith("+ ") else small
        done = run_there(environment, tmp_path, *shlex.split(small))
        assert done.returncode == 0, f"{small}: {done.stderr}"
    for kind, block in BLOCK.findall(text):
        assert kind == "python"
        (tmp_path / "block.py").write_text(block)
        done = run_there(environment, tmp_path, "python", "block.py")
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_tuned_values_and_named_studies_ship(environment: Path, tmp_path: Path) -> None:
    done = run_there(
        environment, tmp_path, "sterad", "train", "er", "--tuned", "digits", *RUN.split()
    )
    assert done.returncode == 0, done.stderr
    done = run_there(environment, tmp_path, "sterad", "study", "no-such-study")
    assert done.returncode == 2
    assert re.search(r"known are .*paper-clear", done.stderr)


@pytest.mark.slow
def test_type_checkers_of_other_projects_see_the_types(environment: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "consumer.py").write_text(textwrap.dedent(CONSUMER))
    command = ["-m", "mypy", "--strict", "--python-executable", f"{environment}/bin/python"]
    done = subprocess.run(
        [sys.executable, *command, "consumer.py"],
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k not in ("MYPYPATH", "PYTHONPATH")},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 1, done.stdout + done.stderr
    assert 'has type "float", variable has type "int"' in errors[0]
    assert "ndarray" in done.stdout
