"""`sterad stream`: describe a stream, save its order to a file, or draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.atomic import write_atomically
from sterad.cli.components import parse_request
from sterad.errors import SteradError
from sterad.experiments.session import facts_of
from sterad.report.figures.stream_and_memory import draw_proportions
from sterad.streams import Stream, save_order
from sterad.validation import Seed


@dataclass(frozen=True)
class StreamOptions:
    """Options of the command."""

    seed: Seed = 0
    """Seed of the label order and the stream."""
    save: Path | None = None
    """Save the order to this .npz file, which `--stream replay-file` reads."""
    draw: Path | None = None
    """Draw the proportions of the classes over time to this .svg, .png or .pdf file."""
    plugin: tuple[Path, ...] = ()
    """A Python file that registers your own datasets or streams (repeatable)."""


def main(argv: Sequence[str]) -> int:
    """Print the description of the stream; save or draw it."""
    about = "Describe a stream, save its order to a file, or draw it."
    sections = {"Command": (StreamOptions,)}
    request = parse_request(argv, "sterad stream", about, "stream", ("dataset",), sections)
    options: StreamOptions = request.take(StreamOptions)
    _check_suffixes(options)
    config = request.config()
    stream: Stream = config.stream.fields.open(config.dataset.fields.load(), options.seed)
    print(stream.describe())
    if options.save is not None:
        save_order(stream, options.save)
        print(options.save)
    if options.draw is not None:
        _draw(stream, options.draw)
        print(options.draw)
    return 0


def _check_suffixes(options: StreamOptions) -> None:
    if options.save is not None and options.save.suffix != ".npz":
        raise SteradError(f"cannot save to {str(options.save)!r}: its name must end in .npz")
    if options.draw is not None and options.draw.suffix not in (".svg", ".png", ".pdf"):
        raise SteradError(
            f"cannot draw to {str(options.draw)!r}: its name must end in .svg, .png or .pdf"
        )


def _draw(stream: Stream, path: Path) -> None:
    kind = path.suffix.removeprefix(".")
    figure = draw_proportions(facts_of(stream))
    write_atomically(path, lambda file: figure.savefig(file, format=kind))
