"""Messages of the Debug Adapter Protocol as bytes: a header with the length, then JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

END = b"\r\n\r\n"
LENGTH = b"content-length:"
MOST = 1 << 26  # bytes of a message

Message = dict[str, Any]  # the specification of the protocol says what a key may have


class BadMessage(ValueError):  # noqa: N818 - it says what happened
    """Bytes are no message."""


def encode(message: Mapping[str, object]) -> bytes:
    """A message as bytes."""
    body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def message_of(body: bytes) -> Message:
    """The message that some bytes are; BadMessage for others."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as wrong:
        raise BadMessage(f"a message is no JSON: {wrong}") from None
    if not isinstance(message, dict):
        raise BadMessage("a message is an object of JSON")
    return message


class Decoder:
    """Takes bytes as they come, and gives whole messages.

    `passed_over` is told of each body that is none, and the next message follows; without it that is a BadMessage.
    """

    def __init__(self, passed_over: Callable[[BadMessage], object] | None = None) -> None:
        self._held, self._passed_over = b"", passed_over

    def feed(self, data: bytes) -> list[Message]:
        """The messages that some more bytes complete; BadMessage where they are none."""
        self._held += data
        found = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> Message | None:
        while (body := self._body()) is not None:
            try:
                return message_of(body)
            except BadMessage as wrong:
                if self._passed_over is None:
                    raise
                self._passed_over(wrong)
        return None

    def _body(self) -> bytes | None:
        head, end, rest = self._held.partition(END)
        if not end:
            return None
        length = self._length(head)
        if len(rest) < length:
            return None
        self._held = rest[length:]
        return rest[:length]

    def _length(self, head: bytes) -> int:
        for line in head.split(b"\r\n"):
            if line.lower().startswith(LENGTH) and (digits := line[len(LENGTH) :].strip()).isdigit():
                if int(digits) > MOST:
                    break
                return int(digits)
        raise BadMessage(f"the header of a message has no Content-Length up to {MOST}")


__all__ = ["BadMessage", "Decoder", "Message", "encode"]
