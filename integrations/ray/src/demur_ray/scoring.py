"""Scoring a Ray data set, from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ray.data import Dataset

from demur import __version__
from demur.scoring import Progress, open_run, read_input
from demur_ray._data import data_of, results_of
from demur_ray._pool import Pool
from demur_ray._sending import Given


def score(
    dataset: Dataset,
    evaluators: Given,
    *,
    out: str | Path,
    fields: Mapping[str, str] | None = None,
    max_concurrency: int = 16,
    workers: int | None = None,
    num_cpus: float | None = None,
    num_gpus: float = 0,
    settings: Mapping[str, Any] | None = None,
    restart: bool = False,
    retry: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Dataset:
    """Score the answers of a data set on the cluster that Ray is connected to.

    Workers score, and this process writes: each finding goes to `out` as soon as it is there, as
    `demur score` writes it. The same call goes on after any end. The data set is read twice, first
    to find faults before anything is spent: materialize one that is costly to compute.

    Examples:
        >>> rows = ray.data.read_parquet("s3://bucket/answers")
        >>> checkers = {"refchecker": RefChecker("openai:gpt-4o-mini")}
        >>> found = score(rows, checkers, out="scores.jsonl")
        >>> found.write_parquet("s3://bucket/scores")

    Args:
        dataset: Rows as `demur score` takes them: `answer` or `answers`, `question`, `contexts`,
            `reference`, `preceding`, `metadata` and `id`. A row without an id is called by a hash
            of these, so no two may be the same.
        evaluators: By the names that the results give them. Or a function that returns such a
            mapping, which runs in each worker: for chat models that are open, which cannot be sent.
        out: The file of results, on this machine.
        fields: Which column holds what, such as `{"question": "prompt"}`.
        max_concurrency: Answers under way at a time, and requests to one endpoint, in all workers
            together; at least 1.
        workers: How many processes, at least 1. None: as many as the cluster has CPUs for. Never
            more than `max_concurrency`.
        num_cpus: CPUs that Ray reserves for each worker, for what is computed there. One CPU of the
            cluster is left to Ray Data then, which reads meanwhile. None: none, as fits workers
            that wait for models.
        num_gpus: GPUs that Ray reserves for each worker, for a local similarity or NLI model.
        settings: What the scores depend on beside the evaluators' `fingerprints`, as JSON. A file
            of results of other settings is refused.
        restart: Whether to begin anew; results that are there are put aside.
        retry: Whether to score again what was left undetermined.
        progress: Told after each finding.

    Returns:
        A row for each answer and evaluator, those of earlier runs too: `key`, `row`, `answer`,
        `evaluator`, `finding`, `score`, `passed`, `label`, `error`, the usage, and `evaluation`,
        the whole as JSON.

    Raises:
        ScoringError: Rows are no answers, or `out` holds results of something else. Nothing was
            spent.
        TypeError, ValueError: An argument is of no use.
        DemurError: Nobody can score: a model or a package that is not at hand, or evaluators that
            cannot be sent. What was found is in `out`.
    """
    path = Path(out)
    with (
        read_input(data_of(dataset, fields or {})) as rows,
        Pool(evaluators, max_concurrency, workers, num_cpus, num_gpus, spare_cpus=1) as pool,
        open_run(
            rows,
            pool.scorers,
            path,
            settings={"demur": __version__, "evaluators": pool.settings, **(settings or {})},
            rows_at_once=max_concurrency,
            restart=restart,
            retry=retry,
        ) as run,
    ):
        if pool.asks_beforehand and run.done < run.total:
            run.prepare(partial(pool.prepare, rows.count))
        run.score(progress)
    return results_of(path)
