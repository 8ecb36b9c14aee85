"""Make up the records of a log: runs about rivers, with claims and their evidence."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone

from langchain_core.documents import Document

from demur import Claim, ClaimLabel, Evaluation, Evidence, Span, Usage
from demur.guard import Attempt
from demur.observe import Record

_BEGIN = datetime(2026, 11, 1, tzinfo=timezone.utc)
_RIVERS = ("Alder", "Birch", "Cedar", "Dorn", "Esk", "Fal", "Gade", "Ham")
_PASSAGE = (
    "The {river} rises in the hills west of the town, is {length} km long and flows into the lake. "
    "Until 1954 it drove eleven mills, of which two still stand; one of them is a museum now, and "
    "the other one belongs to the university. In spring it often floods the meadows. "
)


def record(at: int, draw: random.Random) -> Record:
    """Return the record of a run about a river, with claims and their evidence."""
    river, length = draw.choice(_RIVERS), draw.randrange(40, 900)
    passage = _PASSAGE.format(river=river, length=length) * 3
    wrong = draw.random() < 0.3
    facts = (f"The {river} is {length + 7 * wrong} km long.", "It once drove eleven mills.")
    answer, quote = " ".join(facts), passage[: passage.index("lake") + 5]
    label = ClaimLabel.CONTRADICTION if wrong else ClaimLabel.ENTAILMENT
    found = Evidence(context=0, span=Span(start=0, end=len(quote)), text=quote, label=label)
    claims = (
        Claim(text=facts[0], span=Span(start=0, end=len(facts[0])), label=label, evidence=(found,)),
        Claim(text=facts[1], span=Span(start=len(facts[0]) + 1, end=len(answer)), label=label),
    )
    score = draw.betavariate(2, 4) if wrong else draw.betavariate(6, 2)
    usage = Usage(calls=2, input_tokens=900, output_tokens=60, seconds=1.5)
    evaluation = Evaluation(
        name="RefChecker", score=score, passed=score >= 0.5, claims=claims, usage=usage
    )
    attempt = Attempt(
        origin="chain",
        question=f"How long is the {river}, and what did it once drive? ({at})",
        answer=answer,
        contexts=tuple(Document(passage) for _ in range(3)),
        evaluations=(evaluation,),
        verdict="passed" if evaluation.passed else "failed",
        usage=usage,
    )
    return Record(
        id=f"{at:032x}",
        root=f"{at:032x}",
        time=_BEGIN + timedelta(seconds=at * 40),
        model=draw.choice(("small", "large")),
        metadata={"hallucinated": wrong} if draw.random() < 0.5 else {},
        attempts=(attempt,),
        usage=attempt.cost,
        seconds=2.0,
    )
