"""1,000 images of CIFAR-10, with encoders of several kinds: ONNX against `predict`."""

import os
from pathlib import Path
from typing import Any

import pytest

from sterad import OnlineClassifier, load_exported
from sterad.data.cifar import Cifar10
from tests.export.scaffold import Backbone, check_equal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("STERAD_DATA" not in os.environ, reason="STERAD_DATA has no folder of data"),
]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("agd-fd", {"width": 4, "views": 1}),
        ("agd-fd", {"width": 4, "views": 1, "classifier": "nearest-direction"}),
        ("er", {"width": 4}),
        ("er", {"encoder": Backbone(3), "input_size": 24}),
        ("er", {"encoder": Backbone(3), "frozen": True, "augment": "none"}),
        ("slda", {"encoder": "resnet18", "width": 4}),
        ("ridge", {"projection": 200}),
    ],
)
def test_a_thousand_real_images(method: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    data = Cifar10(root=Path(os.environ["STERAD_DATA"])).load()
    # Without a precision, processors with bfloat16 use it for the encoder.
    options: Any = {"memory": 100, "threads": 1, "precision": "float32"}
    classifier = OnlineClassifier(method, **options, **arguments)
    classifier.partial_fit(data.train_images[:200], data.train_labels[:200])
    exported = load_exported(classifier.export(tmp_path / "model.onnx"), threads=1)
    check_equal(exported, classifier, data.test_images[:1000])
    for count in (1, 37):
        check_equal(exported, classifier, data.test_images[:count])
