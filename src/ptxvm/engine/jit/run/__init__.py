"""Launches of compiled code: callbacks, threads of the host, tiers, quick repetition."""
