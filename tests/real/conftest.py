"""Provide the local model, or skip the tests and say what is missing."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def model() -> Any:
    pytest.importorskip("xllamacpp", reason="the local runtime is not installed: demur[local]")
    from demur.errors import LocalModelError
    from demur.local import ChatLocal

    try:
        return ChatLocal()
    except LocalModelError as error:
        pytest.skip(f"the 1.5B model is not here: {error}")
