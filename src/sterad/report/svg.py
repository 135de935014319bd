"""A figure as SVG for the inside of a page: its ink is the page's, its names its own."""

import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from sterad.report.style import INK, themed
from sterad.report.wording import fit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_GEOMETRY = ("d", "x", "y", "width", "height", "transform")


def inline(figure: "Figure", key: str, title: str) -> str:
    """Return `<svg>` markup for an HTML page; `key` is unique in the page, `title` is read aloud.

    Ids are dropped where nothing refers to them and begin with `key` elsewhere, so that several
    figures share a page. Colors that were `style.INK` become `currentColor`.
    """
    written = io.StringIO()
    with themed():
        figure.savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    root = ET.fromstring(fit(written.getvalue()))
    _leave_out_prologue(root)
    referred = _referred(root)
    for element in root.iter():
        element.tag = _local(element.tag)
        element.attrib = {_local(name): value for name, value in element.attrib.items()}
        _own_ids(element.attrib, referred, key)
        _page_look(element.attrib)
        _share_style(element)
    _dress(root, title)
    return ET.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _leave_out_prologue(root: ET.Element) -> None:
    # The style element would apply to the whole page; the root's attribute says the same.
    for child in list(root):
        if _local(child.tag) == "metadata" or child.find("{*}style") is not None:
            root.remove(child)


def _referred(root: ET.Element) -> set[str]:
    found: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if _local(name) == "href" and value.startswith("#"):
                found.add(value[1:])
            found.update(_REFERENCE.findall(value))
    return found


def _own_ids(attributes: dict[str, str], referred: set[str], key: str) -> None:
    own = attributes.pop("id", None)
    if own in referred:
        attributes["id"] = f"{key}-{own}"
    for name, value in attributes.items():
        if name == "href" and value.startswith("#"):
            attributes[name] = f"#{key}-{value[1:]}"
        elif "url(#" in value:
            attributes[name] = _REFERENCE.sub(rf"url(#{key}-\1)", value)


def _page_look(attributes: dict[str, str]) -> None:
    for name in _GEOMETRY:
        if name in attributes:
            spaced = " ".join(attributes[name].split())
            attributes[name] = _NUMBER.sub(lambda number: f"{float(number[0]):.5g}", spaced)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if "style" in attributes:
        look = attributes["style"].replace(INK, "currentColor")
        attributes["style"] = re.sub(r"font-family: [^;]*;? ?", "", look)


def _share_style(element: ET.Element) -> None:
    """Say once for a cloud of points what each of them would say."""
    looks = {child.get("style") for child in element}
    look = looks.pop() if len(looks) == 1 else None
    if look and element.tag == "g" and "style" not in element.attrib and len(element) > 1:
        element.set("style", look)
        for child in element:
            del child.attrib["style"]


def _dress(root: ET.Element, title: str) -> None:
    width = float(root.attrib["width"].removesuffix("pt"))
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": fit(title),
        "style": f"width: {width * 4 / 3:.0f}px; stroke-linejoin: round; stroke-linecap: butt",
    }
