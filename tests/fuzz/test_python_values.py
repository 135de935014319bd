"""Labels and class names given in Python: any value is accepted or refused with a SteradError."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sterad.data import Dataset
from sterad.errors import SteradError
from sterad.labels import LabelIndex, to_python_labels

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.sampled_from([10**400, np.int64(3), np.float32(1), np.str_("a"), "a\0", "\ud800", object()]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.sets(st.integers()),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
@pytest.mark.slow
def test_labels_are_integers_or_strings_or_refused(labels: Any) -> None:
    try:
        plain = to_python_labels(labels)
    except SteradError:
        return
    assert all(isinstance(label, int | str) for label in plain)
    if isinstance(labels, list | tuple):
        assert plain == list(labels)
    index = LabelIndex()
    known = index.encode(plain)
    assert [index.known[position] for position in known] == plain


class Hostile:
    """An object whose conversion to an array fails."""

    def __array__(self, *_: object, **__: object) -> None:
        raise RuntimeError("no")

    def __len__(self) -> int:
        raise OSError("no")


@pytest.mark.parametrize("labels", [Hostile(), [Hostile()], {"a": 1}, "ab", b"ab", 3, None])
def test_odd_objects_are_no_labels(labels: Any) -> None:
    with pytest.raises(SteradError, match="label"):
        to_python_labels(labels)


def test_a_label_that_numpy_would_change_is_refused() -> None:
    with pytest.raises(SteradError, match=r"label 'a\\x00' ends with a zero byte"):
        to_python_labels(["a", "a\0"])


def test_saved_labels_must_be_distinct() -> None:
    with pytest.raises(SteradError, match="given twice"):
        LabelIndex(["a", "a"])


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_class_names_are_texts_or_refused(names: Any) -> None:
    images, labels = np.zeros((4, 2, 2), np.uint8), np.array([0, 1, 0, 1])
    try:
        data = Dataset.from_arrays(images, labels, images, labels, names)
    except SteradError:
        return
    assert all(isinstance(name, str) for name in data.class_names)
