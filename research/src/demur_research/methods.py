"""Methods on PHD with a model that is asked now: recorded one by one, then put side by side."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import MappingProxyType

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ValidationError

from demur._fingerprints import model_fingerprint
from demur._text import replace_surrogates
from demur.errors import DemurError
from demur.evaluators import AllFalse, Evaluator, LMvsLM, ReverseValidation, ZeroShot
from demur.evaluators.reverse_validation.share import share_met
from demur.schema import Evaluation, Sample
from demur_research.datasets.phd import Judged
from demur_research.datasets.recorded import VARIANTS, Exchange, Variant
from demur_research.replay import ALL_FALSE, LMVSLM, ZERO_SHOT, Cost, Judging, matchers, rejected

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


# Of each line: what does not begin like it is somebody else's file, and not to be cut.
_BEGINNING = b'{"key":'


class Line(BaseModel):
    """What one method found of one passage."""

    key: str
    """Of the passage."""
    passage: str
    """The digest of its entity and its text."""
    model: str
    """The fingerprint of the one that was asked."""
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
    retry: bool = False,
) -> None:
    """Have each method judge each passage, and append what it finds; what is there is kept.

    The entity is given, as in the paper's experiments.

    Args:
        passages: What is judged.
        methods: Names in `METHODS`.
        model: Who is asked.
        path: The recording, JSON lines.
        told: How many are done, and of how many, after each.
        retry: Whether to judge again what was left undetermined.

    Raises:
        ValueError: Two passages have one key; the file cannot be written, or holds what another
            model said, or is about another passage.
        DemurError: A line could not be written.
    """
    if len({one.key for one in passages}) < len(passages):
        raise ValueError("the data has an id twice: what is recorded would fit both")
    who = model_fingerprint(model)
    mend(path)
    there = read(path, passages, who) if path.exists() else ()
    done = {
        (line.key, line.method) for line in there if not (retry and line.evaluation.undetermined)
    }
    wanted = [(method, one) for method in dict.fromkeys(methods) for one in passages]
    lacking = [(method, one) for method, one in wanted if (one.key, method) not in done]
    evaluators = {method: METHODS[method](model) for method in methods}
    try:
        path.open("ab").close()
    except OSError as error:
        raise _cannot("write", path, error) from error
    for at, (method, one) in enumerate(lacking, start=1):
        sample = Sample(answer=one.text, metadata={"entity": one.entity})
        found = evaluators[method].invoke(sample)
        line = Line(key=one.key, passage=_digest(one), model=who, method=method, evaluation=found)
        _append(path, line)
        told(len(wanted) - len(lacking) + at, len(wanted))


def mend(path: Path) -> int:
    """Cut off a last line that is not whole, as a `record` that was killed may leave it.

    Returns:
        How many bytes it had.

    Raises:
        ValueError: The file cannot be read, or is no recording: then it is left as it is.
    """
    if not path.exists():
        return 0
    held = _held(path)
    if not (held.startswith(_BEGINNING) or _BEGINNING.startswith(held)):
        raise ValueError(f"{path} is there and is no recording: name another file")
    whole = held.rfind(b"\n") + 1
    if whole < len(held):
        try:
            os.truncate(path, whole)
        except OSError as error:
            raise _cannot("write", path, error) from error
    return len(held) - whole


def read(path: Path, passages: Sequence[Judged], who: str | None = None) -> Iterator[Line]:
    """The lines of a recording about some passages, in the order in which they were written.

    Args:
        path: The recording.
        passages: Those that count; lines about others are left out.
        who: The fingerprint of the model that has to have been asked; None: any, but only one.

    Raises:
        ValueError: A line is of another model or passage, or cannot be read.
    """
    known = {one.key: _digest(one) for one in passages}
    for number, raw in enumerate(_held(path).splitlines(keepends=True), start=1):
        try:
            line = Line.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            why = f"{where}: {first['msg']}" if where else first["msg"]
            cut = "" if raw.endswith(b"\n") else "; demur-bench record cuts it off and goes on"
            raise ValueError(
                f"{path}, line {number}: it is no line of a recording ({why}){cut}"
            ) from error
        who = who or line.model
        if line.model != who:
            raise ValueError(
                f"{path}, line {number}: {line.model} was asked, and not {who}: name another file"
            )
        if line.key not in known:
            continue
        if known[line.key] != line.passage:
            raise ValueError(
                f"{path}, line {number}: {line.key} is another passage than in the data"
            )
        yield line


def _append(path: Path, line: Line) -> None:
    text = json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
    try:
        with path.open("ab") as out:
            out.write(replace_surrogates(text).encode() + b"\n")
    except OSError as error:
        why = _cannot("write", path, error)
        raise DemurError(f"{why}; what is there is kept, and the same goes on") from error


def _held(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _cannot("read", path, error) from error


def _cannot(do: str, path: Path, error: OSError) -> ValueError:
    return ValueError(f"cannot {do} {path}: {error.strerror or error}")


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
        lines: Of a recording; of two about the same the later one counts.
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
        for matcher in matchers(variant):
            verdicts = {
                key: _rejected(names[key], evaluation, variant, matcher, percentage)
                for key, evaluation in found.items()
            }
            yield Judging(method, matcher, verdicts, cost)


def _failed(evaluation: Evaluation) -> bool | None:
    return None if evaluation.passed is None else not evaluation.passed


def _rejected(
    entity: str, evaluation: Evaluation, variant: Variant, matcher: str, percentage: float
) -> bool | None:
    """By the second stage; None where nothing was said in it."""
    reply, query = (evaluation.details.get(name) for name in ("reply", "query"))
    if reply is None:
        return None
    said, met = Exchange(str(reply), None), share_met(str(reply), str(query))
    return rejected(entity, said, variant, matcher, percentage, met)


def _cost(evaluations: Sequence[Evaluation]) -> Cost:
    spent = [evaluation.usage for evaluation in evaluations]
    return Cost(
        fmean(usage.input_tokens + usage.output_tokens for usage in spent),
        fmean(usage.seconds for usage in spent),
    )


def _digest(one: Judged) -> str:
    return hashlib.sha256(f"{one.entity}\0{one.text}".encode()).hexdigest()
