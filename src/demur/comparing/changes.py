"""Compare what an evaluator found in two runs over the same questions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from demur._text import one_line
from demur.calibration import differences
from demur.comparing.figures import Shift, shift
from demur.comparing.tables import code_span, decimal, interval, markdown_table
from demur.observe.log import JudgedAnswer

_FIGURES: Mapping[str, Callable[[JudgedAnswer], float | None]] = {
    "failure rate": lambda one: {"failed": 1.0, "passed": 0.0}.get(one.finding),
    "undetermined rate": lambda one: float(one.finding == "undetermined"),
    "mean score": lambda one: None if one.finding == "undetermined" else one.score,
}
_HEADS = ("figure", "pairs", "baseline", "95 %", "current", "95 %", "change", "95 %", "p")
_CONDITION = rf"({'|'.join(_FIGURES)}) (rises|falls) by (\d+\.?\d*) points? at (\d+\.?\d*) ?%"
_WORSE, _BETTER = "passed, then failed", "failed, then passed"
_MOST, _LONGEST = 50, 400
"""The number of answers that a comment lists, and the number of characters of each text."""

Pair: TypeAlias = tuple[str, JudgedAnswer | None, JudgedAnswer | None, Sequence[str]]
"""The group of two answers to one question, what an evaluator found in the first and in the second
(None if it did not judge it), and the question, with what failed if the answer got worse."""


@dataclass(frozen=True)
class Change:
    """Hold how the results of one evaluator changed. A figure counts pairs that have it twice."""

    evaluator: str
    findings: Mapping[str, int]
    figures: Mapping[str, Shift]
    other_judge: str
    """Where the evaluator's fingerprints differ; empty if they are the same."""
    worse: Sequence[Sequence[str]]
    """The texts of the pairs that passed and then failed."""
    better: Sequence[Sequence[str]]


def changed(evaluator: str, pairs: Sequence[Pair]) -> Change:
    """Return how the results of an evaluator changed."""
    figures = {}
    for figure, value in _FIGURES.items():
        both = [(group, value(old), value(new)) for group, old, new, _ in pairs if old and new]
        if known := [row for row in both if None not in row]:
            groups, *sides = zip(*known, strict=True)
            before, after = (np.array(side, dtype=np.float64) for side in sides)
            figures[figure] = shift(before, after, groups, share=figure != "mean score")
    turns = defaultdict[str, list[Sequence[str]]](list, {_WORSE: [], _BETTER: []})
    for _, old, new, texts in pairs:
        found = (side.finding if side else "not judged" for side in (old, new))
        turns[", then ".join(found).replace("_", " ")].append(texts)
    parts = [one for _, *sides, _ in pairs for side in sides if side for one in side.parts]
    # An evaluation that failed with an error may have no fingerprints.
    prints = [one.fingerprints for one in parts if one.fingerprints or not one.undetermined]
    counts, told = {turn: len(each) for turn, each in turns.items()}, "; ".join(differences(prints))
    return Change(evaluator, counts, figures, told, turns[_WORSE], turns[_BETTER])


def pair_up(
    before: Mapping[str, str | None], after: Mapping[str, str | None]
) -> list[tuple[str, str]]:
    """Return the ids of answers that are a pair: with the same id, or else the same question.

    The values are the questions. If one occurs several times, its answers are paired in order.
    """
    others = _keyed(after, before)
    return [(id, others[key]) for key, id in _keyed(before, after).items() if key in others]


def _keyed(run: Mapping[str, str | None], other: Mapping[str, str | None]) -> dict[Hashable, str]:
    times: defaultdict[str, count[int]] = defaultdict(count)
    return {id if id in other or not q else (q, next(times[q])): id for id, q in run.items()}


class Condition(NamedTuple):
    """Hold a condition under which a change is too large: above `margin`, with `confidence`."""

    text: str
    figure: str
    falls: bool
    margin: float
    confidence: float

    @classmethod
    def read(cls, text: str) -> Condition:
        """Read a condition such as "mean score falls by 2 points at 95 %", or raise ValueError."""
        match = re.fullmatch(_CONDITION, " ".join(text.lower().split()), re.ASCII)
        if match is None or not 50 < float(match[4]) < 100:
            raise ValueError(
                f"expected FIGURE rises|falls by N points at C %, with {', '.join(_FIGURES)} as "
                f"FIGURE, C above 50 and below 100, and 0.01 as a point; got {one_line(text)!r:.99}"
            )
        margin, confidence = (float(number) / 100 for number in match.group(3, 4))
        return cls(text, match[1], match[2] == "falls", margin, confidence)

    def of(self, change: Change, tests: int = 1) -> dict[str, Any]:
        """Return whether it holds, as JSON values: None if the pairs are too few to tell.

        The confidence is raised, so that it holds for `tests` conditions together.
        """
        sure = min(1 - (1 - self.confidence) / tests, 1 - 2**-53)  # 1 has no quantile
        found, told = change.figures.get(self.figure), f"with {100 * sure:.6g} % confidence"
        groups, holds = found.groups if found else 0, None
        if found is None or 0.5**groups > 1 - sure:  # as if all had changed the same way
            why = f"cannot be told: {groups:,} questions with a {self.figure} are too few {told}"
        else:
            least = found.least(sure, falls=self.falls)
            holds, word = least > self.margin, "fall" if self.falls else "rise"
            why = f"{'holds' if holds else 'does not hold'}: the {word} is at least "
            why += f"{100 * least:.1f} points {told}"
        return {"condition": self.text, "evaluator": change.evaluator, "holds": holds, "why": why}


def changes_markdown(
    about: str, changes: Iterable[Change], verdicts: Iterable[Mapping[str, Any]]
) -> str:
    """Return changes as Markdown for a comment, in which no foreign text is more than text."""
    parts = [code_span(about)]
    for one in verdicts:
        parts.append(f"{code_span('{condition} ({evaluator})'.format(**one))} {one['why']}")
    for change in changes:
        counts = [(turn, f"{number:,}") for turn, number in change.findings.items()]
        rows = []
        for name, found in change.figures.items():
            sides = (found.before, found.after, found.difference)
            cells = [form(side) for side in sides for form in (decimal, interval)]
            p = f"{found.p:.2g}" if found.share else "–"
            rows.append([name, f"{found.pairs:,}", *cells, p])
        parts += [f"**Evaluator** {code_span(change.evaluator)}", markdown_table(_HEADS, rows)]
        if change.other_judge:
            parts.append(f"**The judge changed too:** {code_span(change.other_judge)}")
        parts.append(markdown_table(("findings", "pairs"), counts))
        for how, items in (("worse", change.worse), ("better", change.better)):
            lines = ["\n  - ".join(code_span(t[:_LONGEST]) for t in item) for item in items[:_MOST]]
            if rest := len(items) - len(lines):
                lines.append(f"{rest:,} more")
            if items:
                parts += [f"**{len(items):,} got {how}**", "<details><summary>Show</summary>"]
                parts += ["\n".join(f"- {line}" for line in lines), "</details>"]
    return "\n\n".join(parts) + "\n"
