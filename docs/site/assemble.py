"""Collects the pages of the site in one folder: written, generated and executed ones.

The Markdown files of the checkout link to each other and to code by relative paths, so that they
can be read on a code host. Here a link to an example leads to the page of the example, and a link
to another file of the checkout becomes its name.
"""

import ast
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from docs.site.api_pages import write_api_pages
from docs.site.method_pages import write_method_pages
from docs.site.navigation import hidden_toctree, toctrees
from docs.site.tutorials import render_tutorial, tutorial_files

ROOT = Path(__file__).parents[2]
TOP_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages at the top of the checkout that are part of the site."""
REFERENCES = {"methods": "methods", "sterad": "api"}
"""Folders of the site that describe a folder of the package, by its name."""
PARALLEL_TUTORIALS = 2
_LINK = re.compile(r"(!?)\[((?:[^\]\\]|\\.)*)\]\((?!https?:|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
_CONTAINER = re.compile(r"<!-- (\w+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)


def assemble(target: Path, run_tutorials: bool = True) -> None:
    """Write all pages of the site to a new folder."""
    shutil.copytree(ROOT / "docs", target, ignore=_ignored)
    (target / "project").mkdir()
    for name in TOP_PAGES:
        shutil.copy(ROOT / name, target / "project" / name)
    (target / "reproduction").mkdir()
    titles = {"README.md": "", "cells.md": "", "verdicts.md": "# Claims of the paper\n\n"}
    for name, title in titles.items():
        text = (ROOT / "reproduction" / name).read_text(encoding="utf-8")
        (target / "reproduction" / name).write_text(title + text, encoding="utf-8")
    shutil.copytree(ROOT / "reproduction" / "figures", target / "reproduction" / "figures")
    shutil.copy(ROOT / "reproduction" / "cells.svg", target / "reproduction")
    write_example_pages(target / "examples")
    write_method_pages(target / "methods")
    write_api_pages(target / "api")
    write_tutorials(target / "tutorials", run_tutorials)
    _append(target / "index.md", toctrees(target))
    laws = sorted(page.stem for page in (target / "laws").glob("*.md") if page.stem != "index")
    _append(target / "laws" / "index.md", hidden_toctree(laws))
    for page in sorted(target.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        page.write_text(adapt(text, page, target), encoding="utf-8")


def _append(page: Path, text: str) -> None:
    with page.open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")


def _ignored(folder: str, names: list[str]) -> set[str]:
    is_top = Path(folder) == ROOT / "docs"
    unused = {"site", "records"} if is_top else set()
    return {n for n in names if n in unused or n == "__pycache__" or n.endswith(".py")}


def write_tutorials(folder: Path, run: bool) -> None:
    """Execute the tutorials, a few at a time, and write their pages."""
    folder.mkdir(exist_ok=True)
    files = list(tutorial_files())
    with ThreadPoolExecutor(PARALLEL_TUTORIALS) as pool:
        texts = pool.map(lambda file: render_tutorial(file, run), files)
        for file, text in zip(files, texts, strict=True):
            (folder / f"{file.stem}.md").write_text(text, encoding="utf-8")


def write_example_pages(folder: Path) -> None:
    """Write a page with the code of each example, and their index."""
    folder.mkdir()
    rows, names = [], []
    for file in sorted((ROOT / "examples").glob("*.py")):
        source = file.read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(source)) or file.stem).partition("\n")[0]
        names.append(file.stem)
        rows.append(f"- [{file.name}]({file.stem}.md): {about}")
        page = f"# {file.name}\n\n{about}\n\n```python\n{source}```\n"
        (folder / f"{file.stem}.md").write_text(page, encoding="utf-8")
    text = "# Examples\n\nComplete files of the folder `examples`; the tests run them all.\n\n"
    text += "\n".join(rows) + f"\n\n{hidden_toctree(names)}\n"
    (folder / "index.md").write_text(text, encoding="utf-8")


def adapt(text: str, page: Path, site: Path) -> str:
    """Return a page with links of the site, and with its marked parts as containers."""
    text = _CONTAINER.sub(lambda match: f"::::{{container}} {match[1]}\n{match[2]}::::", text)
    return _LINK.sub(lambda match: _adapt_link(match, page, site), text)


def _adapt_link(match: re.Match[str], page: Path, site: Path) -> str:
    mark, label, address, anchor = match[1], match[2], match[3], match[4] or ""
    if (page.parent / address).is_file():
        return match[0]
    for path in _targets(address, page, site):
        if path.is_file():
            relative = Path(os.path.relpath(path, page.parent)).as_posix()
            return f"{mark}[{label}]({relative}{anchor})"
    return label if label.startswith("`") else f"{label} (`{address.replace('../', '')}`)"


def _targets(address: str, page: Path, site: Path) -> Iterator[Path]:
    """Yield the pages that may stand for a file or folder of the checkout."""
    name = Path(address)
    if name.name in REFERENCES:
        yield site / REFERENCES[name.name] / "index.md"
    yield site / "project" / name.name
    if name.parent.name in ("examples", "tutorials"):
        yield site / name.parent.name / f"{name.stem}.md"
    if name.parent.name == "docs" or "docs" in name.parts:
        yield site / name.relative_to(*name.parts[: name.parts.index("docs") + 1])
    if "reproduction" in name.parts:
        yield site / "reproduction" / name.name
