"""Describe judges that answer whether a document supports a claim, and nothing else.

Most public checkers are of this kind. They do not say whether the document contradicts a claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ChatMessage, convert_to_messages

from demur.runtime.prompting import as_shown, begun_by, word_share

_FIELD = re.compile(r"\{(document|claim|question|eos)\}")
_FIRST_TOKEN = {"logprobs": True, "top_logprobs": 20, "max_tokens": 1}


@dataclass(frozen=True)
class YesNoJudge:
    """Describe a judge that answers whether a document supports a claim.

    With `weights`, it runs in this process: `RefChecker(YesNoJudge(...))`. Without them, a chat
    model at an endpoint is asked: `RefChecker(model, checker=YesNoJudge(...))`.

    Examples:
        >>> YesNoJudge("{document}{eos}{claim}", 1, 0, weights="org/name")
        >>> YesNoJudge("{document} True? {claim}", "yes", "no")

    Args:
        template: What the judge reads. `{document}` and `{claim}` stand for the texts. In this
            process, `{eos}` is the tokenizer's end or separator. At an endpoint, `{question}` is
            the question, or nothing, and there may be several messages, each as (role, text).
        supported: What it answers of a claim that the document supports: the index of the class or
            the id of the token, and at an endpoint the word. For one logit, give 1.
        unsupported: What it answers of other claims. For one logit, give 0.
        weights: The name on the Hugging Face hub, or the folder, of a model that transformers
            reads: with two classes, with one logit (whose sigmoid is the probability of support),
            or an encoder-decoder that writes. None: the judge is at an endpoint.
        limit: The probability of support from which a claim counts as supported, in (0, 1).
        window: The size of a window of the references, in demur's tokens, at least 50.
        most: The most of its own tokens that a judge in this process reads at once. If a window and
            a claim have more, the claim gets no label.
        base: The model whose configuration and tokenizer belong to the weights, if these bring code
            of their own, which demur does not run. They are then read as a token classifier of
            T5's, whose answer stands at the first token.
        revision: The commit of the weights on the hub. None: what the cache has, or the newest.
        options: Further options of requests to an endpoint, with fields as in the template.
        verdict: A regular expression for the reply of an endpoint, whose first group is the answer.

    Raises:
        ValueError: The template has no place for a text, an argument is out of its range, or the
            answers are none that such a judge gives.
    """

    template: str | tuple[tuple[str, str], ...]
    supported: int | str
    unsupported: int | str
    weights: str | None = None
    limit: float = 0.5
    window: int = 320
    most: int = 512
    base: str | None = None
    revision: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    verdict: str = r"\W*(\w+)\W*"

    def __post_init__(self) -> None:
        here = self.weights is not None
        words = isinstance(self.template, str)
        if not words and (here or not all(isinstance(one, tuple) for one in self.template)):
            raise ValueError(
                "template: expected one text, or for an endpoint messages as (role, text), got "
                f"{self.template!r}"
            )
        fields = {*_FIELD.findall(f"{self.template} {'' if here else self.options}")}
        own = "eos" if here else "question"
        if not {"document", "claim"} <= fields <= {"document", "claim", own}:
            raise ValueError(
                "template: expected places for both texts, {document} and {claim}, and perhaps "
                f"{{{own}}}, got {self.template!r}"
            )
        answers = (self.supported, self.unsupported)
        kind, expected = (int, "numbers from 0 on") if here else (str, "words")
        known = [str(one).lower() for one in answers if isinstance(one, kind)]
        if len({*known} - {""}) < 2 or any(one[0] == "-" for one in known):
            raise ValueError(f"supported, unsupported: expected two {expected}, got {answers}")
        if not 0 < self.limit < 1 or self.window < 50 or re.compile(self.verdict).groups < 1:
            raise ValueError(
                "expected a limit in (0, 1), a window of at least 50 tokens and a verdict with a "
                f"group, got {self.limit}, {self.window} and {self.verdict!r}"
            )

    def filled(self, **texts: str) -> str:
        """Return the template of a judge in this process with texts in the places of its fields."""
        return str(_filled(self.template, texts))

    def messages(
        self, *, reference: str | None, claim: str | None, question: str | None = None, **_: Any
    ) -> list[BaseMessage]:
        """Return the messages that ask an endpoint about a claim."""
        turns = [("user", self.template)] if isinstance(self.template, str) else self.template
        filled = _filled(turns, _shown(reference, claim, question))
        usual = ("system", "user", "assistant")
        return [
            convert_to_messages([(role, text)])[0]
            if role in usual
            else ChatMessage(content=text, role=role)
            for role, text in filled
        ]

    def options_for(self, reference: str, claim: str, question: str | None) -> dict[str, Any]:
        """Return the options of a request about a claim; None takes one of demur's own away."""
        own = _filled(self.options, _shown(reference, claim, question))
        return {name: one for name, one in {**_FIRST_TOKEN, **own}.items() if one is not None}

    def support(
        self, tokens: Sequence[tuple[str, Mapping[str, float]]], said: bool
    ) -> float | None:
        """Return the probability of support by the token of the answer; None if no token is it.

        Args:
            tokens: The tokens of a reply, each with the log-probabilities in its place.
            said: What the reply says. Of several tokens, the last that begins an answer has to
                begin this one.

        Raises:
            UndeterminedError: The model was about to say something else.
        """
        words = (str(self.supported).lower(), str(self.unsupported).lower())
        places = [(begun_by(token, *words), likeliest) for token, likeliest in tokens]
        begun, likeliest = next((one for one in reversed(places) if one[0]), ([], {}))
        if begun != [words[not said]] and (len(tokens) > 1 or not begun):
            return None
        return word_share(likeliest, *words, "see that the endpoint serves this judge")

    def said(self, reply: str, cut: bool) -> bool | None:
        """Return whether a reply says that the claim is supported; None if it says neither.

        Of a reply of several tokens that was `cut` at their limit, the answer is missing.
        """
        found = re.fullmatch(self.verdict, reply.strip(), re.DOTALL)
        if found is None or (cut and self.options.get("max_tokens", 1) != 1):
            return None
        words = {str(self.supported).lower(): True, str(self.unsupported).lower(): False}
        return words.get((found[1] or "").lower())


def _shown(reference: str | None, claim: str | None, question: str | None) -> dict[str, str]:
    # Claims and questions in one line, so that they cannot look like fields of the template.
    claim, question = (" ".join(as_shown(text or "").split()) for text in (claim, question))
    return {"document": as_shown(reference or ""), "claim": claim, "question": question}


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    """Return a value with texts in the places of its fields."""
    if isinstance(value, str):  # in one pass, since a text may hold "{claim}"
        return _FIELD.sub(lambda found: texts.get(found[1], ""), value)
    if isinstance(value, Mapping):
        return {name: _filled(one, texts) for name, one in value.items()}
    return [_filled(one, texts) for one in value] if isinstance(value, (list, tuple)) else value
