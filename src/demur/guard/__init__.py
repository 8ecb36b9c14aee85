"""Check every answer of a chain, and retry, correct, refuse, annotate or block those that fail."""

from demur.guard.arguments import OnError as OnError
from demur.guard.arguments import Streaming as Streaming
from demur.guard.budget import Budget
from demur.guard.capture import Capture as Capture
from demur.guard.edits import Citation
from demur.guard.events import DECISION, EVALUATION, OUTCOME, REPLACE, USAGE
from demur.guard.events import evaluation_of_event as evaluation_of_event
from demur.guard.feedback import Feedback, Problem
from demur.guard.guard import Guard
from demur.guard.policies import OnFail as OnFail
from demur.guard.policies import Policy
from demur.guard.policies import make_policy as make_policy
from demur.guard.policies import prepared as prepared
from demur.guard.recoveries import (
    REFUSAL,
    UNCHECKED,
    Abstain,
    Annotate,
    Block,
    Cite,
    Recovery,
    Regenerate,
    Repair,
    Retrieve,
    Strip,
)
from demur.guard.recoveries import Again as Again
from demur.guard.refused import refuse_memory as refuse_memory
from demur.guard.tool_calls import CallCheck as CallCheck
from demur.guard.tool_calls import StoppedCall as StoppedCall
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
from demur.guard.verdicts import as_evaluation as as_evaluation
from demur.guard.verdicts import feedback_on as feedback_on
from demur.guard.verdicts import verdict_of as verdict_of
from demur.guard.widening import widen

__all__ = [  # other names serve other rooms and are not part of the public interface
    "DECISION",
    "EVALUATION",
    "OUTCOME",
    "REFUSAL",
    "REPLACE",
    "UNCHECKED",
    "USAGE",
    "Abstain",
    "Annotate",
    "AnswerRejected",
    "Attempt",
    "Block",
    "Budget",
    "Citation",
    "Cite",
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
    "Strip",
    "Time",
    "Trace",
    "TraceOutcome",
    "Verdict",
    "widen",
]
