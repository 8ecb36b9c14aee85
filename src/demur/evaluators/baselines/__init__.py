"""Score answers with the methods that reverse validation is compared with.

These methods need neither references nor a search.
"""

from demur.evaluators.baselines.all_false import AllFalse
from demur.evaluators.baselines.lm_vs_lm import LMvsLM
from demur.evaluators.baselines.self_check import SelfCheck
from demur.evaluators.baselines.zero_shot import ZeroShot

__all__ = [
    "AllFalse",
    "LMvsLM",
    "SelfCheck",
    "ZeroShot",
]
