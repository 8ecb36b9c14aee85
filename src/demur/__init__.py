"""demur: score every generated answer for hallucination, in-line, and act on the score."""

from demur.errors import DemurError, LocalModelError, MissingExtraError, ModelCallError
from demur.evaluators.refchecker import RefChecker
from demur.guard import Abstain, Annotate, AnswerRejected, Block, Guard, Regenerate
from demur.models.resolve import resolve_model
from demur.models.retry import CallPolicy
from demur.schema import Claim, ClaimLabel, Evaluation, Evidence, Sample, Span, Usage

__version__ = "0.1.0.dev0"

__all__ = [
    "Abstain",
    "Annotate",
    "AnswerRejected",
    "Block",
    "CallPolicy",
    "Claim",
    "ClaimLabel",
    "DemurError",
    "Evaluation",
    "Evidence",
    "Guard",
    "LocalModelError",
    "MissingExtraError",
    "ModelCallError",
    "RefChecker",
    "Regenerate",
    "Sample",
    "Span",
    "Usage",
    "__version__",
    "resolve_model",
]
