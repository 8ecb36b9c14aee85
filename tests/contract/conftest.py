"""Give the tests each evaluator of the contract; a file with other members overrides `member`."""

from __future__ import annotations

from typing import Any

import pytest

from contract.evaluators import EVALUATORS
from contract.member import Member


@pytest.fixture(params=EVALUATORS, ids=lambda member: member.name)
def member(request: pytest.FixtureRequest) -> Member:
    return request.param


@pytest.fixture
def made(member: Member) -> Any:
    return member.make()
