"""Own data in ten lines: a feed of arrays, new classes at any time, answers at any time."""

import numpy as np

from sterad import OnlineClassifier
from sterad.data.digits import Digits

digits = Digits().load()
feed = OnlineClassifier("agd-fd", memory=100, fields={"views": 2})

order = np.argsort(digits.train_labels, kind="stable")[:600]  # one class after the other
for batch in np.array_split(order, 6):
    feed.partial_fit(digits.train_images[batch], digits.train_labels[batch])
    known = np.isin(digits.test_labels, feed.classes_)
    accuracy = feed.score(digits.test_images[known], digits.test_labels[known])
    print(f"{len(feed.classes_)} classes seen, {accuracy:.1%} right on all of them")

feed.save("feed.sterad")
print(OnlineClassifier.load("feed.sterad").predict(digits.test_images[:5]))
