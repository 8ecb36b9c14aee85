"""The demonstration: a model answers from memory and from a passage, and both are checked.

The passages are documentation strings of Python's standard library, which every machine has. What
the model answers, and what the checker says of it, is not known beforehand.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from rich.console import Console
from rich.rule import Rule

from demur import RefChecker, display
from demur.errors import DemurError, ModelCallError
from demur.evaluators.base import Evaluator
from demur.models.calls import ChatCall, Reply, Steps, ask, drive
from demur.schema import ClaimLabel, Evaluation, Sample, Usage
from demur.text import count_tokens, sentences

LONGEST_PASSAGE = 250
"""Tokens of a passage: longer ones would make the demonstration slow."""
LONGEST_ANSWER = 70
"""Tokens of an answer."""

_INSTRUCTIONS = (
    "You answer questions about Python's standard library. Reply with one or two short, complete "
    "sentences in your own words: facts in plain text, no code."
)


@dataclass(frozen=True)
class Topic:
    """A question, and whose documentation answers it."""

    module: str
    name: str
    question: str

    @property
    def title(self) -> str:
        """The full name of what is documented."""
        return f"{self.module}.{self.name}"


TOPICS = (
    Topic(
        "os",
        "removedirs",
        "What does os.removedirs do with parent directories, and what if one is not empty?",
    ),
    Topic(
        "difflib",
        "get_close_matches",
        "How many matches does difflib.get_close_matches return by default, what is its default "
        "cutoff, and in which order do the matches come?",
    ),
    Topic(
        "functools",
        "lru_cache",
        "What happens with functools.lru_cache when maxsize is None, and how can one see the "
        "statistics of the cache?",
    ),
)


@dataclass(frozen=True)
class Passage:
    """A question with the text that answers it."""

    title: str
    question: str
    text: str


@dataclass(frozen=True)
class Round:
    """One answer, and what was found of it."""

    passage: Passage
    informed: bool
    """Whether the model was shown the passage."""
    answer: str
    answering: Usage
    evaluation: Evaluation


@dataclass(frozen=True)
class Tally:
    """The labels of the claims of several answers."""

    answers: int
    passed: int
    undetermined: int
    claims: int
    entailed: int
    contradicted: int
    neutral: int


def choose_passages(topics: Iterable[Topic] = TOPICS) -> list[Passage]:
    """The topics that this Python documents at a length that suits.

    Raises:
        DemurError: There are none, as in a Python that runs without docstrings.
    """
    documented = [(topic, prose(_documentation(topic) or "")) for topic in topics]
    found = [
        Passage(topic.title, topic.question, text)
        for topic, text in documented
        if 0 < count_tokens(text) <= LONGEST_PASSAGE
    ]
    if not found:
        raise DemurError(
            "This Python has no documentation strings to check answers against. "
            "Run the demo without -OO and PYTHONOPTIMIZE."
        )
    return found


def _documentation(topic: Topic) -> str | None:
    try:
        return inspect.getdoc(attrgetter(topic.name)(importlib.import_module(topic.module)))
    except (ImportError, AttributeError):
        return None


def prose(text: str) -> str:
    """The paragraphs of a documentation string that hold no code."""
    return "\n\n".join(
        paragraph
        for paragraph in text.split("\n\n")
        if " " in paragraph
        and not any(line.startswith((" ", ">>>")) for line in paragraph.splitlines())
    )


def rounds(
    model: BaseChatModel, evaluator: Evaluator, passages: Iterable[Passage]
) -> Iterator[Round]:
    """Each question answered from memory, then from its passage, each answer checked.

    Raises:
        ModelCallError: The model gave no answer.
    """
    for passage in passages:
        for informed in (False, True):
            steps = _answer(model, passage, informed)
            answer, ledger = drive(steps, {}, None)
            sample = Sample(
                question=passage.question,
                answer=answer,
                contexts=(Document(page_content=passage.text),),
            )
            spent = sum(ledger.values(), Usage())
            yield Round(passage, informed, answer, spent, evaluator.invoke(sample))


def _answer(model: BaseChatModel, passage: Passage, informed: bool) -> Steps[str]:
    call = ChatCall(model, _prompt(passage, informed), "answer", {"max_tokens": LONGEST_ANSWER})
    (outcome,) = yield from ask([call])
    if outcome.error is not None:
        raise ModelCallError(f"The model gave no answer: {outcome.error}")
    return _complete(outcome.value)


def _prompt(passage: Passage, informed: bool) -> list[BaseMessage]:
    shown = f"Documentation of {passage.title}:\n{passage.text}\n\n" if informed else ""
    return [SystemMessage(_INSTRUCTIONS), HumanMessage(f"{shown}Question: {passage.question}")]


def _complete(reply: Reply) -> str:
    """The answer without a last sentence that was cut off, if that leaves anything."""
    spans = sentences(reply.text)
    if reply.truncated and len(spans) > 1:
        return reply.text[: spans[-2][1]]
    return reply.text.strip()


def tally(played: Sequence[Round]) -> Tally:
    """Count labels over all claims, and verdicts over all answers."""
    found = [one.evaluation for one in played]
    labels = [claim.label for evaluation in found for claim in evaluation.claims]
    return Tally(
        answers=len(found),
        passed=sum(evaluation.passed is True for evaluation in found),
        undetermined=sum(evaluation.passed is None for evaluation in found),
        claims=len(labels),
        entailed=labels.count(ClaimLabel.ENTAILMENT),
        contradicted=labels.count(ClaimLabel.CONTRADICTION),
        neutral=labels.count(ClaimLabel.NEUTRAL),
    )


def tally_line(name: str, counts: Tally) -> str:
    """A tally in a sentence."""
    if not counts.claims:
        return f"{name}: no claims in {counts.answers} answers"
    line = (
        f"{name}: {counts.entailed} of {counts.claims} claims entailed by the documentation "
        f"({counts.entailed / counts.claims:.0%}), {counts.contradicted} contradicted, "
        f"{counts.neutral} neither; {counts.passed} of {counts.answers} answers passed"
    )
    return line + (f", {counts.undetermined} undecided" if counts.undetermined else "")


def play(console: Console, model: BaseChatModel) -> None:
    """Run the demonstration, printing each answer as soon as it has been checked.

    Raises:
        DemurError: The model gave no answer, or there is nothing to ask about.
    """
    passages = choose_passages()
    display.say(
        console,
        f"A language model answers {len(passages)} questions about Python's standard library, "
        "from memory and then with the documentation in front of it. The same model then checks "
        "each answer, claim by claim, against that documentation. Nothing here is prepared: a "
        "small model makes mistakes, as an author and as a judge.",
    )
    started = time.monotonic()
    played: list[Round] = []
    for one in rounds(model, RefChecker(model), passages):
        if not one.informed:
            _show_passage(console, one.passage)
        _show_round(console, one)
        played.append(one)
    _show_summary(console, played, time.monotonic() - started)


def _show_passage(console: Console, passage: Passage) -> None:
    console.print()
    if console.is_terminal:
        console.print(Rule(passage.title))
    display.say(console, f"Question ({passage.title}):", passage.question, style="bold")


def _show_round(console: Console, one: Round) -> None:
    how = "with the documentation" if one.informed else "from memory"
    console.print()
    display.say(console, f"Answer {how}:", display.harmless(one.answer), style="bold cyan")
    display.say(console, f"answering: {display.usage_line(one.answering)}", style="dim")
    display.show(console, one.evaluation, ("",))  # one reference needs no name


def _show_summary(console: Console, played: Sequence[Round], seconds: float) -> None:
    console.print()
    for name, informed in (("From memory", False), ("With the documentation", True)):
        counts = tally([one for one in played if one.informed is informed])
        display.say(console, tally_line(name, counts), style="bold")
    spent = sum((one.answering + one.evaluation.usage for one in played), Usage())
    display.say(console, f"In all: {display.usage_line(spent)} of calls; {seconds:.0f} s went by.")
