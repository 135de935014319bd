import re
import xml.etree.ElementTree as ET
from collections.abc import Callable

from sterad.report.wording import shorten

from sterad.report.figures import accuracy_over_time, memory_contents, sphere
from sterad.report.style import INK, one_panel, themed
from sterad.report.svg import inline
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


def ids(markup: str) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', markup)


def references(markup: str) -> list[str]:
    return re.findall(r'href="#([^"]+)"', markup) + re.findall(r"url\(#([^)]+)\)", markup)


def test_every_reference_stays_inside_its_figure(make_record: Build) -> None:
    record = make_record()
    for draw in (memory_contents.draw, sphere.draw):
        one, two = inline(draw(record), "one", ""), inline(draw(record), "two", "")
        assert references(one)
        assert set(references(one)) == set(ids(one))
        assert set(references(two)) == set(ids(two))
        assert not set(ids(one)) & set(ids(two))
        assert len(ids(one)) == len(set(ids(one)))


def test_ink_is_the_ink_of_the_page(make_record: Build) -> None:
    markup = inline(accuracy_over_time.draw([("agd-fd", [make_record()])]), "f", "")
    assert INK not in markup
    assert markup.count("currentColor") > 10
    assert "#ffffff" not in markup  # no ground of its own
    assert "#000000" not in markup


def test_nothing_is_loaded_and_nothing_leaks(make_record: Build) -> None:
    markup = inline(sphere.draw(make_record()), "f", "a title")
    assert "http" not in markup
    assert "<style" not in markup  # it would apply to the whole page
    assert "font-family" not in markup
    assert ET.fromstring(markup).attrib["aria-label"] == "a title"


def test_same_figure_same_bytes(make_record: Build) -> None:
    one, two = (inline(sphere.draw(make_record()), "f", "t") for _ in range(2))
    assert one == two


def test_names_are_text_whatever_they_hold() -> None:
    hostile = '<script>x</script> $\\frac{ id="m1" url(#m2) \x00 \ud800 漢字'
    with themed():
        figure, axes = one_panel()
        axes.set_title(shorten(hostile, 100))
    markup = inline(figure, "f", hostile)
    assert "<script" not in markup
    texts = [element.text or "" for element in ET.fromstring(markup).iter("text")]
    assert any('$\\frac{ id="m1" url(#m2) \ufffd \ufffd 漢字' in text for text in texts)
    markup.encode()
