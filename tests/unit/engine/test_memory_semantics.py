"""Memory as kernels see it, from the text to the bytes: every state space, vectors, pointers, initial values, faults.

Expectations are those of PTX 5.1 (state spaces), 5.4 (initial values), 6.4 (addresses), 9.7.9 and 9.7.13 (instructions).
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.heap import Heap
from ptxvm.machine.memory import Memory

HEAD = ".version {version}\n.target {target}\n.address_size {bits}\n"
REGISTERS = """
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<24>; .reg .b64 %d<24>; .reg .f32 %f<8>; .reg .f64 %e<4>;
    .reg .b32 %t; .reg .b64 %out, %mine;
    ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %mine, %t, 4; add.u64 %mine, %out, %mine;
"""


def load(body: str, module: str = "", *, version: str = "7.3", target: str = "sm_75", parameters: str = "") -> ptxvm.Kernel:
    """A kernel `k(out, ...)`; %t is tid.x, %mine the address of the thread's word of out."""
    head = HEAD.format(version=version, target=target, bits=64)
    return ptxvm.load(f"{head}{module}\n.visible .entry k(.param .u64 out{parameters}) {{ {REGISTERS}\n{body}\nret; }}").kernel(
        "k"
    )


def words(body: str, module: str = "", *, threads: int = 1, size: int = 64, args=(), shared: int = 0, **more) -> list[int]:
    """The words that threads wrote to out."""
    out = np.zeros(size, np.uint32)
    load(body, module, **more).launch(1, threads, [out, *args], shared=shared)
    return out.tolist()


def fault(body: str, module: str = "", *, threads: int = 1, out=None, args=(), grid: int = 1, **more) -> ptxvm.Fault:
    """The fault that a kernel ends with."""
    out = np.zeros(64, np.uint32) if out is None else out
    with pytest.raises(ptxvm.Fault) as caught:
        load(body, module, **more).launch(grid, threads, [out, *args])
    return caught.value


# ── state spaces ────────────────────────────────────────────────────────────────────────

SPACES = {
    "global": (".global .align 16 .b32 v[256];", "", "v"),
    "shared": (".shared .align 16 .b32 v[256];", "", "v"),
    "local": ("", ".local .align 16 .b32 v[256];", "v"),
}


@pytest.mark.parametrize("space", SPACES)
def test_what_is_stored_in_a_space_is_loaded_there(space):
    module, before, name = SPACES[space]
    body = f"""{before}
    mov.u64 %d1, {name}; mul.wide.u32 %d2, %t, 4; add.u64 %d1, %d1, %d2;
    mad.lo.u32 %r1, %t, %t, 5;
    st.{space}.u32 [%d1], %r1;
    ld.{space}.u32 %r2, [%d1];
    st.global.u32 [%mine], %r2;
    """
    assert words(body, module, threads=64) == [t * t + 5 for t in range(64)]


def test_global_variables_keep_their_values_from_launch_to_launch():
    kernel = load(
        "ld.global.u32 %r1, [count]; add.u32 %r1, %r1, 1; st.global.u32 [count], %r1; st.global.u32 [%mine], %r1;",
        ".visible .global .u32 count = 40;",
    )
    out = np.zeros(1, np.uint32)
    for expected in (41, 42, 43):
        kernel.launch(1, 1, [out])
        assert out[0] == expected
    assert kernel.module.symbol("count") == 43


def test_shared_memory_belongs_to_a_cta():
    """Each CTA counts its own threads."""
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.shared.u32 [n], 0;
    bar.sync 0;
    atom.shared.add.u32 %r1, [n], 1;
    bar.sync 0;
    mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r2, 4; add.u64 %d1, %out, %d1;
    @%p1 ld.shared.u32 %r3, [n];
    @%p1 st.global.u32 [%d1], %r3;
    """
    out = np.zeros(50, np.uint32)
    load(body, ".shared .u32 n;").launch(50, 48, [out])
    assert out.tolist() == [48] * 50


def test_shared_variables_of_a_kernel_and_dynamic_memory_lie_apart():
    """The extern array begins past the static variables, at its alignment (PTX 5.1.7)."""
    body = """
    .shared .b8 small[5];
    mov.u32 %r1, small; mov.u32 %r2, more;
    st.shared.u8 [small+4], 7;
    st.shared.v4.u32 [more], {1, 2, 3, 4};
    ld.shared.u8 %r3, [small+4];
    and.b32 %r4, %r2, 15;
    sub.u32 %r5, %r2, %r1; setp.ge.u32 %p1, %r5, 5; selp.u32 %r5, 1, 0, %p1;
    mov.u32 %r6, %dynamic_smem_size;
    st.global.v4.u32 [%out], {%r3, %r4, %r5, %r6};
    """
    assert words(body, ".extern .shared .align 16 .b8 more[];", shared=48)[:4] == [7, 0, 1, 48]


def test_two_extern_arrays_are_one():
    body = "st.shared.u32 [a], 77; ld.shared.u32 %r1, [b]; st.global.u32 [%out], %r1;"
    assert words(body, ".extern .shared .b32 a[]; .extern .shared .u8 b[];", shared=4)[0] == 77


def test_the_last_byte_of_dynamic_memory_is_the_last():
    module = ".extern .shared .align 4 .b8 a[];"
    body = "mov.u32 %r1, 12; mov.u32 %r2, a; add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], 1;"
    words(body, module, shared=16)
    with pytest.raises(ptxvm.Fault, match="out-of-bounds"):
        words(body, module, shared=15)


def test_local_memory_belongs_to_a_thread():
    """Every thread fills its own array in a loop, and adds it up."""
    body = """
    .local .align 4 .b32 a[8];
    mov.u64 %d1, a; mov.u32 %r1, 0;
    FILL: mul.lo.u32 %r2, %r1, %t; st.local.u32 [%d1], %r2;
    add.u64 %d1, %d1, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 8; @%p1 bra FILL;
    mov.u32 %r3, 0;
    SUM: sub.u64 %d1, %d1, 4; ld.local.u32 %r2, [%d1]; add.u32 %r3, %r3, %r2;
    sub.u32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra SUM;
    st.global.u32 [%mine], %r3;
    """
    assert words(body, threads=64) == [28 * t for t in range(64)]


def test_constant_banks():
    """Up to PTX 2.2 arrays without a size begin at the start of their bank, which is 64 KB (PTX 5.1.3.1)."""
    kernel = ptxvm.load("""
    .version 2.1
    .target sm_20
    .extern .const[1] .b32 one[]; .extern .const[2] .b32 two[]; .const .u32 zero[3] = {5, 6, 7};
    .entry k(.param .u32 out)
    {
        .reg .b32 %p, %r1, %r2, %r3;
        ld.param.u32 %p, [out];
        ld.const.u32 %r1, [zero+8]; ld.const[1].u32 %r2, [one+4]; ld.const[2].u32 %r3, [two+65532];
        st.global.u32 [%p], %r1; st.global.u32 [%p+4], %r2; st.global.u32 [%p+8], %r3;
        exit;
    }
    """).kernel()
    kernel.module.symbol("one").view(np.uint32)[1] = 11
    kernel.module.symbol("two").view(np.uint32)[16383] = 22
    out = np.zeros(3, np.uint32)
    kernel.launch(1, 1, [out])
    assert out.tolist() == [7, 11, 22]


def test_parameters_of_every_type():
    parameters = """, .param .u8 a, .param .s16 b, .param .u64 c, .param .f64 d, .param .align 8 .b8 e[12],
                    .param .align 8 .b8 f[8]"""
    body = """
    ld.param.u8 %r1, [a]; ld.param.s16 %r2, [b]; ld.param.u64 %d1, [c]; ld.param.f64 %e1, [d];
    ld.param.v2.u32 {%r3, %r4}, [e]; ld.param.u16 %r5, [e+10]; ld.param.v2.u32 {%r6, %r7}, [f];
    st.global.u32 [%out], %r1; st.global.s32 [%out+4], %r2; st.global.u64 [%out+8], %d1; st.global.f64 [%out+16], %e1;
    st.global.v4.u32 [%out+32], {%r3, %r4, %r5, %r6}; st.global.u32 [%out+48], %r7;
    """
    given = [200, -2, 1 << 40, 2.5, bytes(range(12)), np.array([8, 9], np.uint32).tobytes()]
    got = np.array(words(body, parameters=parameters, args=given)[:13], np.uint32)
    assert got[:2].tolist() == [200, 0xFFFF_FFFE]
    assert got[2:4].view(np.uint64)[0] == 1 << 40
    assert got[4:6].view(np.float64)[0] == 2.5
    assert got[8:].tolist() == [0x03020100, 0x07060504, 0x0B0A, 8, 9]


# ── widths and vectors ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("form", "u8 s8 b16 u32 f32 u64 f64 v2.u8 v4.u8 v2.u16 v4.u16 v2.u32 v4.f32 v2.u64 v2.f64".split())
def test_every_width_moves_its_bytes_and_no_others(space, form, rng):
    module, before, name = SPACES[space]
    count = int(form[1]) if form[0] == "v" else 1
    type = form.split(".")[-1]
    bits = int(type[1:])
    bank = {8: "%h", 16: "%h", 32: "%f" if type[0] == "f" else "%r", 64: "%e" if type[0] == "f" else "%d"}[bits]
    registers = [f"{bank}{n}" for n in range(count)]
    value = registers[0] if count == 1 else "{" + ", ".join(registers) + "}"
    body = f"""{before}
    mov.u64 %d9, {name};
    st.{space}.v4.u32 [%d9], {{-1, -1, -1, -1}}; st.{space}.v4.u32 [%d9+16], {{-1, -1, -1, -1}};
    ld.global.{form} {value}, [%out];
    st.{space}.{form} [%d9], {value};
    ld.{space}.v4.u32 {{%r10, %r11, %r12, %r13}}, [%d9];
    st.global.v4.u32 [%out+32], {{%r10, %r11, %r12, %r13}};
    """
    data = rng.integers(0, 256, 64).astype(np.uint8)
    kernel, size = load(body, module), count * bits // 8
    kernel.launch(1, 1, [data])
    assert data[32:48].tolist() == data[:size].tolist() + [255] * (16 - size)


def test_loads_extend_and_stores_cut():
    """The register is wider than the type (PTX 9.4.1, tables 26 and 27)."""
    body = """
    st.global.u32 [%out], 0x8081F2F3;
    ld.global.u8 %r1, [%out]; ld.global.s8 %r2, [%out]; ld.global.u16 %r3, [%out+2]; ld.global.s16 %r4, [%out+2];
    st.global.v4.u32 [%out+16], {%r1, %r2, %r3, %r4};
    ld.global.s32 %d1, [%out]; st.global.u64 [%out+32], %d1;
    st.global.u8 [%out+1], %r4;
    """
    got = words(body)
    assert got[4:8] == [0xF3, 0xFFFF_FFF3, 0x8081, 0xFFFF_8081]
    assert got[8:10] == [0x8081_F2F3, 0xFFFF_FFFF]
    assert got[0] == 0x8081_81F3


def test_the_sink_takes_an_element():
    assert words("st.global.v2.u32 [%out], {3, 4}; ld.global.v2.u32 {_, %r1}, [%out]; st.global.u32 [%out+8], %r1;")[2] == 4


def test_wide_data():
    """f16x2, bf16x2 and b128 are bits to memory."""
    body = """
    .reg .f16x2 %x; .reg .b128 %q;
    ld.global.b32 %x, [%out]; st.global.b32 [%out+4], %x;
    ld.global.b128 %q, [%out+16]; st.global.b128 [%out+32], %q;
    mov.b128 {%d1, %d2}, %q; st.global.v2.u64 [%out+48], {%d2, %d1};
    """
    out = np.arange(1, 17, dtype=np.uint32)
    load(body, version="8.3", target="sm_70").launch(1, 1, [out])
    assert out.tolist() == [1, 1, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 7, 8, 5, 6]


# ── generic addresses ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("space", SPACES)
def test_a_generic_address_reaches_the_space(space):
    module, before, name = SPACES[space]
    body = f"""{before}
    mov.u64 %d1, {name}; mul.wide.u32 %d2, %t, 8; add.u64 %d1, %d1, %d2;
    cvta.{space}.u64 %d3, %d1;
    st.u32 [%d3], %t;                          // through the generic address ...
    ld.{space}.u32 %r1, [%d1];                 // ... and seen in the space
    cvta.to.{space}.u64 %d4, %d3; sub.u64 %d4, %d4, %d1; cvt.u32.u64 %r2, %d4; add.u32 %r1, %r1, %r2;
    atom.add.u32 %r3, [%d3], 100; ld.u32 %r3, [%d3]; add.u32 %r1, %r1, %r3;
    isspacep.{space} %p1, %d3; selp.u32 %r4, 1000, 0, %p1; add.u32 %r1, %r1, %r4;
    st.global.u32 [%mine], %r1;
    """
    assert words(body, module, threads=64) == [2 * t + 1100 for t in range(64)]


def test_isspacep_tells_the_spaces_apart():
    module = ".global .b32 g; .shared .b32 s; .const .b32 c = 1;"
    body = ".local .b32 l;\n"
    for n, space in enumerate(("global", "shared", "local", "const")):
        body += f"mov.u64 %d{n}, {space[0]}; cvta.{space}.u64 %d{n}, %d{n};\n"
    for n in range(4):
        for m, space in enumerate(("global", "shared", "local", "const")):
            body += f"isspacep.{space} %p1, %d{n}; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%out+{16 * n + 4 * m}], %r1;\n"
    assert np.array(words(body, module)[:16]).reshape(4, 4).tolist() == np.eye(4, dtype=int).tolist()


@pytest.mark.parametrize("engine", ["jit", "interp"])
def test_a_cta_of_no_cluster_is_one_of_its_own(engine):
    """PTX 9.7.9.18: `.shared` is in the window of the cluster, which a launch without clusters has for each CTA."""
    body = """
    .shared .b32 s; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1;
    isspacep.shared::cluster %p1, %d1; selp.u32 %r1, 1, 0, %p1;
    isspacep.shared::cluster %p1, %out; selp.u32 %r2, 2, 0, %p1;
    or.b32 %r1, %r1, %r2; st.global.u32 [%out], %r1;
    """
    out = np.zeros(1, np.uint32)
    load(body, version="7.8", target="sm_90").launch(1, 1, [out], engine=engine)
    assert out.tolist() == [1]


def test_lanes_of_one_instruction_may_reach_different_spaces():
    module = ".global .b32 g = 10; .shared .b32 s; .const .b32 c = 30;"
    body = """
    .local .b32 l;
    st.shared.u32 [s], 20; st.local.u32 [l], 40;
    mov.u64 %d0, g; cvta.global.u64 %d0, %d0; mov.u64 %d1, s; cvta.shared.u64 %d1, %d1;
    mov.u64 %d2, c; cvta.const.u64 %d2, %d2; mov.u64 %d3, l; cvta.local.u64 %d3, %d3;
    and.b32 %r1, %t, 3;
    setp.eq.u32 %p1, %r1, 1; selp.b64 %d4, %d1, %d0, %p1;
    setp.eq.u32 %p1, %r1, 2; selp.b64 %d4, %d2, %d4, %p1;
    setp.eq.u32 %p1, %r1, 3; selp.b64 %d4, %d3, %d4, %p1;
    ld.u32 %r2, [%d4]; st.global.u32 [%mine], %r2;
    """
    assert words(body, module, threads=64) == [10, 20, 30, 40] * 16


# ── initial values ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("variable", "load_as", "expected"),
    [
        (".global .u8 v[4] = {1, 255, 3};", "b32", 0x0003FF01),
        (".global .s16 v = -2;", "s16", 0xFFFF_FFFE),
        (".global .u32 v[3] = {1, 2, 3};", "u32", 1),
        (".const .s32 v = -1;", "s32", 0xFFFF_FFFF),
        (".global .f32 v = 1.5;", "b32", 0x3FC0_0000),
        (".global .f32 v = 0fBF800000;", "b32", 0xBF80_0000),
        (".const .f64 v = 0d3FF8000000000000;", "b32", 0),
        (".global .u32 v = (1 << 4) | 3;", "u32", 19),
        (".global .u32 v[2][2] = {{1}, {2}};", "u32", 1),
        (".global .b8 v[4];", "b32", 0),
    ],
)
def test_initial_values_are_there_before_the_first_launch(variable, load_as, expected):
    space = variable.split()[0]
    variable = variable.replace(f"{space} ", f"{space} .align 8 ", 1)
    assert words(f"ld{space}.{load_as} %r1, [v]; st.global.b32 [%out], %r1;", variable)[0] == expected


def test_pointers_as_initial_values():
    """A name is an address in its own space, `generic()` makes it generic, a mask picks one of its bytes (PTX 5.4)."""
    module = """
    .global .u32 a[4] = {10, 11, 12, 13};
    .const .u32 c[2] = {20, 21};
    .global .u64 to_a = a; .global .u64 to_a2 = a+8; .global .u64 to_c = generic(c); .global .u64 to_c1 = generic(c)+4;
    .global .u64 table[3] = {a+4, generic(a)+12, generic(c)};
    .global .align 8 .u8 parts[8] = {0xFF(a), 0xFF00(a), 0xFF0000(a), 0xFF000000(a), 0xFF00000000(a), 0xFF0000000000(a),
                                     0xFF000000000000(a), 0xFF00000000000000(a)};
    """
    body = ""
    for n, (pointer, load_from) in enumerate(
        [("to_a", "ld.global"), ("to_a2", "ld.global"), ("to_c", "ld"), ("to_c1", "ld"), ("table", "ld.global"),
         ("table+8", "ld"), ("table+16", "ld"), ("parts", "ld.global")]
    ):  # fmt: skip
        body += f"ld.global.u64 %d1, [{pointer}]; {load_from}.u32 %r1, [%d1]; st.global.u32 [%out+{4 * n}], %r1;\n"
    assert words(body, module, version="7.1")[:8] == [10, 12, 20, 21, 11, 13, 20, 10]


def test_pointers_to_functions_as_initial_values():
    """A table of functions that lanes call by their number."""
    module = """
    .func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }
    .func (.reg .u32 r) square(.reg .u32 x) { mul.lo.u32 r, x, x; ret; }
    .global .u64 table[2] = {twice, square};
    """
    body = """
    and.b32 %r1, %t, 1; mul.wide.u32 %d1, %r1, 8; mov.u64 %d2, table; add.u64 %d2, %d2, %d1; ld.global.u64 %d3, [%d2];
    P: .callprototype (.reg .u32 _) _ (.reg .u32 _);
    call (%r2), %d3, (%t), P;
    st.global.u32 [%mine], %r2;
    """
    assert words(body, module, threads=64) == [t * t if t & 1 else 2 * t for t in range(64)]


# ── faults, with their place and address ────────────────────────────────────────────────


def test_an_address_past_the_end_of_an_argument():
    out = np.zeros(16, np.uint32)
    found = fault("st.global.u32 [%mine], 1;", threads=40, out=out)
    assert found.kind == "out-of-bounds"
    assert found.address == out.ctypes.data + 64
    assert found.size == 4
    assert found.place.thread == (16, 0, 0)
    assert found.place.text == "st.global.u32 [%mine], 1"
    assert "`out` (64 bytes, argument 0)" in str(found)


def test_the_place_names_line_cta_and_thread():
    body = "\nmov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 3;\nsetp.eq.and.u32 %p1, %t, 37, %p1;\n@%p1 ld.u32 %r2, [%d1];"
    found = fault(f"mov.u64 %d1, 0;{body}", threads=64, grid=5)
    assert found.kind == "null-pointer"
    assert (found.place.cta, found.place.thread) == ((3, 0, 0), (37, 0, 0))
    assert (found.place.kernel, found.place.text) == ("k", "@%p1 ld.u32 %r2, [%d1]")
    lines = load(f"mov.u64 %d1, 0;{body}").module.programs[0].source.text.splitlines()
    assert "@%p1 ld.u32" in lines[found.place.line - 1]


def test_a_fault_in_a_function_names_the_function():
    module = ".func f(.reg .u64 p) { st.global.u32 [p], 1; ret; }"
    found = fault("call f, (%d1);", module.replace("[p]", "[p+4]"))
    assert found.place.function == "f"
    assert found.kind in ("null-pointer", "out-of-bounds")


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(
    ("access", "offset"),
    [
        ("ld.{}.u16 %h1, [%d1]", 1),
        ("st.{}.u32 [%d1], 1", 2),
        ("ld.{}.v2.u32 {{%r1, %r2}}, [%d1]", 4),
        ("atom.{}.add.u32 %r1, [%d1], 1", 1),
    ],
)
def test_a_misaligned_address(space, access, offset):
    if space == "local" and access.startswith("atom"):
        access = access.replace(".{}", "")
    module, before, name = SPACES[space]
    convert = "cvta.local.u64 %d1, %d1;" if space == "local" and "atom" in access else ""
    found = fault(f"{before} mov.u64 %d1, {name}; add.u64 %d1, %d1, {offset}; {convert} {access.format(space)};", module)
    assert found.kind == "misaligned"
    assert found.address % found.size


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("access", ["ld.{}.u32 %r1, [%d1]", "st.{}.u8 [%d1], 1", "ld.{}.v4.u32 {{%r1, %r2, %r3, %r4}}, [%d1]"])
def test_an_address_past_the_end_of_a_space(space, access):
    module, before, name = SPACES[space]
    far = 8192 if space == "local" else 1024  # of the stack of a thread, not of one variable on it
    found = fault(f"{before} mov.u64 %d1, {name}; add.u64 %d1, %d1, {far}; {access.format(space)};", module)
    assert found.kind == "out-of-bounds"


def test_constants_and_parameters_are_read_only():
    for module, name, space in ((".const .b32 c = 1;", "c", "const"), ("", "out", "param")):
        body = f"mov.u64 %d1, {name}; cvta.{space}.u64 %d1, %d1; st.u32 [%d1], 1;"
        found = fault(body, module, version="7.7", target="sm_70")
        assert found.kind == "read-only"


def test_an_array_that_numpy_may_not_write():
    out = np.zeros(4, np.uint32)
    out.flags.writeable = False
    assert fault("st.global.u32 [%mine], 1;", out=out).kind == "read-only"


def test_an_address_of_another_space():
    """A pointer to shared memory is none to global memory."""
    found = fault("mov.u64 %d1, s; cvta.shared.u64 %d1, %d1; ld.global.u32 %r1, [%d1];", ".shared .b32 s;")
    assert found.kind == "wrong-space"
    found = fault("ld.shared.u32 %r1, [%out];")
    assert found.kind == "out-of-bounds"  # an offset far past the window


def test_another_threads_local_memory_is_out_of_bounds():
    body = """
    .local .b32 l;
    mov.u64 %d1, l; cvta.local.u64 %d1, %d1;
    st.global.u64 [%out], %d1;                 // the last lane's stays
    ld.global.u64 %d2, [%out]; st.u32 [%d2], 5;
    """
    found = fault(body, threads=32)
    assert (found.kind, found.place.thread) == ("out-of-bounds", (0, 0, 0))


def test_an_argument_of_an_earlier_launch_is_used_after_free(alone):
    kernel = load("ld.global.u64 %d1, [kept]; ld.global.u32 %r1, [%d1];", ".visible .global .u64 kept;")
    gone, out = alone(64, np.uint32), np.zeros(4, np.uint32)  # past the end of `out`, if that were beside it
    load("ret;").launch(1, 1, [gone])
    kernel.module.symbol("kept")[...] = gone.ctypes.data + 8
    with pytest.raises(ptxvm.Fault) as caught:
        kernel.launch(1, 1, [out])
    assert caught.value.kind == "use-after-free"
    assert caught.value.address == gone.ctypes.data + 8


MALLOC = ".extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);"
NEW = """
    { .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 %d1, [r]; }
    st.u32 [%d1+20], 9;
    { .param .b64 p; st.param.b64 [p], %d1; call free, (p); }
"""


@pytest.mark.parametrize(
    ("then", "kind"),
    [
        ("ld.u32 %r1, [%d1+20];", "use-after-free"),
        ("{ .param .b64 p; st.param.b64 [p], %d1; call free, (p); }", "double-free"),
        ("add.u64 %d1, %d1, 8; { .param .b64 p; st.param.b64 [p], %d1; call free, (p); }", "invalid-free"),
    ],
)
def test_blocks_of_malloc(then, kind):
    assert fault(NEW + then, MALLOC).kind == kind


def test_past_the_end_of_a_block_of_malloc():
    assert fault(NEW.replace("%d1+20], 9", "%d1+24], 9"), MALLOC).kind == "out-of-bounds"


def test_a_block_of_malloc_outlives_its_module():
    """Its range must not be given to others while the table of allocations still has the block."""
    memory = Memory()
    heap = Heap(memory)
    assert heap.malloc(64)
    del heap
    gc.collect()
    for allocation in [memory.allocate(8 << 20) for _ in range(4)]:
        assert memory.table.overlapping(allocation.start, allocation.end) == [allocation]


# ── modules of 32-bit addresses ─────────────────────────────────────────────────────────


def test_a_module_with_addresses_of_32_bits():
    text = """
    .version 6.4
    .target sm_50
    .address_size 32
    .global .u32 table[4] = {5, 6, 7, 8};
    .global .u32 to_table = table+4;
    .visible .entry k(.param .u32 p, .param .u32 n)
    {
        .shared .b32 s[64]; .local .b32 l;
        .reg .pred %q; .reg .b32 %p, %t, %n, %a, %b, %c;
        ld.param.u32 %p, [p]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;
        setp.ge.u32 %q, %t, %n; @%q ret;
        shl.b32 %a, %t, 2; add.u32 %p, %p, %a;
        mov.u32 %b, s; add.u32 %b, %b, %a; cvta.shared.u32 %b, %b; st.u32 [%b], %t;
        mov.u32 %c, l; cvta.local.u32 %c, %c; st.u32 [%c], 100;
        ld.u32 %b, [%b]; ld.u32 %c, [%c]; add.u32 %b, %b, %c;
        ld.global.u32 %c, [to_table]; ld.global.u32 %c, [%c]; add.u32 %b, %b, %c;
        ld.global.u32 %c, [%p]; add.u32 %b, %b, %c; st.global.u32 [%p], %b;
        ret;
    }
    """
    out = np.arange(0, 640, 10, dtype=np.uint32)
    ptxvm.load(text).kernel().launch(1, 64, [out, 60])
    assert out.tolist() == [10 * t + (t + 106 if t < 60 else 0) for t in range(64)]
    short = np.zeros(2, np.uint32)
    with pytest.raises(ptxvm.Fault, match="out-of-bounds") as caught:
        ptxvm.load(text).kernel().launch(1, 64, [short, 60])
    assert caught.value.place.thread == (2, 0, 0)


# ── conflicts ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("space", ["global", "shared", "generic"])
@pytest.mark.parametrize("operation", ["add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"])
def test_atomics_that_meet_in_one_word(space, operation):
    """Every lane's update happens once, and the old values are those of some order of the lanes (PTX 9.7.12.3)."""
    where = "shared" if space == "shared" else "global"
    type = "b32" if operation in ("and", "or", "xor", "exch", "cas") else "u32"
    before = "mov.u64 %d1, v;" + ("cvta.global.u64 %d1, %d1;" if space == "generic" else "")
    suffix = "" if space == "generic" else f".{space}"
    operands = "%r1, %r2" if operation == "cas" else "%r1"
    body = f"""
    setp.eq.u32 %p1, %t, 0; @%p1 st.{where}.u32 [v], 3;
    bar.sync 0;
    {before}
    add.u32 %r1, %t, 3; add.u32 %r2, %t, 4;     // cas: 3 -> 4, 4 -> 5, ... each where the one before it was
    atom{suffix}.{operation}.{type} %r3, [%d1], {operands};
    st.global.u32 [%mine], %r3;
    bar.sync 0;
    @%p1 ld.{where}.u32 %r4, [v];
    @%p1 st.global.u32 [%out+256], %r4;
    """
    got = words(body, f".{where} .u32 v;", threads=64, size=65)
    old, last = got[:64], got[64]
    given = [t + 3 for t in range(64)]
    match operation:
        case "add":
            assert last == 3 + sum(given)
            assert sorted([*old, last]) == sorted(set(old) | {last})  # all differ: some order of the lanes
            steps = dict(zip(old, given, strict=True))
            value = 3
            for _ in range(64):
                value += steps[value]
            assert value == last
        case "min" | "and":
            assert last == (3 if operation == "min" else 0)
            assert 3 in old
        case "max" | "or":
            assert last == (66 if operation == "max" else 0x7F)
        case "xor":
            assert last == np.bitwise_xor.reduce([3, *given])
        case "exch":
            assert sorted([*old, last]) == sorted([3, *given])
        case "inc":  # wraps past what the lane gives
            assert 0 <= last <= 66
            assert 3 in old
        case "dec":
            assert 0 <= last <= 66
            assert 3 in old
        case "cas":
            swapped = [t for t in range(64) if old[t] == t + 3]
            assert last == 3 + len(swapped)
            assert swapped == list(range(len(swapped)))
            assert swapped


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("type", "value", "expected"), [("u64", 3, 192), ("f32", 0.5, 32.0), ("f64", 0.25, 16.0)])
def test_atomic_sums_of_other_types(space, type, value, expected):
    register, held = {"u64": ("%d2", np.uint64), "f32": ("%f1", np.float32), "f64": ("%e1", np.float64)}[type]
    size = int(type[1:]) // 8
    body = f"""
    setp.eq.u32 %p1, %t, 0; @%p1 st.{space}.b{8 * size} [v], 0;
    bar.sync 0;
    atom.{space}.add.{type} {register}, [v], {value};
    bar.sync 0;
    @%p1 ld.{space}.{type} {register}, [v]; @%p1 st.global.{type} [%out], {register};
    """
    out = np.zeros(1, held)
    load(body, f".{space} .align 8 .b64 v;").launch(1, 64, [out])
    assert out[0] == expected


def test_pairs_of_halves_are_added_one_by_one():
    body = "mov.b32 %r1, 0x40003C00; atom.global.add.noftz.f16x2 %r2, [%out], %r1;"
    out = np.zeros(2, np.float16)
    load(body).launch(1, 64, [out])
    assert out.tolist() == [64, 128]


def test_when_lanes_store_to_one_word_one_of_them_stays():
    assert words("st.global.u32 [%out], %t;", threads=64)[0] in range(64)


def test_a_volatile_loop_sees_what_another_thread_writes():
    """A warp polls a flag in shared memory that the other warp sets after it has written the data."""
    body = """
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.volatile.shared.u32 [flag], 0;
    @%p1 st.volatile.shared.u32 [data], 0;
    bar.sync 0;
    setp.ge.u32 %p2, %t, 32;
    @%p2 bra WRITE;
    WAIT: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p3, %r1, 0; @%p3 bra WAIT;
    ld.volatile.shared.u32 %r2, [data]; st.global.u32 [%mine], %r2; bra DONE;
    WRITE: setp.eq.u32 %p3, %t, 50;
    @%p3 st.volatile.shared.u32 [data], 1234; membar.cta; @%p3 st.volatile.shared.u32 [flag], 1;
    DONE:
    """
    assert words(body, ".shared .u32 flag; .shared .u32 data;", threads=64)[:32] == [1234] * 32


def test_the_barrier_of_a_grid():
    """CUDA's grid.sync(): the workspace that %envreg1 and %envreg2 name (machine.environment) counts the CTAs."""
    body = """
    mov.b32 %r1, %envreg2; mov.b32 %r2, %envreg1; mov.b64 %d1, {%r1, %r2};
    mov.u32 %r3, %ctaid.x; mul.wide.u32 %d2, %r3, 4; add.u64 %d2, %out, %d2;
    st.global.u32 [%d2], %r3;
    membar.gl;
    atom.add.u32 %r4, [%d1+4], 1;
    mov.u32 %r5, %nctaid.x;
    WAIT: ld.volatile.u32 %r4, [%d1+4]; setp.lt.u32 %p1, %r4, %r5; @%p1 bra WAIT;
    sub.u32 %r6, %r5, 1; sub.u32 %r6, %r6, %r3; mul.wide.u32 %d3, %r6, 4; add.u64 %d3, %out, %d3;
    ld.volatile.global.u32 %r7, [%d3];
    add.u64 %d2, %d2, 256; st.global.u32 [%d2], %r7;
    """
    out = np.zeros(128, np.uint32)
    kernel = load(body)
    for _ in range(2):  # the second launch finds a fresh workspace
        out[...] = 0
        kernel.launch(40, 1, [out])
        assert out[64:104].tolist() == list(range(39, -1, -1))


def test_registers_of_the_launch():
    """%gridid differs from launch to launch, %total_smem_size comes in units of 256 bytes on sm_75 (PTX 10.10, 10.30)."""
    body = """
    .shared .b8 s[300]; st.shared.u8 [s], 1;
    mov.u64 %d1, %gridid; cvt.u32.u64 %r1, %d1; mov.u32 %r2, %total_smem_size; mov.u32 %r3, %pm0;
    st.global.v4.u32 [%out], {%r1, %r2, %r3, %r3};
    """
    kernel, found = load(body), []
    for _ in range(2):
        out = np.zeros(4, np.uint32)
        kernel.launch(1, 1, [out])
        found.append(out.tolist())
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1] == 512
