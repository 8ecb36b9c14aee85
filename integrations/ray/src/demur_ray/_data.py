"""Read Ray's data sets as rows to score, and make a data set of the results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from ray.data import Dataset

from demur.scoring import Data, Result, read_fields, read_results

_ROWS = 1_000
"""The number of rows of the data set that the driver holds at a time."""
_FINDINGS = 10_000
"""The most results in a block of the data set of results."""
_SAMPLE = ("id", "question", "answer", "answers", "contexts", "reference", "preceding", "metadata")

_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[Result], Any]]] = {
    "key": (pa.string(), lambda found: found.key),
    "row": (pa.string(), lambda found: found.row),
    "answer": (pa.string(), lambda found: found.answer),
    "evaluator": (pa.string(), lambda found: found.evaluator),
    "finding": (pa.string(), lambda found: found.evaluation.finding),
    "score": (pa.float64(), lambda found: found.evaluation.score),
    "passed": (pa.bool_(), lambda found: found.evaluation.passed),
    "label": (pa.string(), lambda found: found.evaluation.label),
    "error": (pa.string(), lambda found: found.evaluation.error),
    "calls": (pa.int64(), lambda found: found.evaluation.usage.calls),
    "cached": (pa.int64(), lambda found: found.evaluation.usage.cached),
    "input_tokens": (pa.int64(), lambda found: found.evaluation.usage.input_tokens),
    "output_tokens": (pa.int64(), lambda found: found.evaluation.usage.output_tokens),
    "seconds": (pa.float64(), lambda found: found.evaluation.usage.seconds),
    "evaluation": (pa.string(), lambda found: found.evaluation.model_dump_json()),
}
_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])


def data_of(dataset: Dataset, fields: Mapping[str, str]) -> Data:
    """Return a data set as rows to score, which are read anew each time.

    Raises:
        ValueError: A key of `fields` is not a field of a row.
    """
    named = read_fields([f"{target}={source}" for target, source in fields.items()])
    sources = {name for source in named.values() for name in source.split(",")}
    columns = [name for name in dataset.columns() or () if name in {*_SAMPLE, *sources}]
    chosen = dataset.select_columns(columns) if columns else dataset
    return Data(None, "the dataset", named, source=lambda: _rows(chosen))


def _rows(dataset: Dataset) -> Iterator[bytes]:
    for batch in dataset.iter_batches(batch_size=_ROWS, batch_format="pyarrow"):
        for row in batch.to_pylist():
            yield json.dumps(
                {name: _stated(value) for name, value in row.items()}, default=str
            ).encode()


def _stated(value: Any) -> Any:
    """Return a value without the fields that are None.

    Arrow gives the struct of each row the fields of all rows' structs.
    """
    if isinstance(value, dict):
        return {name: _stated(held) for name, held in value.items() if held is not None}
    return [_stated(held) for held in value] if isinstance(value, list) else value


def results_of(path: Path) -> Dataset:
    """Return the results in a file as a data set in the cluster's object store."""
    tables = [ray.put(table) for table in _tables(read_results(path))]
    return ray.data.from_arrow_refs(tables or [ray.put(_SCHEMA.empty_table())])


def _tables(found: Iterable[Result]) -> Iterator[pa.Table]:
    results = iter(found)
    while part := list(islice(results, _FINDINGS)):
        columns = {name: [read(one) for one in part] for name, (_, read) in _COLUMNS.items()}
        yield pa.table(columns, schema=_SCHEMA)
