"""Whether a module speaks the frames as it must, found out by talking to it as daemons do."""

from haptera.conformance.report import Checked, Report, Verdict
from haptera.conformance.subject import Subject
from haptera.conformance.suite import CHECKS, OF_PARTS, check_module

__all__ = ["CHECKS", "OF_PARTS", "Checked", "Report", "Subject", "Verdict", "check_module"]
