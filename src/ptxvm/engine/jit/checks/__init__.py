"""Instrumented launches: a quick filter before the exact checkers."""
