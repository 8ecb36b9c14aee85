"""Find the files of a data set: where the user says, in `DEMUR_DATA`, or among downloads.

A file is downloaded from its publisher, checked, and kept in the user's cache. If no checksum is
known, the checksum of the first download is written beside the file and holds from then on. A
download that was stopped goes on when the data set is next looked for.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import platformdirs
import pooch

from demur_research.datasets.catalogue import DataSet, File

Report = Callable[[str, str, int, int], None]
"""A callable that hears of a download: the data set's title, the file's name, the bytes done, and
the bytes in all."""

_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30


class NotHereError(ValueError):
    """Say that the data set is not in the place that the user named."""


def cache() -> Path:
    """Return the folder of downloaded files, which has a folder for each data set."""
    return Path(platformdirs.user_cache_dir("demur")) / "data"


def find(known: DataSet, data: Path | None = None) -> Mapping[str, Path] | None:
    """Return the files of a data set that are on this machine, by their paths in the data set.

    Args:
        known: The data set.
        data: Its file, its folder, or the folder of all data sets. None: `DEMUR_DATA`, then the
            cache, then the distribution that brings the set.

    Returns:
        The files; None if they are in none of these places.

    Raises:
        NotHereError: `data` is given, and does not have the files.
        ValueError: A downloaded file has changed since its download.
    """
    if data is not None:
        found = _in(known, data)
        if found is None:
            told = f"{known.title} is not in {data}: expected {_expected(known)} there"
            raise NotHereError(told)
        return found
    if named := os.environ.get("DEMUR_DATA"):
        found = _in(known, Path(named).expanduser())
        if found is not None:
            return found
    if _begun(known).is_file():  # a download was stopped, so the cache may lack files
        return None
    found = _in(known, cache())
    for file in known.files:
        if found and file.path in found:
            _check(found[file.path], file)
    return _in(known, known.shipped) if found is None and known.shipped else found


class Downloaded(NamedTuple):
    """Describe the result of a download."""

    trusted: Mapping[Path, str]
    """The SHA-256 of each file without a known checksum. It was written beside the file."""
    left_out: Mapping[str, str]
    """Why a file could not be downloaded, by its path. The data set can be read without these
    files."""


def download(known: DataSet, report: Report) -> Downloaded:
    """Download the files of a data set that the cache does not have.

    Args:
        known: The data set.
        report: Hears how far the download is.

    Returns:
        What was trusted without a checksum, and what was left out.

    Raises:
        ValueError: A file that is needed, or every file, has no address, cannot be fetched, or does
            not have the expected checksum. The message says where to put it. A part of the file
            that was fetched is removed.
    """
    # `report` says what pooch would log to standard error.
    pooch.get_logger().setLevel(logging.ERROR)
    trusted: dict[Path, str] = {}
    left_out: dict[str, str] = {}
    lacking = [file for file in known.files if not (cache() / file.path).is_file()]
    had = len(lacking) < len(known.files)
    try:
        _begun(known).parent.mkdir(parents=True, exist_ok=True)
        _begun(known).touch()
    except OSError as error:
        raise ValueError(_by_hand(known, known.files[0], str(error))) from error
    for file in lacking:
        place = cache() / file.path
        try:
            if file.url is None:
                raise ValueError("it cannot be fetched without an account")
            _fetch(known, file, file.url, place, report)
        except (OSError, ValueError) as error:
            # If no server answered, none will answer for the other files either.
            silent = isinstance(error, OSError) and getattr(error, "response", None) is None
            if file.needed or (not had and (silent or file is lacking[-1])):
                _begun(known).unlink(missing_ok=True)
                raise ValueError(_by_hand(known, file, str(error))) from error
            left_out[file.path] = str(error)
            continue
        had = True
        if file.sha256 is None:
            trusted[place] = _sha256(place)
            _noted(place).write_text(f"{trusted[place]}  {place.name}\n", encoding="utf-8")
    _begun(known).unlink(missing_ok=True)
    return Downloaded(trusted, left_out)


def _begun(known: DataSet) -> Path:
    """Return the path of the marker that exists while a download is not finished."""
    return cache() / f".{known.name}.begun"


def _fetch(known: DataSet, file: File, url: str, place: Path, report: Report) -> None:
    bar = _Bar(lambda done, total: report(known.title, place.name, done, total))
    # For a compressed reply, a server gives another length than the file's.
    headers = {"Accept-Encoding": "identity"}
    pooch.retrieve(
        url,
        known_hash=file.sha256,
        fname=place.name,
        path=place.parent,
        downloader=pooch.HTTPDownloader(
            progressbar=bar, chunk_size=_CHUNK, timeout=_TIMEOUT_SECONDS, headers=headers
        ),
    )


class _Bar:
    """Report progress in the way that pooch expects of a progress bar."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.total = 0
        self._done = 0
        self._report = report

    def update(self, done: int) -> None:
        # Pooch counts complete chunks, so the last one may go beyond the total.
        self._done = min(self._done + done, self.total) if self.total else self._done + done
        self._report(self._done, self.total)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        pass


def _in(known: DataSet, data: Path) -> dict[str, Path] | None:
    if data.is_file():
        paths = [*(file.path for file in known.files), *known.other_forms]
        same = (path for path in paths if Path(path).name == data.name)
        return {next(same, paths[0]): data}
    found = {}
    for file in known.files:
        if place := _below(data, file.path):
            found[file.path] = place
        elif file.needed:
            found = {}
            break
    if found:
        return found
    for path in known.other_forms:
        if place := _below(data, path):
            return {path: place}
    return None


def _below(data: Path, path: str) -> Path | None:
    """Return the file in the folder of all sets, in the set's own, or in one within that."""
    parts = Path(path).parts
    places = (data.joinpath(*parts[at:]) for at in range(len(parts)))
    return next((place for place in places if place.is_file()), None)


def _check(place: Path, file: File) -> None:
    expected, noted = file.sha256, _noted(place)
    if expected is None and noted.is_file():
        expected = noted.read_text(encoding="utf-8").partition(" ")[0]
    if expected is not None and (actual := _sha256(place)) != expected:
        raise ValueError(
            f"{place} is not the file that was downloaded: its sha256 is {actual}, expected "
            f"{expected}. Delete it and {noted.name}, and it is downloaded again"
        )


def _noted(place: Path) -> Path:
    return place.with_name(f"{place.name}.sha256")


def _sha256(place: Path) -> str:
    return hashlib.sha256(place.read_bytes()).hexdigest()


def _expected(known: DataSet) -> str:
    files = [file.path for file in known.files if file.needed] or [known.files[0].path]
    more = f" and {len(files) - 1} more like it" if len(files) > 1 else ""
    return " or ".join([f"{files[0]}{more}", *known.other_forms])


def by_hand(file: File) -> str:
    """Say where to put a file that you downloaded yourself."""
    return f"Put it at {cache() / file.path}, or name its folder with --data or DEMUR_DATA"


def _by_hand(known: DataSet, file: File, why: str) -> str:
    return (
        f"{known.title} is not on this machine, and {Path(file.path).name} could not be downloaded "
        f"from {file.url or known.home}: {why}. {by_hand(file)}"
    )
