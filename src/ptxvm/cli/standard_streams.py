"""Standard streams: a full disk or a closed pipe ends a command with one line, and is no bug."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast


class OutputLost(Exception):  # noqa: N818 - it says what happened
    """A standard stream cannot be written; `quiet` where its reader has seen enough."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"cannot write the output: {cause.strerror or cause}")
        self.quiet = isinstance(cause, BrokenPipeError)


class StandardStream:
    """A standard stream, as before but for what it says where it cannot be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost: OutputLost | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write some text."""
        with self._written():
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        with self._written():
            self._stream.flush()

    @contextmanager
    def _written(self) -> Iterator[None]:
        if self._lost is not None:  # where a library has swallowed it
            raise self._lost
        try:
            yield
        except OSError as wrong:
            self._give_up()
            self._lost = OutputLost(wrong)
            raise self._lost from wrong

    def _give_up(self) -> None:
        """Let what the stream still has go nowhere, or Python would complain of it at the end."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@contextmanager
def watched() -> Iterator[None]:
    """Around a command: its streams take any character, and say OutputLost; one that was closed at the start is none."""
    with ExitStack() as streams:
        nowhere = streams.enter_context(open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123 - no path of a user
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal that lacks a character gets a `?`
            streams.enter_context(redirect(cast("TextIO", StandardStream(stream or nowhere))))
        yield


def write_error(text: str) -> None:
    """Write on stderr; where that cannot be done, the exit code has to do."""
    with suppress(OutputLost):
        sys.stderr.write(text)
        sys.stderr.flush()
