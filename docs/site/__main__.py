"""Build the site: assemble the pages, run Sphinx with warnings as errors, check all links."""

import argparse
import shutil
import sys
import time
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.site.assemble import assemble
from docs.site.links import find_broken_links


def build(out: Path, run_tutorials: bool = True) -> int:
    """Build the site into `out`; return 0, or 1 if a page or a link is broken."""
    started = time.monotonic()
    source = out.with_name(f"{out.name}-source")
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    assemble(source, run_tutorials)
    print(f"pages assembled in {time.monotonic() - started:.0f} s", flush=True)
    config = str(Path(__file__).parent)
    options = ["-b", "html", "-W", "--keep-going", "-q", "-j", "2", "-c", config]
    if code := build_main([*options, str(source), str(out)]):
        return code
    broken = find_broken_links(out)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    pages = len(list(out.rglob("*.html")))
    print(
        f"{out / 'index.html'}: {pages} pages, {len(broken)} broken links, "
        f"{time.monotonic() - started:.0f} s"
    )
    return 1 if broken else 0


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("out", nargs="?", type=Path, default=Path("build/site"))
    parser.add_argument(
        "--no-tutorials", action="store_true", help="show their code without its output"
    )
    arguments = parser.parse_args()
    return build(arguments.out.resolve(), not arguments.no_tutorials)


if __name__ == "__main__":
    sys.exit(main())
