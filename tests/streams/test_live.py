from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from sterad.errors import SteradError
from sterad.streams import LiveStream


def feed(log: list[int]) -> Iterator[tuple[Any, Any]]:
    for number in range(10**9):  # a feed without end
        log.append(number)
        yield np.full((2, 3, 8, 8), number, np.uint8), [number, number + 1]


def test_a_feed_is_read_on_demand() -> None:
    log: list[int] = []
    stream = LiveStream(feed(log))
    assert (stream.steps, log) == (0, [])
    batches = [next(stream) for _ in range(3)]
    assert (stream.steps, log) == (3, [0, 1, 2])
    assert [batch.y.tolist() for batch in batches] == [[0, 1], [1, 2], [2, 3]]
    assert batches[2].x.dtype == torch.float32
    assert batches[2].x.unique().tolist() == pytest.approx([2 / 255])


def test_labels_get_indices_as_they_appear() -> None:
    pairs = [(np.zeros((2, 4)), [900, 7]), (torch.zeros(1, 4), torch.tensor([7]))]
    stream = LiveStream(pairs)
    assert [batch.y.tolist() for batch in stream] == [[0, 1], [1]]
    assert stream.labels.known == [900, 7]


def test_a_stream_has_no_length() -> None:
    assert not hasattr(LiveStream([]), "__len__")
    with pytest.raises(StopIteration):
        next(LiveStream([]))


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (np.zeros((2, 8, 8)), r"batch 1 of the stream 'live' is a ndarray: give pairs"),
        ((np.zeros((2, 8, 8)), [0]), "2 images and 1 labels"),
        ((np.zeros((0, 8, 8)), []), "0 images and 0 labels"),
        ((np.full((1, 8, 8), 2.0), [0]), "images of batch 1"),
        ((np.zeros((1, 9, 9)), [0]), r"shape \(1, 9, 9\) and earlier batches had \(1, 8, 8\)"),
        ((np.zeros((1, 8, 8)), ["cat"]), "use one type"),
        ((np.zeros((1, 8, 8)), [0.5]), "integers or strings"),
    ],
)
def test_a_bad_pair_raises_and_is_not_counted(pair: Any, message: str) -> None:
    stream = LiveStream([(np.zeros((1, 8, 8)), [0]), pair])
    next(stream)
    with pytest.raises(SteradError, match=message):
        next(stream)
    assert (stream.steps, stream.labels.known) == (1, [0])
