"""List the members that the contract tests run on. Add a new evaluator in `evaluators.py`."""

from __future__ import annotations

from contract.evaluators import EVALUATORS
from contract.guards import GUARDS

MEMBERS = [*EVALUATORS, *GUARDS]
