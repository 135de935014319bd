"""Figures as inline SVG: text color of the page, unique ids, no global styles."""

import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from sterad.report.style import INK, replace_invalid, use_theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_GEOMETRY = ("d", "x", "y", "width", "height", "transform")


def to_inline_svg(figure: "Figure", key: str, title: str) -> str:
    """Return `<svg>` markup for an HTML page; `key` is unique in the page, `title` is its label.

    Ids without references are removed, all others get the prefix `key`, so that one page can have
    several figures. The color `style.INK` becomes `currentColor`.
    """
    written = io.StringIO()
    with use_theme():
        figure.savefig(
            written, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    root = ET.fromstring(replace_invalid(written.getvalue()))
    _remove_metadata(root)
    references = _find_references(root)
    for element in root.iter():
        element.tag = _local_name(element.tag)
        element.attrib = {_local_name(name): value for name, value in element.attrib.items()}
        _prefix_ids(element.attrib, references, key)
        _simplify_attributes(element.attrib)
        _hoist_style(element)
    _set_root_attributes(root, title)
    return ET.tostring(root, encoding="unicode")


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _remove_metadata(root: ET.Element) -> None:
    # A style element would apply to the whole page; the root has the same style as an attribute.
    for child in list(root):
        if _local_name(child.tag) == "metadata" or child.find("{*}style") is not None:
            root.remove(child)


def _find_references(root: ET.Element) -> set[str]:
    found: set[str] = set()
    for element in root.iter():
        for name, value in element.attrib.items():
            if _local_name(name) == "href" and value.startswith("#"):
                found.add(value[1:])
            found.update(_REFERENCE.findall(value))
    return found


def _prefix_ids(attributes: dict[str, str], references: set[str], key: str) -> None:
    identifier = attributes.pop("id", None)
    if identifier in references:
        attributes["id"] = f"{key}-{identifier}"
    for name, value in attributes.items():
        if name == "href" and value.startswith("#"):
            attributes[name] = f"#{key}-{value[1:]}"
        elif "url(#" in value:
            attributes[name] = _REFERENCE.sub(rf"url(#{key}-\1)", value)


def _simplify_attributes(attributes: dict[str, str]) -> None:
    for name in _GEOMETRY:
        if name in attributes:
            value = " ".join(attributes[name].split())
            attributes[name] = _NUMBER.sub(lambda number: f"{float(number[0]):.5g}", value)
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]
    if "style" in attributes:
        style = attributes["style"].replace(INK, "currentColor")
        attributes["style"] = re.sub(r"font-family: [^;]*;? ?", "", style)


def _hoist_style(element: ET.Element) -> None:
    """Move a style that all children share to their group: scatter plots have many points."""
    styles = {child.get("style") for child in element}
    style = styles.pop() if len(styles) == 1 else None
    if style and element.tag == "g" and "style" not in element.attrib and len(element) > 1:
        element.set("style", style)
        for child in element:
            del child.attrib["style"]


def _set_root_attributes(root: ET.Element, title: str) -> None:
    width = float(root.attrib["width"].removesuffix("pt"))
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": replace_invalid(title),
        "style": f"width: {width * 4 / 3:.0f}px; stroke-linejoin: round; stroke-linecap: butt",
    }
