"""Registers of a module (PTX 5.1.1) that bodies like known ones name: they are made when the bodies are read."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

TEXT = """.version 2.3
.target sm_20
.address_size 64
.reg .u32 %count, %g<4>;
.func bump {{
    add.u32 %g3, %count, {step};
    mov.u32 %count, %g3;
    ret;
}}
.visible .entry k(.param .u64 out) {{
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %count, {step};
    call bump;
    call bump;
    st.global.u32 [%out], %count;
    ret;
}}"""


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_module_that_is_loaded_again_shares_them_as_before(engine: str) -> None:
    for step in (7, 7, 9):  # the same text, and one that differs in its constants
        out = np.zeros(1, np.uint32)
        ptxvm.load(TEXT.format(step=step)).kernel("k").launch(1, 1, [out], engine=engine)
        assert out[0] == 3 * step
