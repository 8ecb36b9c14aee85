"""The guard: every answer checked, and what failed answered again, refused, marked or blocked."""

from demur.guard.feedback import Feedback
from demur.guard.guard import Guard
from demur.guard.recovery import Abstain, Annotate, Block, Regenerate
from demur.guard.trace import AnswerRejected, Attempt, Guarded, Trace

__all__ = [
    "Abstain",
    "Annotate",
    "AnswerRejected",
    "Attempt",
    "Block",
    "Feedback",
    "Guard",
    "Guarded",
    "Regenerate",
    "Trace",
]
