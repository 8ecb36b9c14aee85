"""What holds for every table."""

from __future__ import annotations

import pytest

from demur_research.bench import Table
from demur_research.datasets import DATA_SETS
from demur_research.tables import TABLES


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_data_sets_of_a_table_can_be_read(table: Table) -> None:
    assert set(table.sets) <= DATA_SETS.keys()
