"""The guard: every answer checked, and what failed answered again, refused, marked or blocked."""

from demur.guard.budget import Budget
from demur.guard.feedback import Feedback, Problem
from demur.guard.guard import Guard
from demur.guard.recovery import (
    DEFAULT_POLICY,
    Abstain,
    Annotate,
    Block,
    Policy,
    Recovery,
    Regenerate,
    Repair,
    Retrieve,
)
from demur.guard.trace import AnswerRejected, Attempt, EvaluatorFailed, Guarded, Trace
from demur.guard.widen import widen

__all__ = [
    "DEFAULT_POLICY",
    "Abstain",
    "Annotate",
    "AnswerRejected",
    "Attempt",
    "Block",
    "Budget",
    "EvaluatorFailed",
    "Feedback",
    "Guard",
    "Guarded",
    "Policy",
    "Problem",
    "Recovery",
    "Regenerate",
    "Repair",
    "Retrieve",
    "Trace",
    "widen",
]
