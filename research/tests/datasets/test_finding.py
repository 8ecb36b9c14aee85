"""Test how data sets are found and downloaded, with a real server on this machine."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from demur_research.datasets import read_set
from demur_research.datasets.catalogue import DataSet, File
from demur_research.datasets.files import text
from demur_research.datasets.finding import cache, find
from demur_research.datasets.rows import Answer, LabelledRow, Reading

BODY = b"one\ntwo\n" * 50_000
SHA256 = hashlib.sha256(BODY).hexdigest()


@contextmanager
def _server(cut: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve `BODY` under /good, or only its first `cut` bytes."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path != "/good":
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY[:cut])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join(30)


def _read(files: Mapping[str, Path]) -> Reading:
    lines = [line for path in files.values() for line in {*text(path).split()}]
    rows = (LabelledRow(line, None, (Answer(line, True),)) for line in sorted(lines))
    return Reading(tuple(rows))


def _set(*files: File, other_forms: tuple[str, ...] = ()) -> DataSet:
    return DataSet(
        name="made-up",
        title="Made up",
        home="https://example.org/made-up",
        licence="CC0, of nobody",
        files=files,
        published_rows=None,
        level="answer",
        shows="Nothing.",
        cannot_show="Anything.",
        read=_read,
        other_forms=other_forms,
    )


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    monkeypatch.delenv("DEMUR_DATA", raising=False)


def _left() -> list[str]:
    return sorted(path.name for path in cache().rglob("*") if path.is_file())


def test_a_set_is_downloaded_once_with_its_licence_shown_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with _server() as (url, asked):
        known = _set(File("made_up/words.txt", f"{url}/good", SHA256))
        assert len(read_set(known)) == len(read_set(known)) == 2
    assert asked == ["/good"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["Made up: https://example.org/made-up", "Licence: CC0, of nobody"]
    assert lines[-1].endswith("100 % of 400,000 bytes")
    assert _left() == ["words.txt"]


def test_without_a_known_checksum_that_of_the_first_download_holds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with _server() as (url, _):
        known = _set(File("made_up/words.txt", f"{url}/good"))
        assert len(read_set(known)) == 2
    assert f"no checksum is known; from now on it is {SHA256}" in capsys.readouterr().err
    place = cache() / "made_up" / "words.txt"
    noted = place.with_name("words.txt.sha256").read_text(encoding="utf-8")
    assert noted == f"{SHA256}  words.txt\n"
    place.write_bytes(BODY + b"three\n")
    with pytest.raises(ValueError, match="is not the file that was downloaded: its sha256 is"):
        read_set(known)


@pytest.mark.parametrize(
    ("path", "sha256", "cut", "told"),
    [
        ("/good", "0" * 64, None, "hash"),
        ("/good", None, 1000, "1000 bytes read"),
        ("/none", None, None, "404"),
    ],
    ids=["checksum", "cut", "missing"],
)
def test_what_cannot_be_fetched_leaves_nothing_and_tells_where_to_put_it(
    path: str, sha256: str | None, cut: int | None, told: str
) -> None:
    with _server(cut) as (url, _):
        known = _set(File("made_up/words.txt", f"{url}{path}", sha256))
        with pytest.raises(ValueError, match=told) as raised:
            read_set(known)
    assert f"Put it at {cache() / 'made_up' / 'words.txt'}" in str(raised.value)
    assert "--data or DEMUR_DATA" in str(raised.value)
    assert _left() == []


def test_a_file_that_is_not_needed_and_cannot_be_had_is_told_and_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with _server() as (url, asked):
        known = _set(
            File("made_up/a.txt", f"{url}/none", needed=False),
            File("made_up/b.txt", f"{url}/good", "0" * 64, needed=False),
            File("made_up/c.txt", f"{url}/good", SHA256, needed=False),
        )
        found = read_set(known)
        assert (len(found), found.missing) == (2, ("made_up/a.txt", "made_up/b.txt"))
        assert read_set(known).missing == found.missing
    assert asked == ["/none", "/good", "/good"]
    err = capsys.readouterr().err
    assert "made_up/a.txt: left out, since it could not be downloaded: 404" in err
    assert "made_up/b.txt: left out" in err
    assert _left() == ["c.txt"]


def _file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"one\n")
    return path


@pytest.mark.parametrize(
    "given",
    [
        lambda root: root,
        lambda root: root / "made_up",
        lambda root: root / "made_up" / "deep" / "words.txt",
    ],
    ids=["root", "set", "file"],
)
def test_a_set_is_found_in_the_folder_of_all_in_its_own_and_by_its_file(
    tmp_path: Path, given: Callable[[Path], Path]
) -> None:
    place = _file(tmp_path / "made_up" / "deep" / "words.txt")
    known = _set(File("made_up/deep/words.txt", None))
    assert find(known, given(tmp_path)) == {"made_up/deep/words.txt": place}


def test_demur_data_is_looked_in_before_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = _set(File("made_up/words.txt", None))
    assert find(known) is None
    kept = _file(cache() / "made_up" / "words.txt")
    monkeypatch.setenv("DEMUR_DATA", str(tmp_path / "data"))
    assert find(known) == {"made_up/words.txt": kept}
    named = _file(tmp_path / "data" / "made_up" / "words.txt")
    assert find(known) == {"made_up/words.txt": named}


def test_another_form_is_read_where_a_file_that_is_needed_is_not_there(tmp_path: Path) -> None:
    needed, more = File("made_up/a.txt", None), File("made_up/b.txt", None, needed=False)
    known = _set(needed, more, other_forms=("made_up/words.lines",))
    _file(tmp_path / "made_up" / "b.txt")
    other = _file(tmp_path / "made_up" / "words.lines")
    assert find(known, tmp_path) == {"made_up/words.lines": other}
    assert read_set(known, tmp_path).missing == ()
    (tmp_path / "made_up" / "b.txt").unlink()
    _file(tmp_path / "made_up" / "a.txt")
    assert read_set(known, tmp_path).missing == ("made_up/b.txt",)
