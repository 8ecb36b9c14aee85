"""What a model says of CHALE's questions for FEWL: asked, recorded, and read again.

Each kind of reply is a configuration of its own: reference answers, wrong and corrected pairs, and
with which of these the references agree. So other pairs stand beside the same answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from demur import DemurError
from demur._undetermined import UndeterminedError
from demur.evaluators import FEWL, FEWLPrompts
from demur.evaluators.fewl.neighbors import KnownQuestion
from demur.evaluators.fewl.reference_models import ReferenceModels
from demur.runtime import ChatCall, Outcome, Reply, ask_all, drive
from demur_research.pairs import PROMPTS
from demur_research.recorder import Item, Line, Lines
from demur_research.runner import Finding

Side: TypeAlias = Literal["non_hallu", "half_hallu", "hallu"]
SIDES: tuple[Side, ...] = ("non_hallu", "half_hallu", "hallu")

_MIN_PAIRS: int = FEWL.model_fields["min_pairs"].default


@dataclass(frozen=True)
class Question:
    """A question of CHALE with its three answers."""

    key: str
    question: str
    short_answer: str
    """What an answer has to say, in a few words."""
    answers: Mapping[Side, str]


def questions(folder: Path, seed: int = 0) -> list[Question]:
    """The rows that can be used, in an order that the seed decides.

    Rows with markup, and those whose half wrong answer is the wrong one, are left out.

    Raises:
        ValueError: There is no such file.
    """
    found = []
    try:
        with (folder / "chale" / "chale.jsonl").open(encoding="utf-8") as file:
            for row in map(json.loads, file):
                if not (row["flags"]["markup_in_answers"] or row["flags"]["half_equals_hallu"]):
                    answers: dict[Side, str] = {side: row[side] for side in SIDES}
                    found.append(Question(row["id"], row["question"], row["short_answer"], answers))
    except OSError as error:
        raise ValueError(f"cannot read {error.filename}: {error.strerror}") from error
    return sorted(found, key=lambda one: hashlib.sha256(f"{seed}:{one.question}".encode()).digest())


def items(chosen: Sequence[Question]) -> list[Item[Question]]:
    """The questions as a recording knows them."""
    return [Item(one.key, one.question, one) for one in chosen]


class NoModel(BaseChatModel):
    """Stands for the model whose replies were recorded, and has no others."""

    @property
    def _llm_type(self) -> str:
        return "recorded"

    def _generate(self, messages: list[BaseMessage], *arguments: Any, **options: Any) -> ChatResult:
        raise DemurError("the recording holds no reply to this: record it with --record")


@dataclass(frozen=True)
class Asked:
    """What a model is asked of each question, and under which names that is recorded."""

    n_answers: int = 5
    n_wrong: int = 5
    pairs: str = "denied"
    """One of `PROMPTS`."""

    @property
    def answers_name(self) -> str:
        """The configuration of the reference answers."""
        return f"{self.n_answers} answers"

    @property
    def pairs_name(self) -> str:
        """The configuration of the wrong and corrected pairs."""
        return f"{self.n_wrong} pairs, {self.pairs}"

    @property
    def agreement_name(self) -> str:
        """The configuration of what the references agree with."""
        return f"agreement of {self.answers_name} with {self.pairs_name}"

    def references(self, model: BaseChatModel | None = None) -> ReferenceModels:
        """Who is asked; by default nobody, for what is read again."""
        who, prompts = model or NoModel(), replace(FEWLPrompts(), pairs=PROMPTS[self.pairs])
        return ReferenceModels((who,), who, self.n_answers, self.n_wrong, prompts)

    def judges(self, model: BaseChatModel) -> dict[str, Callable[[Question], Finding]]:
        """What asks for the answers and for the pairs."""
        references = self.references(model)
        return {
            self.answers_name: lambda one: _said(references.answer_calls(one.question)),
            self.pairs_name: lambda one: _said([references.pairs_call(one.question)]),
        }

    def agreement(
        self, model: BaseChatModel, lines: Lines
    ) -> dict[str, Callable[[Question], Finding]]:
        """What asks with which pairs each answer agrees; nothing where there are too few pairs."""
        references = self.references(model)

        def judge(one: Question) -> Finding:
            asked = self.known(one, lines)
            if asked.pairs is None or len(asked.pairs.usable) < _MIN_PAIRS:
                return Finding({"replies": []})
            return _said(references.agreement_calls(one.question, asked.answers, asked.pairs))

        return {self.agreement_name: judge}

    def known(self, one: Question, lines: Lines, agreement: bool = False) -> KnownQuestion:
        """What the replies of a recording say of a question.

        Raises:
            DemurError: They are missing, or cannot be read.
        """
        references = self.references()
        (answers_reply,) = _again(one, lines, self.answers_name)
        (pairs_reply,) = _again(one, lines, self.pairs_name)
        kept = _again(one, lines, self.agreement_name) if agreement else []
        try:
            answers, pairs = references.answer(0, answers_reply), references.pairs(pairs_reply)
            agreed = references.agreement(kept, pairs) if kept else None
        except UndeterminedError as error:
            raise DemurError(f"the recording of {one.key} cannot be read: {error}") from error
        return KnownQuestion(one.question, answers, pairs, agreed)

    def recorded(
        self, known: Sequence[Question], lines: Lines, agreement: bool = False
    ) -> list[Question]:
        """The questions of which everything is recorded, in the recording's order.

        Raises:
            DemurError: There is none.
        """
        names = [self.answers_name, self.pairs_name, *[self.agreement_name][: int(agreement)]]
        by_key = {one.key: one for one in known}
        keys = dict.fromkeys(key for key, _ in lines)
        found = [
            by_key[key]
            for key in keys
            if key in by_key and all((key, name) in lines for name in names)
        ]
        if not found:
            raise DemurError(
                f"the recording has no question with {' and '.join(names)}: record some"
            )
        return found


def _said(calls: Sequence[ChatCall]) -> Finding:
    """The replies, and what they cost."""
    outcomes, _ = drive(ask_all(calls), {}, None)
    return Finding({"replies": [_kept(outcome) for outcome in outcomes]})


def _kept(outcome: Outcome[Reply]) -> dict[str, Any]:
    if outcome.error is not None:
        raise DemurError(f"no reply to record: {outcome.error}")
    reply = outcome.value
    cost = outcome.usage.model_dump(include={"input_tokens", "output_tokens", "seconds"})
    return {"reply": reply.text, "truncated": reply.truncated, **cost}


def _again(one: Question, lines: Lines, configuration: str) -> list[Outcome[Reply]]:
    line: Line | None = lines.get((one.key, configuration))
    if line is None:
        raise DemurError(f"the recording holds no {configuration} of {one.key}: record them")
    return [Outcome(Reply(kept["reply"], kept["truncated"])) for kept in line.result["replies"]]
