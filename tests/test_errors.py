import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from demur.errors import DemurError, LocalModelError, MissingExtraError, ModelCallError


@pytest.mark.parametrize("kind", [LocalModelError, ModelCallError, MissingExtraError])
def test_all_errors_are_demur_errors(kind: type[Exception]) -> None:
    assert issubclass(kind, DemurError)


def test_a_missing_extra_is_an_import_error_that_says_the_command() -> None:
    error = MissingExtraError("chromadb", "chroma", "The vector store")
    assert isinstance(error, ImportError)
    assert str(error) == "The vector store needs chromadb. Run: pip install 'demur[chroma]'"
    assert (error.package, error.extra) == ("chromadb", "chroma")


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_a_missing_extra_survives_pickling_and_copying(again: Callable[[Any], Any]) -> None:
    error = MissingExtraError("chromadb", "chroma", "The vector store")
    same = again(error)
    assert type(same) is MissingExtraError
    assert (str(same), same.package, same.extra) == (str(error), "chromadb", "chroma")
