"""Launches that look quickly for what the checkers report."""
