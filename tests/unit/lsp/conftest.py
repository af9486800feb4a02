"""Documents for the tests: a text with `^` where the cursor is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("lsprotocol", reason="the language server needs the extra 'lsp'")

from lsprotocol.types import Position

from ptxvm.lsp.document import Document
from ptxvm.lsp.text import DocumentText

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
KERNEL = (
    HEAD
    + """\
.global .align 4 .u32 table[16];
.visible .entry k(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<4>;
    .reg .pred %p<2>;
    .shared .align 4 .b8 tile[64];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
LOOP:
    add.s32 %r1, %r1, 1;
    setp.lt.s32 %p1, %r1, 10;
    BODY
    @%p1 bra LOOP;
    ret;
}
"""
)


@pytest.fixture
def at() -> Callable[[str], tuple[Document, Position]]:
    """The document of a text, and the position of the `^` in it; a text without a module stands in the body of a kernel."""

    def place(text: str) -> tuple[Document, Position]:
        whole = text if ".version" in text else KERNEL.replace("BODY", text)
        offset = whole.index("^")
        document = Document("file:///test.ptx", DocumentText(whole[:offset] + whole[offset + 1 :]))
        return document, document.text.position(offset)

    return place
