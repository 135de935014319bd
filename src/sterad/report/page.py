"""One self-contained HTML page from records: tables, figures, configuration and cost."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sterad.optional_imports import require_reproduction
from sterad.report.figures.along_stream import accuracy_section, loss_section
from sterad.report.figures.cost import cost_section, time_section
from sterad.report.figures.forgetting import forgetting_section
from sterad.report.figures.heat_maps import confusion_section, matrix_section
from sterad.report.figures.sphere import sphere_section
from sterad.report.figures.stream_and_memory import memory_section, stream_section
from sterad.report.figures.sweep import sweep_section
from sterad.report.section import Section, choose_runs, seed_of
from sterad.report.style import replace_invalid
from sterad.report.svg import to_inline_svg
from sterad.report.tables import (
    TABLE_METRICS,
    MetricTable,
    build_table,
    format_rank,
    metric_title,
    percent,
)
from sterad.results.grouping import Layout, flatten, format_value, lay_out
from sterad.results.record import METRICS, RunRecord
from sterad.results.statistics import RULE, SIGNIFICANCE

MAX_DETAILED_RUNS = 100
"""Only this many runs show their configuration in the page."""


@dataclass(frozen=True)
class PaperSection:
    """Numbers and claims of the paper, compared with these runs."""

    summary: str
    rule: str
    rows: tuple[tuple[str, ...], ...]
    """Source, number or claim, verdict, paper, ours, protocol."""
    figures: tuple[tuple[str, str, bool, str], ...]
    """Name, key of the section that contains it, whether it is drawn, the runs that it needs."""


@dataclass(frozen=True)
class Content:
    """The content of a report, independent of its format; variables of `page.html`."""

    records: Sequence[RunRecord]
    layout: Layout
    tables: tuple[MetricTable, ...]
    """Tables of the metrics that some run has."""
    sections: tuple[Section, ...]
    left_out: Sequence[str]
    """Sentences about records that could not be read."""
    paper: PaperSection | None = None


def compose(
    records: Sequence[RunRecord], left_out: Sequence[str] = (), paper: bool = False
) -> Content:
    """Collect tables and sections; `paper` adds the comparison with the paper."""
    layout = lay_out(records)
    tables = (build_table(layout, metric) for metric in TABLE_METRICS)
    shown = tuple(table for table in tables if not table.is_empty)
    sections = build_sections(layout)
    comparison = None
    if paper:
        comparison = require_reproduction("report").paper_section(records, sections)
    return Content(records, layout, shown, sections, left_out, comparison)


def build_sections(layout: Layout) -> tuple[Section, ...]:
    """Return all sections of figures in the order of the page."""
    runs, notes = choose_runs(layout)
    sections = (
        accuracy_section(layout),
        cost_section(layout),
        time_section(layout),
        sweep_section(layout),
        stream_section(layout),
        loss_section(layout),
        forgetting_section(layout),
        matrix_section(runs, notes),
        confusion_section(runs, notes),
        memory_section(runs, notes),
        sphere_section(runs, notes),
    )
    total = sum(len(records) for records in layout.cells.values())
    return tuple(section.limit_figures(total) for section in sections)


def render(content: Content) -> str:
    """Return the page as HTML."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "percent": percent,
        "rank": format_rank,
        "metric_title": metric_title,
        "duration": format_duration,
        "seed": seed_of,
        "details": _run_details,
    }
    texts = {
        name: files("sterad.report").joinpath(name).read_text("utf-8")
        for name in ("page.html", "page.css", "page.js", "theme.js")
    }
    template = environment.from_string(texts["page.html"])
    runs = [
        (row.text, column.text, record)
        for row, column, records in content.layout.groups()
        for record in records
    ]
    html = template.render(
        vars(content),
        style=texts["page.css"],
        script=texts["page.js"],
        theme=texts["theme.js"],
        policy=_security_policy(texts["theme.js"], texts["page.js"]),
        subject=_describe_runs(content.layout, len(runs)),
        significance=SIGNIFICANCE,
        rule=f"{RULE}.",
        sections=[(section, _draw_figures(section)) for section in content.sections],
        table_metrics=TABLE_METRICS,
        runs=runs,
        max_detailed_runs=MAX_DETAILED_RUNS,
    )
    return replace_invalid(html)


def _security_policy(*scripts: str) -> str:
    """Return a content security policy: nothing is loaded, and only these scripts are run."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in scripts)
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )


def _draw_figures(section: Section) -> list[dict[str, Any]]:
    drawn = []
    for number, figure in enumerate(section.figures, 1):
        label = f"{section.title}: {figure.name}. {figure.caption}"
        svg = to_inline_svg(figure.draw(), f"{section.key}-{number}", label)
        drawn.append({"svg": svg, "figure": figure, "is_first_seed": figure.is_first_seed})
    return drawn


def _describe_runs(layout: Layout, runs: int) -> str:
    names = list(dict.fromkeys(label.parts[0] for label in layout.rows))
    if len(names) > 4:
        names = [*names[:4], f"{len(names) - 4} more"]
    joined = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{runs} {'run' if runs == 1 else 'runs'} of {joined}"


def _run_details(record: RunRecord) -> list[tuple[str, list[tuple[str, str]]]]:
    metrics = [(metric_title(name), percent(getattr(record, name))) for name in METRICS]
    costs = [
        ("Time", format_duration(record.seconds)),
        ("Images through the network", f"{record.images_per_second:,.0f} per second"),
        ("Peak memory", f"{record.peak_memory_bytes / 2**20:,.0f} MiB"),
        ("Stream", f"{record.stream.samples:,} images in {record.stream.steps:,} steps"),
    ]
    settings = {
        "Configuration": record.config,
        "Execution": record.execution,
        "Provenance": record.provenance,
    }
    return [
        ("Result (%)", metrics),
        ("Cost", costs),
        *(
            (name, [(path, format_value(value)) for path, value in flatten(values).items()])
            for name, values in settings.items()
        ),
    ]


def format_duration(seconds: float) -> str:
    """Return a duration as text.

    >>> format_duration(41.25), format_duration(185), format_duration(7260)
    ('41.2 s', '3 min 5 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
