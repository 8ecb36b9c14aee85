"""Make a judge of claims from what names it."""

from __future__ import annotations

from typing import TypeAlias

from langchain_core.language_models import BaseChatModel

from demur.local import SMALL, SmallJudge, judge_at, resolve_model
from demur.similarity import NAMED, YesNoJudge, YesNoModel, load_yes_no

Judge: TypeAlias = BaseChatModel | SmallJudge | YesNoModel


def resolve_judge(model: object) -> Judge:
    """Return the judge of claims that `model` names.

    It is the small judge for "small", a yes-or-no judge in this process for its name or its
    description, the judge at an address for "judge:http://host:8080" (`ServedJudge`), and a chat
    model for other names.

    Raises:
        ValueError, TypeError, DemurError: As in `resolve_model`.
        MissingExtraError: What the judge needs is not installed.
        LocalModelError: The judge's files are missing or damaged.
    """
    if model == SMALL:
        return SmallJudge()
    if isinstance(model, (SmallJudge, YesNoModel)):
        return model
    if (yes_no := yes_no_judge(model)) is not None:
        if yes_no.weights is not None:
            return load_yes_no(yes_no)
        raise ValueError(
            f"{model!r} is asked at an endpoint, so name it as the checker: "
            f"RefChecker(MODEL, checker={model!r}), in which MODEL is the model that serves it, "
            "such as 'ollama:bespoke-minicheck'"
        )
    if isinstance(model, str) and (served := judge_at(model)) is not None:
        return served
    if not isinstance(model, (str, BaseChatModel)):
        raise TypeError(
            "expected a model name, a LangChain chat model or a YesNoJudge, got "
            f"{type(model).__name__}"
        )
    try:
        return resolve_model(model)
    except ValueError as error:
        raise ValueError(f"{error}; or {SMALL!r}, or {YES_NO_JUDGES}") from None


def yes_no_judge(named: object) -> YesNoJudge | None:
    """Return the yes-or-no judge of a name; a description is returned as it is."""
    if isinstance(named, str) and named in NAMED:
        return NAMED[named].judge
    judge = named.judge if isinstance(named, YesNoModel) else named
    return judge if isinstance(judge, YesNoJudge) else None


YES_NO_JUDGES = (
    f"a yes-or-no judge ({', '.join(NAMED)}). For another one, say how it is asked: "
    "YesNoJudge('{document}{eos}{claim}', 1, 0, weights='org/name') of demur.evaluators"
)
"""The names of yes-or-no judges, and what to do about another one, for errors."""
