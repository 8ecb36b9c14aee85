"""Make every request to a model, and drive the work that asks for these requests.

Work is written once, as a generator that yields effects (`Steps`). `drive` runs it in threads, and
`adrive` runs it in the event loop. `Stepwise` is a Runnable around such a generator.

This room promises to the others:

- No request to a model is made anywhere else.
- Each request has its retries, its time limit and its slot (`CallPolicy`).
- Identical requests in flight are sent once.
- A failed call comes back as an `Outcome` with the text and the class of its error, or `ask` raises
  it. It never becomes a label.
- Cancelling leaves nothing behind.
- The budget of a guarded call is kept (`Scope`).
- Both drivers do the same steps in the same order.

The prompts are made in a room inside this one (`prompting`).
"""

from demur.runtime.calls import (
    JUDGE,
    NO_STREAM,
    Call,
    ChatCall,
    LocalCall,
    RunnableCall,
)
from demur.runtime.failures import cause_of, describe, is_interrupt
from demur.runtime.frozen import FrozenRunnable, fields_of
from demur.runtime.in_process import bounded, is_local
from demur.runtime.in_time import GRACE
from demur.runtime.limits import PerModel, ashare, bound_endpoints, share
from demur.runtime.policy import CallPolicy, policy_for
from demur.runtime.pool import as_completed, in_background, in_own_loop, take, within
from demur.runtime.retry import is_retryable
from demur.runtime.scope import (
    Account,
    Limit,
    Scope,
    current_account,
    current_scope,
    within_scope,
)
from demur.runtime.steps import (
    Calls,
    Costs,
    Spent,
    Steps,
    adrive,
    ask,
    ask_all,
    attempted,
    drive,
)
from demur.runtime.stepwise import Stepwise
from demur.runtime.together import side_by_side
from demur.runtime.tries import Outcome, Reply, reply_in, reported_usage
from demur.runtime.undetermined import UndeterminedError, undetermined_with

__all__ = [
    "GRACE",
    "JUDGE",
    "NO_STREAM",
    "Account",
    "Call",
    "CallPolicy",
    "Calls",
    "ChatCall",
    "Costs",
    "FrozenRunnable",
    "Limit",
    "LocalCall",
    "Outcome",
    "PerModel",
    "Reply",
    "RunnableCall",
    "Scope",
    "Spent",
    "Steps",
    "Stepwise",
    "UndeterminedError",
    "adrive",
    "as_completed",
    "ashare",
    "ask",
    "ask_all",
    "attempted",
    "bound_endpoints",
    "bounded",
    "cause_of",
    "current_account",
    "current_scope",
    "describe",
    "drive",
    "fields_of",
    "in_background",
    "in_own_loop",
    "is_interrupt",
    "is_local",
    "is_retryable",
    "policy_for",
    "reply_in",
    "reported_usage",
    "share",
    "side_by_side",
    "take",
    "undetermined_with",
    "within",
    "within_scope",
]
