"""Digests (BLAKE2) of the inputs of compilation.

Python's own BLAKE2 makes them: `hashlib` loads OpenSSL first, which takes as long as starting a cached kernel.
"""

from __future__ import annotations

from _blake2 import blake2b

SIZE = 32  # bytes


class Digest:
    """The digest of a sequence of texts and bytes."""

    def __init__(self) -> None:
        self._state = blake2b(digest_size=SIZE)

    def add(self, data: str | bytes) -> Digest:
        """Append data."""
        self._state.update(data.encode() if isinstance(data, str) else data)
        return self

    @property
    def bytes(self) -> bytes:
        """The digest."""
        return self._state.digest()

    @property
    def text(self) -> str:
        """The digest in hexadecimal."""
        return self._state.hexdigest()
