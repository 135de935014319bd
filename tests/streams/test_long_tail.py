import numpy as np
import pytest

from sterad.data import Synthetic
from sterad.errors import SteradError
from sterad.streams import Blurry, Clear, LongTail


def test_it_is_the_base_with_the_option() -> None:
    data = Synthetic(per_class=40, image_size=1).load()
    assert LongTail(tasks=5).open(data, 1).digest == Clear(5, imbalance=100).open(data, 1).digest
    tail = LongTail(tasks=5, base="blurry", scale=9.0, imbalance=5, batch_size=3)
    same = Blurry(tasks=5, scale=9.0, imbalance=5, batch_size=3)
    assert tail.open(data, 1).digest == same.open(data, 1).digest
    assert "long-tail blurry" in tail.open(data, 1).describe()


def test_frequent_classes_are_frequent() -> None:
    stream = LongTail(tasks=5).open(Synthetic(per_class=200, image_size=1).load(), 0)
    counts = np.sort(np.bincount(stream.dataset.train_labels[stream.order]))
    assert (counts[0], counts[-1]) == (2, 200)


@pytest.mark.parametrize(
    ("base", "sentence"), [("long-tail", "a long tail itself"), ("bluury", "bluury")]
)
def test_a_base_that_is_none_gets_a_sentence(base: str, sentence: str) -> None:
    with pytest.raises(SteradError, match=sentence):
        LongTail(tasks=5, base=base).open(Synthetic(per_class=2).load(), 0)
