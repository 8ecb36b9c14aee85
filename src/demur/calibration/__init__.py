"""Choose thresholds that can be trusted, from scores and from labels that people gave."""

from demur.calibration.binomial import cumulative as cumulative
from demur.calibration.choosing import best_f1, percentile
from demur.calibration.curves import Reliability as Reliability
from demur.calibration.curves import Roc as Roc
from demur.calibration.curves import reliability as reliability
from demur.calibration.curves import roc as roc
from demur.calibration.guarantee import calibrate
from demur.calibration.operating import Operating as Operating
from demur.calibration.operating import operating_points as operating_points
from demur.calibration.repeats import RepeatsWarning
from demur.calibration.repeats import answer_key as answer_key
from demur.calibration.repeats import contradiction as contradiction
from demur.calibration.samples import CalibrationError
from demur.calibration.samples import differences as differences
from demur.calibration.samples import passes_up_to as passes_up_to

__all__ = [  # the other names serve other rooms, and may change
    "CalibrationError",
    "RepeatsWarning",
    "best_f1",
    "calibrate",
    "percentile",
]
