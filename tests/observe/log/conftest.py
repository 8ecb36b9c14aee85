"""A log in both of its forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from demur.observe.log import Log, open_log
from support.logs import RUNS
from support.records import jsonl, sqlite


@pytest.fixture(scope="module", params=["lines", "database"])
def log(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    folder = tmp_path_factory.mktemp("log")
    write = jsonl if request.param == "lines" else sqlite
    with open_log(write(folder / "log", RUNS)) as opened:
        yield opened
