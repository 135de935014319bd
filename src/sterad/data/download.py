"""Download one file: resumable, limited in size, verified, and renamed when it is complete."""

import gzip
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sterad.data.progress import progress
from sterad.errors import SteradError

READ_SIZE = 1 << 16
"""Bytes read from the network at once, at most."""
STALL_TIMEOUT_S = 30.0
"""Seconds without data after which a transfer has failed."""
MAX_TRIES = 5
"""Number of consecutive tries without new data before the download fails."""
FIRST_PAUSE_S = 1.0
"""Seconds before the second try; each pause is twice as long as the previous one."""

SIZE_TOLERANCE = 0.01
"""Relative difference from the known size that is accepted for a file without a checksum."""


class TransferError(Exception):
    """A transfer failed and may succeed if it is tried again."""


class WrongFileError(Exception):
    """The server does not have the expected file."""


class _HttpRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, hdrs: Any, newurl: str
    ) -> Any:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            fp.close()
            raise WrongFileError(f"the server redirects to {newurl!r}, which is not http or https")
        return super().redirect_request(req, fp, code, msg, hdrs, newurl)


def download(url: str, target: Path, size: int, md5: str | None) -> None:
    """Download `url` to `target`; an interrupted download continues from `target` + ".part".

    Without a checksum, the file must have the length that the server states and about the known
    size; it is transferred over https if the server has it.
    """
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        url = url if md5 is not None else _secure_url(url)
        with progress(target.name, size, "bytes") as advance:
            advance(_length(part))
            limit = int(size * (1 + SIZE_TOLERANCE)) if md5 is None else size
            _transfer_with_retries(url, part, None if md5 is None else size, limit, advance)
        if md5 is None and abs(_length(part) - size) > SIZE_TOLERANCE * size:
            found = f"{_length(part):,} bytes and must have about {size:,}"
            part.unlink()
            raise WrongFileError(f"the file has {found}")
        if md5 is not None and (digest := file_md5(part)) != md5:
            part.unlink()
            raise WrongFileError(f"the checksum is {digest} and must be {md5}")
        os.replace(part, target)
    except (TransferError, WrongFileError) as error:
        known = f"{size:,} bytes" if md5 is None else f"{size:,} bytes, md5 {md5}"
        kept = "; the received part is kept" if part.exists() else ""
        raise SteradError(
            f"cannot download {url}: {error}{kept}. Run the same command again or, without a "
            f"network, put {target.name} ({known}) at {str(target)!r} and run it again"
        ) from error
    except OSError as error:
        raise SteradError(
            f"cannot write {str(part)!r}: {error.strerror or error}. Free disk space or choose "
            "another --root, then run this again to continue"
        ) from error


def _secure_url(url: str) -> str:
    """Return the https address of a file; print a warning and return `url` if there is none."""
    secure = url.replace("http://", "https://", 1)
    try:
        _open_url(secure, 0).close()
    except (TransferError, WrongFileError):
        print(f"sterad: {url} is downloaded without encryption", file=sys.stderr)
        return url
    return secure


def _transfer_with_retries(
    url: str, part: Path, exact: int | None, limit: int, advance: Callable[[int], None]
) -> None:
    """Repeat a transfer until it succeeds or until MAX_TRIES in a row bring no new data.

    exact: the size in bytes, if it is known; limit: the largest size that is accepted.
    """
    failures = 0
    while exact is None or _length(part) != exact:
        before = _length(part)
        try:
            return _transfer(url, part, exact, limit, advance)
        except TransferError:
            failures = 0 if _length(part) > before else failures + 1
            if failures >= MAX_TRIES:
                raise
            time.sleep(FIRST_PAUSE_S * 2**failures)


def _transfer(
    url: str, part: Path, exact: int | None, limit: int, advance: Callable[[int], None]
) -> None:
    have = _length(part)
    with _open_url(url, have) as response:
        start = _first_byte(response, have)
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else exact
        if exact is not None and total != exact:
            part.unlink(missing_ok=True)
            raise WrongFileError(f"the file has {total:,} bytes and must have {exact:,}")
        if total is not None and total > limit:
            raise WrongFileError(f"the file has {total:,} bytes and must have at most {limit:,}")
        advance(start - have)  # negative if the server restarts at byte 0
        with open(part, "r+b" if start else "wb") as out:
            out.seek(start)
            out.truncate()
            _copy(response, out, limit if total is None else total, advance)
    if total is not None and _length(part) < total:
        raise TransferError(f"the transfer ended after {_length(part):,} of {total:,} bytes")


def _copy(response: Any, out: IO[bytes], limit: int, advance: Callable[[int], None]) -> None:
    while True:
        try:
            chunk = response.read1(READ_SIZE)  # keeps received data even if the rest stalls
        except (OSError, http.client.HTTPException) as error:
            raise TransferError(str(error) or type(error).__name__) from error
        if not chunk:
            return
        out.write(chunk)
        advance(len(chunk))
        if out.tell() > limit:
            raise WrongFileError(f"the server sends more than {limit:,} bytes")


def _open_url(url: str, have: int) -> Any:
    """Return the response to a request for the bytes after the first `have` bytes."""
    headers = {"User-Agent": "sterad", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        request = urllib.request.Request(url, headers=headers)
        return urllib.request.build_opener(_HttpRedirects).open(request, timeout=STALL_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # the partial file is longer than the file
                return _open_url(url, 0)
            kind = TransferError if error.code >= 500 or error.code == 429 else WrongFileError
            raise kind(f"the server returned {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise TransferError(f"the server cannot be reached, {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(str(error) or type(error).__name__) from error


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


def file_md5(path: Path, unpacked: bool = False) -> str:
    """Return the MD5 of a file, the checksum that most sources publish.

    With `unpacked`, a file that ends in .gz is decompressed.
    """
    is_packed = unpacked and path.suffix == ".gz"
    with gzip.open(path) if is_packed else open(path, "rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    return digest.hexdigest()
