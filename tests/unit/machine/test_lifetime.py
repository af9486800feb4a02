"""What a module holds of a device's memory is given back with it."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.memory import default_memory

SOURCE = """
    .version 6.4
    .target sm_70
    .address_size {bits}
    .global .b32 numbers[3] = {{1, 2, 3}};
    .const .b32 fixed = 7;
    .visible .entry where(.param .u{bits} out) {{
        .reg .b{bits} %o, %n;
        .reg .b32 %r;
        ld.param.u{bits} %o, [out];
        mov.u{bits} %n, numbers;
        st.global.u{bits} [%o], %n;
        ld.global.u32 %r, [%n+4];
        st.global.u32 [%o+8], %r;
        ret;
    }}
    .visible .entry read(.param .u64 at) {{
        .reg .b64 %a; .reg .b32 %r;
        ld.param.u64 %a, [at];
        ld.u32 %r, [%a];
        ret;
    }}
    """


@pytest.mark.parametrize("bits", [64, 32])
def test_a_dropped_module_frees_its_memory(bits: int) -> None:
    memory = default_memory() if bits == 64 else default_memory(32)
    gc.collect()  # what other tests have left
    before = [each.start for each in memory.table.items]
    module = ptxvm.load(SOURCE.format(bits=bits))
    out = np.zeros(4, np.uint32)
    kernel = module.kernel("where")
    kernel.launch(args=[out])
    assert len(memory.table.items) > len(before)
    del module
    kernel.launch(args=[out])  # a kernel keeps its module
    assert out[2] == 2
    del kernel
    gc.collect()
    assert [each.start for each in memory.table.items] == before


def test_values_of_a_variable_outlive_the_module() -> None:
    """The array of a symbol is good memory, whatever has become of the module."""
    values = ptxvm.load(SOURCE.format(bits=64)).symbol("numbers")
    gc.collect()
    filler = [np.full(3, 0xFFFF_FFFF, np.uint32) for _ in range(1000)]  # would take the place of what was freed
    assert values.tolist() == [1, 2, 3]
    values[1] = 5
    assert values.tolist() == [1, 5, 3]
    assert len(filler) == 1000


def test_a_pointer_into_a_dropped_module_faults() -> None:
    module = ptxvm.load(SOURCE.format(bits=64))
    out = np.zeros(2, np.uint64)
    module.kernel("where").launch(args=[out])
    reader = ptxvm.load(SOURCE.format(bits=64)).kernel("read")
    reader.launch(args=[int(out[0])])
    del module
    gc.collect()
    with pytest.raises(ptxvm.Fault, match="use-after-free"):
        reader.launch(args=[int(out[0])])
