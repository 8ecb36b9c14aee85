"""Define the values that pass between demur's parts: samples, evaluations, usage and thresholds.

All are frozen pydantic models. Each survives a JSON round trip:
`Evaluation.model_validate_json(evaluation.model_dump_json())`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import to_json

from demur._documents import Contexts
from demur._fingerprints import host_of, hosts_in, with_hosts
from demur._invalid import in_words
from demur._jsonl import write_whole
from demur._notebook import ShownInNotebooks
from demur._share import wilson
from demur._text import one_line, replace_surrogates
from demur.errors import DemurError


def _clean(value: object) -> object:
    return replace_surrogates(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
"""A string in which each lone surrogate has become one U+FFFD, so that offsets still hold."""


_MOST = 2**40


def _at_most(number: float) -> float:
    return type(number)(min(number, _MOST))


_Count = Annotated[int, Field(ge=0), AfterValidator(_at_most)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimLabel(str, Enum):
    """Name what a reference says about a claim."""

    ENTAILMENT = "Entailment"
    """The reference supports the claim."""
    NEUTRAL = "Neutral"
    """The reference neither supports nor contradicts the claim."""
    CONTRADICTION = "Contradiction"
    """The reference contradicts the claim."""

    def __str__(self) -> str:
        return self.value


class Category(str, Enum):
    """Name a kind of hallucination that the papers distinguish (FEWL v1, app. A; v2, app. B).

    The papers' "factual inaccuracy" is two categories here, because it is found in two ways: a
    reference contradicts the answer, or nothing supports it.
    """

    CONTRADICTION = "contradiction"
    """A reference contradicts the answer."""
    UNSUPPORTED = "unsupported"
    """Nothing that the evaluator asked or read supports the answer."""
    IRRELEVANT = "irrelevant"
    """The answer does not address the question, or makes no sense."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of the answer rules out another."""

    def __str__(self) -> str:
        return self.value


class Failure(str, Enum):
    """Name what is wrong with an answer, so that a guard or your code can act on it."""

    NEUTRAL = "neutral"
    """The answer makes a claim that no reference supports or contradicts."""
    CONTRADICTION = "contradiction"
    """The answer makes a claim that a reference contradicts."""
    MISMATCH = "mismatch"
    """What the answer says does not lead back to the entity that it is about."""
    VAGUE = "vague"
    """The answer would fit other questions as well."""
    IRRELEVANT = "irrelevant"
    """The answer does not address the question."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of the answer rules out another."""
    CITATION = "citation"
    """A citation in the answer names no source, or names a source that does not support its
    sentence."""
    NOTHING = "nothing_to_check"
    """The answer states nothing that can be checked."""
    OTHER = "other"
    """An evaluator rejected the answer and named no kind."""

    @property
    def category(self) -> Category | None:
        """Return the papers' category of this failure, or None where no category fits.

        None stands for three cases: the answer states nothing, which is no hallucination; it cites
        the wrong source; or an evaluator named no kind, because a low score does not say what is
        wrong.
        """
        return _CATEGORIES.get(self)

    def __str__(self) -> str:
        return self.value


_CATEGORIES = {
    Failure.NEUTRAL: Category.UNSUPPORTED,
    Failure.CONTRADICTION: Category.CONTRADICTION,
    # Nothing that the model knows leads from what the answer says back to the entity.
    Failure.MISMATCH: Category.UNSUPPORTED,
    # The answer fits other questions as well, so it does not address this one in particular.
    Failure.VAGUE: Category.IRRELEVANT,
    Failure.IRRELEVANT: Category.IRRELEVANT,
    Failure.SELF_CONTRADICTION: Category.SELF_CONTRADICTION,
}


class Usage(_Value):
    """Count what model calls cost. Values can be added: `Usage() + usage`.

    A count above 2**40 is stored as 2**40. Sums therefore stay finite and fit into a database,
    whatever an endpoint reports.
    """

    calls: _Count = 0
    """The requests that were sent to a model endpoint, including retries."""
    cached: _Count = 0
    """The requests that were answered without a call: by a LangChain cache, or by an identical
    request that was in flight."""
    input_tokens: _Count = 0
    """The prompt tokens that the endpoint reported; 0 if it reports none."""
    output_tokens: _Count = 0
    """The generated tokens that the endpoint reported; 0 if it reports none."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_at_most)] = 0.0
    """The time spent in calls, summed over the calls. Calls that overlap are each counted in
    full."""

    def price(self, read: float, written: float) -> float:
        """Return the cost of the tokens, at the given prices.

        Args:
            read: The price of a million tokens of prompts.
            written: The price of a million tokens of replies.

        Returns:
            The cost, in the currency of the prices.
        """
        return (self.input_tokens * read + self.output_tokens * written) / 1e6

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
        )


class Span(_Value):
    """Represent a half-open range `[start, end)` of character offsets into an original string."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.end < self.start:
            raise ValueError(f"end ({self.end}) must not be before start ({self.start})")
        return self


class Evidence(_Value):
    """Represent the passage of a reference that decided a claim's label."""

    context: int | None = Field(default=None, ge=0)
    """The index into the contexts that were used; None if the passage is in `Sample.reference`."""
    span: Span
    """Where the passage stands in that context's `page_content`, or in the reference."""
    text: Text
    """The characters of that span."""
    label: ClaimLabel
    """What this passage says about the claim."""


class MissingString(_Value):
    """Represent an identifier or a number that stands in none of the texts checked against."""

    string: Text
    """The string, as the claim writes it."""
    nearest: Text | None
    """The most similar string of the texts, as it stands there; None if none is similar."""

    def __str__(self) -> str:
        """Return what is missing, and the most similar string, in words."""
        similar = "" if self.nearest is None else f', where "{self.nearest}" is the most similar'
        return f'"{self.string}" stands in no reference{similar}'


class ActionOutcome(str, Enum):
    """Name what came of an action that an assistant says it did."""

    DONE = "done"
    """A call did what the claim says."""
    FAILED = "failed"
    """The call for it failed."""
    PENDING = "pending"
    """The call for it has not finished."""
    OTHERWISE = "otherwise"
    """The calls did something else than the claim says."""
    NEVER = "never"
    """No call is for it."""

    def __str__(self) -> str:
        return self.value


_OF_ACTION = {
    ActionOutcome.FAILED: "the call failed",
    ActionOutcome.PENDING: "the call has not finished",
    ActionOutcome.OTHERWISE: "the call was another",
    ActionOutcome.NEVER: "no such call was made",
}


class Claim(_Value):
    """Represent one unit of fact in an answer: a triplet or a sentence (RefChecker, section 3)."""

    text: Text
    """The claim as a statement."""
    triplet: tuple[Text, Text, Text] | None = None
    """The subject, the predicate and the object; None for a sentence or a statement."""
    span: Span | None = None
    """Where the answer makes the claim; None if no word of the claim stands in the answer."""
    path: Text | None = None
    """The path of the value of a structured answer that makes the claim, such as
    "$.items[0].price"; None for an answer in prose, and where `span` is None."""
    label: ClaimLabel | None = None
    """The label of the claim; None if the claim was not checked, or if no label could be read (see
    `error`)."""
    probabilities: dict[ClaimLabel, float] | None = None
    """The probability of each label, in [0, 1] and with the sum 1; None if the checker gives
    none."""
    support: float | None = Field(default=None, ge=0, le=1)
    """The probability of Entailment in the text that supports the claim most, in [0, 1]. None if
    the claim was not checked, or if the checker gives no probabilities."""
    evidence: tuple[Evidence, ...] = ()
    """The passages that decided the label; empty for Neutral."""
    missing_strings: tuple[MissingString, ...] = ()
    """The identifiers and exact numbers of the claim that stand in none of the texts that it was
    checked against. A claim that has some is not labelled Entailment."""
    action: ActionOutcome | None = None
    """What came of the action that the claim reports, by the calls in the contexts. None if there
    are no calls, or if the claim reports no action of the assistant and the calls do not refute
    it."""
    error: Text | None = None
    """Why the claim has no label."""

    @property
    def reason(self) -> str | None:
        """Return what the search for strings, or the calls, say against the claim, in words."""
        of_action = None if self.action is None else _OF_ACTION.get(self.action)
        return of_action or "; ".join(map(str, self.missing_strings)) or None


def failure_of(claim: Claim) -> Failure | None:
    """Return the failure that a claim's label means; None if it is entailed or has no label."""
    if claim.label is ClaimLabel.NEUTRAL:
        return Failure.NEUTRAL
    return Failure.CONTRADICTION if claim.label is ClaimLabel.CONTRADICTION else None


class Sample(_Value):
    """Hold an answer and the texts that an evaluator checks it against."""

    question: Text | None = None
    """The question that was answered, if there was one."""
    answer: Text
    """The answer to be judged. A mapping, a list or a pydantic object is converted to its JSON."""
    contexts: Contexts = ()
    """The documents from which the answer was generated. Strings are converted to documents."""
    reference: Text | None = None
    """A text that is known to be right, such as a gold answer."""
    preceding: Text = ""
    """The text right before the answer. It helps to understand the answer and is not judged
    itself."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Anything that you want to keep with the sample."""

    @field_validator("answer", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        if isinstance(value, (Mapping, list, BaseModel)):
            return to_json(value).decode()
        return value


ABSTAIN = "Abstain"
"""The label of an answer that states nothing to check."""
FACTUAL, NON_FACTUAL = "factual", "non-factual"
"""The labels of evaluators that judge an answer as a whole: it holds, or it does not."""


Finding = Literal["passed", "failed", "undetermined", "nothing_to_check", "scored"]
"""The result of one evaluation in a word. "nothing_to_check": the answer states nothing that can be
checked. "scored": the evaluator has no threshold."""


class Evaluation(ShownInNotebooks, _Value):
    """Hold the result of one evaluator for one answer.

    An evaluation is either determined (`error` is None) or undetermined. If it is undetermined,
    `error` says why, and `score`, `label` and `passed` are None. It is never a pass by default, and
    the score is never NaN.
    """

    name: str
    """The evaluator's name."""
    score: float | None = Field(default=None, allow_inf_nan=False)
    """The score; higher is better. The evaluator's docstring gives the range. None if undetermined,
    and if the evaluator gave no score."""
    label: str | None = None
    """The verdict in a word. The evaluator's docstring lists the possible labels."""
    passed: bool | None = None
    """Whether the answer is good enough; None if undetermined, if the answer states nothing to
    check, or if the evaluator has no threshold."""
    failure: Failure | None = None
    """What is wrong with the answer, where the labels of its claims do not say it. None if the
    answer passed, or if the evaluator names no kinds."""
    explanation: Text = ""
    """The reason for the result, in a sentence for a person."""
    claims: tuple[Claim, ...] = ()
    """The claims that were found in the answer, with labels and evidence."""
    usage: Usage = Usage()
    """What this evaluation cost."""
    error: Text | None = None
    """Why no decision could be made; set only if undetermined. It may quote the answer or a
    provider's message. Show `cause` instead to users who may not see those texts."""
    cause: Text | None = None
    """Why the evaluation is undetermined, in words that anyone may see: the class and HTTP status
    of each failed call, such as "RateLimitError 429", or "no contexts". None if the evaluator names
    no such cause, for example after an unreadable reply."""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """Every number behind the score, as JSON values."""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    """What the score depends on besides the sample: models, prompts, similarity and options, each
    as a text that identifies it. Scores with other fingerprints cannot be compared with this one.
    Empty if the evaluator gives none."""

    @model_validator(mode="after")
    def _undetermined_decides_nothing(self) -> Evaluation:
        if self.error is not None:
            decided = [n for n in ("score", "label", "passed") if getattr(self, n) is not None]
            if decided:
                raise ValueError(
                    f"error is set ({self.error!r}), so {', '.join(decided)} must be None: "
                    "an undetermined evaluation decides nothing"
                )
        return self

    @property
    def undetermined(self) -> bool:
        """Return whether the evaluator could not decide."""
        return self.error is not None

    @property
    def nothing_to_check(self) -> bool:
        """Return whether the answer states nothing to check, so that there was nothing to decide.

        It is False for an evaluation that has a verdict, a score, claims or an error.
        """
        found = (self.passed, self.score, self.error)
        return self.label == ABSTAIN and found == (None, None, None) and not self.claims

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return what is wrong with the answer, without repeats; empty unless it failed.

        An answer that contradicts itself, or cites a wrong source, has only this failure. Otherwise
        the labels of the wrong claims give the failures. If no claim is labelled as wrong, the
        failure is `failure`, or "other".
        """
        if self.passed is not False:
            return ()
        own = self.failure or Failure.OTHER
        if own in (Failure.SELF_CONTRADICTION, Failure.CITATION):
            return (own,)
        told = (failure_of(claim) for claim in self.claims)
        return tuple(dict.fromkeys(failure for failure in told if failure)) or (own,)

    @property
    def finding(self) -> Finding:
        """Return the result in a word."""
        if self.undetermined:
            return "undetermined"
        if self.passed is not None:
            return "passed" if self.passed is True else "failed"
        return "nothing_to_check" if self.nothing_to_check else "scored"

    def __str__(self) -> str:
        """Return a readable text, as `print` shows it: the finding, then a line for each claim.

        The text has no control characters, whatever the answer contains. The `repr` shows all
        fields.
        """
        head = [self.finding.replace("_", " ")]
        if self.label is not None and not self.nothing_to_check:
            head.append(one_line(self.label))
        if self.score is not None:
            head.append(f"score {self.score:.2f}")
        lines = [f"{one_line(self.name)}: {', '.join(head)}"]
        told = dict.fromkeys(text for text in (self.error, self.explanation) if text)
        lines += [f"  {one_line(text)}" for text in told]
        for number, claim in enumerate(self.claims, 1):
            lines += [f"  {number}. {_labelled(claim)}", *map(_quoted, claim.evidence)]
        return "\n".join(lines)


_LONGEST_QUOTE = 160


def _labelled(claim: Claim) -> str:
    label = "no label" if claim.label is None else claim.label.value
    reason = claim.reason or claim.error
    why = f" ({one_line(reason)})" if reason else ""
    return f"{label}: {one_line(claim.text)}{why}"


def _quoted(evidence: Evidence) -> str:
    where = "reference" if evidence.context is None else f"reference {evidence.context + 1}"
    text = one_line(evidence.text)
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[: _LONGEST_QUOTE - 1].rstrip()}…"
    return f'     {where}: "{text}"'


OnAbstain = Literal["pass", "fail"]
"""What a guard does with an answer that states nothing to check: let it pass, or fail it."""
ThresholdMethod = Literal["learn-then-test", "best-f1", "percentile"]
_TESTED = "learn-then-test"


class Threshold(_Value):
    """Hold the score from which an answer passes, how it was chosen, and for which evaluator.

    `demur.calibration` chooses a threshold, and evaluators accept it in place of a number. It is
    valid only for scores of the same kind. An evaluator whose fingerprints differ refuses it.
    """

    value: float = Field(allow_inf_nan=False)
    """The lowest score with which an answer passes."""
    method: ThresholdMethod
    """How the threshold was chosen. Only "learn-then-test" gives a guarantee; see
    `docs/thresholds.md`."""
    target: float | None = Field(default=None, gt=0, lt=1)
    """For "learn-then-test": the largest share of hallucinated answers that may pass."""
    confidence: float | None = Field(default=None, gt=0, lt=1)
    """For "learn-then-test": the probability, over the draw of the samples, with which the target
    holds."""
    percentile: float | None = Field(default=None, ge=0, le=100)
    """For "percentile": how many answers of a hundred may fail, at most."""
    evaluator: Text | None = None
    """The name of the evaluator that gave the scores."""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    """The fingerprints of those scores; see `Evaluation.fingerprints`."""
    on_abstain: OnAbstain
    """How answers that state nothing to check were counted: as passing ("pass") or as failing
    ("fail"). A guard that lets them pass refuses a threshold that counted them as failing."""
    samples: int = Field(ge=1)
    """The number of answers that the threshold was chosen from. Answers that state nothing to check
    are included, and repeated answers are counted once."""
    passed: int = Field(ge=0)
    """How many of these answers pass."""
    hallucinated: int | None = Field(default=None, ge=0)
    """How many of these answers are labelled as hallucinated; None without labels."""
    passed_hallucinated: int | None = Field(default=None, ge=0)
    """How many of the hallucinated answers pass; None without labels."""

    @model_validator(mode="after")
    def _says_how(self) -> Threshold:
        of = {"target": _TESTED, "confidence": _TESTED, "percentile": "percentile"}
        for name, method in of.items():
            given = getattr(self, name) is not None
            if given is not (self.method == method):
                wrong = "is only for" if given else "is missing: it is needed with"
                raise ValueError(
                    f"{name} {wrong} method={method!r}; this threshold has {self.method!r}"
                )
        if self.hallucinated is None and self.method != "percentile":
            raise ValueError(f"hallucinated is missing: method={self.method!r} needs labels")
        if (self.hallucinated is None) is not (self.passed_hallucinated is None):
            raise ValueError("hallucinated and passed_hallucinated go together: give both or none")
        return self

    @model_validator(mode="after")
    def _adds_up(self) -> Threshold:
        bad, bad_passed = self.hallucinated or 0, self.passed_hallucinated or 0
        good_passed = self.passed - bad_passed
        if not (bad_passed <= bad and 0 <= good_passed <= self.samples - bad):
            raise ValueError(
                f"the counts do not add up: of {self.samples} samples {self.passed} pass, and of "
                f"{bad} hallucinated ones {bad_passed}"
            )
        return self

    @property
    def kappa(self) -> tuple[float, float, float] | None:
        """Return Cohen's kappa of these decisions and the labels, and its interval of 95 %.

        It is optimistic, as the threshold was chosen on these answers. The interval is Wilson's, of
        the share of agreement. None without labels, or with only one label and one decision.
        """
        bad, bad_passed, size = self.hallucinated, self.passed_hallucinated, self.samples
        if bad is None or bad_passed is None:
            return None
        agreed = (bad - bad_passed + self.passed - bad_passed) / size
        chance = (bad * (size - self.passed) + (size - bad) * self.passed) / size**2
        if chance == 1:
            return None
        shares = (agreed, *wilson(agreed, size))
        kappa, low, high = (max(-1.0, (share - chance) / (1 - chance)) for share in shares)
        return kappa, low, high

    def save(self, path: str | Path) -> None:
        """Write the threshold to a file as JSON, completely or not at all.

        Only the owner can read the file.

        Raises:
            DemurError: The file cannot be written. Its earlier content is then still there.
        """
        try:
            write_whole(Path(path), self.model_dump_json(indent=2).encode() + b"\n")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DemurError(f"cannot write {path}: {why}") from error

    def with_hosts(self, hosts: Mapping[str, str]) -> Threshold:
        """Return the same threshold for a model that is served by another host, such as a gateway.

        You confirm that the scores are the same there: nothing else about the model may differ.

        Args:
            hosts: A mapping from the host that the scores were made with to the host that is used
                now. Give each with its path, as a refusal names it, or as a URL:
                `{"api.openai.com/v1": "https://gateway.example/v1"}`.

        Raises:
            ValueError: The scores were not made with such a host. The message names the known
                hosts.
        """
        known = sorted({host for text in self.fingerprints.values() for host in hosts_in(text)})
        called = {host_of(old): host_of(new) for old, new in hosts.items()}
        for old in called:
            if old not in known:
                raise ValueError(
                    f"this threshold was not chosen from scores of a model at {old}: expected one "
                    f"of {', '.join(known) or '(none: no model of it names a host)'}"
                )
        moved = {name: with_hosts(text, called) for name, text in self.fingerprints.items()}
        return self.model_copy(update={"fingerprints": moved})

    @classmethod
    def load(cls, path: str | Path) -> Threshold:
        """Read a threshold that was saved.

        Raises:
            DemurError: The file cannot be read, or holds no threshold.
        """
        try:
            raw = Path(path).read_bytes()
        except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
            why = getattr(error, "strerror", None) or error
            raise DemurError(f"cannot read {path}: {why}") from error
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            raise DemurError(
                f"{path} holds no threshold ({in_words(error)}): expected a file that "
                "`demur calibrate` or `Threshold.save` wrote"
            ) from error
