"""HTML pages in one file: template, style and scripts inside, and a policy that loads nothing."""

import base64
import hashlib
from importlib.resources import files
from typing import Any

from sterad.report.section import Section, seed_of
from sterad.report.style import replace_invalid
from sterad.report.svg import to_inline_svg
from sterad.report.tables import format_rank, metric_title, percent
from sterad.report.text import format_duration, format_quantity


def render_page(template: str, **variables: Any) -> str:
    """Return a page from a template beside this file, with the style and scripts of all pages."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read_part),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "percent": percent,
        "rank": format_rank,
        "metric_title": metric_title,
        "duration": format_duration,
        "quantity": format_quantity,
        "seed": seed_of,
    }
    theme, script = read_part("theme.js"), read_part("page.js")
    html = environment.get_template(template).render(
        variables,
        style=read_part("page.css"),
        theme=theme,
        script=script,
        policy=_security_policy(theme, script),
    )
    return replace_invalid(html)


def read_part(name: str) -> str:
    """Return the text of a template, style or script of this package."""
    return files("sterad.report").joinpath(name).read_text("utf-8")


def _security_policy(*scripts: str) -> str:
    """Return a content security policy: nothing is loaded, and only these scripts are run.

    Large heat maps are images inside the page, which `data:` allows.
    """
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in scripts)
    allowed = " ".join(f"'sha256-{digest.decode()}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def draw_figures(section: Section) -> list[dict[str, Any]]:
    """Return the figures of a section as inline SVG, with their names and captions."""
    drawn = []
    for number, figure in enumerate(section.figures, 1):
        label = f"{section.title}: {figure.name}. {figure.caption}"
        svg = to_inline_svg(figure.draw(), f"{section.key}-{number}", label)
        drawn.append({"svg": svg, "figure": figure, "is_first_seed": figure.is_first_seed})
    return drawn
