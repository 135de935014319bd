"""Reference tables: their cells are runs of their studies; verdicts, page and scatter plot."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from sterad.cli import main
from sterad.experiments.study import Study
from sterad.results.moments import record_of
from sterad.results.record import ClassifierResult, RunRecord
from sterad_reproduction.cells import collect_rows, to_page
from sterad_reproduction.numbers import group_runs, load_numbers
from sterad_reproduction.protocol import relevant_settings
from sterad_reproduction.references import Cell, judge_references, load_cells
from sterad_reproduction.verdicts import judge
from tests.reproduction.conftest import build as build_record

STUDIES = Path(__file__).parents[2] / "studies"


def find(name: str, source: str = "SCR paper") -> Cell:
    (cell,) = [one for one in load_cells() if (one.source.title, one.name) == (source, name)]
    return cell


def make(settings: dict[str, Any], accuracy: float, seed: int = 0, **more: Any) -> RunRecord:
    """Return a record with exactly these settings, by dotted names."""
    record = build_record(
        {"method": "er", "dataset": "cifar100", "stream": "clear", "memory": 1}, accuracy, seed
    )
    config: dict[str, Any] = {"seed": seed, "also_evaluate": ("nearest-unit-mean",)}
    for path, value in settings.items():
        part, _, field = path.rpartition(".")
        (config.setdefault(part, {}) if part else config)[field] = value
    values = {**vars(record), "id": f"run {seed}", "config": config, **more}
    return RunRecord(**values)


@pytest.mark.parametrize("cell", load_cells(), ids=lambda cell: f"{cell.source.title} {cell.name}")
def test_every_cell_is_a_run_of_its_study(cell: Cell) -> None:
    found = set()
    for config in Study.from_toml(STUDIES / f"{cell.study}.toml").configs:
        values = config.to_dict()
        names = [values["method"]["classifier"], *values.get("also_evaluate", ())]
        for name in names:
            values["method"] = values["method"] | {"classifier": name}
            if relevant_settings(values) == cell.settings:
                found.add(config.settings.seed)
    assert found, "no run of the study has the settings of this cell"


def test_an_interval_becomes_a_standard_deviation() -> None:
    # t(0.975, 9) = 2.262157
    expected = 0.6 * math.sqrt(10) / 2.262157
    assert find("ER, CIFAR-100, M = 1,000").result.std == pytest.approx(expected, rel=1e-5)
    assert find("ER", "ocl_survey").result.std == 1.22


def test_verdicts_by_hand() -> None:
    cell = find("ER", "ocl_survey")
    records = [make(cell.settings, accuracy, seed) for seed, accuracy in enumerate((27, 28, 29))]
    (verdict,) = [v for v in judge_references(records) if v.ours]
    pooled = math.sqrt((2 * 1.0 + 4 * 1.22**2) / 6)
    assert verdict.standard_errors == pytest.approx(
        (28 - 28.15) / (pooled * math.sqrt(1 / 3 + 1 / 5))
    )
    assert (verdict.outcome, verdict.ours) == ("holds", "28.00 ± 1.00 (3 runs)")
    (worse,) = [v for v in judge_references([make(cell.settings, 20.0)]) if v.ours]
    assert worse.outcome == "does not hold"
    assert worse.standard_errors == pytest.approx(-8.15 / (1.22 * math.sqrt(1 + 1 / 5)))


def test_a_single_run_without_a_printed_spread_is_not_judged() -> None:
    cell = find("ER with the review trick", "Survey of Mai et al.")
    (verdict,) = [v for v in judge_references([make(cell.settings, 26.0)]) if v.ours]
    assert (verdict.outcome, verdict.standard_errors) == ("not run", None)


def test_another_classifier_of_a_run_is_a_cell_of_its_own() -> None:
    head, mean = (find(f"ER{name}, CIFAR-100, M = 5,000") for name in ("", " with nearest mean"))
    record = make(head.settings, 20.0)
    other = ClassifierResult("nearest-unit-mean", 0.28, make(head.settings, 28.0).moments)
    record = make(head.settings, 20.0, classifiers=(other,))
    assert record_of(record, other).final_average_accuracy == 0.28
    ours = {v.subject: v.ours for v in judge_references([record]) if v.ours}
    assert ours == {head.name: "20.00 (1 run)", mean.name: "28.00 (1 run)"}


def test_another_protocol_is_no_run_of_a_cell() -> None:
    cell = find("ER", "ocl_survey")
    other = {**cell.settings, "method.lr": 0.1}
    assert not [v for v in judge_references([make(other, 28.0)]) if v.ours]


def test_runs_of_the_other_law_count_for_table_3() -> None:
    (number,) = [
        n
        for n in load_numbers()
        if n.table.number == 3 and n.settings["directions"] == "basis" and n.mean == 36.91
    ]
    record = build_record({**number.settings, "method": "agd-fd"}, 37.0)
    verdicts = [v for v in judge([record]) if v.kind == "number" and v.ours]
    assert [v.outcome for v in verdicts] == ["holds"]
    assert verdicts[0].protocol == "agd-fd; the paper does not name the law"


def test_the_page_and_its_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell, runs = find("ER", "ocl_survey"), tmp_path / "runs"
    for seed in (0, 1):
        folder = runs / f"run-{seed}"
        folder.mkdir(parents=True)
        execution, provenance = {"precision": "bfloat16"}, {"git_commit": "0123456789"}
        record = make(
            cell.settings,
            27 + seed,
            seed,
            seconds=1800.0,
            execution=execution,
            provenance=provenance,
        )
        (folder / "record.json").write_text(record.to_json())
    page = tmp_path / "cells.md"
    assert main(["verify", str(runs), "--cells", str(page)]) == 0
    assert "references: 1 hold, 0 do not hold, 14 not run" in capsys.readouterr().out
    (line,) = [one for one in page.read_text().splitlines() if one.startswith("| ER | 28.15")]
    for text in ("27.50 ± 0.71 (2 runs)", "holds: 0.7 standard", "bfloat16", "0.5", "0123456"):
        assert text in line
    svg = page.with_suffix(".svg").read_bytes()
    assert ET.fromstring(svg).tag.endswith("svg")
    main(["verify", str(runs), "--cells", str(page)])
    assert page.with_suffix(".svg").read_bytes() == svg, "equal records give equal bytes"


def test_a_table_of_cells_ends_with_the_control_of_its_datasets() -> None:
    cell = find("ER", "ocl_survey")
    control = {"method": "randumb", "dataset": "cifar100", "stream": "clear", "memory": 1}
    records = [make(cell.settings, 27.0)]
    records += [build_record(control, 20.0, seed, **{"dataset.per_class": 475}) for seed in (0, 1)]
    records.append(build_record(control, 99.0))  # of 500 images per class
    page = to_page(collect_rows(records, "runs"), group_runs(records), "sterad verify", "cells.svg")
    (line,) = [one for one in page.splitlines() if one.startswith("| control")]
    assert "20.00 ± 0.00 (2 runs)" in line
    assert page.index("| ER, linear probe") < page.index(line), "the last row of its table"


def test_a_page_without_runs_lists_every_cell() -> None:
    page = to_page(collect_rows([], "runs"), [], "sterad verify runs", "cells.svg")
    assert page.count("| not run |") == len(load_cells())
