"""The documentation site: its tools, and the whole build with executed tutorials."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("latex2mathml")

from sphinx.util.inspect import signature, stringify_signature

from docs.site.api_pages import PAGES
from docs.site.assemble import adapt
from docs.site.curves import draw_curves, mean_curve
from docs.site.docstrings import shorten_types, to_markdown, to_rst
from docs.site.links import find_broken_links
from docs.site.mathml import to_mathml
from docs.site.method_pages import page_parts, select
from docs.site.tutorials import clean, execute, read_cells, render_tutorial, tutorial_files
from sterad import OnlineClassifier
from sterad.methods import METHODS

ROOT = Path(__file__).parents[2]
BUILD_LIMIT_S = 900
"""The build takes two minutes on two free cores; tests may share theirs."""


def test_broken_links_missing_anchors_and_other_hosts_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html">good</a><a href="b.html#part">good</a>'
        '<a href="c.html">bad</a><a href="b.html#gone">bad</a><a href="https://host/x">not ours</a>'
        '<script src="https://host/x.js"></script><link rel="stylesheet" href="missing.css">'
    )
    (tmp_path / "b.html").write_text('<h2 id="part">B</h2>')
    assert find_broken_links(tmp_path) == [
        "a.html fetches https://host/x.js from another host",
        "a.html links to b.html#gone, but b.html has no such anchor",
        "a.html links to c.html, which does not exist",
        "a.html links to missing.css, which does not exist",
    ]


def test_formulas_are_mathml() -> None:
    assert "<mfrac>" in to_mathml(r"\frac{1}{n}", "block")


def test_docstrings_keep_their_signs() -> None:
    lines = ["Return |x|*2:", "  1. a", "  2. b", "x: rows", "", ">>> f(*x)", "1"]
    rst = to_rst(lines)
    assert rst[0] == r"Return \|x\|\*2:"
    assert rst[1:4] == ["", "1. a", "2. b"]
    assert ">>> f(*x)" in rst
    assert to_markdown("see https://a.org/b_c, `x_y` and d_e") == (
        "see <https://a.org/b_c>, `x_y` and d\\_e\n"
    )


def test_types_of_numpy_have_their_names() -> None:
    text = stringify_signature(signature(OnlineClassifier.predict), unqualified_typehints=True)
    short, _ = shorten_types(None, "method", "predict", None, None, text, "")
    assert short == "(self, X: ArrayLike | ~torch.Tensor) -> ~numpy.ndarray"


def test_arguments_with_indented_lines_become_a_list() -> None:
    lines = ["values: first", "    second line", "feed: pairs"]
    assert to_rst(lines)[:3] == ["- `values`: first", "  second line", "- `feed`: pairs"]
    lines = ["lr, width: first", "    second line"]
    assert to_rst(lines)[:2] == ["- `lr`, `width`: first", "  second line"]


def test_links_to_files_of_the_checkout_become_links_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "methods").mkdir()
    for file in ("examples/my_law.md", "methods/index.md"):
        (tmp_path / file).touch()
    page = tmp_path / "own_parts.md"
    text = "[a law](../examples/my_law.py), [tests](../tests/x.py), [all](../src/sterad/methods)"
    assert adapt(text, page, tmp_path) == (
        "[a law](examples/my_law.md), tests (`tests/x.py`), [all](methods/index.md)"
    )


def test_cells_and_output_of_a_tutorial(tmp_path: Path) -> None:
    script = tmp_path / "1_small.py"
    script.write_text(
        '"""# Small\n\nText."""\n\n# %% [markdown]\n# ## Part\n\n# %%\nx = 2\nprint(x + 1)\n\n'
        '# %%\nfrom pathlib import Path\nPath("a.svg").write_text(\'<svg width="1pt" height="1pt">'
        '<path style="stroke: #000000"/></svg>\')\n'
    )
    assert [cell.is_text for cell in read_cells(script)] == [True, True, False, False]
    page = render_tutorial(script)
    assert page.startswith("# Small\n")
    assert "## Part" in page
    assert ":class: output\n\n3\n" in page
    assert "stroke: currentColor" in page


def test_colors_and_log_lines_of_ray_are_not_in_the_output() -> None:
    text = "a\n[2026-11-19 03:42:57,302 W 78 78] network_util.cc:330: no network\n\x1b[1mb\x1b[0m\n"
    assert clean(text) == "a\nb"
    assert clean("10 %\r100 %\n[1/2] er: 80 %") == "100 %\n[1/2] er: 80 %"


def test_an_error_in_a_tutorial_is_an_error_of_the_build(tmp_path: Path) -> None:
    script = tmp_path / "1_broken.py"
    script.write_text('"""# Broken"""\n\n# %%\nraise ValueError("no such thing")\n')
    with pytest.raises(RuntimeError, match="no such thing"):
        execute(script)


def test_the_page_of_a_method_has_its_paper_fields_numbers_and_curve() -> None:
    page = "\n\n".join(page_parts("agd-fd"))
    assert "https://arxiv.org/abs/2306.03364" in page
    assert "| `variance` | `2.0` | a number in (0" in page
    assert "50.54 ± 0.67" in page  # CIFAR-100, memory 5,000 in table 1
    assert "96.71 ± 0.30" in page  # digits, clear, as in reproduction/README.md
    assert page.count('class="curves"') >= 2


# Other tests register methods of their own.
BUILT_IN = [name for name in METHODS if METHODS[name].__module__.startswith("sterad.methods.")]


@pytest.mark.parametrize("method", BUILT_IN)
def test_every_method_has_a_page_with_a_curve(method: str) -> None:
    page = "\n\n".join(page_parts(method))
    assert "## Algorithm" in page
    assert 'class="curves"' in page


def test_a_curve_has_a_point_for_each_evaluation() -> None:
    records = select("digits", "er", "clear")
    curve = mean_curve(records)
    assert len(curve) == sum(moment.anytime for moment in records[0].moments)
    assert all(low <= mean <= high for _, low, mean, high in curve)
    assert draw_curves({"er": curve}, "title").count("<circle") == len(curve)


def test_the_public_packages_are_in_the_reference() -> None:
    named = {page.module for page in PAGES}
    packages = "data streams memory views encoders engine sphere losses classifiers methods"
    assert {f"sterad.{name}" for name in packages.split()} <= named


def test_there_are_five_tutorials() -> None:
    assert len(list(tutorial_files())) == 5


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_broken_links(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "docs.site", str(tmp_path / "site")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken links" in done.stdout
    for page in ("index.html", "search.html", "methods/agd-fd.html", "api/sterad.data.html"):
        assert (tmp_path / "site" / page).is_file()
    tutorial = (tmp_path / "site" / "tutorials" / "1_learn_from_a_feed.html").read_text()
    assert "without memory: " in tutorial
