"""The shared memory of a CTA ends at the unit of the device (PTX 10.30: 256 bytes for sm_75, 128 for sm_90), or as asked."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.driver.environment import environment
from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module

READ = b"""
.version 7.8
.target sm_75
.address_size 64
.extern .shared .b8 room[];
.visible .entry read(.param .u64 out, .param .u32 offset)
{
    .reg .b32 %r<4>; .reg .b64 %rd;
    ld.param.u64 %rd, [out];
    ld.param.u32 %r0, [offset];
    mov.u32 %r1, room;
    add.u32 %r1, %r1, %r0;
    ld.shared.u32 %r2, [%r1];
    mov.u32 %r3, %dynamic_smem_size;
    st.global.u32 [%rd], %r3;
    ret;
}
"""
ASKED = 40


@pytest.fixture(autouse=True)
def no_memory_of_checks():
    """Checks are read from the environment anew."""
    environment.cache_clear()
    yield
    environment.cache_clear()


def asked(model, offset, engine):
    """The bytes of dynamic shared memory that a kernel is told, which reads at an offset."""
    out = np.zeros(1, np.uint32)
    module = Module([READ], MODELS[model])
    module.module.kernels["read"].launch(1, 1, [out, np.uint32(offset)], shared=ASKED, engine=engine)
    return out[0]


@pytest.mark.parametrize("engine", ["jit", "interp"])
@pytest.mark.parametrize(("model", "unit"), [("sm_75", 256), ("sm_90", 128)])
def test_reads_before_the_end_of_the_unit_are_in_bounds(model, unit, engine):
    assert asked(model, unit - 4, engine) == ASKED
    with pytest.raises(ptxvm.Fault, match=f"the shared memory has {unit} bytes"):
        asked(model, unit, engine)


@pytest.mark.parametrize("engine", ["jit", "interp"])
def test_the_check_of_memory_knows_what_was_asked_for(monkeypatch, engine):
    monkeypatch.setenv("PTXVM_CHECK", "memory")
    assert asked("sm_90", ASKED - 4, engine) == ASKED
    with pytest.raises(ptxvm.Fault, match=f"the shared memory has {ASKED} bytes"):
        asked("sm_90", ASKED, engine)
