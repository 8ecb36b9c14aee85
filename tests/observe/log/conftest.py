"""Give the tests a log in each kind of database; lines are read into one of the first kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from demur.observe.log import Log, open_log
from support.logs import FORMS, RUNS, written


@pytest.fixture(scope="module", params=FORMS[1:])
def log(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with open_log(written(request.param, tmp_path_factory.mktemp("log"), RUNS, request)) as opened:
        yield opened
