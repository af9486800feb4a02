"""Launches of compiled code: runners, callbacks, host threads, tiering, relaunches."""
