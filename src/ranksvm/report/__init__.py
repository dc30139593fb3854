"""A report on a model: one HTML file that needs nothing else (``pip install "ranksvm[report]"``)."""

from ranksvm.report.report import Report, make_report

__all__ = ["Report", "make_report"]
