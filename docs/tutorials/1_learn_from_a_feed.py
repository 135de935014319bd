"""# Learn from a feed

You have data that arrives in pieces: from a queue, a sensor, a labeling tool. You want a classifier
that learns each piece once, accepts new classes at any time, and predicts in between.
"""

# %% [markdown]
# ## A feed
#
# 8x8 handwritten digits, which ship with sterad, stand for your feed. The classes arrive one after
# the other, which is the hard case: a network that is simply trained further forgets the first ones.

# %%
import numpy as np

from sterad import OnlineClassifier
from sterad.data import Digits

digits = Digits().load()
order = np.argsort(digits.train_labels, kind="stable")
images, labels = digits.train_images[order], digits.train_labels[order]
print(images.shape, images.dtype, labels[:3], labels[-3:])

# %% [markdown]
# ## Learn and predict
#
# The constructor takes the name of a method, the size of its memory, and the fields of the method as
# keywords. `partial_fit` takes any number of samples; labels are integers or strings.

# %%
classifier = OnlineClassifier("er", memory=200, width=8, seed=0)
for start in range(0, len(images), 100):
    stop = start + 100
    classifier.partial_fit(images[start:stop], labels[start:stop])
    known = np.isin(digits.test_labels, classifier.classes_)
    accuracy = classifier.score(digits.test_images[known], digits.test_labels[known])
    if start % 400 == 0:
        seen = len(classifier.classes_)
        print(f"{stop:5} images, {seen:2} classes: {accuracy:.1%}")
print(f"at the end: {classifier.score(digits.test_images, digits.test_labels):.1%}")

# %% [markdown]
# Compare this with the same network without a memory:

# %%
forgetful = OnlineClassifier("finetune", width=8, seed=0).fit(images, labels)
print(f"without memory: {forgetful.score(digits.test_images, digits.test_labels):.1%}")

# %% [markdown]
# ## Learners in closed form
#
# If your inputs are features of a good network, or easy images as here, learners in closed form are
# exact: the order of the feed does not matter to them, they keep no samples, and they have no learning
# rate. `slda` is linear discriminant analysis, `ridge` is least squares on random features, `fecam`
# has a covariance per class.

# %%
for name in ("ncm", "slda", "ridge", "fecam"):
    closed_form = OnlineClassifier(name).fit(images, labels)
    print(f"{name:6} {closed_form.score(digits.test_images, digits.test_labels):.1%}")

# %% [markdown]
# ## A network of your own in front
#
# Any torch module from a batch to `(n, d)` features is an encoder. Behind `slda` it is frozen, and
# each image is encoded once.

# %%
import torch
from torch import nn

torch.manual_seed(0)
pretrained = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 512), nn.ReLU()
)  # stands for yours
with_encoder = OnlineClassifier("slda", encoder=pretrained).fit(images, labels)
print(f"{with_encoder.score(digits.test_images, digits.test_labels):.1%}")

# %% [markdown]
# ## Errors change nothing
#
# A call learns all of its samples or none of them, so that a bad message from your feed cannot spoil
# the classifier.

# %%
from sterad.errors import SteradError

before = classifier.predict(digits.test_images[:50])
try:
    classifier.partial_fit(images[:2].astype(float) * np.nan, labels[:2])
except SteradError as error:
    print(error)
print((classifier.predict(digits.test_images[:50]) == before).all())

# %% [markdown]
# ## Stop and continue
#
# `save` writes one file with everything: weights, optimizer, memory, random generators. After `load`,
# learning continues to the same bits as if it had not stopped.

# %%
classifier.save("digits.sterad")
continued = OnlineClassifier.load("digits.sterad")
for model in (classifier, continued):
    model.partial_fit(images[:100], labels[:100])
same = classifier.predict_proba(digits.test_images) == continued.predict_proba(
    digits.test_images
)
print(same.all())

# %% [markdown]
# ## In scikit-learn and river
#
# It is a scikit-learn classifier: clones, pipelines and searches work. `RiverClassifier` learns one
# dictionary at a time.

# %%
from sklearn.model_selection import cross_val_score

scores = cross_val_score(
    OnlineClassifier("slda"), images.reshape(len(images), -1) / 255, labels, cv=3
)
print(scores.round(3))

# %%
from river import metrics

from sterad.river import RiverClassifier

model, metric = RiverClassifier("ncm"), metrics.Accuracy()
for image, label in zip(images[::7], labels[::7], strict=True):
    x = {f"pixel {i}": float(value) for i, value in enumerate(image.ravel())}
    metric.update(label, model.predict_one(x))
    model.learn_one(x, label)
print(metric)
