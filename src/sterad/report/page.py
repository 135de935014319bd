"""One self-contained HTML page from records: tables, figures, configuration and cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sterad.paper.verdicts import Verdict, verdicts
from sterad.paper.wording import RULE as VERDICT_RULE
from sterad.paper.wording import by_how_much, protocol_of, summary
from sterad.report.drawing import Section
from sterad.report.sections import paper_figures, sections
from sterad.report.tables import HEADLINE, MetricTable, metric_table, percent, title, write_rank
from sterad.report.wording import fit
from sterad.results.comparison import RULE, SIGNIFICANCE
from sterad.results.grouping import Layout, flatten, lay_out, spell
from sterad.results.record import METRICS, RunRecord

SUMMARISED = (HEADLINE, "average_forgetting", "anytime_accuracy")
MOST_DETAILED = 100
"""With more runs than this, only these many show their whole configuration in the page."""
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Content:
    """What a report says, in whatever form."""

    records: Sequence[RunRecord]
    layout: Layout
    tables: tuple[MetricTable, ...]
    """Those that hold anything."""
    sections: tuple[Section, ...]
    verdicts: tuple[Verdict, ...]
    """On every number and claim of the paper."""
    left_out: Sequence[str]
    """Sentences on records that could not be read."""


def compose(records: Sequence[RunRecord], left_out: Sequence[str] = ()) -> Content:
    """Lay out, summarize and draw everything."""
    layout = lay_out(records)
    tables = tuple(metric_table(layout, metric) for metric in SUMMARISED)
    kept = tuple(table for table in tables if not table.empty)
    return Content(records, layout, kept, sections(layout), verdicts(records), left_out)


def render(content: Content) -> str:
    """Return the page as HTML."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"percent": percent, "rank": write_rank, "title_of": title}
    folder = files("sterad.report")
    template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
    runs = [
        (row.text, column.text, record)
        for row, column, found in content.layout.groups()
        for record in found
    ]
    return fit(
        template.render(
            style=folder.joinpath("page.css").read_text("utf-8"),
            script=folder.joinpath("page.js").read_text("utf-8"),
            subject=_subject(content.layout, len(runs)),
            layout=content.layout,
            left_out=content.left_out,
            tables=content.tables,
            significance=SIGNIFICANCE,
            rule=f"{RULE}.",
            sections=content.sections,
            paper_figures=paper_figures(content.sections),
            paper=_paper(content.verdicts),
            summarized=SUMMARISED,
            overview=[_overview(*run) for run in runs],
            runs=[_run(f"{row}, {column}", record) for row, column, record in runs[:MOST_DETAILED]],
        )
    )


def _subject(layout: Layout, runs: int) -> str:
    names = list(dict.fromkeys(label.parts[0] for label in layout.rows))
    if len(names) > 4:
        names = [*names[:4], f"{len(names) - 4} more"]
    shown = " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
    return f"{runs} {'run' if runs == 1 else 'runs'} of {shown}"


def _paper(found: Sequence[Verdict]) -> dict[str, Any]:
    """Return what the page says of the paper: the verdicts that there are runs for."""
    judged = [one for one in found if one.outcome != "not run"]
    return {
        "summary": summary(found),
        "rule": VERDICT_RULE,
        "rows": [
            (one.where, one.subject, by_how_much(one), one.paper, one.ours, protocol_of(one))
            for one in judged
        ],
    }


def _overview(method: str, setting: str, record: RunRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "method": method,
        "setting": setting,
        "seed": spell(record.config.get("seed")),
        "metrics": [getattr(record, name) for name in SUMMARISED],
        "seconds": record.seconds,
        "duration": duration(record.seconds),
        "images": record.images_per_batch,
    }


def _run(name: str, record: RunRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": f"{name}, seed {spell(record.config.get('seed'))}",
        "accuracy": record.final_average_accuracy,
        "duration": duration(record.seconds),
        "blocks": [
            ("Result (%)", [(title(name), percent(getattr(record, name))) for name in METRICS]),
            ("Cost", _cost(record)),
            ("Configuration", _pairs(record.config)),
            ("Execution", _pairs(record.execution)),
            ("Provenance", _pairs(record.provenance)),
        ],
    }


def _cost(record: RunRecord) -> Pairs:
    return [
        ("Time", duration(record.seconds)),
        ("Images through the network", f"{record.images_per_second:,.0f} per second"),
        ("Peak memory", f"{record.peak_memory_bytes / 2**20:,.0f} MiB"),
        ("Stream", f"{record.stream.samples:,} images in {record.stream.steps:,} steps"),
    ]


def _pairs(settings: Mapping[str, Any]) -> Pairs:
    return [(path, spell(value)) for path, value in flatten(settings).items()]


def duration(seconds: float) -> str:
    """Write a length of time.

    >>> duration(41.25), duration(185), duration(7260)
    ('41.2 s', '3 min 5 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
