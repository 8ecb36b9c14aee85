"""Make records as handlers write them: of plain runs, of guarded runs, and of undetermined ones."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evaluation, Evidence, MissingString, Sample, Span, Usage
from demur.guard import Attempt, Origin, TraceOutcome, feedback_on, verdict_of
from demur.observe import Record, SQLSink
from demur.schema import ABSTAIN

BEGIN = datetime(2026, 11, 20, 10, tzinfo=timezone.utc)
PASSAGE = "The Danube is 2,850 km long and flows into the Black Sea."
QUESTION, ANSWER = "How long is the Danube?", "The Danube is 2,850 km long."
WRONG = "The Danube is 4,000 km long, says the mayor of Ulm."
HOSTILE = '=cmd|"/c calc"!A1\x1b]0;pwned\x07\u202e\x9b2J\r\n<b>[bold]%_\\ "quoted", \u2028\x00end'
ANSWERING = Usage(calls=1, input_tokens=400, output_tokens=30, seconds=0.8)
JUDGING = Usage(calls=2, input_tokens=900, output_tokens=60, seconds=1.5)


def found(
    name: str = "RefChecker",
    score: float | None = 1.0,
    passed: bool | None = True,
    **fields: Any,
) -> Evaluation:
    """Return an evaluation that has a usage."""
    return Evaluation(name=name, score=score, passed=passed, **{"usage": JUDGING, **fields})


def refuted(name: str = "RefChecker", score: float = 0.25, **fields: Any) -> Evaluation:
    """Return a failed evaluation: a passage contradicts one claim and does not mention another."""
    place = Span(start=0, end=len(PASSAGE))
    against = Evidence(context=0, span=place, text=PASSAGE, label=ClaimLabel.CONTRADICTION)
    claims = (
        Claim(text="The Danube is a river", label=ClaimLabel.ENTAILMENT),
        Claim(text="The mayor of Ulm says so", label=ClaimLabel.NEUTRAL),
        Claim(
            text="The Danube is 4,000 km long",
            label=ClaimLabel.CONTRADICTION,
            evidence=(against,),
        ),
    )
    given = {"label": "Contradiction", "claims": claims, "explanation": "1 of 3 claims holds."}
    return found(name, score, False, **{**given, **fields})


def undetermined(name: str = "RefChecker", why: str = "the model gave no labels") -> Evaluation:
    """Return an evaluation that could not decide."""
    return found(name, None, None, error=why)


def nothing_to_check(name: str = "RefChecker") -> Evaluation:
    """Return the evaluation of an answer that states nothing."""
    return found(name, None, None, label=ABSTAIN)


def attempt(
    *evaluations: Evaluation,
    answer: str = ANSWER,
    question: str | None = QUESTION,
    origin: Origin = "chain",
    contexts: Sequence[str] = (PASSAGE,),
    **fields: Any,
) -> Attempt:
    """Return an attempt: an answer with its evaluations."""
    sample = Sample(answer=answer, contexts=tuple(map(_document, contexts)))
    given = {"verdict": verdict_of(evaluations), "usage": ANSWERING, **fields}
    return Attempt(
        **{"recovery": None, **given},
        origin=origin,
        question=question,
        answer=sample.answer,
        contexts=sample.contexts,
        evaluations=evaluations,
    )


def _document(text: str) -> Document:
    return Document(page_content=text, metadata={"source": "rivers.txt"})


def run(*attempts: Attempt, at: float = 0, **fields: Any) -> Record:
    """Return a run that ended `at` seconds after `BEGIN`."""
    time = BEGIN + timedelta(seconds=at)
    key = f"{int(time.timestamp() * 1000):012x}"  # A UUID of version 7 begins with the time.
    id = f"{key[:8]}-{key[8:]}-7{uuid.uuid4().hex[:3]}-{uuid.uuid4()!s:.4}-{uuid.uuid4().hex[:12]}"
    cost = sum((one.cost for one in attempts), Usage())
    given = {"id": id, "root": id, "time": time, "name": "rag", "model": "gpt-4o-mini"}
    return Record(**{**given, "attempts": attempts, "usage": cost, "seconds": 1.25, **fields})


def scored(*evaluations: Evaluation, at: float = 0, answer: str = ANSWER, **fields: Any) -> Record:
    """Return a run that a handler has scored."""
    return run(attempt(*(evaluations or (found(),)), answer=answer), at=at, **fields)


def guarded(
    *evaluations: Evaluation, outcome: TraceOutcome = "recovered", at: float = 0, **fields: Any
) -> Record:
    """Return a run of a guard, with an attempt for each evaluation."""
    attempts: list[Attempt] = []
    for number, one in enumerate(evaluations or (refuted(), found()), start=1):
        answer = WRONG if one.passed is False else ANSWER
        told = feedback_on(attempts[-1], number - 1) if attempts else None
        origin: Origin = "feedback" if attempts else "chain"
        recovery = "regenerate" if attempts else None
        attempts.append(
            attempt(one, answer=answer, origin=origin, recovery=recovery, feedback=told)
        )
    reason = f"answer {len(attempts)} is the last one"
    return run(*attempts, at=at, outcome=outcome, reason=reason, **fields)


def hostile(at: float = 0, **fields: Any) -> Record:
    """Return a run in which every text tries to control a terminal, a table or a spreadsheet."""
    label = ClaimLabel.CONTRADICTION
    missing = MissingString(string=HOSTILE, nearest=HOSTILE)
    claim = Claim(text=HOSTILE, label=label, missing_strings=(missing,))
    wrong = found(HOSTILE, 0.0, False, label=HOSTILE, explanation=HOSTILE, claims=(claim,))
    given = {"name": HOSTILE, "model": HOSTILE, "tags": (HOSTILE,), "reason": HOSTILE, **fields}
    bad = attempt(
        wrong, undetermined("x", HOSTILE), answer=HOSTILE, question=HOSTILE, contexts=(HOSTILE,)
    )
    return run(bad, at=at, **given)


def several(count: int, seed: int = 8) -> list[Record]:
    """Return unordered runs of all kinds from three days, with two models and three evaluators."""
    draw = random.Random(seed)

    def judged(name: str, decided: bool = False) -> Evaluation:
        score = round(draw.random(), 3)
        kinds = (
            found(name, score, score >= 0.5),
            refuted(name, score / 2),
            undetermined(name),
            nothing_to_check(name),
            found(name, score, None),
        )
        return draw.choices(kinds, (6, 3, 1, 1, 0 if decided else 1))[0]

    made = []
    for _ in range(count):
        at = draw.randrange(3 * 86_400)
        given: dict[str, Any] = {"model": draw.choice(("gpt-4o-mini", "llama3", None)), "at": at}
        kind = draw.random()
        if kind < 0.25:
            outcome: TraceOutcome = draw.choice(
                ("recovered", "nothing_to_check", "abstained", "best_effort")
            )
            tries = [refuted(), *(judged("RefChecker", True) for _ in range(draw.randint(0, 2)))]
            made.append(guarded(*tries, outcome=outcome, name="guard", **given))
        elif kind < 0.4:  # This run was streamed and judged sentence by sentence.
            sentences = [judged("RefChecker") for _ in range(draw.randint(2, 4))]
            made.append(scored(*sentences, **given))
        else:
            names = draw.sample(("RefChecker", "FEWL", "ReverseValidation"), draw.randint(1, 3))
            answer = draw.choice((ANSWER, WRONG, "100 % sure_of ÄPFEL", "it's [bold]; drop table"))
            made.append(scored(*map(judged, names), answer=answer, **given))
    return made


def jsonl(path: Path, records: Iterable[Record]) -> Path:
    """Write the records to a file of JSON lines, and return its path."""
    path.write_bytes(b"".join(one.as_json().encode() + b"\n" for one in records))
    return path


def sqlite(path: Path, records: Iterable[Record]) -> Path:
    """Write the records to a database in WAL mode, and return its path."""
    SQLSink(path).write_all(records)
    return path
