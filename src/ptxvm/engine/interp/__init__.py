"""The reference interpreter: lanes are NumPy arrays; segments of a kernel are traced into NumPy source."""
