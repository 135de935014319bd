"""Download one file: resumable, limited in size, verified, and renamed when it is complete."""

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

READ_SIZE = 1 << 16
"""Bytes read from the network at once, at most."""


class TransferError(Exception):
    """A transfer failed and may succeed if it is tried again."""


class WrongFileError(Exception):
    """The server does not have the expected file."""


@dataclass(frozen=True)
class RetryPolicy:
    """Timeout and retries of a download."""

    stall_seconds: float = 30.0
    """Seconds without data after which a transfer has failed."""
    tries: int = 5
    """Number of consecutive tries without new data before the download fails."""
    pause_seconds: float = 1.0
    """Seconds before the second try; each pause is twice as long as the previous one."""


class _HttpRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, hdrs: Any, newurl: str
    ) -> Any:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            fp.close()
            raise WrongFileError(f"the server redirects to {newurl!r}, which is not http or https")
        return super().redirect_request(req, fp, code, msg, hdrs, newurl)


def download(
    url: str, target: Path, size: int | None, md5: str | None, retry: RetryPolicy | None = None
) -> None:
    """Download `url` to `target`; an interrupted download continues from `target` + ".part".

    Without a checksum, the file is complete when it has the length that the server states.
    """
    retry = retry or RetryPolicy()
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with progress(target.name, size, "bytes") as advance:
            advance(_length(part))
            _try_repeatedly(lambda: _fetch(url, part, size, md5, retry, advance), part, retry)
        os.replace(part, target)
    except (TransferError, WrongFileError) as error:
        raise _download_error(url, target, size, md5, error) from error
    except OSError as error:
        raise SteradError(
            f"cannot write {str(part)!r}: {error.strerror or error}. Free disk space or choose "
            "another --root, then run this again to continue"
        ) from error


def _try_repeatedly(transfer: Callable[[], None], part: Path, retry: RetryPolicy) -> None:
    """Repeat a transfer until it succeeds or until `tries` in a row bring no new data."""
    failures = 0
    while True:
        before = _length(part)
        try:
            return transfer()
        except TransferError:
            failures = 0 if _length(part) > before else failures + 1
            if failures >= retry.tries:
                raise
            time.sleep(retry.pause_seconds * 2**failures)


def _fetch(
    url: str,
    part: Path,
    size: int | None,
    md5: str | None,
    retry: RetryPolicy,
    advance: Callable[[int], None],
) -> None:
    exact = size if md5 is not None else None
    if exact is None or _length(part) != exact:
        _transfer(url, part, exact, retry, advance)
    if md5 is not None and (found := file_md5(part)) != md5:
        part.unlink()
        raise WrongFileError(f"the checksum is {found} and must be {md5}")


def _transfer(
    url: str, part: Path, exact: int | None, retry: RetryPolicy, advance: Callable[[int], None]
) -> None:
    have = _length(part)
    with _open_url(url, have, retry.stall_seconds) as response:
        start = _first_byte(response, have)
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else exact
        if exact is not None and total != exact:
            part.unlink(missing_ok=True)
            raise WrongFileError(f"the file has {total:,} bytes and must have {exact:,}")
        advance(start - have)  # negative if the server restarts at byte 0
        with open(part, "r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            _copy(response, out, total, advance)
    if total is not None and _length(part) < total:
        raise TransferError(f"the transfer ended after {_length(part):,} of {total:,} bytes")


def _copy(response: Any, out: IO[bytes], total: int | None, advance: Callable[[int], None]) -> None:
    while True:
        try:
            chunk = response.read1(READ_SIZE)  # keeps received data even if the rest stalls
        except (OSError, http.client.HTTPException) as error:
            raise TransferError(str(error) or type(error).__name__) from error
        if not chunk:
            return
        out.write(chunk)
        advance(len(chunk))
        if total is not None and out.tell() > total:
            raise WrongFileError(f"the server sends more than {total:,} bytes")


def _open_url(url: str, have: int, stall_seconds: float) -> Any:
    """Return the response to a request for the bytes after the first `have` bytes."""
    headers = {"User-Agent": "sterad", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        return _http_opener().open(request, timeout=stall_seconds)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # the partial file is longer than the file
                return _open_url(url, 0, stall_seconds)
            kind = TransferError if error.code >= 500 or error.code == 429 else WrongFileError
            raise kind(f"the server returned {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise TransferError(f"the server cannot be reached, {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(str(error) or type(error).__name__) from error


def _http_opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https only, so that a redirect cannot read files or ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        _HttpRedirects(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _first_byte(response: Any, have: int) -> int:
    """Return the offset of the response: `have`, or 0 if the server ignores the range."""
    if response.status != 206:
        return 0
    first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    if first != str(have):
        raise WrongFileError(
            f"the server sends byte {first or '?'} in response to a request for byte {have}"
        )
    return have


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def file_md5(path: Path) -> str:
    """Return the MD5 of a file, the checksum that most sources publish."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _download_error(
    url: str, target: Path, size: int | None, md5: str | None, error: Exception
) -> SteradError:
    properties = (f"{size:,} bytes" if size else "", f"md5 {md5}" if md5 else "")
    known = ", ".join(text for text in properties if text)
    kept = "; the received part is kept" if target.with_name(target.name + ".part").exists() else ""
    return SteradError(
        f"cannot download {url}: {error}{kept}. Run the same command again or, without a network, "
        f"put {target.name}{f' ({known})' if known else ''} at {str(target)!r} and run it again"
    )
