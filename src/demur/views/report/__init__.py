"""Write a log or a comparison as one page for a browser: figures, thresholds, every answer."""

from demur.views.report.comparison import comparison_page as comparison_page
from demur.views.report.drawing import BAD as BAD
from demur.views.report.drawing import INK as INK
from demur.views.report.drawing import POINT as POINT
from demur.views.report.drawing import Chart as Chart
from demur.views.report.drawing import layer as layer
from demur.views.report.drawing import picture as picture
from demur.views.report.page import MOST as MOST
from demur.views.report.page import write_report

__all__ = ["write_report"]  # the others serve commands and pictures, and are not public
