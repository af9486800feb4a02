"""The four errors, by whose fault they are: the text's, the kernel's, ours for what we lack, ours for a bug."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.diagnostic import Diagnostic, Span
from ptxvm.diagnostics.kernel_names import displayed


class PTXVMError(Exception):
    """What every error of ptxvm derives from."""


class InvalidPTX(PTXVMError):  # noqa: N818 - the name says what is invalid
    """The text is not valid PTX; `diagnostics` has every finding."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)


class Unsupported(PTXVMError):  # noqa: N818
    """PTX has it and ptxvm lacks it yet; `feature` names it."""

    def __init__(self, feature: str, where: str = "") -> None:
        super().__init__(f"{feature} is not supported yet" + (f" ({where})" if where else ""))
        self.feature = feature


class Crash(PTXVMError):  # noqa: N818
    """A bug of ptxvm itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a launch something happened; coordinates are (x, y, z)."""

    kernel: str = ""
    line: int = 0
    text: str = ""
    cta: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    function: str = ""
    file: str = ""
    source: str = ""  # FILE:LINE of the high-level source, from `.loc`
    span: Span = field(default=Span(0, 0), repr=False)  # of the instruction in the PTX
    grid: int = 0  # the number of a grid that a kernel launched, and where that was
    launched: Place | None = None

    @property
    def lineage(self) -> str:
        """Of a grid that a kernel launched: its number, and the thread that launched it, for some generations."""
        found: list[str] = []
        at = self
        while at.launched is not None and len(found) < MOST_LAUNCHES:
            by = at.launched
            launcher = f"CTA {by.cta}, thread {by.thread} of '{displayed(by.kernel)}' launched it at line {by.line} ({by.text})"
            found.append(f"grid {at.grid} ('{displayed(at.kernel)}'; {launcher}")
            at = by
        return ", in ".join(found) + ")" * len(found)


MOST_LAUNCHES = 24  # launches of grids by grids that a finding tells: as deep as the device runtime synchronises


class Fault(PTXVMError):  # noqa: N818
    """The kernel did something that stops a grid.

    `kind` is a word such as `out-of-bounds`, `misaligned`, `read-only`, `use-after-free`, `wrong-space`, `trap`,
    `deadlock`, `assertion`, `stack-overflow`, `out-of-memory`, `step-budget`, `invalid-branch`, `invalid-call`,
    `invalid-tensor-map`;
    `message` says it in one line; `address` and `size` are those of the access, where there was one; `place` says where.
    """

    def __init__(
        self, kind: str, message: str, *, address: int | None = None, size: int = 0, place: Place | None = None
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.address, self.size = kind, message, address, size
        self.place = place or Place()

    def __reduce__(self) -> tuple[Callable[..., Fault], tuple[object, ...]]:
        """A fault goes from process to process."""
        return restored, (self.kind, self.message, self.address, self.size, self.place)

    def __str__(self) -> str:
        place = self.place
        lines = [f"{self.kind}: {self.message}"]
        if place.line:
            lines.append(f"  at {place.file or '<ptx>'}:{place.line}: {place.text}".rstrip())
        if place.source:
            lines.append(f"  from {place.source}")
        if place.thread is not None:
            lines.append(f"  in kernel {displayed(place.kernel)}, CTA {place.cta}, thread {place.thread}")
        if place.launched is not None:
            lines.append(f"  of {place.lineage}")
        return "\n".join(lines)


def restored(kind: str, message: str, address: int | None, size: int, place: Place) -> Fault:
    """The fault with these fields."""
    return Fault(kind, message, address=address, size=size, place=place)
