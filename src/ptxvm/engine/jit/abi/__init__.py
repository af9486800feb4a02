"""The interface of compiled code and Python: launch records, warp states, barrier records, host calls, metadata."""
