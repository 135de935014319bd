"""The workflow files: what they name exists. They run on a code host, so that nothing else sees it.

Each step is parsed; make targets, paths, extras and Python versions are those of the checkout.
"""

import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FILES = [*WORKFLOWS, *sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml")), GITHUB / "dependabot.yml"]
FIRST_MAJOR = {"checkout": 5, "setup-python": 6, "upload-artifact": 6, "download-artifact": 7}
"""The first versions that run on Node 24; hosts have removed Node 20 in September 2026."""
RUNNERS = {"ubuntu-latest", "macos-latest", "windows-latest"}
FORMS = {"input", "textarea", "checkboxes", "dropdown", "markdown"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(file: Path) -> dict[Any, Any]:
    values = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(values, dict)
    return values


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a name and the values of each job."""
    for file in WORKFLOWS:
        for name, job in read(file)["jobs"].items():
            yield f"{file.stem}-{name}", job


def commands() -> list[str]:
    """Return every line that a job runs, each once."""
    texts = [step["run"] for _, job in jobs() for step in job["steps"] if "run" in step]
    return list(dict.fromkeys(line.strip() for text in texts for line in text.splitlines()))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_read(file: Path) -> None:
    assert read(file)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_starts_and_has_only_the_rights_that_it_needs(file: Path) -> None:
    values = read(file)
    assert set(values) <= {"name", True, "permissions", "concurrency", "jobs"}  # `on` is read so
    assert set(values[True]) <= {"push", "pull_request"}
    assert values["permissions"] == {"contents": "read"}
    for job in values["jobs"].values():
        assert job.get("permissions", {}) in ({}, {"id-token": "write"})
        assert {job["needs"]} <= set(values["jobs"]) if "needs" in job else True


@pytest.mark.parametrize(("name", "job"), [*jobs()], ids=[name for name, _ in jobs()])
def test_a_job_has_a_machine_versions_of_python_and_known_actions(
    name: str, job: dict[str, Any]
) -> None:
    matrix = job.get("strategy", {}).get("matrix", {})
    assert set(matrix.get("os", [job["runs-on"]])) <= RUNNERS
    versions = set(matrix.get("python", []))
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), f"{name}: {step}"
        action, _, version = step.get("uses", "").partition("@")
        if action.startswith("actions/"):
            major = re.fullmatch(r"v(\d+)", version)
            assert major, f"{action} is not pinned to a major version"
            assert int(major[1]) >= FIRST_MAJOR[action.removeprefix("actions/")]
        given = step.get("with", {}).get("python-version")
        versions |= {given} - {None, "${{ matrix.python }}"}
    for version in versions:  # a number would make 3.10 of 3.1
        assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_three_systems_and_all_versions_of_python_are_tested() -> None:
    matrix = dict(jobs())["tests-quick"]["strategy"]["matrix"]
    assert set(matrix["os"]) == RUNNERS
    named = [re.fullmatch(r".* :: (3\.\d+)", one) for one in PROJECT["classifiers"]]
    assert set(matrix["python"]) == {one[1] for one in named if one}


@pytest.mark.parametrize("command", commands())
def test_a_command_names_what_exists(command: str) -> None:
    for part in re.split(r"&&|\|\||;", re.sub(r"\$\(.*\)", "X", command)):
        words = shlex.split(part)
        program, *rest = words
        if program == "python":
            check_module(rest)
        elif program == ".ci/run":
            assert os.access(ROOT / program, os.X_OK)
        else:
            assert program == "test" or "=" in program, f"{program} is not known here"


def check_module(words: list[str]) -> None:
    """Check the arguments of `python -m pip`, `pytest` or `build`."""
    assert words[0] == "-m"
    module, *rest = words[1:]
    assert module in ("pip", "pytest", "build")
    for extras in re.findall(r"\.\[([a-z,]+)\]", " ".join(rest)):
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    for path in (word for word in rest if word.startswith("tests/") or word == "reproduction"):
        assert (ROOT / path).exists(), f"there is no {path}"


def test_continuous_integration_runs_targets_of_make() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    targets = re.findall(r"^(?:exec )?make (\w+)$", script, re.MULTILINE)
    assert targets == ["check"]
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)
    done = subprocess.run(
        ["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"pytest .*-m slow", done.stdout)


@pytest.mark.parametrize("name", ["bug", "method"])
def test_an_issue_template_is_a_form(name: str) -> None:
    values = read(GITHUB / "ISSUE_TEMPLATE" / f"{name}.yml")
    assert {"name", "description", "body"} <= set(values)
    parts = [part for part in values["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in values["body"]} <= FORMS
    assert all(part["attributes"]["label"] for part in parts)
    names = [part["id"] for part in parts]
    assert len(set(names)) == len(names)
