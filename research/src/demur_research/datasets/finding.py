"""Where the files of a data set are: where the user says, in `DEMUR_DATA`, or downloaded.

A file is downloaded from its publisher, checked, and kept in the user's cache. Where no checksum is
known, the one of the first download is written beside the file and holds from then on. A download
that was stopped on its way is gone on with when the set is looked for again.
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
"""Is told the data set, what is done, how many bytes are done, and how many there are."""

_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30


class NotHereError(ValueError):
    """The user named a place, and the data set is not there."""


def cache() -> Path:
    """The folder of what was downloaded, with a folder for each data set."""
    return Path(platformdirs.user_cache_dir("demur")) / "data"


def find(known: DataSet, data: Path | None = None) -> Mapping[str, Path] | None:
    """The files of a data set that are on this machine, by their paths in the set.

    Args:
        known: The data set.
        data: Its file, its folder, or the folder of all sets. None: `DEMUR_DATA`, then the cache.

    Returns:
        None where they are in none of these places.

    Raises:
        NotHereError: `data` is given, and does not have them.
        ValueError: A downloaded file is not any more what it was.
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
    if _begun(known).is_file():  # stopped on its way: what is there is not all that can be had
        return None
    found = _in(known, cache())
    for file in known.files:
        if found and file.path in found:
            _check(found[file.path], file)
    return found


class Downloaded(NamedTuple):
    """What came of a download."""

    trusted: Mapping[Path, str]
    """Of the files of which no checksum is known, the sha256 that was written beside them."""
    left_out: Mapping[str, str]
    """By path, files that the set can be read without and that could not be had, and why."""


def download(known: DataSet, report: Report) -> Downloaded:
    """Fetch the files of a data set that the cache does not have.

    Args:
        known: The data set.
        report: Is told how far it is.

    Raises:
        ValueError: A file that is needed, or all that there is, has no address, cannot be fetched,
            or is not the one that is expected. The message says where to put it. What was fetched
            of that file is gone.
    """
    # It would say on standard error what is reported here.
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
            # Where nobody answers, nobody will for the other files.
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
    """What is there as long as a download is on its way."""
    return cache() / f".{known.name}.begun"


def _fetch(known: DataSet, file: File, url: str, place: Path, report: Report) -> None:
    bar = _Bar(lambda done, total: report(known.title, place.name, done, total))
    # Packed, the length that a server tells is not that of the file.
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
    """What pooch calls a progress bar."""

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.total = 0
        self._done = 0
        self._report = report

    def update(self, done: int) -> None:
        # Pooch counts whole chunks.
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
    """The file in the folder of all sets, in the set's own, or in one within that."""
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
    """Where to put a file that one has got oneself."""
    return f"Put it at {cache() / file.path}, or name its folder with --data or DEMUR_DATA"


def _by_hand(known: DataSet, file: File, why: str) -> str:
    return (
        f"{known.title} is not on this machine, and {Path(file.path).name} could not be downloaded "
        f"from {file.url or known.home}: {why}. {by_hand(file)}"
    )
