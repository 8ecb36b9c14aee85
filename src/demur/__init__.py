"""demur: score every generated answer for hallucination, in-line, and act on the score."""

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
from demur.observe import AsyncScoreCallbackHandler, ScoreCallbackHandler
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Failure, Sample, Span, Usage

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
    "Usage",
    "__version__",
    "resolve_model",
]
