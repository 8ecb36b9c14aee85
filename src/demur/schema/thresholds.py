"""Define Threshold: the score from which an answer passes, and how it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from demur._system import write_whole
from demur.errors import DemurError
from demur.schema.base import Text, Value
from demur.schema.fingerprints import host_of, hosts_in, with_hosts
from demur.schema.invalid import in_words
from demur.schema.shares import wilson

OnAbstain = Literal["pass", "fail"]
"""What a guard does with an answer that states nothing to check: let it pass, or fail it."""
ThresholdMethod = Literal["learn-then-test", "best-f1", "percentile"]
_TESTED = "learn-then-test"


class Threshold(Value):
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
