"""Write a log or a comparison as one page for a browser: figures, thresholds, every answer."""

from demur.views.report.comparison import comparison_page as comparison_page
from demur.views.report.page import MOST as MOST
from demur.views.report.page import write_report

__all__ = ["write_report"]  # the other names serve the commands, and are not public
