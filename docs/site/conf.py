"""Sphinx configuration of the site; `python -m docs.site` builds it."""

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from docs.site.docstrings import convert_docstring, shorten_types

project = "sterad"
copyright = "The sterad authors"
version = release = importlib.metadata.version("sterad")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "docs.site.mathml",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
html_math_renderer = "mathml"
autosummary_generate = False
autoclass_content = "both"
"""A class has the docstring of its constructor, which explains the arguments."""
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
default_role = "py:obj"
"""Names in backticks in docstrings are links where the name is documented."""

html_theme = "furo"
html_title = "sterad"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5394", "color-brand-content": "#0b5394"},
    "dark_css_variables": {"color-brand-primary": "#7db7ee", "color-brand-content": "#7db7ee"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight pre"


def setup(app: Any) -> None:
    """Convert docstrings from plain text, and shorten types."""
    app.connect("autodoc-process-docstring", convert_docstring)
    app.connect("autodoc-process-signature", shorten_types)
