"""What a log holds, as one page to look at: figures, thresholds, and every answer."""

from demur.report.page import MOST, Written, write_report
from demur.report.words import plural as plural

__all__ = ["MOST", "Written", "write_report"]
