"""Fuzzing: endless campaigns of random inputs, with a corpus that grows by coverage."""
