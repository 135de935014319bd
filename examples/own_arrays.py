"""Train on a feed of your own arrays: new classes and predictions at any time."""

import numpy as np

from sterad import OnlineClassifier
from sterad.data.digits import Digits

digits = Digits().load()
classifier = OnlineClassifier("agd-fd", memory=100, views=2)

order = np.argsort(digits.train_labels, kind="stable")[:600]  # sorted by class
for indices in np.array_split(order, 6):
    classifier.partial_fit(digits.train_images[indices], digits.train_labels[indices])
    seen = np.isin(digits.test_labels, classifier.classes_)
    accuracy = classifier.score(digits.test_images[seen], digits.test_labels[seen])
    print(f"{len(classifier.classes_)} classes seen, test accuracy on them {accuracy:.1%}")

classifier.save("digits.sterad")
print(OnlineClassifier.load("digits.sterad").predict(digits.test_images[:5]))
