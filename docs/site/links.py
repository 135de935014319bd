"""Checks a built site without a network: internal links, anchors, and that nothing is fetched."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHING_TAGS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Tags that a browser fetches by itself, with the attribute that names the address."""
FETCHED_LINKS = ("stylesheet", "icon", "preload", "modulepreload")


class Page(HTMLParser):
    """The anchors and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the ids and addresses of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        is_fetched = tag != "link" or values.get("rel") in FETCHED_LINKS
        if is_fetched and (address := values.get(FETCHING_TAGS.get(tag, ""), "")):
            self.fetched.add(address)


def find_broken_links(site: Path) -> list[str]:
    """Return a sentence for each link without a target, and for each file of another host."""
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    return [sentence for file in pages for sentence in _problems_of(file, pages, site)]


def _problems_of(file: Path, pages: dict[Path, Page], site: Path) -> Iterator[str]:
    page, name = pages[file], file.relative_to(site)
    for address in sorted(page.fetched):
        if urlsplit(address).netloc:
            yield f"{name} fetches {address} from another host"
    for address in sorted(page.links | page.fetched):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
        if not target.is_file():
            yield f"{name} links to {address}, which does not exist"
        elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{name} links to {address}, but {target.name} has no such anchor"
