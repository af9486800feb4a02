"""Digests of what code depends on.

They are made by Python's own BLAKE2: `hashlib` loads OpenSSL first, which takes as long as a kept kernel to start.
"""

from __future__ import annotations

from _blake2 import blake2b

SIZE = 32  # bytes


class Digest:
    """Of some texts and bytes, one after the other."""

    def __init__(self) -> None:
        self._state = blake2b(digest_size=SIZE)

    def add(self, data: str | bytes) -> Digest:
        """Take more in."""
        self._state.update(data.encode() if isinstance(data, str) else data)
        return self

    @property
    def bytes(self) -> bytes:
        """What stands for it."""
        return self._state.digest()

    @property
    def text(self) -> str:
        """The same in hexadecimal."""
        return self._state.hexdigest()
