from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from sterad import OnlineClassifier
from sterad.data.digits import Digits
from sterad.data.synthetic import Synthetic

SMALL: dict[str, Any] = {"views": 1, "projection": 16, "memory_batch": 8}
DATA = Synthetic(classes=3, per_class=8, test_per_class=4, noise=0.1).load()
X, Y = DATA.train_images[:, 0], np.tile(np.arange(3), 8)
X = X.reshape(3, 8, 8, 8).swapaxes(0, 1).reshape(24, 8, 8)  # the classes take turns, as Y does
Array = npt.NDArray[Any]


def small(method: str = "agd-fd", **choices: Any) -> OnlineClassifier:
    fields = choices.pop("fields", SMALL if method != "finetune" else {})
    return OnlineClassifier(method, **({"memory": 20, "width": 2, "fields": fields} | choices))


def fitted(method: str = "agd-fd", **choices: Any) -> OnlineClassifier:
    return small(method, **choices).partial_fit(X, Y)


def equal(first: OnlineClassifier, second: OnlineClassifier, x: Any = X) -> bool:
    return np.array_equal(first.predict_proba(x), second.predict_proba(x))


def in_color(x: Array) -> Array:
    return np.stack([x, x // 2, 255 - x], axis=1)


FORMS: dict[str, Any] = {
    "bytes (n, c, h, w)": X[:, None],
    "bytes (n, h, w, c)": X[..., None],
    "float64": X / 255,
    "float32": (X / 255).astype(np.float32),
    "torch bytes": torch.from_numpy(X.copy()),
    "torch floats": torch.from_numpy(X / 255).float()[:, None],
    "torch with gradient": torch.from_numpy(X / 255).requires_grad_(),
    "nested lists": (X / 255).tolist(),
    "backwards in memory": np.asfortranarray(X),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_images_is_learned_alike(form: str) -> None:
    other = small().partial_fit(FORMS[form], Y)
    assert equal(other, fitted())
    assert np.array_equal(other.predict_proba(FORMS[form]), other.predict_proba(X))


def test_channels_may_come_first_or_last() -> None:
    first = small().partial_fit(in_color(X), Y)
    last = small().partial_fit(np.moveaxis(in_color(X), 1, 3) / 255, Y)
    assert np.array_equal(first.predict_proba(in_color(X)), last.predict_proba(in_color(X)))


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, torch.float64])
def test_rows_of_features_go_through_an_mlp(kind: Any) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=300)
    rows = 40 * np.eye(6)[labels] + rng.normal(scale=10, size=(300, 6))
    given = torch.from_numpy(rows) if kind is torch.float64 else rows.astype(kind)
    feed = small(width=4).partial_fit(given[:200], labels[:200])
    assert feed.score(given[200:], labels[200:]) > 0.9


LABELS: dict[str, Any] = {
    "list": [7, -3, 10**12],
    "bytes": np.array([7, 3, 200], dtype=np.uint8),
    "torch": torch.tensor([7, 3, 5]),
    "strings": ["cat", "dog", "größe"],
    "objects": np.array(["cat", "dog", "bird"], dtype=object),
    "booleans": [True, False, True],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_come_back(kind: str) -> None:
    names = LABELS[kind]
    labels: Any = names[torch.from_numpy(Y)] if kind == "torch" else [names[at] for at in Y]
    feed = small().partial_fit(X, labels)
    assert feed.classes_.tolist() == list(dict.fromkeys(np.asarray(names).tolist()))
    assert set(feed.predict(X).tolist()) <= set(feed.classes_.tolist())
    assert feed.score(X, labels) == np.mean(feed.predict(X) == np.asarray(labels))
    if len(feed.classes_) == 3:  # indices, not names, are what is learned
        assert equal(feed, fitted())


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "finetune"])
def test_new_classes_at_any_time(method: str) -> None:
    feed = small(method, fields={} if method == "finetune" else SMALL | {"projection": 2})
    for at in (2, 0, 1):
        feed.partial_fit(X[at::3], [f"class {at}"] * 8)
        assert feed.classes_.tolist()[-1] == f"class {at}"
        assert feed.predict_proba(X).shape == (24, len(feed.classes_))
        assert set(feed.predict(X)) <= set(feed.classes_)
    assert feed.partial_fit(X[:1], ["class 0"]).classes_.tolist() == [
        "class 2",
        "class 0",
        "class 1",
    ]


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("agd-fd", SMALL),
        ("vmf-fd", SMALL),
        ("agd-fd", SMALL | {"classifier": "nearest-direction"}),
        ("agd-fd", SMALL | {"classifier": "nearest-direction", "retrain_head": True}),
        ("finetune", {}),
    ],
)
def test_probabilities(method: str, fields: dict[str, Any]) -> None:
    feed = fitted(method, fields=fields)
    table = feed.predict_proba(X)
    assert table.dtype == np.float64
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(feed.classes_[table.argmax(axis=1)], feed.predict(X))
    assert np.array_equal(feed.predict_proba(X), table), "answers do not teach"


def test_a_class_that_memory_lost_has_no_probability() -> None:
    held = set()
    for seed in range(6):
        feed = fitted(memory=1, seed=seed)
        (only,) = set(feed.predict(X).tolist())
        assert feed.predict_proba(X).tolist() == [[float(c == only) for c in range(3)]] * 24
        held.add(only)
    assert len(held) > 1


def test_score_is_the_share_of_right_answers() -> None:
    feed = fitted()
    right = feed.predict(X) == Y
    assert feed.score(X, Y) == right.mean()
    assert feed.score(X, Y + 100) == 0, "labels never seen are wrong and not learned"
    assert feed.classes_.tolist() == [0, 1, 2]


def test_no_image_gets_no_answer() -> None:
    feed = fitted()
    assert feed.predict(X[:0]).shape == (0,)
    assert feed.predict_proba(X[:0]).shape == (0, 3)


@pytest.mark.parametrize("method", ["agd-fd", "vmf-fd", "finetune"])
def test_saved_and_loaded_it_continues_bit_for_bit(method: str, tmp_path: Path) -> None:
    names = np.array(["north", "east", "south"])
    whole = small(method, batch_size=5).partial_fit(X[:13], names[Y[:13]])
    whole.save(tmp_path / "feed.sterad")
    back = OnlineClassifier.load(str(tmp_path / "feed.sterad"))
    assert equal(back, whole)
    for feed in (whole, back):
        feed.partial_fit(X[13:], names[Y[13:]]).partial_fit(X[:3], ["west"] * 3)
    assert back.classes_.tolist() == whole.classes_.tolist()
    assert equal(back, whole)
    back.save(tmp_path / "feed.sterad")
    assert equal(OnlineClassifier.load(tmp_path / "feed.sterad"), whole)


def test_choices_are_saved_too(tmp_path: Path) -> None:
    choices = {"memory": 7, "encoder": "mlp", "width": 3, "batch_size": 4, "flip": True, "seed": 5}
    fitted("vmf-fd", fields=SMALL | {"variance": 0.25}, **choices).save(tmp_path / "feed.sterad")
    back = OnlineClassifier.load(tmp_path / "feed.sterad")
    assert {name: getattr(back, name) for name in choices} == choices
    assert back.method == "vmf-fd"
    assert back.config.variance == 0.25


def test_numpys_numbers_as_choices_can_be_saved(tmp_path: Path) -> None:
    fields = SMALL | {"variance": np.float64(2), "views": np.int64(1)}
    feed = fitted(memory=np.int64(20), seed=np.int32(0), width=np.int64(2), fields=fields)
    feed.save(tmp_path / "feed.sterad")
    assert equal(OnlineClassifier.load(tmp_path / "feed.sterad"), fitted())


def test_the_seed_decides_and_nothing_else() -> None:
    noise = torch.random.get_rng_state()
    first = fitted()
    assert torch.equal(torch.random.get_rng_state(), noise)
    torch.rand(3)
    assert equal(first, fitted())
    assert not equal(first, fitted(seed=1))


def test_one_call_or_many_is_the_same() -> None:
    parts = small(batch_size=6)
    for start, stop in ((0, 6), (6, 18), (18, 24)):
        parts.partial_fit(X[start:stop], Y[start:stop]).predict(X)
    assert equal(parts, fitted(batch_size=6))


@pytest.mark.parametrize("form", ["bytes", "float32", "rows"])
def test_read_only_arrays_are_read_only(form: str) -> None:
    x = {"bytes": X, "float32": X.astype(np.float32) / 255, "rows": X.reshape(24, 64) / 255}[form]
    x, y, copy = x.copy(), Y.copy(), x.copy()
    x.flags.writeable = y.flags.writeable = False
    feed = small().partial_fit(x, y)
    assert 0 <= feed.score(x, y) <= 1
    assert np.array_equal(x, copy)


def test_it_learns_digits_class_after_class_from_few_views() -> None:
    digits = Digits().load()
    chosen = np.random.default_rng(0).permutation(len(digits.train_labels))[:600]
    chosen = chosen[np.argsort(digits.train_labels[chosen], kind="stable")]
    scores = {}
    for method in ("agd-fd", "finetune"):
        feed = small(method, memory=200, width=8, fields={"views": 1} if "fd" in method else {})
        feed.partial_fit(digits.train_images[chosen], digits.train_labels[chosen])
        scores[method] = feed.score(digits.test_images, digits.test_labels)
    assert scores["agd-fd"] > 0.6
    assert scores["finetune"] < 0.3


def test_a_live_feed_is_followed_to_its_end() -> None:
    def feed() -> Iterator[tuple[Any, Any]]:
        for label in ("a", "b", "c"):
            yield np.full((4, 8, 8), ord(label), dtype=np.uint8), [label] * 4

    fields = {"views": 1, "projection": 8}
    followed = OnlineClassifier(memory=10, width=2, fields=fields).follow(feed())
    assert followed.classes_.tolist() == ["a", "b", "c"]
    fitted = OnlineClassifier(memory=10, width=2, fields=fields)
    for x, y in feed():
        fitted.partial_fit(x, y)
    asked = np.full((3, 8, 8), 98, dtype=np.uint8)
    assert np.array_equal(followed.predict_proba(asked), fitted.predict_proba(asked))
