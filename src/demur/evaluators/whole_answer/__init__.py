"""Checks of an answer as a whole, for what claims and references do not show.

An answer may be supported in all its claims and beside the question, or rule itself out.
"""

from demur.evaluators.whole_answer.prompts import AnswerRelevancePrompts, SelfContradictionPrompts
from demur.evaluators.whole_answer.relevance import AnswerRelevance
from demur.evaluators.whole_answer.self_contradiction import SelfContradiction

__all__ = [
    "AnswerRelevance",
    "AnswerRelevancePrompts",
    "SelfContradiction",
    "SelfContradictionPrompts",
]
