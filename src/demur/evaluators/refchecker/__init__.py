"""Score an answer by the claims that its references support (RefChecker, arXiv 2405.14486)."""

from demur.evaluators.refchecker.aggregation import Summary, summarize
from demur.evaluators.refchecker.evaluator import RefChecker
from demur.evaluators.refchecker.prompts import RefCheckerPrompts
from demur.runtime.prompting import Prompt

__all__ = ["Prompt", "RefChecker", "RefCheckerPrompts", "Summary", "summarize"]
