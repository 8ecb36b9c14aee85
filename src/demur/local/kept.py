"""Keep what was measured about a local model beside its weights, for later processes.

Measurements are kept only for models that give the hash of their weights (`fingerprint`). Other
models may have changed since they were measured.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from demur._jsonl import write_whole
from demur.local.weights import model_dir


def load_measured(model: BaseChatModel, key: object) -> dict[str, float] | None:
    """Return the numbers kept for a model under a key, or None; keys are compared by `repr`."""
    path = _path(model, key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
        numbers = {str(name): float(value) for name, value in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # nothing was kept, or the file is not demur's
    return numbers if all(map(math.isfinite, numbers.values())) else None


def save_measured(model: BaseChatModel, key: object, numbers: Mapping[str, float]) -> None:
    """Keep numbers for a model under a key, if it has a fingerprint and the folder is writable."""
    path = _path(model, key)
    if path is None:
        return
    with suppress(OSError):  # then the next process only has to measure again
        write_whole(path, json.dumps(dict(numbers)).encode())


def _path(model: BaseChatModel, key: object) -> Path | None:
    fingerprint = getattr(model, "fingerprint", None)
    if not isinstance(fingerprint, str):
        return None
    digest = hashlib.sha256(f"{fingerprint}\0{key!r}".encode()).hexdigest()
    return model_dir() / f".measured-{digest[:32]}.json"
