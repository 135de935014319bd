"""Executes the cells of a script in this process: `python -m docs.site.run_cells FILE OUT.json`.

The output of a cell is all that it and the processes that it starts write to standard output and
standard error.
"""

import json
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from docs.site.tutorials import Output, read_cells


@contextmanager
def captured(file: IO[bytes]) -> Iterator[None]:
    """Redirect both standard streams, also those of child processes, to a file."""
    saved = [os.dup(number) for number in (1, 2)]
    try:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, descriptor in zip((1, 2), saved, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


def run_cells(script: Path, figures: Path) -> Iterator[Output]:
    """Yield the text and the new SVG files of each cell."""
    module = types.ModuleType("__main__")
    module.__file__ = str(script)
    sys.modules["__main__"] = module
    shown: dict[str, int] = {}
    for cell in read_cells(script):
        with tempfile.TemporaryFile() as file:
            if not cell.is_text:
                with captured(file):
                    exec(compile(cell.source, f"{script.name}, cell", "exec"), vars(module))
            file.seek(0)
            text = file.read().decode(errors="replace")
        new = [
            path
            for path in sorted(figures.glob("*.svg"), key=lambda path: path.stat().st_mtime_ns)
            if shown.get(path.name) != path.stat().st_mtime_ns
        ]
        shown |= {path.name: path.stat().st_mtime_ns for path in new}
        yield Output(text=text, figures=[path.read_text(encoding="utf-8") for path in new])


def main(script: str, out: str) -> None:
    """Run a script and write the outputs of its cells."""
    import warnings

    warnings.simplefilter("error", DeprecationWarning)
    set_figure_style()
    cells = list(run_cells(Path(script), Path()))
    Path(out).write_text(json.dumps(cells), encoding="utf-8")


def set_figure_style() -> None:
    """Let figures be transparent, with text of the browser's font."""
    import matplotlib

    matplotlib.rcParams |= {
        "svg.fonttype": "none",
        "savefig.transparent": True,
        "savefig.bbox": "tight",
        "font.size": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
