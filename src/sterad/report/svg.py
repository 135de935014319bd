"""Figures as inline SVG: text color of the page, unique ids, no global styles."""

import io
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from sterad.report.style import INK, replace_invalid, use_theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r'(?:href="|url\()#([^")]+)')
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
    text = replace_invalid(written.getvalue())
    root, references = ET.fromstring(text), set(_REFERENCE.findall(text))
    # A style element would apply to the whole page; the root has the same style as an attribute.
    for child in list(root):
        if child.tag.endswith("}metadata") or child.find("{*}style") is not None:
            root.remove(child)
    for element in root.iter():
        element.tag = _local_name(element.tag)
        element.attrib = {_local_name(name): value for name, value in element.attrib.items()}
        _simplify_attributes(element.attrib, references, key)
        _hoist_style(element)
    width = float(root.attrib["width"].removesuffix("pt"))
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-label": replace_invalid(title),
        # The page scales a figure by its width in CSS pixels, of which a point has 4 / 3.
        "style": f"--width: {width * 4 / 3:.0f}px; stroke-linejoin: round; stroke-linecap: butt",
    }
    return ET.tostring(root, encoding="unicode")


def _local_name(name: str) -> str:
    return name.rpartition("}")[2]


def _simplify_attributes(attributes: dict[str, str], references: set[str], key: str) -> None:
    identifier = attributes.pop("id", None)
    if identifier in references:
        attributes["id"] = f"{key}-{identifier}"
    for name, value in attributes.items():
        if name == "href":
            value = re.sub("^#", f"#{key}-", value)
        elif name in _GEOMETRY:
            value = _NUMBER.sub(lambda number: f"{float(number[0]):.5g}", " ".join(value.split()))
        elif name == "style":
            value = re.sub("font-family: [^;]*;? ?", "", value.replace(INK, "currentColor"))
        attributes[name] = value.replace("url(#", f"url(#{key}-")
    if attributes.get("transform", "").startswith("rotate(-0 "):
        del attributes["transform"]


def _hoist_style(element: ET.Element) -> None:
    """Move a style that all children share to their group: scatter plots have many points."""
    styles = {child.get("style") for child in element}
    style = styles.pop() if len(styles) == 1 else None
    if style and element.tag == "g" and "style" not in element.attrib and len(element) > 1:
        element.set("style", style)
        for child in element:
            del child.attrib["style"]
