import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

from sterad.report.figures.along_stream import draw_accuracy
from sterad.report.figures.sphere import draw_spheres
from sterad.report.figures.stream_and_memory import draw_memory
from sterad.report.style import INK, make_figure, shorten, use_theme
from sterad.report.svg import to_inline_svg
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def ids(markup: str) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', markup)


def references(markup: str) -> list[str]:
    return re.findall(r'href="#([^"]+)"', markup) + re.findall(r"url\(#([^)]+)\)", markup)


def test_references_have_targets_in_their_figure(make_record: Build) -> None:
    record = make_record()
    for draw in (draw_memory, draw_spheres):
        first, second = (
            to_inline_svg(draw(record), "first", ""),
            to_inline_svg(draw(record), "second", ""),
        )
        assert references(first)
        assert set(references(first)) == set(ids(first))
        assert set(references(second)) == set(ids(second))
        assert not set(ids(first)) & set(ids(second))
        assert len(ids(first)) == len(set(ids(first)))


def test_text_has_the_color_of_the_page(make_record: Build) -> None:
    markup = to_inline_svg(draw_accuracy([("agd-fd", [make_record()])]), "f", "")
    assert INK not in markup
    assert markup.count("currentColor") > 10
    assert "#ffffff" not in markup  # no background
    assert "#000000" not in markup


def test_the_svg_has_no_links_and_no_global_styles(make_record: Build) -> None:
    markup = to_inline_svg(draw_spheres(make_record()), "f", "a title")
    assert "http" not in markup
    assert "<style" not in markup  # it would apply to the whole page
    assert "font-family" not in markup
    assert ET.fromstring(markup).attrib["aria-label"] == "a title"


def test_equal_figures_give_equal_bytes(make_record: Build) -> None:
    first, second = (to_inline_svg(draw_spheres(make_record()), "f", "t") for _ in range(2))
    assert first == second


def test_names_are_escaped() -> None:
    name = '<script>x</script> $\\frac{ id="m1" url(#m2) \x00 \ud800 漢字'
    with use_theme():
        figure, axes = make_figure()
        axes.set_title(shorten(name, 100))
    markup = to_inline_svg(figure, "f", name)
    assert "<script" not in markup
    texts = [element.text or "" for element in ET.fromstring(markup).iter("text")]
    assert any('$\\frac{ id="m1" url(#m2) \ufffd \ufffd 漢字' in text for text in texts)
    markup.encode()
