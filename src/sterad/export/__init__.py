"""Export: what was learned as one graph, from images to labels, in a file for other programs.

`OnlineClassifier.export` writes ONNX, a program of torch.export, or safetensors with a JSON card.
`load_exported` reads them back; it needs no training code, and names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sterad.export.comparison import PrecisionWarning
    from sterad.export.hub import push_to_hub
    from sterad.export.loading import ExportedClassifier, load_exported

_MODULES = {
    "ExportedClassifier": "sterad.export.loading",
    "load_exported": "sterad.export.loading",
    "PrecisionWarning": "sterad.export.comparison",
    "push_to_hub": "sterad.export.hub",
}

__all__ = ["ExportedClassifier", "PrecisionWarning", "load_exported", "push_to_hub"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sterad.export' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
