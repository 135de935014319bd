"""push_to_hub: an exported classifier as a model repository of Hugging Face."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sterad.errors import SteradError
from sterad.export.card import FORMATS, Card, card_path
from sterad.files import write_atomically

WEIGHTS = "model.safetensors"
MAX_LISTED_LABELS = 50
"""Labels in the README of a repository."""


class Exportable(Protocol):
    """A classifier with `export`, such as `OnlineClassifier`."""

    def export(self, path: str | Path) -> Path:
        """Write a file whose format is that of its ending."""


def write_model_folder(
    classifier: Exportable, folder: str | Path, repo_id: str, formats: Sequence[str] = ()
) -> Path:
    """Write the files of a model repository: weights, card, README, and further formats."""
    for name in formats:
        if name not in FORMATS:
            raise SteradError(f"unknown format {name!r}: give one of {', '.join(FORMATS)}")
    target = Path(folder)
    path = classifier.export(target / WEIGHTS)
    for name in dict.fromkeys(formats):
        if name != "safetensors":
            classifier.export(target / f"model{FORMATS[name]}")
    card = Card.from_json(card_path(path).read_bytes())
    write_atomically(target / "README.md", describe(card, repo_id))
    return target


def push_to_hub(
    classifier: Exportable,
    repo_id: str,
    *,
    formats: Sequence[str] = (),
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
    message: str = "Upload a classifier exported by sterad",
) -> str:
    """Upload a classifier to a repository, which is created if it does not exist.

    repo_id: USER/NAME.
    formats: further files beside the safetensors: onnx, pt2.
    private: whether a new repository is private.
    token: access token (default: the one that huggingface_hub has stored).
    endpoint: address of another hub (default: HF_ENDPOINT, or huggingface.co).

    Returns the address of the commit.
    """
    hub = _require_hub()
    with tempfile.TemporaryDirectory() as folder:
        write_model_folder(classifier, folder, repo_id, formats)
        try:
            api: Any = hub.HfApi(endpoint=endpoint, token=token)
            api.create_repo(repo_id, private=private, exist_ok=True)
            commit = api.upload_folder(
                repo_id=repo_id, folder_path=folder, commit_message=message, revision=revision
            )
        except Exception as error:  # of the network, of the hub, and of names that it refuses
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            raise SteradError(
                f"the upload to {repo_id!r} failed ({type(error).__name__}: {reason}): check the "
                "name USER/NAME, the token and the connection, and call it again"
            ) from error
    return str(commit.commit_url)


def describe(card: Card, repo_id: str) -> str:
    """Return the README of a model repository."""
    is_image = len(card.input_shape) == 3
    tags = ["library_name: sterad", "tags:", "- continual-learning", "- sterad"]
    if is_image:
        tags.append("pipeline_tag: image-classification")
    labels = [f"`{label}`" for label in card.classes[:MAX_LISTED_LABELS]]
    more = len(card.classes) - len(labels)
    kind = "images in [0, 1] or uint8, (n, c, h, w)" if is_image else "feature vectors (n, d)"
    return "\n".join(
        [
            *("---", *tags, "---", "", f"# {repo_id.rpartition('/')[2]}", ""),
            f"A classifier that learned its classes from a stream with `{card.method}`, exported "
            f"by sterad {card.sterad}.",
            "",
            f"- Inputs: {kind}, one of shape {card.input_shape}; normalization is in the model",
            f"- Encoder: {card.encoder or card.encoder_type}, in float32"
            + ("" if card.precision == "float32" else f" (it learned in {card.precision})"),
            f"- {len(card.classes)} classes: {', '.join(labels)}"
            + (f" and {more} more" if more else ""),
            f"- SHA-256 of `{WEIGHTS}`: `{card.weights_sha256}`",
            "",
            "```python",
            "from huggingface_hub import snapshot_download",
            "from sterad import load_exported",
            "",
            f'folder = snapshot_download("{repo_id}")',
            f'model = load_exported(f"{{folder}}/{WEIGHTS}"'
            + (")" if card.encoder else ", encoder=your_module)"),
            "labels = model.predict(images)",
            "```",
            "",
        ]
    )


def _require_hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise SteradError(
            f"push_to_hub needs a library that is not installed ({error}): "
            "pip install huggingface_hub"
        ) from error
    return huggingface_hub
