"""`sterad stream`: describe a stream, save its order to a file, or draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sterad.cli.components import RequestParser
from sterad.errors import SteradError
from sterad.experiments.session import facts_of
from sterad.files import write_atomically
from sterad.report.figures.stream_and_memory import draw_proportions
from sterad.streams import Stream, save_order
from sterad.streams.order_file import read_hash
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
    request = RequestParser("sterad stream", about, "stream", ("dataset",), sections).parse(argv)
    options: StreamOptions = request.take(StreamOptions)
    save, draw = options.save, options.draw
    if save is not None and save.suffix != ".npz":
        raise SteradError(f"cannot save to {str(save)!r}: its name must end in .npz")
    if draw is not None and draw.suffix not in (".svg", ".png", ".pdf"):
        raise SteradError(f"cannot draw to {str(draw)!r}: its name must end in .svg, .png or .pdf")
    config = request.config()
    stream: Stream = config.stream.fields.open(config.dataset.fields.load(), options.seed)
    print(stream.describe())
    if save is not None:
        save_order(stream, save)
        print(f"{save} (--hash {read_hash(save)[:12]})")
    if draw is not None:
        figure, kind = draw_proportions(facts_of(stream)), draw.suffix.removeprefix(".")
        write_atomically(draw, lambda file: figure.savefig(file, format=kind))
        print(draw)
    return 0
