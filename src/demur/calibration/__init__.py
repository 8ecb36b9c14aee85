"""Choose thresholds that can be trusted, from scores and from labels that people gave."""

from demur.calibration.binomial import cumulative as cumulative
from demur.calibration.choosing import best_f1, percentile
from demur.calibration.curves import Bin, Reliability, Roc, reliability, roc
from demur.calibration.guarantee import calibrate
from demur.calibration.operating import Operating, operating_points
from demur.calibration.repeats import RepeatsWarning, answer_key
from demur.calibration.repeats import contradiction as contradiction
from demur.calibration.samples import CalibrationError, differences
from demur.calibration.samples import passes_up_to as passes_up_to

__all__ = [
    "Bin",
    "CalibrationError",
    "Operating",
    "Reliability",
    "RepeatsWarning",
    "Roc",
    "answer_key",
    "best_f1",
    "calibrate",
    "differences",
    "operating_points",
    "percentile",
    "reliability",
    "roc",
]
