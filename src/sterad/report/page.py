"""One self-contained HTML page from records: tables, figures, configuration and cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from sterad.optional_imports import require_reproduction
from sterad.report.cost_table import CostRow, choose_counted, cost_rows, split_by_cost
from sterad.report.figures.along_stream import accuracy_section, loss_section
from sterad.report.figures.cost import cost_section, time_section
from sterad.report.figures.forgetting import forgetting_section
from sterad.report.figures.heat_maps import confusion_section, matrix_section
from sterad.report.figures.sphere import sphere_section
from sterad.report.figures.stream_and_memory import memory_section, stream_section
from sterad.report.figures.sweep import sweep_section
from sterad.report.html import draw_figures, render_page
from sterad.report.section import Section, choose_runs, without_repeated_notes
from sterad.report.tables import (
    TABLE_METRICS,
    MetricTable,
    build_table,
    collect_footnotes,
    common_seeds,
    metric_title,
    percent,
)
from sterad.report.text import format_duration, format_quantity
from sterad.results.grouping import Layout, flatten, format_value, lay_out
from sterad.results.moments import with_other_classifiers
from sterad.results.record import METRICS, RunRecord
from sterad.results.statistics import SIGNIFICANCE

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
    costs: tuple[CostRow, ...] = ()
    """The cost of each method, the cheapest of a setting first."""
    paper: PaperSection | None = None


def compose(
    records: Sequence[RunRecord],
    left_out: Sequence[str] = (),
    paper: bool = False,
    equal_cost: bool = False,
) -> Content:
    """Collect tables and sections.

    paper: add the comparison with the paper. equal_cost: compare only methods of about equal cost.
    """
    if equal_cost:
        records, uncounted = choose_counted(records)
        left_out = [*left_out, *uncounted]
    whole = lay_out(with_other_classifiers(records))
    layout = split_by_cost(whole) if equal_cost else whole
    tables = (build_table(layout, metric) for metric in TABLE_METRICS)
    shown = tuple(table for table in tables if not table.is_empty)
    sections = build_sections(layout, whole)
    comparison = None
    if paper:
        comparison = require_reproduction("report").paper_section(records, sections)
    costs = cost_rows(whole)
    return Content(records, layout, shown, sections, left_out, costs, comparison)


def build_sections(layout: Layout, whole: Layout | None = None) -> tuple[Section, ...]:
    """Return all sections of figures in the order of the page.

    whole: the layout for accuracy against cost, if `layout` is split by cost.
    """
    runs, notes = choose_runs(layout)
    sections = (
        accuracy_section(layout),
        cost_section(whole or layout),
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
    runs = [
        (row.text, column.text, record)
        for row, column, records in content.layout.groups()
        for record in records
    ]
    drawn = [section for section in content.sections if section.figures]
    variables = vars(content) | {
        "subject": _describe_runs(content.layout, len(runs)),
        "seeds": common_seeds(content.tables),
        "significance": SIGNIFICANCE,
        "table_notes": collect_footnotes(content.tables),
        "sections": [(s, draw_figures(s)) for s in without_repeated_notes(drawn)],
        "not_drawn": [section for section in content.sections if not section.figures],
        "table_metrics": TABLE_METRICS,
        "runs": [(*run, _run_details(run[-1])) for run in runs[:MAX_DETAILED_RUNS]],
        "all_runs": runs,
    }
    return render_page("page.html", **variables)


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
        *_counted_costs(record),
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


def _counted_costs(record: RunRecord) -> list[tuple[str, str]]:
    if record.cost is None:
        return []
    return [
        ("Pixels per batch", format_quantity(record.pixels_per_batch)),
        ("Multiply-adds per batch", format_quantity(record.multiply_adds_per_batch)),
        ("State", f"{record.state_bytes / 2**20:,.1f} MiB"),
    ]
