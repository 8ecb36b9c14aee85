import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from demur.errors import MissingExtraError


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_a_missing_extra_survives_pickling_and_copying(again: Callable[[Any], Any]) -> None:
    error = MissingExtraError("chromadb", "chroma", "The vector store")
    assert str(error) == "The vector store needs chromadb. Run: pip install 'demur[chroma]'"
    same = again(error)
    assert type(same) is MissingExtraError
    assert (str(same), same.package, same.extra) == (str(error), "chromadb", "chroma")
