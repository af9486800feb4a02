"""Without llvmlite everything runs but the JIT, which says that it is missing."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import ptxvm

STORE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 data)
{
    .reg .b64 %rd;
    ld.param.u64 %rd, [data];
    st.global.u32 [%rd], 7;
    ret;
}
"""


@pytest.fixture
def no_llvmlite(monkeypatch, forget_modules):
    forget_modules("llvmlite.")
    forget_modules("ptxvm.engine.jit")
    monkeypatch.setitem(sys.modules, "llvmlite", None)


def test_the_interpreter_runs(no_llvmlite):
    data = np.zeros(1, np.uint32)
    ptxvm.load(STORE).kernel().launch(args=[data], engine="interp", check=("memory", "race"))
    assert data[0] == 7


def test_the_interpreter_counts_and_records(no_llvmlite):
    kernel, trace = ptxvm.load(STORE).kernel(), ptxvm.Trace()
    done = kernel.launch(args=[np.zeros(1, np.uint32)], engine="interp", profile=True)
    assert done.profile["inst_executed"] == 3
    kernel.launch(args=[np.zeros(1, np.uint32)], engine="interp", trace=trace)
    assert [step.line for step in trace.steps] == [7, 8, 9]


@pytest.mark.parametrize("engine", ["auto", "jit"])
def test_the_jit_is_unsupported_by_name(no_llvmlite, engine):
    with pytest.raises(
        ptxvm.Unsupported, match=r"the JIT without llvmlite is not supported yet \(engine=\"interp\" needs none\)"
    ):
        ptxvm.load(STORE).kernel().launch(args=[np.zeros(1, np.uint32)], engine=engine)
