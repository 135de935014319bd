"""A page per method: algorithm, paper, fields, published and own numbers, accuracy curves."""

import dataclasses
import inspect
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from docs.site.curves import draw_curves, mean_curve
from docs.site.docstrings import to_markdown
from docs.site.navigation import hidden_toctree
from sterad.cli.help import field_docs, summary_of
from sterad.methods import METHODS, ReplayConfig
from sterad.results.record import RunRecord
from sterad.results.run_directory import read_records
from sterad.results.statistics import summarize
from sterad.validation import describe, field_types
from sterad_reproduction.numbers import Number, load_numbers

RECORDS = Path(__file__).parents[2] / "reproduction" / "records"
STUDIES = {
    "full-cifar100": "All of CIFAR-100 at 16x16, memory 5,000",
    "box-cifar100": "CIFAR-100 at 16x16, 50 images per class, memory 500",
    "box-cifar10": "CIFAR-10 at 16x16, 300 images per class, memory 200",
    "digits": "Digits, memory 200",
    "digits-later": "Digits, memory 200, later methods",
    "digits-features": "Digits, learners on pixels",
}
"""Studies whose records the pages show, from the largest to the smallest."""
STREAMS = ("clear", "blurry")
BOUNDS = {"finetune": "fine-tuning", "joint": "joint", "randumb": "control (randumb)"}
"""Methods that every table and figure is compared with, where a study has them."""
SAME_STREAM = ("digits", "digits-features", "digits-later")
"""Studies on the same streams, each of which has some of the bounds."""


@cache
def records_of(study: str) -> tuple[RunRecord, ...]:
    """Return the committed records of a study."""
    folder = RECORDS / study
    return tuple(read_records(folder)[0]) if folder.is_dir() else ()


def select(study: str, method: str, stream: str) -> list[RunRecord]:
    """Return the records of a method on a stream, one per seed."""
    return [
        record
        for record in records_of(study)
        if record.config["method"]["name"] == method and record.config["stream"]["name"] == stream
    ]


def bound_records(study: str, bound: str, stream: str) -> list[RunRecord]:
    """Return the records of a bound on the stream of a study."""
    others = SAME_STREAM if study in SAME_STREAM else ()
    found = (select(one, bound, stream) for one in (study, *others))
    return next(filter(None, found), [])


def write_method_pages(folder: Path) -> None:
    """Write a page for each method of the package, and their index."""
    folder.mkdir(parents=True)
    names = [name for name in METHODS if METHODS[name].__module__.startswith("sterad.methods.")]
    for name in names:
        text = "\n\n".join(part for part in page_parts(name) if part)
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    rows = [(f"[`{name}`]({name}.md)", summary_of(METHODS[name])) for name in names]
    (folder / "index.md").write_text(
        "# Methods\n\nEach method is one file of `src/sterad/methods`. `sterad train NAME` trains "
        f'it on a stream, and `OnlineClassifier("NAME")` on your feed.\n\n'
        f"{table(('name', 'what it does'), rows)}\n\n"
        f"{hidden_toctree(names)}\n",
        encoding="utf-8",
    )


def page_parts(name: str) -> Iterator[str]:
    """Yield the paragraphs of the page of a method."""
    method = METHODS[name]
    title, _, algorithm = (inspect.getdoc(sys.modules[method.__module__]) or name).partition("\n")
    yield f"# {name}"
    summary = title.partition("; see `")[0].rstrip(".")  # the page has what it refers to
    yield f"**{to_markdown(summary).strip()}.**"
    yield f'```python\nclassifier = OnlineClassifier("{name}")\n```'
    yield f"```sh\nsterad train {name}\n```"
    yield "## Algorithm"
    yield to_markdown(algorithm.strip() or _inherited_text(method))
    yield "## Accuracy along the stream"
    figures = "\n".join(curve_figures(name))
    grid = f'```{{raw}} html\n<div class="figures">\n{figures}\n</div>\n```'
    yield grid if figures else "No record of this method is committed yet."
    yield "## Our numbers"
    yield own_numbers(name) or "No record of this method is committed yet."
    yield "## Published numbers"
    yield published_numbers(name) or "The paper has no number of this method."
    yield "## Fields"
    yield from field_sections(method)


def _inherited_text(method: type[Any]) -> str:
    """Return the algorithm of the base class, for a method that only changes its settings."""
    for base in method.__mro__[1:]:
        if base.__module__.startswith("sterad.methods.") and ".base." not in base.__module__:
            return (inspect.getdoc(sys.modules[base.__module__]) or "").partition("\n")[2].strip()
    return ""


def curve_figures(name: str) -> Iterator[str]:
    """Yield a figure for each study and stream with records of the method, at most two studies."""
    studies = [study for study in STUDIES if select(study, name, "clear")]
    for study in studies[-2:]:
        for stream in STREAMS:
            if not (own := select(study, name, stream)):
                continue
            curves = {name: mean_curve(own)}
            for bound, label in BOUNDS.items():
                records = bound_records(study, bound, stream)
                if bound not in (name, "joint") and records:
                    curves[label] = mean_curve(records)
            seeds = f"{len(own)} {'seed' if len(own) == 1 else 'seeds'}"
            title = f"{STUDIES[study]}, {stream}: accuracy on all seen classes, {seeds}"
            yield draw_curves(curves, title)


def own_numbers(name: str) -> str:
    """Return the final average accuracy of the committed records, with bounds where there are."""
    rows: list[tuple[str, ...]] = []
    for study, title in STUDIES.items():
        own = [_cell(select(study, name, stream)) for stream in STREAMS]
        if not any(own):
            continue
        rows.append((f"**{title}**", *own))
        for bound, label in BOUNDS.items():
            cells = [_cell(bound_records(study, bound, stream)) for stream in STREAMS]
            if bound != name and any(cells):
                rows.append((f"{label} there", *cells))
    if not rows:
        return ""
    text = table(("final average accuracy, %", "clear", "blurry"), rows, numbers=True)
    remark = (
        "Mean ± standard deviation over seeds, from the records in `reproduction/records`; the "
        "[reproduction](../reproduction/README.md) has all methods, commands and differences from "
        "the paper."
    )
    return f"{text}\n\n{remark}"


def _cell(records: Sequence[RunRecord]) -> str:
    if not records:
        return ""
    summary = summarize(100 * record.final_average_accuracy for record in records)
    spread = " (one seed)" if summary.std is None else f" ± {summary.std:.2f}"
    return f"{summary.mean:.2f}{spread}"


def published_numbers(name: str) -> str:
    """Return the numbers that the paper prints for the method, by table."""
    parts = []
    printed = [n for n in load_numbers() if n.settings["method"] == name and n.is_printed]
    for number in dict.fromkeys(n.table.number for n in printed):
        chosen = [n for n in printed if n.table.number == number]
        rows = [(_setting(n), f"{n.mean:.2f} ± {n.std:.2f}", str(n.runs)) for n in chosen]
        heads = (f"table {number}: {chosen[0].table.title}", "accuracy, %", "runs")
        parts.append(table(heads, rows, numbers=True))
    if not parts:
        return ""
    source = (
        "Final average accuracy of [the paper](https://arxiv.org/abs/2306.03364): 32x32 images "
        "(64x64 for Tiny ImageNet), all training images, ResNet-18 of width 64. Our runs are "
        "smaller: compare orders, not values."
    )
    return "\n\n".join([source, *parts])


def _setting(number: Number) -> str:
    return number.description.partition(", ")[2]


def field_sections(method: type[Any]) -> Iterator[str]:
    """Yield the table of the method's own fields, and a folded one of those that all have."""
    config = method.Config
    common = {field.name for field in dataclasses.fields(ReplayConfig)}
    inherits = issubclass(config, ReplayConfig)
    changed = _changed_defaults(config) if inherits else set()
    fields = list(dataclasses.fields(config))
    own = [f for f in fields if not inherits or f.name not in common or f.name in changed]
    rest = [field for field in fields if field not in own]
    if not fields:
        yield "It has no fields."
    if own:
        yield (
            "Keywords of `OnlineClassifier` and `run`, keys of a study file, and options of "
            "`sterad train`, there with dashes."
        )
        yield field_table(config, own)
    if rest:
        yield "Fields of every replay method:"
        yield field_table(config, rest)


def _changed_defaults(config: Any) -> set[str]:
    common = {field.name: field.default for field in dataclasses.fields(ReplayConfig)}
    return {
        field.name
        for field in dataclasses.fields(config)
        if field.name in common and field.default != common[field.name]
    }


def field_table(config: type[Any], fields: Sequence[Any]) -> str:
    """Return name, default, accepted values and meaning of fields."""
    hints, docs = field_types(config), field_docs(config)
    rows = [
        (
            f"`{field.name}`",
            f"`{field.default}`",
            describe(hints[field.name]),
            " ".join(docs.get(field.name, "").split()),
        )
        for field in fields
    ]
    text = table(("field", "default", "values", "meaning"), rows)
    return f"::::{{container}} fields\n{text}\n::::"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: bool = False) -> str:
    r"""Return a Markdown table; with `numbers`, all columns but the first are right-aligned.

    >>> print(table(("a", "b"), [("x|y", "1")], numbers=True))
    | a | b |
    |:--|--:|
    | x\|y | 1 |
    """
    rule = ["--:" if numbers and column else ":--" for column in range(len(heads))]
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (heads, *rows)]
    lines.insert(1, rule)
    texts = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([texts[0], f"|{'|'.join(rule)}|", *texts[2:]])
