"""A classifier learns digits from a feed, leaves sterad as ONNX, and predicts without sterad."""

import json
from pathlib import Path

import numpy as np
import onnxruntime

from sterad import OnlineClassifier, load_exported
from sterad.data.digits import Digits


def main(folder: Path) -> None:
    """Learn, export, and compare the predictions of three programs."""
    data = Digits().load()
    classifier = OnlineClassifier("agd-fd", memory=100, encoder="mlp", width=8, views=2)
    classifier.partial_fit(data.train_images[:500], data.train_labels[:500])
    classifier.consolidate()  # exact class means
    path = classifier.export(folder / "digits.onnx")
    exported = load_exported(path)  # needs no training code
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    images = data.test_images.astype(np.float32) / 255
    (indices,) = session.run(["indices"], {"inputs": images})
    card = json.loads(session.get_modelmeta().custom_metadata_map["sterad_card"])
    expected = classifier.predict(data.test_images)
    equal = (exported.predict(data.test_images) == expected).mean()
    equal_without = (np.array(card["labels"])[indices] == expected).mean()
    print(f"test accuracy {np.mean(expected == data.test_labels):.1%}")
    print(f"{path.name}, {path.stat().st_size / 1000:.0f} kB: equal labels {equal:.0%}, and")
    print(f"{equal_without:.0%} with onnxruntime alone")


if __name__ == "__main__":
    main(Path())
