"""How many unsupported answers still fail where what decides them stands in much other text.

Unsupported English answers of `texts.answers`, drawn with a fixed seed, each checked against its
own contexts alone and against the same amid other text, at a place that goes from the beginning to
the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from demur import RefChecker
from demur._share import Share
from demur_research.recorder import Item, Lines
from demur_research.runner import Finding
from demur_research.texts.answers import STATING, Answer
from demur_research.texts.bland import samples

Placed = tuple[int, Answer]
"""An answer, with its place among those that were drawn."""

HEAD = "| contexts | unsupported answers that do not pass | seconds | tokens |\n|---|---|---|---|"


def choose(count: int) -> list[Item[Placed]]:
    """So many unsupported answers."""
    wrong = [one for one in STATING if not one.supported and one.language == "en"]
    drawn = random.Random(1).sample(wrong, count)
    return [Item(one.id, repr(one), (at, one)) for at, one in enumerate(drawn)]


def padding(length: int) -> list[str]:
    """Passages about other things, of so many characters in all."""
    texts: list[str] = []
    for sample in samples(1 + length // 1000):
        texts += [document.page_content for document in sample.contexts]
        if sum(map(len, texts)) >= length:
            break
    return texts


def judges(checker: RefChecker, count: int, length: int) -> dict[str, Callable[[Placed], Finding]]:
    """What checks an answer against its own contexts, and amid so many characters of other text.

    Args:
        checker: Who checks.
        count: How many answers were drawn.
        length: Of the other text.
    """

    def amid(others: Sequence[str]) -> Callable[[Placed], Finding]:
        def judged(placed: Placed) -> Finding:
            number, case = placed
            at = len(others) * number // max(1, count - 1)
            text = "\n\n".join([*others[:at], *case.contexts, *others[at:]])
            started = time.monotonic()
            found = checker.invoke({**case.sample, "contexts": [text]})
            result = {
                "passed": found.passed,
                "seconds": time.monotonic() - started,
                "tokens": found.usage.input_tokens + found.usage.output_tokens,
            }
            return Finding(result, found.error)

        return judged

    others = padding(length)
    # How many answers there are decides where each stands.
    name = f"amid {sum(map(len, others)):,} characters, of {count} places"
    return {"their own": amid([]), name: amid(others)}


def line(name: str, cases: Sequence[Item[Placed]], lines: Lines) -> str:
    """A line of the table: recall with its interval, seconds and tokens an answer."""
    rows = [lines[case.key, name].result for case in cases]
    share = Share(sum(row["passed"] is not True for row in rows), len(rows))
    low, high = share.interval or (0.0, 1.0)
    seconds, tokens = (sum(row[what] for row in rows) / len(rows) for what in ("seconds", "tokens"))
    recall = f"{share.count} of {share.total} ({low:.0%} to {high:.0%})"
    return f"| {name.partition(', of')[0]} | {recall} | {seconds:.1f} | {tokens:,.0f} |"
