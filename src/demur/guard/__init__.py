"""The guard: every answer checked, and what failed answered again, refused, marked or blocked."""

from demur.guard.attempts import as_evaluation as as_evaluation
from demur.guard.attempts import feedback_on as feedback_on
from demur.guard.attempts import verdict_of as verdict_of
from demur.guard.budget import Budget
from demur.guard.capture import Capture as Capture
from demur.guard.events import DECISION, EVALUATION, OUTCOME, REPLACE, USAGE
from demur.guard.events import evaluation_of_event as evaluation_of_event
from demur.guard.feedback import Feedback, Problem
from demur.guard.guard import Guard
from demur.guard.inside import refuse_memory as refuse_memory
from demur.guard.recovery import (
    DEFAULT_POLICY,
    REFUSAL,
    Abstain,
    Annotate,
    Block,
    Policy,
    Recovery,
    Regenerate,
    Repair,
    Retrieve,
)
from demur.guard.trace import (
    AnswerRejected,
    Attempt,
    EvaluatorFailed,
    Guarded,
    Limited,
    Origin,
    Time,
    Trace,
    TraceOutcome,
    Verdict,
)
from demur.guard.widening import widen

__all__ = [  # what is not named here serves other rooms, and is not promised
    "DECISION",
    "DEFAULT_POLICY",
    "EVALUATION",
    "OUTCOME",
    "REFUSAL",
    "REPLACE",
    "USAGE",
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
    "Limited",
    "Origin",
    "Policy",
    "Problem",
    "Recovery",
    "Regenerate",
    "Repair",
    "Retrieve",
    "Time",
    "Trace",
    "TraceOutcome",
    "Verdict",
    "widen",
]
