"""`ptxvm diff`: where two versions part follows from their text, by hand."""

from __future__ import annotations

import io

import pytest

# Each thread stores its number times three, then adds one to a counter.
KERNEL = """.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [k_param_0];
    ld.param.u64 %rd2, [k_param_1];
    mov.u32 %r1, %tid.x;
    mul.lo.u32 %r2, %r1, 3;
    mul.wide.u32 %rd3, %r1, 8;
    add.u64 %rd4, %rd1, %rd3;
    st.global.u32 [%rd4], %r2;
    st.global.u32 [%rd4+4], %r1;
    red.global.add.u32 [%rd2], 1;
    ret;
}
"""
LAUNCH = ["--grid", "1", "--block", "40", "u32[80]", "u32[1]"]

VECTOR = "red.global.add.v2.f32 [%rd4], {0f3f800000, 0f40000000};"


@pytest.fixture
def diff(ptxvm, module):
    """Compares the kernel with another one."""
    before = module(KERNEL, "a.ptx")

    def compare(old, new, *words):
        assert old in KERNEL
        return ptxvm("diff", before, module(KERNEL.replace(old, new), "b.ptx"), *(words or LAUNCH))

    return compare


def test_equal_versions_have_no_difference(diff):
    done = diff("mul.lo.u32 %r2, %r1, 3;", "shl.b32 %r2, %r1, 1; add.u32 %r2, %r2, %r1;")
    assert (done.code, done.out, done.err) == (0, "no difference: arguments and stores are equal\n", "")


def test_the_first_value_that_parts_is_named(diff):
    done = diff("mul.lo.u32 %r2, %r1, 3;", "setp.eq.u32 %p, %r1, 35;\n    mul.lo.u32 %r2, %r1, 3;\n    @%p mov.u32 %r2, 0;")
    assert (done.code, done.err) == (1, "")
    assert done.out == (
        "argument 0 (param_0): 1 of 80 elements differ; the first is [70], 105 and 0\n"
        "\n"
        "first to part: CTA 0,0,0  thread 35,0,0, its store 1 to global memory\n"
        "a.ptx:15  st.global.u32 [%rd4], %r2;  stores param_0+280 = 105\n"
        "b.ptx:17  st.global.u32 [%rd4], %r2;  stores param_0+280 = 0\n"
        "\n"
        "first instruction to part\n"
        "a.ptx:12  mul.lo.u32 %r2, %r1, 3;\n"
        "        %r1 = 35 → %r2 = 105\n"
        "b.ptx:12  setp.eq.u32 %p, %r1, 35;\n"
        "        %r1 = 35 → %p = true\n"
    )


def test_the_value_is_named_that_parts_before_the_store(diff):
    """The first thread is 1: 0 * 3 is 0 * 4."""
    done = diff("mul.lo.u32 %r2, %r1, 3;", "mul.lo.u32 %r4, %r1, 4; mov.u32 %r2, %r4;")
    assert done.out.endswith(
        "first value to part\n"
        "a.ptx:12  mul.lo.u32 %r2, %r1, 3;\n"
        "        %r1 = 1 → %r2 = 3\n"
        "b.ptx:12  mul.lo.u32 %r4, %r1, 4;\n"
        "        %r1 = 1 → %r4 = 4\n"
    )


def test_a_version_on_standard_input_is_read_once(ptxvm, module, monkeypatch):
    other = KERNEL.replace("%r1, 3;", "%r1, 4;").encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(other)))
    done = ptxvm("diff", module(KERNEL, "a.ptx"), "-", *LAUNCH)
    assert (done.code, done.err) == (1, "")
    assert "<stdin>:12  mul.lo.u32 %r2, %r1, 4;\n        %r1 = 1 → %r2 = 4\n" in done.out


def test_addresses_are_compared(diff):
    lines = diff("st.global.u32 [%rd4+4], %r1;", "st.global.u32 [%rd4], %r1;").out.splitlines()
    assert lines[-3:] == [
        "first to part: CTA 0,0,0  thread 0,0,0, its store 2 to global memory",
        "a.ptx:16  st.global.u32 [%rd4+4], %r1;  stores param_0+4 = 0",
        "b.ptx:16  st.global.u32 [%rd4], %r1;  stores param_0+0 = 0",
    ]


def test_stores_that_are_overwritten_part_too(diff):
    done = diff("    st.global.u32 [%rd4], %r2;", "    st.global.u32 [%rd4], 9; st.global.u32 [%rd4], %r2;")
    assert done.code == 1
    assert done.out.splitlines()[0] == "all arguments are equal in the end"
    assert "thread 0,0,0, its store 1" in done.out


def test_a_version_with_a_store_less_has_no_such_store(diff):
    lines = diff("    red.global.add.u32 [%rd2], 1;", "").out.splitlines()
    assert lines[0] == "argument 1 (param_1): 1 of 1 element differ; the first is [0], 40 and 0"
    assert lines[-3:] == [
        "first to part: CTA 0,0,0  thread 0,0,0, its store 3 to global memory",
        "a.ptx:17  red.global.add.u32 [%rd2], 1;  atomic with param_1+0 = 1",
        "b.ptx     has no such store",
    ]
    more = diff("    ret;", "    st.global.u32 [%rd2], 40;\n    ret;").out.splitlines()
    assert more[-2:] == ["a.ptx     has no such store", "b.ptx:18  st.global.u32 [%rd2], 40;  stores param_1+0 = 40"]


def test_a_vector_is_its_elements(diff):
    both = "st.global.u32 [%rd4], %r2;\n    st.global.u32 [%rd4+4], %r1;"
    assert diff(both, "st.global.v2.u32 [%rd4], {%r2, %r1};").code == 0


def test_a_vector_atomic_is_its_elements(ptxvm, module):
    both = "st.global.u32 [%rd4], %r2;\n    st.global.u32 [%rd4+4], %r1;"
    two = "red.global.add.f32 [%rd4], 0f3f800000;\n    red.global.add.f32 [%rd4+4], 0f40000000;"
    texts = two, VECTOR, VECTOR.replace("0f40000000", "0f40400000")
    before, same, other = (module(KERNEL.replace(both, text), f"{n}.ptx") for n, text in enumerate(texts))
    assert ptxvm("diff", before, same, *LAUNCH).code == 0
    said = " ".join(ptxvm("diff", before, other, *LAUNCH).out.split())
    assert said.endswith(f"2.ptx:15 {texts[2]} atomic with param_0+4 = 3.0")


def test_random_arguments_are_the_same_for_both(diff):
    assert diff("%r1, 3;", "3, %r1;", "--grid", "1", "--block", "40", "u32[80]=random", "u32[1]=random").code == 0


def test_what_is_no_option_of_two_launches_is_refused(diff):
    done = diff("%r1, 3;", "%r1, 4;", *LAUNCH, "--save", "0=x.npy")
    assert (done.code, done.err) == (2, "ptxvm diff: --save and --dump are options of ptxvm run, and not of ptxvm diff\n")


def test_a_fault_of_one_is_told(diff):
    done = diff("[%rd4+4], %r1", "[%rd4+320], %r1")
    assert done.code == 1
    assert "b.ptx:16" in done.err
    assert "out-of-bounds" in done.err
