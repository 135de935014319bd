"""Every figure of a report as PDF and PNG, for a paper or a talk."""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

from sterad.atomic import write_atomically
from sterad.errors import SteradError
from sterad.report.drawing import Drawing, Section
from sterad.report.style import themed

DOTS = 200
"""Pixels of a PNG per inch."""
_FORMATS = {
    # A date in the file would make equal figures differ.
    "pdf": {"metadata": {"CreationDate": None, "Producer": None, "Creator": None}},
    "png": {"dpi": DOTS, "facecolor": "white", "metadata": {"Software": None}},
}


def write_figures(sections: Iterable[Section], folder: Path) -> int:
    """Write each figure twice and a list of them, `figures.csv`; return how many there are."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise SteradError(
            f"cannot make the folder {str(folder)!r} for figures: {error.strerror}"
        ) from error
    rows = [["file", "section", "figure", "caption"]]
    for section in sections:
        for number, drawing in enumerate((*section.drawings, *section.further), 1):
            stem = f"{section.key}-{number}-{slug(drawing.name)}"
            _write(drawing, folder, stem)
            rows.append([stem, section.title, drawing.name, drawing.caption])
    listing = io.StringIO(newline="")
    csv.writer(listing, lineterminator="\n").writerows(rows)
    write_atomically(folder / "figures.csv", listing.getvalue())
    return len(rows) - 1


def _write(drawing: Drawing, folder: Path, stem: str) -> None:
    figure = drawing.draw()
    with themed():
        for ending, options in _FORMATS.items():
            logger = io.BytesIO()
            figure.savefig(logger, format=ending, **options)  # type: ignore[arg-type]
            write_atomically(folder / f"{stem}.{ending}", logger.getvalue())


def slug(name: str, most: int = 60) -> str:
    """Return a name as a file system and LaTeX take it.

    >>> slug("digits, blurry: κ² = 1 / variance")
    'digits-blurry-1-variance'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:most].rstrip("-") or "figure"
