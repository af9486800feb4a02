"""The default floating-point environment around a grid, on any host thread (C17 7.6)."""

from __future__ import annotations

import platform

from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values.rounding import MXCSR

ARGUMENTS = "ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last"
BODY = "ptxvm.ctas"


def grid(unit: Unit) -> str:
    """The function `grid`, which runs CTAs by the function `BODY` and leaves the environment as it was.

    The body is not inlined: LLVM takes arithmetic for independent of the environment, and might move it out.
    """
    change = {"x86_64": _mxcsr, "AMD64": _mxcsr, "aarch64": _fpcr, "arm64": _fpcr}.get(platform.machine())
    before, after = change(unit) if change is not None else ([], [])
    lines = [*before, f"  %r = call i32 @{BODY}({ARGUMENTS})", *after, "  ret i32 %r"]
    body = "\n".join(lines)
    return f"define i32 @grid({ARGUMENTS}) #2 {{\nentry:\n{body}\n}}\n"


def _mxcsr(unit: Unit) -> tuple[list[str], list[str]]:
    for name in ("stmxcsr", "ldmxcsr"):
        unit.declare(f"llvm.x86.sse.{name}", "void", "ptr")
    before = [
        "  %before = alloca i32, align 4",
        "  %usual = alloca i32, align 4",
        "  call void @llvm.x86.sse.stmxcsr(ptr %before)",
        f"  store i32 {MXCSR}, ptr %usual, align 4",
        "  call void @llvm.x86.sse.ldmxcsr(ptr %usual)",
    ]
    return before, ["  call void @llvm.x86.sse.ldmxcsr(ptr %before)"]


def _fpcr(unit: Unit) -> tuple[list[str], list[str]]:
    unit.declare("llvm.aarch64.get.fpcr", "i64")
    unit.declare("llvm.aarch64.set.fpcr", "void", "i64")
    before = ["  %before = call i64 @llvm.aarch64.get.fpcr()", "  call void @llvm.aarch64.set.fpcr(i64 0)"]
    return before, ["  call void @llvm.aarch64.set.fpcr(i64 %before)"]
