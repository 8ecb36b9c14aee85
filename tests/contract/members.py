"""Who has to keep to the contract. A new evaluator joins in `evaluators.py`."""

from __future__ import annotations

from contract.evaluators import EVALUATORS
from contract.guards import GUARDS
from contract.judges import JUDGES

MEMBERS = [*EVALUATORS, *GUARDS, *JUDGES]
