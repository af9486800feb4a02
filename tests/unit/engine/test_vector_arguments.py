"""Vector registers as arguments and results of functions.

ptxas 13.5 takes anything of as many bits for a vector but an array (its verdicts are the table), and passes the bytes in
their order.
"""

import numpy as np
import pytest

import ptxvm

HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"
GIVEN = bytes(range(0x81, 0x91))
ENGINES = pytest.mark.parametrize("engine", ["interp", "jit"])


def text(formal, actual, *, space=".reg"):
    """A kernel that passes 16 bytes or fewer through a function which gives them back, and stores the result."""
    vector, _, element = actual.rpartition(" ")
    if space == ".param":
        head = (
            f".func (.param {formal} o) f(.param {formal} i) {{ .reg .b64 x; ld.param.b64 x, [i]; st.param.b64 [o], x; ret; }}"
        )
    else:
        head = f".func (.reg {formal} o) f(.reg {formal} i) {{ {move_of(formal)} ret; }}"
    return f"""{HEADER}{head}
.visible .entry k(.param .u64 p) {{
    .reg .b64 a; .reg {actual} t, u;
    ld.param.u64 a, [p];
    ld.global{vector.strip()}.b{element[2:]} t, [a];
    call (u), f, (t);
    st.global{vector.strip()}.b{element[2:]} [a+16], u;
    ret;
}}"""


def move_of(formal):
    """Copies `i` to `o`, element by element."""
    vector, _, element = formal.rpartition(" ")
    bits = element[2:]
    if not vector:
        return f"mov.b{bits} o, i;"
    if bits == "8":
        return "mov.v4.u8 o, i;" if vector == ".v4" else "mov.v2.u8 o, i;"
    return " ".join(f"mov.b{bits} o.{part}, i.{part};" for part in "xyzw"[: int(vector[2:])])


def passed(source, engine):
    held = np.frombuffer(GIVEN + bytes(16), np.uint8).copy()
    ptxvm.load(source).kernel().launch(1, 32, [held], engine=engine)
    return bytes(held[16:])


PAIRS = [
    (".v2 .u32", ".v2 .u32", 8),
    (".v2 .u32", ".v2 .f32", 8),
    (".v2 .u32", ".u64", 8),
    (".u64", ".v2 .u32", 8),
    (".f64", ".v2 .b32", 8),
    (".v4 .u32", ".v4 .f32", 16),
    (".v4 .u32", ".v2 .b64", 16),
    (".v2 .b64", ".v4 .b32", 16),
    (".v2 .u16", ".b32", 4),
    (".b32", ".v2 .b16", 4),
    (".f32", ".v2 .u16", 4),
    (".v2 .b16", ".v2 .f16", 4),
]


@ENGINES
@pytest.mark.parametrize(("formal", "actual", "size"), PAIRS)
def test_bytes_pass_in_their_order(formal, actual, size, engine):
    assert passed(text(formal, actual), engine) == GIVEN[:size] + bytes(16 - size)


@ENGINES
def test_a_vector_passes_in_param_memory(engine):
    assert passed(text(".b64", ".v2 .u32", space=".param"), engine) == GIVEN[:8] + bytes(8)


CONSTANTS = [
    (".f32", "1.5", np.float32(1.5).tobytes()),
    (".b32", "1.5", np.float32(1.5).tobytes()),
    (".f32", "-1.5", np.float32(-1.5).tobytes()),
    (".f64", "1.5", np.float64(1.5).tobytes()),
    (".b64", "0f3FC00000", np.float32(1.5).tobytes() + bytes(4)),  # the lower half: ptxas 13.0
    (".s32", "-2", np.int32(-2).tobytes()),
    (".u64", "-2", np.int64(-2).tobytes()),
    (".v2 .u32", "0x1122334455667788", np.uint64(0x1122334455667788).tobytes()),
    (".v2 .f32", "1.5", np.float64(1.5).tobytes()),
]


@ENGINES
@pytest.mark.parametrize(("formal", "constant", "expected"), CONSTANTS)
def test_constants_have_the_type_of_their_parameter(formal, constant, expected, engine):
    vector, _, element = formal.rpartition(" ")
    source = f"""{HEADER}.func (.reg {formal} o) f(.reg {formal} i) {{ {move_of(formal)} ret; }}
.visible .entry k(.param .u64 p) {{
    .reg .b64 a; .reg {formal} u;
    ld.param.u64 a, [p];
    call (u), f, ({constant});
    st.global{vector.strip()}.b{element[2:]} [a+16], u;
    ret;
}}"""
    assert passed(source, engine) == expected + bytes(16 - len(expected))


def test_checks_take_vectors():
    held = np.frombuffer(GIVEN + bytes(16), np.uint8).copy()
    kernel = ptxvm.load(text(".v2 .u32", ".u64")).kernel()
    assert kernel.launch(1, 32, [held], check=("init", "memory")).findings == []
    assert bytes(held[16:24]) == GIVEN[:8]
