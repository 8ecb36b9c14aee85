"""Score a Ray data set from Python."""

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

    Workers score, and this process writes each result to `out` as soon as it is there, as `demur
    score` does. If a run ends early, the same call continues it. The data set is read twice, first
    to find faults before anything is spent. Materialize a data set that is expensive to compute.

    Examples:
        >>> rows = ray.data.read_parquet("s3://bucket/answers")
        >>> checkers = {"refchecker": RefChecker("openai:gpt-4o-mini")}
        >>> found = score(rows, checkers, out="scores.jsonl")
        >>> found.write_parquet("s3://bucket/scores")

    Args:
        dataset: Rows as `demur score` takes them: `answer` or `answers`, `question`, `contexts`,
            `reference`, `preceding`, `metadata` and `id`. A row without an id gets a hash of these
            values as its id, so no two such rows may be the same.
        evaluators: A mapping from names, which the results show, to evaluators. Or a function that
            returns such a mapping. The function runs in each worker, so it can make chat models
            that cannot be sent.
        out: The file of results, on this machine.
        fields: Which column holds which field, such as `{"question": "prompt"}`.
        max_concurrency: The most answers under way at a time, and the most requests to one endpoint
            at a time, in all workers together; at least 1.
        workers: The number of processes, at least 1, which is reduced to `max_concurrency` if it is
            higher. None: as many as the cluster has CPUs for.
        num_cpus: The CPUs that Ray reserves for each worker, for evaluators that compute. One CPU
            of the cluster is then left to Ray Data, which reads meanwhile. None: no CPUs, which
            fits workers that wait for models.
        num_gpus: The GPUs that Ray reserves for each worker, for a local similarity or NLI model.
        settings: What else the scores depend on, beside the evaluators' `fingerprints`, as values
            of JSON. A file of results with other settings is refused.
        restart: Whether to begin anew. Existing results are put aside.
        retry: Whether to score answers again that were left undetermined.
        progress: A function that is called after each result.

    Returns:
        A row for each answer and evaluator, with the results of earlier runs: `key`, `row`,
        `answer`, `evaluator`, `finding`, `score`, `passed`, `label`, `error`, the usage, and
        `evaluation`, which is the whole result as JSON.

    Raises:
        ScoringError: Some rows are not answers, or `out` holds results of another data set or with
            other settings. Nothing was spent.
        TypeError, ValueError: An argument has a wrong type, or is out of its range.
        DemurError: No worker can score: a model or a package is not available, or the evaluators
            cannot be sent. The results so far are in `out`.
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
