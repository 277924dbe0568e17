"""The enrolment of nodes."""
