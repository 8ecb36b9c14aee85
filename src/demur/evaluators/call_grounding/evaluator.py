"""Judge a tool call by whether somebody gave the values of its arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pydantic import Field

from demur.evaluators.base import Evaluator
from demur.evaluators.call_grounding.arguments import arguments
from demur.evaluators.call_grounding.values import Given, is_given, nearest_to
from demur.runtime import CallPolicy, Steps, UndeterminedError, ask_all, fields_of
from demur.schema import Claim, ClaimLabel, Evaluation, MissingString, Sample


@dataclass(frozen=True)
class MissingValue:
    """Hold a value of a call's arguments that nobody gave."""

    path: str
    """Where it stands among the arguments, such as "items[0].sku"."""
    value: str
    nearest: str | None
    """The most similar string that was given; None if none is similar."""

    def __str__(self) -> str:
        """Return what is missing, and what is most like it, in words."""
        near = "" if self.nearest is None else f"; the most similar value given is {self.nearest}"
        return f"{self.path}: nobody gave {self.value!r}{near}"


def missing_values(
    call: Mapping[str, Any],
    schema: Mapping[str, Any],
    texts: Sequence[str],
    *,
    checked: Mapping[str, bool] | None = None,
    today: date | None = None,
    question: str = "",
) -> tuple[MissingValue, ...]:
    """Return the values of a call's arguments that nobody gave. No model is asked.

    Exact values are sought: identifiers, addresses, paths, phone numbers, amounts, versions, dates,
    and names. The name of an argument, its schema and the form of the value tell them from what is
    free: texts that are written or searched, choices and defaults of the schema, settings such as
    limits, names of what is made, truth values, and numbers that are no amounts and do not look
    like an identifier.

    A value was given if it stands in a text, in this writing or another; if it is a number that a
    calculation gives; or if it is a date that follows from today or from a text. A placeholder
    ("<order id>") never was.

    Args:
        call: The call, with `name` and `args`.
        schema: The JSON schema of its arguments; {} if it is not known.
        texts: What was given, the latest last: messages of the user, results of tools.
        checked: Settings by "TOOL.ARGUMENT" or "TOOL": True has its values sought, False not.
        today: The date of the conversation; None: the date of this machine.
        question: What the user said last, which may tell how figures are worked out.
    """
    every = [*arguments(str(call["name"]), call["args"], schema, checked or {})]
    given = Given(tuple(texts), today or date.today(), question)
    missing = [one for one in every if one.kind != "free" or one.is_placeholder]
    found = missing
    while found:  # a total may follow from a sum that is another argument
        of_figures = [one for one in every if one.kind == "date" or not isinstance(one.value, str)]
        said = [one.said for one in of_figures if one not in missing]
        given = replace(given, beside=tuple(said))
        found = [one for one in missing if not one.is_placeholder and is_given(one, given)]
        missing = [one for one in missing if one not in found]
    return tuple(MissingValue(one.path, str(one.value), nearest_to(one, given)) for one in missing)


class CallGrounding(Evaluator):
    """Judge a tool call by whether somebody gave the values of its arguments. No model is asked.

    The sample's `answer` is the call, `{"name": ..., "args": {...}}`, and its `contexts` are what
    was given (see `missing_values`). `metadata` may have the JSON schema of the arguments under
    "schema", and the date under "today" ("2026-12-01").

    `score` is 1.0 and `label` "grounded" if every value was given, else 0.0 and "ungrounded". Each
    missing value is a claim, labelled Unsupported, with its path and the most similar string. An
    answer that is no call is undetermined.

    Examples:
        >>> call = {"name": "refund", "args": {"order_id": "ORD-48213"}}
        >>> CallGrounding().invoke({"answer": call, "contexts": ["Refund ORD-48231, please."]})

    Args:
        checked: Settings by "TOOL.ARGUMENT" or "TOOL", as `missing_values` takes them.
        name: The evaluator's name in traces and logs. None: the name of the class.
        call_policy: Accepted as by the other evaluators; it has no effect, since no call is made.
    """

    checked: Mapping[str, bool] = Field(default_factory=dict)

    def __init__(
        self,
        *,
        checked: Mapping[str, bool] | None = None,
        name: str | None = None,
        call_policy: CallPolicy | None = None,
    ) -> None:
        """Make the evaluator; the class describes its arguments."""
        checked = dict(checked or {})
        super().__init__(**fields_of(locals()))

    @property
    def fingerprints(self) -> dict[str, str]:
        """Return the name of the class and the settings."""
        settings = json.dumps(dict(self.checked), sort_keys=True)
        return {"evaluator": type(self).__qualname__, "checked": settings}

    def _steps(self, sample: Sample) -> Steps[Evaluation]:
        yield from ask_all(())
        call, schema, today = call_in(sample)
        texts = [document.page_content for document in (*sample.contexts, *sample.known)]
        asked: Any = {"checked": self.checked, "today": today, "question": sample.question or ""}
        missing = missing_values(call, schema, texts, **asked)
        return Evaluation(
            name=self.get_name(),
            score=float(not missing),
            label="ungrounded" if missing else "grounded",
            passed=not missing,
            explanation="; ".join(map(str, missing)),
            claims=tuple(
                Claim(
                    text=f"{one.path} = {one.value}",
                    path=f"$.args.{one.path}",
                    label=ClaimLabel.UNSUPPORTED,
                    missing_strings=(MissingString(string=one.value, nearest=one.nearest),),
                )
                for one in missing
            ),
        )


def call_in(sample: Sample) -> tuple[dict[str, Any], dict[str, Any], date | None]:
    """Return the call that a sample's answer is, the schema of its arguments, and its date.

    Raises:
        UndeterminedError: The answer is no call, or the metadata has another schema or date.
    """
    about = sample.metadata
    try:
        call = json.loads(sample.answer)
        read = {"name": str(call["name"]), "args": dict(call["args"])}
        today = date.fromisoformat(str(about["today"])) if about.get("today") else None
        return read, dict(about.get("schema") or {}), today
    except (KeyError, TypeError, ValueError):
        raise UndeterminedError(
            'expected a call as the answer, {"name": ..., "args": {...}}, and in the metadata, if '
            'anything, a JSON schema under "schema" and a date such as 2026-12-01 under "today"'
        ) from None
