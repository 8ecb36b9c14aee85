"""Hold the words of a claim against its windows, beside the small judge.

The small judge is nearly blind to what a text speaks of: it supports three in ten claims by a text
about something else. How many words of a claim its windows lack says something that the judge does
not see. What this is worth, and how its numbers were chosen, is in decision 67.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from demur._text import UNSPACED, words
from demur.evaluators.refchecker.checking import Checker, Findings, Group, WindowFinding, label_of
from demur.evaluators.refchecker.content_words import beginnings, content_words
from demur.evaluators.refchecker.languages import likely
from demur.evaluators.refchecker.references import window_text
from demur.local import WordFit, calibrated
from demur.runtime import Steps

_QUESTION = re.compile(r".*[?？؟]", re.DOTALL)
# A claim with fewer content words is a bare value, and a text with a smaller share of function
# words is a table, code or a list: there, words say nothing.
_LEAST_WORDS, _LEAST_PROSE = 3, 0.2


def with_words(
    check: Checker, fit: WordFit, supported_from: float | None, by_words: bool
) -> Checker:
    """Return a checker whose probabilities of Entailment depend on the words of the claim too.

    Without `by_words` no penalty is taken off, as where words say nothing.
    """
    count = counted if by_words else lambda claim, texts: None

    def check_all(groups: Sequence[Group], question: str | None) -> Steps[list[Findings]]:
        answers = yield from check(groups, question)
        return [
            _by_window([*_weighed(group, findings, fit, supported_from, count)])
            for group, findings in zip(groups, answers, strict=True)
        ]

    return check_all


def _weighed(
    group: Group,
    findings: Findings,
    fit: WordFit,
    supported_from: float | None,
    count: Callable[[str, Sequence[str]], tuple[int, int] | None],
) -> Iterator[list[WindowFinding]]:
    """Yield the findings of each claim, one for each window."""
    claims, windows = group
    for claim, of_claim in zip(claims, zip(*findings, strict=True), strict=True):
        read = [
            window_text(window)
            for window, finding in zip(windows, of_claim, strict=True)
            if finding.probabilities
        ]
        lacking = fit.penalty(*found) if (found := count(claim.alone, read)) else 0.0
        yield [_lowered(finding, lacking, fit, supported_from) for finding in of_claim]


def _by_window(of_claims: Sequence[Sequence[WindowFinding]]) -> Findings:
    return [[*of_window] for of_window in zip(*of_claims, strict=True)]


def _lowered(
    finding: WindowFinding, penalty: float, fit: WordFit, supported_from: float | None
) -> WindowFinding:
    if not finding.probabilities:
        return finding
    shares = calibrated(finding.probabilities, fit.temperature, fit.shift - penalty)
    return WindowFinding(label_of(shares, supported_from), shares)


def counted(claim: str, texts: Sequence[str]) -> tuple[int, int] | None:
    """Count the content words of a claim: the most that one text has, and those that no text has.

    The words of a question before the answer do not count. Words are compared by their first
    letters.

    Returns:
        Both numbers. None where words say nothing: the claim is a bare value, or in a script
        without spaces; the texts are in another language, or a table, or code.
    """
    text = "\n".join(texts)
    said = _QUESTION.sub("", claim).strip() or claim
    wanted = beginnings(said)
    if (
        len(wanted) < _LEAST_WORDS
        or UNSPACED.search(said)
        or not {*likely(claim)} & {*likely(text)}
        or _share_of_function_words(text) < _LEAST_PROSE
    ):
        return None
    held = [wanted & beginnings(one) for one in texts]
    return max(map(len, held)), len(wanted.difference(*held))


def _share_of_function_words(text: str) -> float:
    telling, every = content_words(text), [word for word, _, _ in words(text)]
    return sum(word not in telling for word in every) / len(every) if every else 0.0
