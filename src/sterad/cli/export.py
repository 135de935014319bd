"""`sterad export`: write a saved classifier as ONNX, a torch program or safetensors."""

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.options import parse_options, positional
from sterad.export.card import InputType


@dataclass(frozen=True)
class ExportOptions:
    """Write a saved classifier as one graph from images to labels, for other programs.

    CLASSIFIER is a file that OnlineClassifier.save wrote. The ending of MODEL is the format: .onnx,
    .pt2 (torch.export) or .safetensors, the last two with a card MODEL.json beside them.
    """

    classifier: Path = positional("CLASSIFIER")
    """File of a saved classifier that was made without objects as arguments."""
    model: Path = positional("MODEL")
    """File to write."""
    opset: int | None = None
    """Version of the operators of ONNX, from 18 to 23 (default: 18)."""
    input_dtype: InputType = "float32"
    """Inputs of the graph: float32 for images in [0, 1] and features, or uint8 for images."""
    consolidate: bool = True
    """Export the rolling class means of the feed; without it the whole memory is encoded first."""


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    options: ExportOptions = parse_options(ExportOptions, argv, "sterad export")
    from sterad.estimator import OnlineClassifier  # not for --help
    from sterad.export.comparison import PrecisionWarning

    classifier = OnlineClassifier.load(options.classifier)
    if options.consolidate:
        classifier.consolidate()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrecisionWarning)
        file = classifier.export(
            options.model, opset=options.opset, input_dtype=options.input_dtype
        )
    for warning in caught:
        print(f"sterad: {warning.message}", file=sys.stderr)
    print(file)
    return 0
