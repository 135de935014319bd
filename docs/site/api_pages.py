"""The API reference: a page per package, generated from `__all__` and docstrings."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import sterad
from docs.site.navigation import hidden_toctree
from sterad.registry import Registry


@dataclass(frozen=True)
class ApiPage:
    """A page of the reference."""

    module: str
    about: str
    parts: tuple[str, ...] = ()
    """Submodules that the page documents; empty: the names in `__all__`."""


PAGES = (
    ApiPage("sterad", "the names that most programs need"),
    ApiPage("sterad.estimator", "the classifier with `partial_fit`"),
    ApiPage("sterad.data", "datasets"),
    ApiPage("sterad.streams", "orders in which images arrive"),
    ApiPage("sterad.memory", "replay buffers, and what is retrieved from them"),
    ApiPage("sterad.views", "augmentation"),
    ApiPage("sterad.encoders", "networks from inputs to features"),
    ApiPage("sterad.engine", "device, precision, threads, parallel passes"),
    ApiPage("sterad.sphere", "laws and directions on the unit sphere"),
    ApiPage("sterad.losses", "losses as pure functions", ("*",)),
    ApiPage("sterad.classifiers", "features to classes", ("",)),
    ApiPage("sterad.methods", "the base classes of methods"),
    ApiPage("sterad.evaluation", "the accuracy matrix and its metrics", ("evaluate", "metrics")),
    ApiPage("sterad.results", "records of runs", ("record", "run_directory", "statistics")),
    ApiPage(
        "sterad.experiments",
        "runs, studies, search and launchers",
        ("config", "run", "study", "live", "search.search", "search.plan", "launchers"),
    ),
    ApiPage("sterad.loggers", "progress and experiment trackers", ("logger", "trackers")),
    ApiPage("sterad.export", "models that leave sterad", ("",)),
    ApiPage("sterad.testing", "contracts for your own parts"),
    ApiPage("sterad.river", "the classifier in pipelines of river", ("",)),
    ApiPage("sterad.plugins", "files that register your parts", ("",)),
    ApiPage("sterad.registry", "components by name", ("",)),
    ApiPage("sterad.errors", "the exception of every error that you can fix", ("",)),
)


def write_api_pages(folder: Path) -> None:
    """Write an index and a page for each package."""
    folder.mkdir(parents=True)
    for page in PAGES:
        text = "\n".join(_page_lines(page))
        (folder / f"{page.module}.rst").write_text(text, encoding="utf-8")
    rows = "".join(f"- [`{page.module}`]({page.module}.rst): {page.about}\n" for page in PAGES)
    toctree = hidden_toctree([page.module for page in PAGES])
    (folder / "index.md").write_text(
        "# API reference\n\nGenerated from the docstrings. Every public function is typed, and the "
        "package has `py.typed`, so type checkers of other projects see the types.\n\n"
        f"{rows}\n{toctree}\n",
        encoding="utf-8",
    )


def _page_lines(page: ApiPage) -> Iterator[str]:
    module = importlib.import_module(page.module)
    yield from (page.module, "=" * len(page.module), "")
    yield from (f".. automodule:: {page.module}", "   :no-members:", "")
    names = list(_public_names(page, module))
    yield from (".. autosummary::", "   :nosignatures:", "")
    if page.module == "sterad":  # its names are documented where they are defined
        modules = {name: module.removeprefix("sterad.") for name, module in sterad._MODULES.items()}
        yield from (f"   {modules[name]}.{name}" for name in sterad.__all__)
        return
    listed = [name for name in names if not isinstance(_object(name), Registry)]
    yield from (f"   {name.removeprefix(page.module)[1:]}" for name in listed)
    yield ""
    for name in names:
        yield from _entry_lines(name)


def _public_names(page: ApiPage, module: ModuleType) -> Iterator[str]:
    """Yield the full names of the documented objects, each once."""
    if not page.parts:
        yield from (f"{page.module}.{name}" for name in getattr(module, "__all__", ()))
        return
    parts: tuple[str, ...] = page.parts
    if parts == ("*",):
        parts = tuple(info.name for info in pkgutil.iter_modules(module.__path__))
    for part in parts:
        name = f"{page.module}.{part}".rstrip(".")
        inner = importlib.import_module(name)
        chosen = getattr(inner, "__all__", None) or _defined_names(inner)
        yield from (f"{name}.{public}" for public in chosen)


def _defined_names(module: ModuleType) -> list[str]:
    """Return the public classes and functions that a module defines, in the order of the file."""
    found = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }
    return sorted(found, key=lambda name: inspect.getsourcelines(found[name])[1])


def _object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _entry_lines(name: str) -> Iterator[str]:
    value = _object(name)
    if inspect.isclass(value):
        yield from (f".. autoclass:: {name}", "   :members:")
        has_public_base = value.__bases__ != (object,) and not value.__bases__[
            0
        ].__name__.startswith("_")
        yield from (["   :show-inheritance:", ""] if has_public_base else [""])
    elif inspect.isfunction(value):
        yield from (f".. autofunction:: {name}", "")
    elif isinstance(value, Registry):
        known = ", ".join(f"``{known}``" for known in value)
        yield from (f".. py:data:: {name}", "", f"   Registry ``{value.kind}``: {known}.", "")
    else:
        yield from (f".. autodata:: {name}", "")
