"""Score answers without gold answers, by weighted references (FEWL, arXiv 2402.10412)."""

from demur.evaluators.fewl.evaluator import FEWL
from demur.evaluators.fewl.fitting import Fitted
from demur.evaluators.fewl.neighbors import NeighborStore
from demur.evaluators.fewl.parsing import Pairs
from demur.evaluators.fewl.prompts import FEWLPrompts

__all__ = ["FEWL", "FEWLPrompts", "Fitted", "NeighborStore", "Pairs"]
