"""Methods on PHD with a model that is asked now: recorded one by one, then put side by side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel

from demur.benchmarks.replay import ALL_FALSE, LMVSLM, ZERO_SHOT, Cost, Judging, matchers, rejected
from demur.datasets.phd import Judged
from demur.datasets.recorded import VARIANTS, Exchange
from demur.evaluators.base import Evaluator
from demur.evaluators.baselines import AllFalse, LMvsLM, ZeroShot
from demur.evaluators.reverse_validation import ReverseValidation
from demur.models.fingerprints import model_fingerprint
from demur.schema import Evaluation, Sample

METHODS: Mapping[str, Callable[[BaseChatModel], Evaluator]] = MappingProxyType(
    {
        "qg": lambda model: ReverseValidation(model, variant="qg"),
        "em": lambda model: ReverseValidation(model, variant="em"),
        ZERO_SHOT: ZeroShot,
        LMVSLM: LMvsLM,
        ALL_FALSE: lambda model: AllFalse(),
    }
)
"""By the names that the replay gives them; how each is made for a model."""


@dataclass(frozen=True)
class Line:
    """What one method found of one passage."""

    key: str
    """Of the passage."""
    method: str
    evaluation: Evaluation


def drawn(passages: Sequence[Judged], most: int | None) -> list[Judged]:
    """So many passages, or all, in an order that only their texts decide."""
    return sorted(passages, key=_digest)[:most]


def record(
    passages: Sequence[Judged],
    methods: Sequence[str],
    model: BaseChatModel,
    path: Path,
    told: Callable[[int, int], None],
) -> None:
    """Have each method judge each passage, and append what it finds; what is there is kept.

    The entity is given, as in the paper's experiments.

    Args:
        passages: What is judged.
        methods: Names in `METHODS`.
        model: Who is asked.
        path: The recording, JSON lines.
        told: How many are done, and of how many, after each.

    Raises:
        ValueError: The recording holds what another model said, or about another passage.
    """
    who = model_fingerprint(model)
    done = {(line.key, line.method) for line in read(path, passages, who)} if path.exists() else ()
    wanted = [(method, one) for method in methods for one in passages]
    lacking = [(method, one) for method, one in wanted if (one.key, method) not in done]
    evaluators = {method: METHODS[method](model) for method in methods}
    with path.open("a", encoding="utf-8") as out:
        for at, (method, one) in enumerate(lacking, start=1):
            sample = Sample(answer=one.text, metadata={"entity": one.entity})
            evaluation = evaluators[method].invoke(sample)
            row = {
                **{"key": one.key, "passage": _digest(one), "model": who, "method": method},
                "evaluation": evaluation.model_dump(mode="json"),
            }
            out.write(json.dumps(row) + "\n")
            out.flush()
            told(len(wanted) - len(lacking) + at, len(wanted))


def read(path: Path, passages: Sequence[Judged], who: str | None = None) -> Iterator[Line]:
    """The lines of a recording about some passages.

    Args:
        path: The recording.
        passages: Those that count; lines about others are left out.
        who: The fingerprint of the model that has to have been asked; None: any, but only one.

    Raises:
        ValueError: A line is of another model or passage, or cannot be read.
    """
    known = {one.key: _digest(one) for one in passages}
    with path.open(encoding="utf-8") as file:
        for number, raw in enumerate(file, start=1):
            try:
                row = json.loads(raw)
                key, digest, model = row["key"], row["passage"], row["model"]
                line = Line(key, row["method"], Evaluation.model_validate(row["evaluation"]))
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(
                    f"{path}, line {number}: it is no line of a recording: {error!r:.200}"
                ) from error
            who = who or model
            if model != who:
                raise ValueError(
                    f"{path}, line {number}: {model} was asked, and not {who}: name another file"
                )
            if key in known and known[key] != digest:
                raise ValueError(
                    f"{path}, line {number}: {key} is another passage than in the data"
                )
            if key in known:
                yield line


def is_recording(path: Path) -> bool:
    """Whether a file is one that `record` writes, by its first line."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    return first.startswith("{") and '"evaluation"' in first


def judgings(
    passages: Sequence[Judged], lines: Sequence[Line], percentage: float
) -> Iterator[Judging]:
    """What each recorded method decides, Reverse Validation with every matcher.

    Args:
        passages: The data.
        lines: Of a recording.
        percentage: The least that entity matching has to give; "published_em" has its own.
    """
    names = {one.key: one.entity for one in passages}
    for method in dict.fromkeys(line.method for line in lines):
        found = {line.key: line.evaluation for line in lines if line.method == method}
        cost = _cost(list(found.values()))
        variant = next((one for one in VARIANTS if one == method), None)
        if variant is None:
            verdicts = {key: _failed(evaluation) for key, evaluation in found.items()}
            yield Judging(method, None, verdicts, cost)
            continue
        said = {key: _exchange(evaluation) for key, evaluation in found.items()}
        for matcher in matchers(variant):
            verdicts = {
                key: None
                if exchange is None
                else rejected(names[key], exchange, variant, matcher, percentage)
                for key, exchange in said.items()
            }
            yield Judging(method, matcher, verdicts, cost)


def _failed(evaluation: Evaluation) -> bool | None:
    return None if evaluation.passed is None else not evaluation.passed


def _exchange(evaluation: Evaluation) -> Exchange | None:
    """The second stage; None where nothing was said in it."""
    reply = evaluation.details.get("reply")
    return None if reply is None else Exchange(str(reply), None)


def _cost(evaluations: Sequence[Evaluation]) -> Cost:
    spent = [evaluation.usage for evaluation in evaluations]
    return Cost(
        fmean(usage.input_tokens + usage.output_tokens for usage in spent),
        fmean(usage.seconds for usage in spent),
    )


def _digest(one: Judged) -> str:
    return hashlib.sha256(f"{one.entity}\0{one.text}".encode()).hexdigest()
