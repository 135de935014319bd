import dataclasses
import hashlib

import numpy as np

from sterad.data import Synthetic
from sterad.streams import Clear, Shift
from sterad.streams.digest import digest_of
from sterad.streams.transforms import Brightness


def test_the_hash_is_the_same_on_every_machine() -> None:
    big, little = np.arange(5, dtype=">i4"), np.arange(5, dtype="<i8")
    assert digest_of(big) == digest_of(little)
    bytes_hashed = bytes([2, 0, 0, 0, 0, 0, 0, 0, 0xC3, 0xA9])
    assert digest_of("é") == hashlib.sha256(bytes_hashed).hexdigest()


def test_whatever_a_learner_is_shown_changes_the_hash() -> None:
    stream = Clear(tasks=5).open(Synthetic(per_class=10, image_size=1).load(), 0)
    other = stream.dataset.train_labels.copy()
    other[stream.order[0]] = (other[stream.order[0]] + 1) % 10
    changed = [
        dataclasses.replace(stream, order=np.roll(stream.order, 1)),
        dataclasses.replace(stream, batch_size=9),
        dataclasses.replace(stream, ends=stream.ends[:-1]),
        dataclasses.replace(stream, shifts=(Shift(0, Brightness(0.5)),)),
        dataclasses.replace(stream, shifts=(Shift(0, Brightness(0.25)),)),
        dataclasses.replace(
            stream, dataset=dataclasses.replace(stream.dataset, train_labels=other)
        ),
    ]
    assert len({one.digest for one in (stream, *changed)}) == 7
    assert dataclasses.replace(stream, name="mine", tasks=()).digest == stream.digest
