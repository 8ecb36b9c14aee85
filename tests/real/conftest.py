"""Provide the local model, or skip the tests and say what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.served import llama_cpp


@pytest.fixture(scope="session")
def model() -> Any:
    pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
    from demur.errors import LocalModelError
    from demur.local import ChatLocal

    try:
        return ChatLocal()
    except LocalModelError as error:
        pytest.skip(f"the 1.5B model is not here: {error}")


@pytest.fixture
def judge_of_llama_cpp(model: Any) -> Iterator[str]:
    """Serve demur's adapter by llama.cpp in a process of its own."""
    with llama_cpp() as name:
        yield name
