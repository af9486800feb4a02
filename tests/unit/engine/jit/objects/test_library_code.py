"""Functions that kernels share are compiled once, kept on disk, and linked into each kernel that calls them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.ir import libraries
from ptxvm.engine.jit.objects import codegen, library_code
from ptxvm.engine.jit.objects.loader import FlatCode
from ptxvm.machine import settings

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %out;
    .reg .b32 %a, %b, %lane, %d<4>;
    ld.param.u64 %out, [out];
    mov.u32 %lane, %tid.x;
    mad.wide.u32 %out, %lane, 16, %out;
    mov.b32 %a, FACTOR;
    mov.b32 %b, 0x02020202;
    mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
        {%d0, %d1, %d2, %d3}, {%a, %a, %a, %a}, {%b, %b}, {%lane, %lane, %lane, %lane};
    st.global.v4.b32 [%out], {%d0, %d1, %d2, %d3};
    ret;
}
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are compiled from now on; none has been before."""
    monkeypatch.setattr(library_code, "_FOUND", {})
    monkeypatch.setattr(library_code, "_OBJECTS", {})
    texts: list[str] = []
    really = codegen.object_code

    def noted(text: str, *more: object) -> bytes:
        texts.append(text)
        return really(text, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(codegen, "object_code", noted)
    return texts


def run(factor: int) -> None:
    """Launch a kernel; each sum has 32 products of two bytes (PTX 9.7.14.5)."""
    out = np.zeros((32, 4), np.int32)
    ptxvm.load(KERNEL.replace("FACTOR", str(0x01010101 * factor))).kernel("k").launch(1, 32, [out], engine="jit")
    assert (out == 32 * 2 * factor + np.arange(32)[:, None]).all()


def test_kernels_share_functions(compiled: list[str]) -> None:
    run(1)
    kernel, *shared = compiled
    assert "@warp(" in kernel
    assert len(shared) == len(libraries.needed(kernel)) > 1
    assert any(".mma." in each for each in libraries.needed(kernel))
    run(3)
    assert "@warp(" in compiled[-1]
    assert len(compiled) == 1 + len(shared) + 1


def test_a_function_is_kept_on_disk(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    run(1)
    monkeypatch.setattr(library_code, "_FOUND", {})  # as in a later process
    monkeypatch.setattr(library_code, "_OBJECTS", {})
    before = len(compiled)
    run(5)
    assert len(compiled) == before + 1
    run(5)  # with the function in it, as it was kept
    assert len(compiled) == before + 1


def test_libraries_are_kept_in_the_cache_of_the_kernel(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code is compiled in the background, too: the environment may be another by then, and wrong."""
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    kernel = ptxvm.load(KERNEL.replace("FACTOR", "0x03030303")).kernel("k")
    _ = kernel.module.jit
    monkeypatch.setenv("PTXVM_CACHE_SIZE", "many")
    monkeypatch.setattr(settings, "check", lambda: None)  # which a launch asks, and the background does not
    kernel.launch(1, 32, [np.zeros((32, 4), np.int32)], engine="jit")
    assert len({*tmp_path.rglob("*.kernel")}) == 1 + len(libraries.needed(compiled[0]))


def test_a_linker_of_llvm_has_the_function_too(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As on processors that ours does not know."""
    from ptxvm.engine.jit.objects import elf
    from ptxvm.engine.jit.objects.loader import NotFlatError

    def refuse(data: bytes) -> FlatCode:
        raise NotFlatError("not this one")

    monkeypatch.setattr(elf, "flatten", refuse)
    run(7)
    assert len(compiled) == 1 + len(libraries.needed(compiled[0]))


def test_what_calls_a_function_finds_it_behind_the_code() -> None:
    code = FlatCode(b"\0" * 24, {"k": 0}, {0: 16}, {8: "f", 16: "memcpy"})
    library = FlatCode(b"\1" * 16, {"f": 4}, {0: 8}, {8: "memset"})
    found = library_code.joined(code, {"f": library})
    at = library_code.PAGE
    assert found.code == code.code + bytes(at - 24) + library.code
    assert found.functions == {"k": 0}
    assert found.inner == {0: 16, 8: at + 4, at: at + 8}
    assert found.outer == {16: "memcpy", at + 8: "memset"}


def test_libraries_call_each_other() -> None:
    code, first = FlatCode(b"\0" * 8, {"k": 0}, {}, {0: "f"}), FlatCode(b"\1" * 8, {"f": 0}, {}, {0: "g"})
    found = library_code.joined(code, {"f": first, "g": FlatCode(b"\2" * 8, {"g": 4}, {}, {})})
    at = library_code.PAGE
    assert found.inner == {0: at, at: 2 * at + 4}
    assert not found.outer
