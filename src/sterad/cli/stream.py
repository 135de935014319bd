"""`sterad stream`: a stream in one line, as a file that others can train on, and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.atomic import write_atomically
from sterad.cli.components import request
from sterad.errors import SteradError
from sterad.experiments.session import facts_of
from sterad.report.figures.stream_and_memory import draw_proportions
from sterad.streams import Stream, save_order
from sterad.validation import Seed


@dataclass(frozen=True)
class StreamOptions:
    """Which stream, and what is made of it."""

    seed: Seed = 0
    """Seed of the label order and the stream."""
    save: Path | None = None
    """Write the order to this .npz file, for the stream replay-file."""
    draw: Path | None = None
    """Draw the proportions of the tasks over time to this .svg, .png or .pdf file."""
    plugin: tuple[Path, ...] = ()
    """Python files that register your own datasets and streams."""


def main(argv: Sequence[str]) -> int:
    """Open the stream, describe it, and save or draw it if asked."""
    asked = request(
        argv, "sterad stream", __doc__ or "", "stream", ("dataset",), {"Stream": (StreamOptions,)}
    )
    wanted: StreamOptions = asked.take(StreamOptions)
    _check_endings(wanted)
    config = asked.config()
    stream: Stream = config.stream.fields.open(config.dataset.fields.load(), wanted.seed)
    print(stream.describe())
    if wanted.save is not None:
        save_order(stream, wanted.save)
        print(wanted.save)
    if wanted.draw is not None:
        _draw(stream, wanted.draw)
        print(wanted.draw)
    return 0


def _check_endings(wanted: StreamOptions) -> None:
    if wanted.save is not None and wanted.save.suffix != ".npz":
        raise SteradError(f"cannot save to {str(wanted.save)!r}: its name must end in .npz")
    if wanted.draw is not None and wanted.draw.suffix not in (".svg", ".png", ".pdf"):
        raise SteradError(
            f"cannot draw to {str(wanted.draw)!r}: its name must end in .svg, .png or .pdf"
        )


def _draw(stream: Stream, path: Path) -> None:
    kind = path.suffix.removeprefix(".")
    figure = draw_proportions(facts_of(stream))
    write_atomically(path, lambda file: figure.savefig(file, format=kind))
