"""Score every generated answer for hallucination, in-line, and act on the score."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from demur.errors import DemurError, LocalModelError, MissingExtraError, ModelCallError
    from demur.evaluators import (
        FEWL,
        Cascade,
        CitationSupport,
        NeighborStore,
        RefChecker,
        ReverseValidation,
    )
    from demur.exemplars import ExampleStore, FEWLExampleSelector
    from demur.guard import (
        Abstain,
        Annotate,
        AnswerRejected,
        Block,
        Budget,
        Cite,
        EvaluatorFailed,
        Guard,
        Regenerate,
        Repair,
        Retrieve,
        Strip,
        widen,
    )
    from demur.local import resolve_model
    from demur.observe import ScoreCallbackHandler
    from demur.runtime import CallPolicy
    from demur.schema import (
        ActionOutcome,
        Calculation,
        Category,
        Claim,
        ClaimLabel,
        Evaluation,
        Evidence,
        Failure,
        MissingString,
        Sample,
        Span,
        Threshold,
        Usage,
    )

__version__ = "0.1.0"

__all__ = [
    "FEWL",
    "Abstain",
    "ActionOutcome",
    "Annotate",
    "AnswerRejected",
    "Block",
    "Budget",
    "Calculation",
    "CallPolicy",
    "Cascade",
    "Category",
    "CitationSupport",
    "Cite",
    "Claim",
    "ClaimLabel",
    "DemurError",
    "Evaluation",
    "EvaluatorFailed",
    "Evidence",
    "ExampleStore",
    "FEWLExampleSelector",
    "Failure",
    "Guard",
    "LocalModelError",
    "MissingExtraError",
    "MissingString",
    "ModelCallError",
    "NeighborStore",
    "RefChecker",
    "Regenerate",
    "Repair",
    "Retrieve",
    "ReverseValidation",
    "Sample",
    "ScoreCallbackHandler",
    "Span",
    "Strip",
    "Threshold",
    "Usage",
    "__version__",
    "resolve_model",
    "widen",
]


_MODULES = {
    "errors": ("DemurError", "LocalModelError", "MissingExtraError", "ModelCallError"),
    "evaluators": (
        *("Cascade", "CitationSupport", "FEWL", "NeighborStore", "RefChecker"),
        "ReverseValidation",
    ),
    "exemplars": ("ExampleStore", "FEWLExampleSelector"),
    "guard": (
        *("Abstain", "Annotate", "AnswerRejected", "Block", "Budget", "Cite", "EvaluatorFailed"),
        *("Guard", "Regenerate", "Repair", "Retrieve", "Strip", "widen"),
    ),
    "local": ("resolve_model",),
    "runtime": ("CallPolicy",),
    "observe": ("ScoreCallbackHandler",),
    "schema": (
        *("Category", "Claim", "ClaimLabel", "Evaluation", "Evidence", "Failure", "Sample"),
        *("ActionOutcome", "Calculation", "MissingString", "Span", "Threshold", "Usage"),
    ),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # A name is imported at its first use, so that you wait only for what you use. The command line
    # also starts before LangChain is loaded, and can therefore handle an interrupt itself.
    if name in _PLACES:
        return getattr(import_module(f"demur.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *_PLACES]
