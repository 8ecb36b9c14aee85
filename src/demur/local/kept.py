"""What was measured about a local model, kept for the next process beside its weights.

Only models that know themselves by their weights' hash (`fingerprint`) have anything kept: of
others nobody can say whether the one that answers today is the one that was measured.
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
    """The numbers kept for a model under a key, or None. The key's `repr` says all that matters."""
    path = _path(model, key)
    if path is None:
        return None
    try:
        found = json.loads(path.read_text())
        numbers = {str(name): float(value) for name, value in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # nothing kept, or not by us
    return numbers if all(map(math.isfinite, numbers.values())) else None


def save_measured(model: BaseChatModel, key: object, numbers: Mapping[str, float]) -> None:
    """Keep numbers for a model under a key, if it can be known again and there is a place."""
    path = _path(model, key)
    if path is None:
        return
    with suppress(OSError):  # the next process measures again, no more
        write_whole(path, json.dumps(dict(numbers)).encode())


def _path(model: BaseChatModel, key: object) -> Path | None:
    fingerprint = getattr(model, "fingerprint", None)
    if not isinstance(fingerprint, str):
        return None
    digest = hashlib.sha256(f"{fingerprint}\0{key!r}".encode()).hexdigest()
    return model_dir() / f".measured-{digest[:32]}.json"
