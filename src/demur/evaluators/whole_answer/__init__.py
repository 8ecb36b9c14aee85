"""Check an answer as a whole, for faults that claims and references do not show.

The references may support all claims of an answer that does not address the question, or that
contradicts itself.
"""

from demur.evaluators.whole_answer.relevance import AnswerRelevance
from demur.evaluators.whole_answer.self_contradiction import SelfContradiction

__all__ = [
    "AnswerRelevance",
    "SelfContradiction",
]
