"""demur: score every generated answer for hallucination, in-line, and act on the score."""

from typing import TYPE_CHECKING, Any

from demur.errors import DemurError, LocalModelError, MissingExtraError, ModelCallError
from demur.evaluators.cascade import Cascade
from demur.evaluators.fewl import FEWL
from demur.evaluators.refchecker import RefChecker
from demur.evaluators.reverse_validation import ReverseValidation
from demur.exemplars import ExampleStore, FEWLExampleSelector
from demur.guard import (
    Abstain,
    Annotate,
    AnswerRejected,
    Block,
    Budget,
    EvaluatorFailed,
    Guard,
    Regenerate,
    Repair,
    Retrieve,
)
from demur.models.resolve import resolve_model
from demur.models.retry import CallPolicy
from demur.schema import (
    Claim,
    ClaimLabel,
    Evaluation,
    Evidence,
    Failure,
    Sample,
    Span,
    Threshold,
    Usage,
)

if TYPE_CHECKING:
    from demur.observe import AsyncScoreCallbackHandler, ScoreCallbackHandler

__version__ = "0.1.0.dev0"

__all__ = [
    "FEWL",
    "Abstain",
    "Annotate",
    "AnswerRejected",
    "AsyncScoreCallbackHandler",
    "Block",
    "Budget",
    "CallPolicy",
    "Cascade",
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
    "ModelCallError",
    "RefChecker",
    "Regenerate",
    "Repair",
    "Retrieve",
    "ReverseValidation",
    "Sample",
    "ScoreCallbackHandler",
    "Span",
    "Threshold",
    "Usage",
    "__version__",
    "resolve_model",
]


def __getattr__(name: str) -> Any:
    # Who only evaluates or guards does not wait for the handlers and their sinks.
    if name in ("AsyncScoreCallbackHandler", "ScoreCallbackHandler"):
        import demur.observe

        return getattr(demur.observe, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
