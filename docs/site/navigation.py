"""The navigation of the site: captions with their pages, in the order of the sidebar."""

from collections.abc import Sequence
from pathlib import Path

NAVIGATION = {
    "Start": ("install", "quickstart", "start/feed", "start/research", "start/laws"),
    "Tutorials": ("tutorials/[0-9]*",),
    "How to": (
        *("howto/data", "own_parts", "howto/studies", "howto/runs"),
        *("howto/export", "examples/index"),
    ),
    "Concepts": ("architecture", "streams", "metrics", "mathematics", "reliability", "speed"),
    "Reference": ("methods/index", "laws/index", "api/index"),
    "Results": ("reproduction/README", "reproduction/cells", "reproduction/verdicts"),
    "Project": ("project/CONTRIBUTING", "project/CHANGELOG", "project/SECURITY"),
}
"""A name with a pattern stands for all of its pages; one without a page is left out."""


def toctrees(site: Path) -> str:
    """Return the hidden tables of contents of the pages that exist in `site`."""
    parts = []
    for caption, names in NAVIGATION.items():
        pages = [page for name in names for page in _matching(name, site)]
        parts.append(hidden_toctree(pages, caption))
    return "\n\n".join(parts)


def hidden_toctree(pages: Sequence[str], caption: str = "") -> str:
    """Return a table of contents that only the sidebar shows."""
    options = ":hidden:" + (f"\n:caption: {caption}" if caption else "")
    listed = "\n".join(pages)
    return f"```{{toctree}}\n{options}\n\n{listed}\n```"


def _matching(name: str, site: Path) -> list[str]:
    return [
        path.relative_to(site).with_suffix("").as_posix()
        for path in sorted(site.glob(f"{name}.md"))
    ]
