"""Tutorials: scripts in cells (`# %%`), which are executed; their output becomes part of the page.

A text cell begins with `# %% [markdown]` and consists of comments. SVG files that a cell writes to
the working folder are shown below it. Each script runs in a process and a folder of its own, and an
error in it is an error of the build.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).parents[2]
TIME_LIMIT_S = 570
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)
_LOG_LINE = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+ [IW] \d+ \d+\] .*\n", re.MULTILINE)
"""Notes of Ray to its developers, for example that there is no network."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Cell:
    """A part of a script: text in Markdown, or code."""

    source: str
    is_text: bool


class Output(TypedDict):
    """What a cell has written."""

    text: str
    figures: list[str]
    """SVG documents."""


def read_cells(file: Path) -> list[Cell]:
    """Return the cells of a script; its docstring is the first text."""
    source = file.read_text(encoding="utf-8")
    intro = ast.get_docstring(ast.parse(source)) or file.stem
    marks = list(_CELL.finditer(source))
    ends = [mark.start() for mark in marks[1:]] + [len(source)]
    cells = [Cell(intro, True)]
    for mark, end in zip(marks, ends, strict=True):
        text, is_text = source[mark.end() : end].strip("\n"), "[markdown]" in mark[1]
        if is_text:
            text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
        cells.append(Cell(text, is_text))
    return cells


def render_tutorial(file: Path, run: bool = True) -> str:
    """Return the page of a script in Markdown, with the output of each cell."""
    cells = read_cells(file)
    outputs = execute(file) if run else [Output(text="", figures=[]) for _ in cells]
    parts = []
    for cell, output in zip(cells, outputs, strict=True):
        parts.append(cell.source if cell.is_text else f"```python\n{cell.source}\n```")
        if text := clean(output["text"]):
            parts.append(f"```{{code-block}} text\n:class: output\n\n{text}\n```")
        parts += [f"```{{raw}} html\n{_to_inline(svg)}\n```" for svg in output["figures"]]
    name = file.name
    parts.append(f"The script is `docs/tutorials/{name}` in a checkout: `python {name}` runs it.")
    return "\n\n".join(parts) + "\n"


def execute(file: Path) -> list[Output]:
    """Run a script in an empty folder; return the text and figures of each cell."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    settings = {"PYTHONPATH": path, "COLUMNS": "90", "NO_COLOR": "1", "MPLBACKEND": "svg"}
    threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    ray = {"RAY_worker_niceness": "0"}  # niced workers would get no time on a busy machine
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "docs.site.run_cells", str(file.resolve()), "cells.json"]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **settings, **threads, **ray},
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
        )
        if done.returncode:
            raise RuntimeError(f"the tutorial {file.name} fails:\n{done.stdout}{done.stderr}")
        outputs: list[Output] = json.loads(Path(folder, "cells.json").read_text())
        return outputs


def clean(text: str) -> str:
    """Remove colors, lines that were overwritten, and log lines of Ray."""
    plain = _LOG_LINE.sub("", _ESCAPES.sub("", text))
    lines = (line.rpartition("\r")[2].rstrip() for line in plain.split("\n"))
    return "\n".join(lines).strip("\n")


def _to_inline(svg: str) -> str:
    """Return a figure of matplotlib as markup that takes the text color of the page."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r' width="[^"]*pt" height="[^"]*pt"| height="[^"]*pt"', "", body, count=1)
    body = body.replace("#000000", "currentColor").replace("\n\n", "\n")
    return f'<figure class="figure">{body.strip()}</figure>'


def tutorial_files() -> Iterator[Path]:
    """Yield the scripts in the order of the site."""
    yield from sorted((ROOT / "docs" / "tutorials").glob("[0-9]*.py"))
