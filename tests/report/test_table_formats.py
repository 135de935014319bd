import csv
import dataclasses
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from sterad.report.page import compose
from sterad.report.table_formats import (
    MAX_LATEX_ROWS,
    cells_csv,
    escape_latex,
    latex_document,
    runs_csv,
    terminal_table,
    to_latex,
    to_markdown,
)
from sterad.report.tables import build_table
from sterad.report.write import markdown_report
from sterad.results.grouping import lay_out
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]
BuildMany = Callable[..., list[RunRecord]]
SPECIAL_CHARACTERS = "a_b & 50% $x^2$ #1 {~} \\end{table} <i> [é] 漢字 κ² “q” …"


def test_markdown(records: list[RunRecord]) -> None:
    assert to_markdown(build_table(lay_out(records))) == (
        "| method | clear | blurry |\n"
        "|:--|--:|--:|\n"
        "| agd-fd | 93.00 ± 3.61 (n=3) | 95.00 (n=1) |\n"
        "| finetune | 19.00 (n=1) | – |\n"
    )


def test_markdown_escapes_special_characters(make_record: Build) -> None:
    table = to_markdown(build_table(lay_out([make_record("a|b\n<i>")])))
    assert table.splitlines()[2].startswith("| a\\|b &lt;i&gt; |")


def test_terminal_table(records: list[RunRecord]) -> None:
    output = io.StringIO()
    Console(file=output, width=100).print(terminal_table(records))
    text = output.getvalue()
    for cell in (
        "93.00 ± 3.61 (n=3)",
        "95.00 (n=1)",
        "–",
        "Final average accuracy (%)",
        "blurry",
    ):
        assert cell in text


def test_terminal_does_not_interpret_markup_in_names(make_record: Build) -> None:
    output = io.StringIO()
    Console(file=output, width=100).print(terminal_table([make_record("[red]mine[/red]")]))
    assert "[red]mine[/red]" in output.getvalue()


def test_marks_and_ranks_in_markdown_and_terminal(records_at: BuildMany) -> None:
    records = records_at({"er": (0.5, 0.9), "agd-fd": (0.8, 0.7), "scr": (0.7, 0.6)})
    lines = to_markdown(build_table(lay_out(records))).splitlines()
    assert lines[0] == "| method | clear | blurry | rank |"
    assert lines[2] == "| agd-fd | **80.08 ± 0.08 (n=5)** | <ins>70.08 ± 0.08 (n=5)</ins> | 1.5 |"
    assert lines[3] == "| er | 50.08 ± 0.08 (n=5) | **90.08 ± 0.08 (n=5)** | 2.0 |"
    assert lines[4] == "| scr | <ins>70.08 ± 0.08 (n=5)</ins> | 60.08 ± 0.08 (n=5) | 2.5 |"
    output = io.StringIO()
    Console(file=output, width=100, force_terminal=True).print(terminal_table(records))
    assert "\x1b[1m" in output.getvalue()
    assert "\x1b[4m" in output.getvalue()
    assert "paired t-test" in output.getvalue()


@pytest.fixture
def unusual_records(make_record: Build) -> list[RunRecord]:
    """Three methods, one with special characters in its name, five seeds on two streams."""
    return [
        dataclasses.replace(make_record(m, s, seed), final_average_accuracy=level + 0.001 * seed)
        for m, level in (("agd-fd", 0.9), ("er", 0.7), (SPECIAL_CHARACTERS, 0.5))
        for s in ("clear", "blurry")
        for seed in range(5)
    ]


def test_latex_marks_and_numbers(unusual_records: list[RunRecord]) -> None:
    text = to_latex(build_table(lay_out(unusual_records)))
    assert r"agd-fd & \textbf{90.20} {\scriptsize $\pm$ 0.16}" in text
    assert r"er & \underline{70.20} {\scriptsize $\pm$ 0.16}" in text
    assert r"\footnotesize Bold: the best mean and, if some methods" in text
    assert r"5 \%, Holm's correction" in text


def test_latex_is_balanced(unusual_records: list[RunRecord]) -> None:
    text = latex_document(
        [build_table(lay_out(unusual_records))], [f"In all runs: {SPECIAL_CHARACTERS}."]
    )
    without_escapes = re.sub(r"\\[\\{}]", "", text)
    assert without_escapes.count("{") == without_escapes.count("}")
    for name in ("document", "table", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert text.count(rule) == 1
    assert "漢" not in text
    columns = [line.count(" & ") for line in text.splitlines() if line.endswith(r" \\")]
    assert set(columns) == {3}  # method, two settings, rank


def test_latex_escapes_special_characters() -> None:
    assert escape_latex("50% of a_b & #1") == r"50\% of a\_b \& \#1"
    assert escape_latex("\\input{x}") == r"\textbackslash{}input\{x\}"
    assert escape_latex("naïve ± ∞") == r"naïve $\pm$ ?"


def test_a_long_latex_table_is_split(make_record: Build) -> None:
    records = [make_record(views=v) for v in range(MAX_LATEX_ROWS + 2)]
    text = latex_document([build_table(lay_out(records))], [])
    assert text.count(r"\begin{table}") == 2
    assert f"rows 1 to {MAX_LATEX_ROWS}" in text
    assert text.count(r"\label{") == len(set(re.findall(r"\\label{[^}]*}", text)))


def test_a_wide_latex_table_is_scaled(make_record: Build) -> None:
    records = [make_record(memory=m) for m in range(100, 700, 100)]
    assert r"\resizebox{\textwidth}{!}{%" in to_latex(build_table(lay_out(records)))


def test_the_latex_document_compiles(
    unusual_records: list[RunRecord], make_record: Build, tmp_path: Path
) -> None:
    pdflatex = shutil.which("pdflatex")
    if pdflatex is None:
        pytest.skip("no pdflatex to compile the document with")
    packages = ["booktabs.sty", "graphicx.sty"]
    found = subprocess.run(["kpsewhich", *packages], capture_output=True, text=True, check=False)
    if len(found.stdout.split()) < len(packages):
        pytest.skip("this pdflatex has no booktabs or graphicx, which any document of tables needs")
    wide = [make_record(memory=m) for m in range(100, 700, 100)]
    tables = [build_table(lay_out(found)) for found in (unusual_records, wide)]
    (tmp_path / "report.tex").write_text(
        latex_document(tables, [SPECIAL_CHARACTERS]), encoding="utf-8"
    )
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


@pytest.fixture
def two_methods(make_record: Build) -> list[RunRecord]:
    """Two methods and three seeds; one method has a field that the other does not have."""
    both = [(make_record("er", seed=seed), make_record(seed=seed, a=1)) for seed in range(3)]
    return [
        dataclasses.replace(record, final_average_accuracy=level + 0.01 * seed)
        for seed, pair in enumerate(both)
        for record, level in zip(pair, (0.5, 0.9), strict=True)
    ]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_csv_has_one_row_per_run(two_methods: list[RunRecord]) -> None:
    rows = read_csv(runs_csv(two_methods))
    assert [row["id"] for row in rows] == [record.id for record in two_methods]
    assert float(rows[0]["final_average_accuracy"]) == two_methods[0].final_average_accuracy
    assert rows[0]["method.name"] == "er"
    assert (rows[0]["method.a"], rows[1]["method.a"]) == ("", "1")
    assert rows[0]["execution.threads"] == "2"
    assert rows[0]["test_then_train_accuracy"] == ""


def test_csv_has_one_row_per_cell(two_methods: list[RunRecord]) -> None:
    layout = lay_out(two_methods)
    rows = read_csv(cells_csv([build_table(layout), build_table(layout, "anytime_accuracy")]))
    assert len(rows) == 4
    best, other = rows[:2]
    assert (best["method"], best["mark"], best["n"]) == ("agd-fd", "best", "3")
    assert (other["mark"], other["compared_with"]) == ("second", "agd-fd")
    assert float(other["difference"]) == pytest.approx(0.4)
    assert float(other["p_corrected"]) < 0.05
    assert best["p"] == ""
    # s = 0.01, t(0.95, 2) = 4.3027, n = 3
    assert float(best["high"]) - float(best["mean"]) == pytest.approx(4.302653 * 0.01 / 3**0.5)


def test_csv_escapes_commas_and_quotes(make_record: Build) -> None:
    name = 'a, "b"\n=c'
    (row,) = csv.DictReader(runs_csv([make_record(name)]).splitlines(keepends=True))
    assert row["method.name"] == name


def test_csv_cells_are_no_formulas(make_record: Build) -> None:
    record = dataclasses.replace(
        make_record("=cmd|' /C calc'!A0", names=("@a", *"bcdefghij"), **{"+field": "-1+2"}),
        backward_transfer=-0.25,
        provenance={"tab": "\t=1", "return": "\r=1", "number": "-1.5e-3", "none": "-inf"},
    )
    text = runs_csv([record]) + cells_csv([build_table(lay_out([record]))])
    for row in csv.reader(io.StringIO(text, newline="")):
        for cell in row:
            is_number = re.fullmatch(r"-?[\d.]+(e-?\d+)?", cell)
            assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), cell
    (values,) = csv.DictReader(io.StringIO(runs_csv([record]), newline=""))
    assert values["method.name"] == "'=cmd|' /C calc'!A0"
    assert values["provenance.none"] == "'-inf"
    assert (values["backward_transfer"], values["provenance.number"]) == ("-0.25", "-1.5e-3")


def test_markdown_has_no_html_of_names(make_record: Build) -> None:
    records = [make_record("<script>a|b</script>", memory=m) for m in (1, 2)]
    content = compose(records, ["<img src=x> [x](javascript:y) is damaged"])
    content = dataclasses.replace(
        content, layout=dataclasses.replace(content.layout, common=("<b>",))
    )
    text = markdown_report(content)
    for forbidden in ("<script>", "<img", "<b>", "[x]("):
        assert forbidden not in text
    head, _, row = [line for line in text.splitlines() if line.startswith("|")][:3]
    assert row.startswith("| &lt;script&gt;a\\|b&lt;/script&gt; |")
    assert row.replace(r"\|", "").count("|") == head.count("|")


def test_csv_has_the_comparison_with_the_best_mean(records_at: BuildMany) -> None:
    records = records_at({"er": (0.5, 0.5), "agd-fd": (0.9, 0.9), "scr": (0.7, 0.7)})
    rows = read_csv(cells_csv([build_table(lay_out(records))]))
    compared = {row["method"]: row["compared_with"] for row in rows}
    assert compared == {"agd-fd": "", "er": "agd-fd", "scr": "agd-fd"}
