"""Ask questions with known short answers about the texts of an index, and mark what is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from demur import Sample
from demur.evaluators.refchecker.coverage import stating
from demur_research.bench import Bench, place
from demur_research.datasets.rows import LabelledRow
from demur_research.texts import FOLDER, rows_of

Mark = Literal["right", "wrong", "refused"]

_LONGEST = 400
"""The most characters of a passage of an everyday text."""
_JOINED = re.compile(r"(?<=[a-z\d)”\"']\.)(?=[A-Z])")
"""The place between two sentences of HaluEval that stood in different articles."""
_SHORT = 600
"""The most characters of a text of another set."""


@dataclass(frozen=True)
class Asked:
    """Hold a question, the forms of a right answer, and the passages that the answer is in."""

    set: str
    """One of `SETS`."""
    question: str
    answers: tuple[str, ...]
    """Empty if the index has no answer."""
    others: tuple[str, ...]
    """Values that make an answer wrong."""
    passages: tuple[str, ...]
    """The passages of the text that the question is about."""

    @property
    def group(self) -> str:
        """Return what questions about the same text have in common."""
        return self.passages[0]

    def mark(self, answer: str) -> Mark:
        """Say what an answer is: right if it has one of `answers`, and none of `others`."""
        if not stating(Sample(question=self.question, answer=answer)):
            return "refused"
        right = any(_has(answer, form) for form in self.answers)
        return "wrong" if not right or any(_has(answer, form) for form in self.others) else "right"

    def is_answered_by(self, found: Iterable[str]) -> bool:
        """Return whether the passages that were found hold the answer.

        Where no passage has it in these words, as for "yes", all passages of the text count.
        """
        known = {*found}
        holding = [one for one in self.passages if any(_has(one, form) for form in self.answers)]
        if not holding:
            return bool(self.answers) and known.issuperset(self.passages)
        return not known.isdisjoint(holding)


def _has(text: str, form: str) -> bool:
    """Return whether a form stands in a text as whole words and numbers: no 5 is in "4.5"."""
    wanted = r"\s+".join(map(re.escape, form.casefold().split()))
    return bool(re.search(rf"(?<!\w)(?<!\d[.,:]){wanted}(?!\w)(?![.,:]\d)", text.casefold()))


def _of_everyday(bench: Bench) -> tuple[list[Asked], list[str]]:
    """Return our own questions, whose authors did not know who answers and who judges."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    cut = RecursiveCharacterTextSplitter(chunk_size=_LONGEST, chunk_overlap=0).split_text
    texts = {row.group: tuple(cut(row.contexts[0])) for row in bench.read("everyday")}
    asked = [
        Asked(
            "everyday", row["question"], (*row["answers"],), (*row["others"],), texts[row["text"]]
        )
        for row in rows_of(FOLDER / "questions.jsonl")
        if row["text"] in texts
    ]
    return asked, [passage for passages in texts.values() for passage in passages]


def _of_halueval(bench: Bench) -> tuple[list[Asked], list[str]]:
    """Return the questions of the judges' rows of HaluEval QA, and passages to search.

    A row of the judges has question and answer in its claim. Two claims, one of them right, share
    the question. Short texts of other sets, and of other rows of HaluEval QA, stand beside theirs.
    """
    pairs: dict[str, dict[str, LabelledRow]] = {}
    beside = [text for row in bench.read("halueval-qa") for text in _JOINED.split(row.contexts[0])]
    for row in bench.read("aggrefact"):
        if row.metadata.get("dataset") == "halueval_qa":
            name = "wrong" if row.answers[0].hallucinated else "right"
            pairs.setdefault(row.group, {})[name] = row
        elif len(row.contexts[0]) <= _SHORT:
            beside.append(row.contexts[0])
    asked = [one for pair in pairs.values() if len(pair) > 1 for one in _of_pair(**pair)]
    return asked, [passage for one in asked for passage in one.passages] + beside


def _of_pair(right: LabelledRow, wrong: LabelledRow) -> Iterator[Asked]:
    """Yield the question of two claims, if it ends with a question mark."""
    claim, other = right.answers[0].text, wrong.answers[0].text
    ends = [mark.end() for mark in re.finditer(r"\?", claim)]
    for end in [end for end in ends if other.startswith(claim[:end])][-1:]:
        if named := claim[end:].strip(' ".').split():
            answer = " ".join(named)
            forms = (answer, f"{answer}s", f"{named[0]} {named[-1]}")  # without middle names
            passages = tuple(map(str.strip, _JOINED.split(right.contexts[0])))
            yield Asked("halueval", claim[:end].strip(), forms, (), passages)


SETS: dict[str, Callable[[Bench], tuple[list[Asked], list[str]]]] = {
    "everyday": _of_everyday,
    "halueval": _of_halueval,
}
"""Functions from a bench to a set's questions and to the passages that are searched."""


def read(bench: Bench, names: Sequence[str]) -> tuple[list[Asked], list[str]]:
    """Return the questions of some sets, up to the limit of each, and all passages, each once.

    Passages that differ in blanks or capitals alone are one, since the index may confuse them.

    Raises:
        ValueError: There is no question about the texts.
    """
    asked: list[Asked] = []
    passages: list[str] = []
    for name in names:
        of_set, searched = SETS[name](bench)
        asked += sorted(of_set, key=lambda one: place(bench.seed, one.question))[: bench.limit]
        passages += searched
    if not asked:
        raise ValueError(
            f"no question is about the texts of {', '.join(names)}: expected those "
            "that docs/demur-bench.md names"
        )
    once = {"".join(one.casefold().split()): one.strip() for one in reversed(passages)}
    return asked, [*reversed(once.values())]
