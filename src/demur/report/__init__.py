"""What a log holds, as one page to look at: figures, thresholds, and every answer."""

from demur.report.page import MOST, Written, write_report

__all__ = ["MOST", "Written", "write_report"]
