import base64
import dataclasses
import hashlib
import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import pytest

from sterad.report.page import MAX_DETAILED_RUNS, compose, render
from sterad.results.record import RunRecord

Build = Callable[..., RunRecord]


PAGES: dict[str, str] = {}


def page_of(records: Sequence[RunRecord], left_out: Sequence[str] = ()) -> str:
    """Return the page; equal records are rendered once, since figures take seconds."""
    key = repr((records, left_out))
    if key not in PAGES:
        PAGES[key] = render(compose(records, left_out))
    return PAGES[key]


class Outline(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [value for _, found, value in self.attributes if found == name]


@pytest.fixture
def demo_records(make_record: Build) -> list[RunRecord]:
    """Two methods on two streams, two seeds each."""
    return [
        make_record(method, stream, seed)
        for method in ("agd-fd", "finetune")
        for stream in ("clear", "blurry")
        for seed in (0, 1)
    ]


def test_the_page_has_all_figures(demo_records: list[RunRecord]) -> None:
    outline = Outline(page_of(demo_records))
    # panels: time, seconds, stream, loss and forgetting 2 each, cost 4;
    # runs: matrix 8, confusion 8, memory 4, sphere 4
    assert outline.tags["svg"] == outline.tags["figure"] == outline.tags["figcaption"] == 38
    anchors = {"results", "time", "stream", "matrix", "forgetting", "memory", "sphere", "runs"}
    anchors |= {"cost", "seconds", "loss", "confusion"}
    assert anchors <= set(outline.values("id"))
    assert {f"#{anchor}" for anchor in anchors} <= set(outline.values("href"))


def test_nothing_is_loaded_from_other_files(demo_records: list[RunRecord]) -> None:
    page = page_of(demo_records)
    outline = Outline(page)
    assert all(value.startswith("#") for value in outline.values("href"))
    assert not outline.values("src")
    assert outline.tags["link"] == 0
    for forbidden in ("http:", "https:", "@import", "url(h", "//cdn"):
        assert forbidden not in page


def test_ids_are_unique_and_links_have_targets(demo_records: list[RunRecord]) -> None:
    outline = Outline(page_of(demo_records))
    ids = outline.values("id")
    assert len(ids) == len(set(ids))
    assert {value[1:] for value in outline.values("href")} <= set(ids)


def test_tables_contain_mean_deviation_and_seeds(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(seed=seed), final_average_accuracy=accuracy)
        for seed, accuracy in enumerate((0.90, 0.92, 0.97))
    ]
    text = " ".join(" ".join(Outline(page_of(records)).text).split())
    assert "over 3 seeds, in percent" in text
    assert "93.00 ± 3.61" in text
    assert "n=3" not in text  # said once above
    assert "Final average accuracy (%) : after the last image: mean over tasks" in text
    assert "Average forgetting (%)" in text
    assert "Anytime accuracy (%)" in text


def test_cells_show_their_seeds_if_they_differ(make_record: Build) -> None:
    records = [make_record(seed=0), make_record(seed=1), make_record("er")]
    text = " ".join(" ".join(Outline(page_of(records)).text).split())
    assert text.count("n=2") == text.count("n=1") == 3
    assert "over n seeds" in text


def test_sections_without_figures_are_absent(make_record: Build) -> None:
    outline = Outline(page_of([make_record("finetune")]))
    assert {"sweep", "cost", "memory", "sphere"}.isdisjoint(outline.values("id"))
    assert "#sweep" not in outline.values("href")
    text = "".join(outline.text)
    assert "Sensitivity: No numeric setting has 3 or more values." in text
    assert "Cost and accuracy: No setting has two methods to compare." in text


def test_no_note_is_repeated(make_record: Build) -> None:
    records = [
        make_record(method, stream, seed)
        for method in ("agd-fd", "er", "finetune")
        for stream in ("clear", "blurry")
        for seed in range(5)
    ]
    notes = re.findall(r'<p class="note[^"]*">(.*?)</p>', page_of(records))
    assert len(notes) > 4
    assert len(notes) == len(set(notes))
    per_run = "Of 30 runs, the first seed of each of the 6 groups is drawn."
    assert notes.count(per_run) == 1


def test_a_number_of_a_run_is_the_same_everywhere(make_record: Build) -> None:
    record = dataclasses.replace(make_record(), final_average_accuracy=0.8765)
    assert record.moments[-1].accuracy != 0.8765
    text = "".join(Outline(page_of([record])).text)
    assert "Final average accuracy: agd-fd 87.65 %." in text
    assert f"{100 * record.moments[-1].accuracy:.2f}" not in text


def test_a_metric_without_values_has_no_table(make_record: Build) -> None:
    page = page_of([make_record(stream="blurry")])
    assert "Average forgetting (%)" not in page


def test_every_run_has_configuration_and_cost(demo_records: list[RunRecord]) -> None:
    outline = Outline(page_of(demo_records))
    text = " ".join(outline.text)
    for text_of_run in ("15,060 per second", "330 MiB", "channels_last", "2.13.0", "0123456"):
        assert text.count(text_of_run) >= len(demo_records)
    assert "41.2 s" in text
    assert "9.5 s" in text
    for record in demo_records:
        assert f"Run {record.id}" in text
    assert "method.lr" in text


def test_names_are_escaped(make_record: Build) -> None:
    script = "<script>alert(1)</script>"
    names = (script, '"><img src=x onerror=alert(1)>', "$x_{", "漢字", "\x00", "\ud800", *"efgh")
    page = page_of([make_record(f"method{script}", names=names)], [f"{script} is damaged"])
    page.encode()
    outline = Outline(page)
    assert outline.tags["script"] == Outline(page_of([make_record()])).tags["script"]
    assert outline.tags["img"] == 0
    assert script in "".join(outline.text)  # shown as text


def test_only_the_scripts_of_the_page_are_allowed(make_record: Build) -> None:
    page = page_of([make_record("<script>alert(1)</script>", names=("=cmd", "a|b", *"cdefghij"))])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(digests) == 2
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    assert html.unescape(policy) == (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    # The policy applies to what follows it.
    assert page.index("Content-Security-Policy") < page.index("<script>")


def test_records_left_out_are_counted_and_named(make_record: Build) -> None:
    page = page_of([make_record()], ["a/record.json is damaged", "b/record.json is damaged"])
    assert "2 records were left out" in page
    assert "b/record.json is damaged" in page
    assert "left out" not in page_of([make_record()])


def test_other_seeds_are_folded(make_record: Build) -> None:
    page = page_of([make_record(seed=seed) for seed in range(3)])
    assert "Other seeds: 2 more" in page
    assert "Other seeds" not in page_of([make_record()])


def test_the_paper_is_not_mentioned_by_default(make_record: Build) -> None:
    page = page_of([make_record()])
    assert 'id="paper"' not in page
    assert "The paper" not in page


def test_a_single_run(make_record: Build) -> None:
    outline = Outline(page_of([make_record()]))
    assert outline.tags["svg"] == 9  # no cost figure with one method
    assert "1 run of agd-fd" in "".join(outline.text)


def test_a_blurry_run_without_memory_or_sphere(make_record: Build) -> None:
    outline = Outline(page_of([make_record("finetune", "blurry")]))
    assert outline.tags["svg"] == 6  # time, seconds, stream, forgetting, matrix, confusion
    text = "".join(outline.text)
    assert "finetune has no memory." in text
    assert "finetune has no fixed directions." in text


def test_columns_are_sortable(demo_records: list[RunRecord]) -> None:
    outline = Outline(page_of(demo_records))
    heads = outline.values("aria-sort")
    # three tables of method, two columns and a rank, two of tests, and the runs
    assert set(heads) == {"none"}
    assert outline.tags["button"] == len(heads) + 1
    assert outline.values("data-kind").count("number") > 10


def test_marks_are_explained_once(make_record: Build) -> None:
    records = [
        dataclasses.replace(make_record(m, seed=s), final_average_accuracy=level + 0.001 * s)
        for m, level in (("er", 0.5), ("agd-fd", 0.9), ("scr", 0.7))
        for s in range(5)
    ]
    outline = Outline(page_of(records))
    classes = outline.values("class")
    assert classes.count("best") == classes.count("second") == 1
    text = "".join(outline.text)
    assert text.count("Bold: the best mean") == 1
    assert "95 % interval of the mean: 90.00 to 90.40" in " ".join(outline.values("title"))
    assert "no marks: no method is significantly worse than the best mean." in text


def test_one_seed_gives_no_marks(make_record: Build) -> None:
    page = page_of([make_record("er"), make_record("agd-fd")])
    assert 'class="best"' not in page
    assert "No marks: no other method shares 3 seeds" in page


@pytest.mark.slow
def test_all_runs_are_listed_and_some_have_details(make_record: Build) -> None:
    records = [make_record("finetune", memory=m, seed=s) for m in range(11) for s in range(11)]
    assert len(records) > MAX_DETAILED_RUNS
    outline = Outline(page_of(records))
    assert sum(text.startswith("Run finetune-") for text in outline.text) == MAX_DETAILED_RUNS
    assert sum(text.startswith("finetune-clear-") for text in outline.text) == len(records)


@pytest.mark.slow
def test_sixty_runs_are_drawn_by_their_first_seeds(make_record: Build) -> None:
    records = [
        make_record(method, stream, seed)
        for method in ("agd-fd", "finetune", "vmf-fd")
        for stream in ("clear", "blurry")
        for seed in range(10)
    ]
    page = page_of(records)
    assert "Of 60 runs, the first seed of each of the 6 groups is drawn." in page
    assert len(page) < 3_000_000


def test_the_page_has_both_themes(make_record: Build) -> None:
    page = page_of([make_record()])
    assert "prefers-color-scheme: dark" in page
    assert '[data-theme="dark"]' in page
    assert 'id="theme"' in page
    assert "width=device-width" in page
