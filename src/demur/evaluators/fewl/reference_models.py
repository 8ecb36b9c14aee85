"""Ask models about a question, and read their replies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.language_models import BaseChatModel

from demur.evaluators.fewl.parsing import Pairs, parse_agreement, parse_answers, parse_pairs
from demur.evaluators.fewl.prompts import FEWLPrompts, numbered
from demur.runtime import ChatCall, Outcome, Reply, UndeterminedError, bounded
from demur.schema.fingerprints import model_fingerprint, prompts_fingerprint

# The maximum number of tokens for an item, so that a small model does not write on and on.
_ANSWER_TOKENS, _PAIR_TOKENS, _LINE_TOKENS = 48, 64, 6


@dataclass(frozen=True)
class ReferenceModels:
    """Describe the models that are asked: several for one answer each, or one for several answers.

    The papers' experiments ask one model for several diversified answers, to save calls (v1,
    section 4.2).
    """

    models: tuple[BaseChatModel, ...]
    generator: BaseChatModel
    """The model that writes the wrong and corrected pairs."""
    diversified: int | None
    """The number of answers that a single model gives in one reply; None: each model gives one."""
    n_wrong: int
    """The number of pairs that are asked for."""
    prompts: FEWLPrompts = field(default_factory=FEWLPrompts)

    @property
    def who(self) -> str:
        """Return a line that identifies the origin of the reference answers."""
        models = ", ".join(model_fingerprint(model) for model in self.models)
        return f"{self.diversified} answers of {models}" if self.diversified else models

    @property
    def how(self) -> str:
        """Return a line with everything that the replies depend on beside the reference models."""
        return f"{self.pairs_by}, {self.wording}"

    @property
    def pairs_by(self) -> str:
        """Return a line that identifies the origin of the wrong and corrected answers."""
        return f"{self.n_wrong} pairs of {model_fingerprint(self.generator)}"

    @property
    def wording(self) -> str:
        """Return a text that identifies the prompts by their names."""
        return prompts_fingerprint(self.prompts)

    def answer_calls(self, question: str) -> list[ChatCall]:
        """Return the calls that ask for reference answers, one for each model."""
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
        """Return the answers in the outcome of the call to the model at `place`.

        Raises:
            UndeterminedError: The call failed, or its reply has no answer.
        """
        who = "the reference model" if len(self.models) == 1 else f"reference model {place + 1}"
        reply = outcome.expect(f"{who} gave no answer")
        read = parse_answers(reply.text, self.diversified or 1, reply.truncated)
        if not read:
            raise UndeterminedError(f"{who} gave no answer that can be read: {reply.text[:80]!r}")
        return read

    def pairs_call(self, question: str) -> ChatCall:
        """Return the one call that asks for all wrong and corrected answers (v2, section D.3)."""
        messages = numbered(self.prompts.pairs, self.n_wrong).messages(question=question)
        most = _PAIR_TOKENS * self.n_wrong
        return ChatCall(self.generator, messages, "pairs", bounded(self.generator, most))

    def pairs(self, outcome: Outcome[Reply]) -> Pairs:
        """Return the pairs in the outcome of `pairs_call`.

        Raises:
            UndeterminedError: The call failed.
        """
        reply = outcome.expect("the model that writes wrong answers gave none")
        return parse_pairs(reply.text, reply.truncated)

    def agreement_calls(
        self, question: str, answers: Sequence[str], pairs: Pairs
    ) -> list[ChatCall]:
        """Return one call for each reference answer that asks with which statements it agrees.

        Expertise is then found by asking instead of by similarity (v1, section 2.1 and figure 4).
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
        """Return the expertise of each reference; empty if a reply cannot be read.

        The expertise is the share of corrected answers that the reference agrees with, minus the
        share of wrong answers that it agrees with.

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
        """Return whether a reference agrees with each wrong answer and with each corrected answer.

        Statements that the reply says nothing about are left out (v1, figure 4).

        Args:
            number: The number of the reference, for the error message.
            outcome: The outcome of its call in `agreement_calls`.
            pairs: The pairs that the call asked about.

        Returns:
            One list for the wrong answers, and one for the corrected answers.

        Raises:
            UndeterminedError: The call failed.
        """
        reply = outcome.expect(f"asking reference {number} what it agrees with failed")
        statements = _statements(pairs)
        sides: tuple[list[bool], list[bool]] = [], []
        verdicts = parse_agreement(reply.text, len(statements))
        for agrees, (_, corrected) in zip(verdicts, statements, strict=True):
            if agrees is not None:
                sides[corrected].append(agrees)
        return sides


def _statements(pairs: Pairs) -> list[tuple[str, bool]]:
    """Return wrong and corrected answers in a random order, each with whether it is corrected.

    The order hides which answers are corrected, and is the same for the same pairs.
    """
    sides = [(text, at == 1) for pair in pairs.usable for at, text in enumerate(pair)]
    random.Random(repr(pairs.usable)).shuffle(sides)
    return sides
