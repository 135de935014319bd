"""One file from the network: resumed, bounded, verified, and there whole or not at all."""

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sterad.data.progress import progress
from sterad.errors import SteradError

PIECE = 1 << 16


class BrokenError(Exception):
    """A transfer that another try may finish."""


class WrongFileError(Exception):
    """The server has another file than the one that is wanted."""


@dataclass(frozen=True)
class Patience:
    """How long a server is waited for."""

    stall_seconds: float = 30.0
    """Seconds without a byte after which a transfer counts as broken."""
    tries: int = 5
    """Tries in a row that bring no new byte."""
    pause_seconds: float = 1.0
    """Seconds before the second try; each pause is twice the one before."""


class _WebRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, hdrs: Any, newurl: str
    ) -> Any:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            fp.close()
            raise WrongFileError(f"it redirects to {newurl!r}, which is not on the web")
        return super().redirect_request(req, fp, code, msg, hdrs, newurl)


def download(
    url: str, target: Path, size: int | None, md5: str | None, patience: Patience | None = None
) -> None:
    """Fetch `url` to `target`; what a broken transfer brought is kept beside it and continued.

    Without a checksum, the length that the server states is what counts as whole.
    """
    patience = patience or Patience()
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with progress(target.name, size, "bytes") as advance:
            advance(_length(part))
            _persist(lambda: _fetch(url, part, size, md5, patience, advance), part, patience)
        os.replace(part, target)
    except (BrokenError, WrongFileError) as error:
        raise _sentence(url, target, size, md5, error) from error
    except OSError as error:
        raise SteradError(
            f"cannot write {str(part)!r}: {error.strerror or error}. Make room there, or choose "
            "another --root; the same command continues"
        ) from error


def _persist(once: Callable[[], None], part: Path, patience: Patience) -> None:
    """Try until it works or until `tries` in a row have brought nothing."""
    fruitless = 0
    while True:
        before = _length(part)
        try:
            return once()
        except BrokenError:
            fruitless = 0 if _length(part) > before else fruitless + 1
            if fruitless >= patience.tries:
                raise
            time.sleep(patience.pause_seconds * 2**fruitless)


def _fetch(
    url: str,
    part: Path,
    size: int | None,
    md5: str | None,
    patience: Patience,
    advance: Callable[[int], None],
) -> None:
    exact = size if md5 is not None else None
    if exact is None or _length(part) != exact:
        _transfer(url, part, exact, patience, advance)
    if md5 is not None and (found := file_md5(part)) != md5:
        part.unlink()
        raise WrongFileError(f"its checksum is {found} and must be {md5}")


def _transfer(
    url: str, part: Path, exact: int | None, patience: Patience, advance: Callable[[int], None]
) -> None:
    have = _length(part)
    with _opened(url, have, patience.stall_seconds) as response:
        start = _start(response, have)
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else exact
        if exact is not None and total != exact:
            part.unlink(missing_ok=True)
            raise WrongFileError(f"it has {total:,} bytes and must have {exact:,}")
        advance(start - have)  # below zero where the server begins anew
        with open(part, "r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            _copy(response, out, total, advance)
    if total is not None and _length(part) < total:
        raise BrokenError(f"it ended after {_length(part):,} of {total:,} bytes")


def _copy(response: Any, out: IO[bytes], total: int | None, advance: Callable[[int], None]) -> None:
    while True:
        try:
            piece = response.read1(PIECE)  # what has come, also where the rest stalls
        except (OSError, http.client.HTTPException) as error:
            raise BrokenError(str(error) or type(error).__name__) from error
        if not piece:
            return
        out.write(piece)
        advance(len(piece))
        if total is not None and out.tell() > total:
            raise WrongFileError(f"it sends more than {total:,} bytes")


def _opened(url: str, have: int, stall_seconds: float) -> Any:
    """Return the response to a request for what lies after the first `have` bytes."""
    headers = {"User-Agent": "sterad", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        return _opener().open(request, timeout=stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # what we have is longer than the file
                return _opened(url, 0, stall_seconds)
            kind = BrokenError if error.code >= 500 or error.code == 429 else WrongFileError
            raise kind(f"it answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise BrokenError(f"it cannot be reached, {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise BrokenError(str(error) or type(error).__name__) from error


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for the web alone: no files, no ftp, however a server redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        _WebRedirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _start(response: Any, have: int) -> int:
    """Return where the response begins: after what we have, or, Range ignored, at zero."""
    if response.status != 206:
        return 0
    begins = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    if begins != str(have):
        raise WrongFileError(f"it answers a request for byte {have} with byte {begins or '?'}")
    return have


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def file_md5(path: Path) -> str:
    """Return the MD5 of a file, as the sources publish it."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _sentence(
    url: str, target: Path, size: int | None, md5: str | None, error: Exception
) -> SteradError:
    known = ", ".join(
        word for word in (f"{size:,} bytes" if size else "", f"md5 {md5}" if md5 else "") if word
    )
    kept = "; what has come is kept" if target.with_name(target.name + ".part").exists() else ""
    return SteradError(
        f"cannot fetch {url}: {error}{kept}. Run the same command again or, without a network, put "
        f"{target.name}{f' ({known})' if known else ''} at {str(target)!r} and run it again"
    )
