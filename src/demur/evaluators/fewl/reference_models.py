"""What is asked of the models about a question, and what their replies say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel

from demur._fingerprints import model_fingerprint, prompts_fingerprint
from demur._undetermined import UndeterminedError
from demur.evaluators.fewl.parsing import Pairs, parse_agreement, parse_answers, parse_pairs
from demur.evaluators.fewl.prompts import FEWLPrompts, numbered
from demur.runtime import ChatCall, Outcome, Reply, bounded

# What an item may take at most, so that a small model does not run on.
_ANSWER_TOKENS, _PAIR_TOKENS, _LINE_TOKENS = 48, 64, 6


@dataclass(frozen=True)
class ReferenceModels:
    """Who is asked: several models for an answer each, or one for several diversified answers.

    The papers' experiments do the latter, to save calls (v1, section 4.2).
    """

    models: tuple[BaseChatModel, ...]
    generator: BaseChatModel
    """Who writes the wrong and corrected pairs."""
    diversified: int | None
    """How many answers a lone model gives in one reply; None: each model gives one."""
    n_wrong: int
    """How many pairs are asked for."""
    prompts: FEWLPrompts = field(default_factory=FEWLPrompts)

    @property
    def who(self) -> str:
        """The reference answers' origin, in a line: other origins have other answers."""
        models = ", ".join(model_fingerprint(model) for model in self.models)
        return f"{self.diversified} answers of {models}" if self.diversified else models

    @property
    def how(self) -> str:
        """What all replies depend on beside the reference models, in a line."""
        return f"{self.pairs_by}, {self.wording}"

    @property
    def pairs_by(self) -> str:
        """The wrong and corrected answers' origin."""
        return f"{self.n_wrong} pairs of {model_fingerprint(self.generator)}"

    @property
    def wording(self) -> str:
        """The prompts, each by its name."""
        return prompts_fingerprint(self.prompts)

    def answer_calls(self, question: str) -> list[ChatCall]:
        """The calls that ask for reference answers: one for each model."""
        n = self.diversified
        prompt = numbered(self.prompts.answers, n) if n else self.prompts.answer
        if n == 1:
            prompt = self.prompts.answer
        messages = prompt.messages(question=question)
        most = _ANSWER_TOKENS * (n or 1)
        return [
            ChatCall(model, messages, "reference", bounded(model, most)) for model in self.models
        ]

    def answer(self, place: int, outcome: Outcome[Reply]) -> tuple[str, ...]:
        """What the model at a place says in its call's outcome.

        Raises:
            UndeterminedError: It says nothing.
        """
        who = "the reference model" if len(self.models) == 1 else f"reference model {place + 1}"
        reply = outcome.expect(f"{who} gave no answer")
        read = parse_answers(reply.text, self.diversified or 1, reply.truncated)
        if not read:
            raise UndeterminedError(f"{who} gave no answer that can be read: {reply.text[:80]!r}")
        return read

    def pairs_call(self, question: str) -> ChatCall:
        """The one call that asks for all wrong and corrected answers (v2, section D.3)."""
        messages = numbered(self.prompts.pairs, self.n_wrong).messages(question=question)
        most = _PAIR_TOKENS * self.n_wrong
        return ChatCall(self.generator, messages, "pairs", bounded(self.generator, most))

    def pairs(self, outcome: Outcome[Reply]) -> Pairs:
        """The pairs in that call's outcome.

        Raises:
            UndeterminedError: There are none, for it failed.
        """
        reply = outcome.expect("the model that writes wrong answers gave none")
        return parse_pairs(reply.text, reply.truncated)

    def agreement_calls(
        self, question: str, answers: Sequence[str], pairs: Pairs
    ) -> list[ChatCall]:
        """One call for each reference answer: with which of the statements does it agree?

        v1, section 2.1 and figure 4: expertise by asking instead of by similarity.
        """
        lines = (f"{at}. {text}" for at, (text, _) in enumerate(_statements(pairs), start=1))
        statements = "\n".join(lines)
        most = _LINE_TOKENS * 2 * len(pairs.usable)
        calls = []
        for at, answer in enumerate(answers):
            model = self.models[at if len(self.models) > 1 else 0]
            messages = self.prompts.agreement.messages(
                question=question, answer=answer, statements=statements
            )
            calls.append(ChatCall(model, messages, "agreement", bounded(model, most)))
        return calls

    def agreement(self, outcomes: Sequence[Outcome[Reply]], pairs: Pairs) -> tuple[float, ...]:
        """Each reference's expertise; empty where a reply cannot be read.

        It is the share of corrected answers that the reference agrees with, less that of wrong
        ones.

        Raises:
            UndeterminedError: A call failed.
        """
        expertise = []
        for at, outcome in enumerate(outcomes, start=1):
            sides = self.agreed(at, outcome, pairs)
            if not all(sides):
                return ()
            wrong, corrected = (sum(side) / len(side) for side in sides)
            expertise.append(corrected - wrong)
        return tuple(expertise)

    def agreed(
        self, number: int, outcome: Outcome[Reply], pairs: Pairs
    ) -> tuple[list[bool], list[bool]]:
        """Whether a reference agrees with each wrong answer, and with each corrected one.

        Those that its reply says nothing of are left out (v1, figure 4).

        Args:
            number: The reference's, for an error's words.
            outcome: Of its call in `agreement_calls`.
            pairs: What that call was about.

        Raises:
            UndeterminedError: The call failed.
        """
        reply = outcome.expect(f"reference {number} was asked with what it agrees, and failed")
        statements = _statements(pairs)
        sides: tuple[list[bool], list[bool]] = [], []
        verdicts = parse_agreement(reply.text, len(statements))
        for agrees, (_, corrected) in zip(verdicts, statements, strict=True):
            if agrees is not None:
                sides[corrected].append(agrees)
        return sides


def _statements(pairs: Pairs) -> list[tuple[str, bool]]:
    """Wrong and corrected answers, mixed, so that their places tell nothing; True: corrected."""
    sides = [(text, at == 1) for pair in pairs.usable for at, text in enumerate(pair)]
    random.Random(repr(pairs.usable)).shuffle(sides)
    return sides
