import dataclasses
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from sterad.report.latex import MOST_ROWS, document, escape, latex

from sterad.report.tables import metric_table
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
HOSTILE = "a_b & 50% $x^2$ #1 {~} \\end{table} <i> [é] 漢字 κ² “q” …"


@pytest.fixture
def records(make_record: Build) -> list[RunRecord]:
    """Three methods, one of them oddly named, five seeds on two streams."""
    return [
        dataclasses.replace(make_record(m, s, seed), final_average_accuracy=level + 0.001 * seed)
        for m, level in (("agd-fd", 0.9), ("er", 0.7), (HOSTILE, 0.5))
        for s in ("clear", "blurry")
        for seed in range(5)
    ]


def test_marks_and_numbers(records: list[RunRecord]) -> None:
    written = latex(metric_table(lay_out(records)))
    assert r"agd-fd & \textbf{90.20} {\scriptsize $\pm$ 0.16}" in written
    assert r"er & \underline{70.20} {\scriptsize $\pm$ 0.16}" in written
    assert r"\footnotesize Bold: the best mean and, where methods" in written
    assert r"at 5 \% after Holm's correction" in written


def test_what_is_opened_is_closed(records: list[RunRecord]) -> None:
    whole = document([metric_table(lay_out(records))], [f"In all runs: {HOSTILE}."])
    bare = re.sub(r"\\[\\{}]", "", whole)
    assert bare.count("{") == bare.count("}")
    for name in ("document", "table", "tabular"):
        assert whole.count(rf"\begin{{{name}}}") == whole.count(rf"\end{{{name}}}") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert whole.count(rule) == 1
    assert "漢" not in whole
    columns = [line.count(" & ") for line in whole.splitlines() if line.endswith(r" \\")]
    assert set(columns) == {3}  # method, two settings, rank


def test_every_sign_is_harmless() -> None:
    assert escape("50% of a_b & #1") == r"50\% of a\_b \& \#1"
    assert escape("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert escape("naïve ± ∞") == r"naïve $\pm$ ?"


def test_a_long_table_is_parted(make_record: Build) -> None:
    records = [make_record(views=v) for v in range(MOST_ROWS + 2)]
    whole = document([metric_table(lay_out(records))], [])
    assert whole.count(r"\begin{table}") == 2
    assert f"rows 1 to {MOST_ROWS}" in whole
    assert whole.count(r"\label{") == len(set(re.findall(r"\\label{[^}]*}", whole)))


def test_a_wide_table_is_scaled(make_record: Build) -> None:
    records = [make_record(memory=m) for m in range(100, 700, 100)]
    assert r"\resizebox{\textwidth}{!}{%" in latex(metric_table(lay_out(records)))


def test_the_document_compiles(
    records: list[RunRecord], make_record: Build, tmp_path: Path
) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("no pdflatex to compile the document with")
    wanted = ["booktabs.sty", "graphicx.sty"]
    found = subprocess.run(["kpsewhich", *wanted], capture_output=True, text=True, check=False)
    if len(found.stdout.split()) < len(wanted):
        pytest.skip("this pdflatex has no booktabs or graphicx, which any document of tables needs")
    wide = [make_record(memory=m) for m in range(100, 700, 100)]
    tables = [metric_table(lay_out(found)) for found in (records, wide)]
    (tmp_path / "report.tex").write_text(document(tables, [HOSTILE]), encoding="utf-8")
    done = subprocess.run(
        [pdflatex, "-interaction=nonstopmode", "-halt-on-error", "report.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
