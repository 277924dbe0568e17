"""Conformance by use: of modules with the frames, of backends with the keeping of jobs."""

from haptera.conformance.report import CheckResult, CheckVerdict, Report
from haptera.conformance.subject import CheckedModule
from haptera.conformance.suite import CHECKS, OF_PARTS, check_module

__all__ = [
    "CHECKS",
    "OF_PARTS",
    "CheckResult",
    "CheckVerdict",
    "CheckedModule",
    "Report",
    "check_module",
]
