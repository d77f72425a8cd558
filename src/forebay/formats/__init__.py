"""File formats: what is in files, and from one format to another. What ``forebay inspect`` and ``convert`` run.

Not imported by ``import forebay``.
"""

from forebay.formats.convert import Converted, convert
from forebay.formats.inspect import inspect
from forebay.formats.known import FORMATS
from forebay.formats.report import Inspection, Report

__all__ = ["FORMATS", "Converted", "Inspection", "Report", "convert", "inspect"]
