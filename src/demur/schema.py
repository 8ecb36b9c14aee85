"""The values that pass between the parts: what is judged, and what was found.

All are frozen pydantic models that survive a JSON round trip
(`Evaluation.model_validate_json(evaluation.model_dump_json())`).
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
from demur._jsonl import write_whole
from demur._notebook import ShownInNotebooks
from demur._text import one_line, replace_surrogates
from demur.errors import DemurError


def _clean(value: object) -> object:
    return replace_surrogates(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_clean)]
"""A string in which lone surrogates became U+FFFD, one for one, so that offsets still hold."""


_MOST = 2**40


def _at_most(number: float) -> float:
    return type(number)(min(number, _MOST))


_Count = Annotated[int, Field(ge=0), AfterValidator(_at_most)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ClaimLabel(str, Enum):
    """What a reference says of a claim."""

    ENTAILMENT = "Entailment"
    """The reference supports the claim."""
    NEUTRAL = "Neutral"
    """The reference neither supports nor contradicts the claim."""
    CONTRADICTION = "Contradiction"
    """The reference contradicts the claim."""

    def __str__(self) -> str:
        return self.value


class Category(str, Enum):
    """The kinds of hallucination that the papers tell apart (FEWL v1, appendix A; v2, appendix B).

    Their "factual inaccuracy" is two categories here, since it is found in two ways: a reference
    says otherwise, or nothing supports the answer.
    """

    CONTRADICTION = "contradiction"
    """A reference says otherwise."""
    UNSUPPORTED = "unsupported"
    """Nothing that was asked or read supports it."""
    IRRELEVANT = "irrelevant"
    """It does not address the question, or makes no sense."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of it rules out another."""

    def __str__(self) -> str:
        return self.value


class Failure(str, Enum):
    """What is wrong with an answer, for whoever is to do something about it."""

    NEUTRAL = "neutral"
    """It makes a claim that is not in the references."""
    CONTRADICTION = "contradiction"
    """It makes a claim that a reference contradicts."""
    MISMATCH = "mismatch"
    """What it says does not lead back to what was asked about."""
    VAGUE = "vague"
    """It could stand as the answer to other questions too."""
    IRRELEVANT = "irrelevant"
    """It does not address the question."""
    SELF_CONTRADICTION = "self_contradiction"
    """One part of it rules out another."""
    CITATION = "citation"
    """A citation in it names no source, or one that does not support its sentence."""
    NOTHING = "nothing_to_check"
    """It states nothing that could be checked."""
    OTHER = "other"
    """An evaluator rejects it without a kind."""

    @property
    def category(self) -> Category | None:
        """The papers' category of this failure.

        None for an answer that states nothing, which is no hallucination, for one that cites the
        wrong source, and for one that is rejected without a kind: a low score does not say what is
        wrong.
        """
        return _CATEGORIES.get(self)

    def __str__(self) -> str:
        return self.value


_CATEGORIES = {
    Failure.NEUTRAL: Category.UNSUPPORTED,
    Failure.CONTRADICTION: Category.CONTRADICTION,
    # The model knows nothing that leads from what the answer says to what it is about.
    Failure.MISMATCH: Category.UNSUPPORTED,
    # It fits other questions as well, so it does not address this one in particular.
    Failure.VAGUE: Category.IRRELEVANT,
    Failure.IRRELEVANT: Category.IRRELEVANT,
    Failure.SELF_CONTRADICTION: Category.SELF_CONTRADICTION,
}


class Usage(_Value):
    """What an evaluation cost. Values add up: `Usage() + usage`.

    None is above 2**40, by which more is counted as this much: sums stay finite, and fit into a
    database, whatever an endpoint reports.
    """

    calls: _Count = 0
    """Requests sent to a model endpoint, retries included."""
    cached: _Count = 0
    """Requests answered without a call: by a LangChain cache, or by an identical one in flight."""
    input_tokens: _Count = 0
    """Prompt tokens, as the endpoint reported them (0 where it reports none)."""
    output_tokens: _Count = 0
    """Generated tokens, as the endpoint reported them (0 where it reports none)."""
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_at_most)] = 0.0
    """Time spent in calls, summed over the calls: calls that overlap count each."""

    def price(self, read: float, written: float) -> float:
        """What its tokens cost, at these prices of a million tokens of prompts and of replies."""
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
    """A half-open range `[start, end)` of character offsets into an original string."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)

    @model_validator(mode="after")
    def _in_order(self) -> Span:
        if self.end < self.start:
            raise ValueError(f"end ({self.end}) must not be before start ({self.start})")
        return self


class Evidence(_Value):
    """The place in a reference that decided a claim's label."""

    context: int | None = Field(default=None, ge=0)
    """Index into the contexts that were used; None when it is `Sample.reference`."""
    span: Span
    """Where it stands in that context's `page_content` (or in the reference)."""
    text: Text
    """The characters of that span."""
    label: ClaimLabel
    """What this passage says of the claim."""


class Claim(_Value):
    """One unit of fact in an answer: a triplet or a sentence (RefChecker, section 3)."""

    text: Text
    """The claim as a statement."""
    triplet: tuple[Text, Text, Text] | None = None
    """Subject, predicate, object; None for a sentence or a statement."""
    span: Span | None = None
    """Where the answer says it; None when no word of it stands in the answer."""
    path: Text | None = None
    """The value of a structured answer that says it, such as "$.items[0].price"; None for an answer
    in prose, and where `span` is None."""
    label: ClaimLabel | None = None
    """None when it was not checked, or when the label is missing or unreadable (see `error`)."""
    probabilities: dict[ClaimLabel, float] | None = None
    """Probability of each label, in [0, 1] with sum 1, where the checker gives them."""
    evidence: tuple[Evidence, ...] = ()
    """The passages that decided the label; empty for Neutral."""
    missing_quantities: tuple[Text, ...] = ()
    """The claim's quantities, as written there, that stand nowhere in what it was held against."""
    error: Text | None = None
    """Why there is no label."""


def failure_of(claim: Claim) -> Failure | None:
    """What is wrong with a claim by its label; None where nothing is, or nothing is known."""
    if claim.label is ClaimLabel.NEUTRAL:
        return Failure.NEUTRAL
    return Failure.CONTRADICTION if claim.label is ClaimLabel.CONTRADICTION else None


class Sample(_Value):
    """What an evaluator reads: an answer, and what it is to be held against."""

    question: Text | None = None
    """The question that was answered, if there was one."""
    answer: Text
    """The answer under judgement. A mapping, a list or a pydantic object is taken as its JSON."""
    contexts: Contexts = ()
    """The documents the answer was given from. Strings are taken as documents."""
    reference: Text | None = None
    """A text known to be right, such as a gold answer."""
    preceding: Text = ""
    """What was said right before the answer: for understanding it, and not under judgement."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """Anything the caller wants to keep with the sample."""

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
"""What one evaluation says, in a word. "nothing_to_check": the answer states nothing that could be
checked; "scored": the evaluator has no threshold."""


class Evaluation(ShownInNotebooks, _Value):
    """What an evaluator found.

    Either it is determined (`error` is None), or undetermined (`error` says why, and `score`,
    `label` and `passed` are None): never a pass by default, never NaN.
    """

    name: str
    """The evaluator's name."""
    score: float | None = Field(default=None, allow_inf_nan=False)
    """Higher is better; the evaluator's docstring gives the range. None when undetermined."""
    label: str | None = None
    """The verdict in a word; the evaluator's docstring lists them."""
    passed: bool | None = None
    """Whether the answer is good enough. None if undetermined, if the answer states nothing to
    check, or without threshold."""
    failure: Failure | None = None
    """What is wrong with the answer, where that is not told by its claims' labels. None if it
    passed, or if the evaluator knows no kinds."""
    explanation: Text = ""
    """Why, in a sentence that a person can read."""
    claims: tuple[Claim, ...] = ()
    """The claims found in the answer, with labels and evidence."""
    usage: Usage = Usage()
    """What this evaluation cost."""
    error: Text | None = None
    """Set only when undetermined: why no decision could be made. It may quote the answer, or what a
    provider said; for whoever gets no trace there is `cause`."""
    cause: Text | None = None
    """Why it is undetermined, in words for anyone to see: the errors of the calls that failed, by
    class and HTTP status, such as "RateLimitError 429"; or "no contexts". None where the evaluator
    tells none, as of an unreadable reply."""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """Every number behind the score, as JSON values."""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    """What the score depends on beside the sample: models, prompts, similarity, options, each in a
    text that tells it from others. Scores with other fingerprints cannot be compared with this one.
    Empty where the evaluator tells none."""

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
        """Whether the evaluator could not decide."""
        return self.error is not None

    @property
    def nothing_to_check(self) -> bool:
        """Whether the answer states nothing to check, so that there was nothing to decide.

        An evaluation that has a score, claims or an error besides found something after all.
        """
        found = (self.passed, self.score, self.error)
        return self.label == ABSTAIN and found == (None, None, None) and not self.claims

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is wrong with the answer, without repeats; empty unless it failed.

        An answer that contradicts itself, or cites a wrong source, has this failure alone. Else the
        claims that are labelled as wrong tell the failures. Without such a claim it is `failure`,
        or "other".
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
        """What it says, in a word."""
        if self.undetermined:
            return "undetermined"
        if self.passed is not None:
            return "passed" if self.passed is True else "failed"
        return "nothing_to_check" if self.nothing_to_check else "scored"

    def __str__(self) -> str:
        """A text to read, as `print` shows it: the finding, then a line for each claim.

        It has no control characters, whatever stands in the answer. All fields are in the `repr`.
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
    why = f" ({one_line(claim.error)})" if claim.error else ""
    return f"{label}: {one_line(claim.text)}{why}"


def _quoted(evidence: Evidence) -> str:
    where = "reference" if evidence.context is None else f"reference {evidence.context + 1}"
    text = one_line(evidence.text)
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[: _LONGEST_QUOTE - 1].rstrip()}…"
    return f'     {where}: "{text}"'


OnAbstain = Literal["pass", "fail"]
"""What a guard does with an answer that states nothing to check: lets it pass, or fails it."""
ThresholdMethod = Literal["learn-then-test", "best-f1", "percentile"]
_TESTED = "learn-then-test"


class Threshold(_Value):
    """The score from which an answer passes, how it was chosen, and for which evaluator.

    `demur.calibration` chooses one, and evaluators take it in the place of a number. It holds for
    the scores that it was chosen from: an evaluator whose fingerprints are others refuses it.
    """

    value: float = Field(allow_inf_nan=False)
    """An answer passes if its score is this or more."""
    method: ThresholdMethod
    """How it was chosen. Only "learn-then-test" guarantees anything, see `docs/thresholds.md`."""
    target: float | None = Field(default=None, gt=0, lt=1)
    """Of "learn-then-test": at most this share of hallucinated answers passes, ..."""
    confidence: float | None = Field(default=None, gt=0, lt=1)
    """... unless the sample was unlucky, which has a probability of at most 1 less this."""
    percentile: float | None = Field(default=None, ge=0, le=100)
    """Of "percentile": how many answers of a hundred were to fail, at most."""
    evaluator: Text | None = None
    """The name of the evaluator whose scores they were."""
    fingerprints: dict[str, str] = Field(default_factory=dict)
    """Of those scores, see `Evaluation.fingerprints`."""
    on_abstain: OnAbstain
    """How answers that state nothing to check were counted: as passing ("pass") or as failing
    ("fail"). A guard that lets them pass refuses a threshold that counted them as failing."""
    samples: int = Field(ge=1)
    """Answers that it was chosen from: those that state nothing to check too, and repeats once."""
    passed: int = Field(ge=0)
    """How many of them pass."""
    hallucinated: int | None = Field(default=None, ge=0)
    """How many of them are labelled as hallucinated; None without labels."""
    passed_hallucinated: int | None = Field(default=None, ge=0)
    """How many of those pass."""

    @model_validator(mode="after")
    def _says_how(self) -> Threshold:
        of = {"target": _TESTED, "confidence": _TESTED, "percentile": "percentile"}
        for name, method in of.items():
            given = getattr(self, name) is not None
            if given is not (self.method == method):
                wrong = "is of" if given else "is missing, with"
                raise ValueError(f"{name} {wrong} method={method!r}: this one has {self.method!r}")
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

    def save(self, path: str | Path) -> None:
        """Write it to a file, as JSON: whole, or not at all. The file is for its owner only.

        Raises:
            DemurError: The file cannot be written. What was there before is then still there.
        """
        try:
            write_whole(Path(path), self.model_dump_json(indent=2).encode() + b"\n")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DemurError(f"cannot write {path}: {why}") from error

    def with_hosts(self, hosts: Mapping[str, str]) -> Threshold:
        """The same threshold for a model that another host serves, such as a gateway or a region.

        You vouch for it that the scores are the same there; nothing else about the model may
        differ.

        Args:
            hosts: From the host that its scores were made with to the one that is asked now, each
                with its path, as a refusal names them, or as a URL:
                `{"api.openai.com/v1": "https://gateway.example/v1"}`.

        Raises:
            ValueError: Its scores were made with no such host; the message names those that were.
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
        """Read one that was saved.

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
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            why = f"{where}: {first['msg']}" if where else first["msg"]
            raise DemurError(
                f"{path} holds no threshold ({why}): expected a file that `demur calibrate` or "
                "`Threshold.save` wrote"
            ) from error
