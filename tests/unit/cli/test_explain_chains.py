"""`ptxvm explain 'INSTRUCTION; INSTRUCTION; ...'` with accesses of memory: values go on, also into addresses."""

from __future__ import annotations

from itertools import takewhile

import pytest

from ptxvm.isa.catalog.convert import fp8_on_sm_89
from ptxvm.isa.model import in_words


def of(out: str, instruction: str) -> list[str]:
    """What is said of an instruction of several, behind its first sentence."""
    lines = out.partition(f"\n{instruction}\n")[2].splitlines()
    return [" ".join(line.split()) for line in takewhile(lambda line: not line.endswith(";"), lines) if line]


def test_addresses_that_instructions_compute(ptxvm):
    """33 words from lane to lane put 32 lanes in 32 banks, 32 words in one."""
    text = "mov.u32 r, %laneid; mul.lo.u32 o, r, {}; shl.b32 a, o, 2; ld.shared.f32 f, [a];"
    padded, plain = (of(ptxvm("explain", text.format(words)).out, "ld.shared.f32 f, [a];") for words in (33, 32))
    assert "wavefronts 1: no bank is asked for two words at once" in padded
    assert "wavefronts 32; 1 would do" in plain


def test_what_nvcc_writes_for_an_element_of_an_array(ptxvm):
    """Lanes 8 bytes apart touch 32 * 8 / 32 sectors; the address of a parameter is given as what is loaded."""
    text = "ld.param.u64 %rd1, [k_param_0]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 8; "
    text += "add.s64 %rd4, %rd2, %rd3; ld.global.f32 %f1, [%rd4+64];"
    out = ptxvm("explain", f"{text} neg.f32 %f2, %f1;", "--set", "%rd1=0x1000").out
    said = of(out, "ld.global.f32 %f1, [%rd4+64];")
    assert "memory 4 bytes for each lane at %rd4+64, from 0x1040 on" in said
    assert "sectors 8 sectors of 32 bytes in 3 lines of 128; 4 would hold as many bytes" in said
    assert said[-1] == "result %f1 is not known; to go on with a value: --set %f1=VALUE"


def test_a_loaded_value_goes_on_where_it_is_given(ptxvm):
    """A byte is loaded into a register of 32 bits (PTX 9.7.9.8), as the addition behind it needs one."""
    text = "ld.global.u8 r, [a]; add.u32 s, r, 1; st.global.u32 [a], s;"
    unknown = ptxvm("explain", text, "--set", "a=lane*4").out
    assert of(unknown, "add.u32 s, r, 1;")[-1] == "result depends on r, which is not known"
    assert "sectors 4 sectors of 32 bytes in 1 line of 128" in of(unknown, "st.global.u32 [a], s;")
    assert (
        of(ptxvm("explain", text, "--set", "a=lane*4", "--set", "r=7").out, "add.u32 s, r, 1;")[-1] == "result s 0x00000008 8"
    )


@pytest.mark.parametrize("order", ["@p add.u32 b, a, 100; @!p sub.u32 b, a, 5;", "@!p sub.u32 b, a, 5; @p add.u32 b, a, 100;"])
def test_what_is_written_under_both_guards_of_a_predicate_has_a_value(ptxvm, order):
    done = ptxvm("explain", f"setp.lt.u32 p, a, 5; {order} shl.b32 c, b, 1;", "--set", "a=lane")
    assert (done.code, done.err) == (0, "")
    values = [int(word) for line in of(done.out, "shl.b32 c, b, 1;")[1:] for word in line.split("lanes")[1].split()[1:]]
    assert values == [2 * (lane + 100 if lane < 5 else lane - 5) for lane in range(32)]


def test_what_is_written_under_a_guard_has_a_value_under_the_same_one(ptxvm):
    text = "setp.lt.u32 p, a, 5; @p add.u32 b, a, 100; {}@p shl.b32 c, b, 1;"
    assert "200 202 204 206 208 - - -" in ptxvm("explain", text.format(""), "--set", "a=lane").out.replace("   ", " ")
    again = ptxvm("explain", text.format("setp.gt.u32 p, a, 7; "), "--set", "a=lane")
    assert (again.code, again.err) == (2, "ptxvm explain: values are missing: --set b=VALUE\n")


def test_a_value_for_what_is_not_executed(ptxvm):
    done = ptxvm("explain", "bar.red.popc.u32 r, 0, p;", "--set", "p=lane<5")
    said = "takes part in what the threads of a CTA do together and may wait for other threads"
    assert (done.code, done.err) == (2, f"ptxvm explain: --set has no use here: 'bar.red.popc.u32 r, 0, p;' {said}\n")


def test_a_register_may_have_its_address_and_then_its_value(ptxvm):
    """The address is what the register had before the load."""
    said = of(
        ptxvm("explain", "mov.u32 r, %laneid; shl.b32 r, r, 3; ld.shared.u32 r, [r]; add.u32 s, r, 1;").out,
        "ld.shared.u32 r, [r];",
    )
    assert "wavefronts 2; 1 would do" in said


def test_only_lanes_with_a_true_guard_access_memory(ptxvm):
    text = "mov.u32 n, %laneid; setp.lt.u32 p, n, 4; @p ld.global.v4.f32 {a, b, c, d}, [x]; @!p st.global.f32 [x], e;"
    out = ptxvm("explain", text, "--set", "x=lane*16").out
    assert "memory 16 bytes for each of lanes 0-3 at x, from 0x0 on" in of(out, "@p ld.global.v4.f32 {a, b, c, d}, [x];")
    assert "memory 4 bytes for each of lanes 4-31 at x, from 0x40 on" in of(out, "@!p st.global.f32 [x], e;")
    one, none = (ptxvm("explain", "@p st.global.f32 [x], e;", "--set", "x=0", "--set", f"p={p}").out for p in ("lane==3", "0"))
    assert "memory       4 bytes for lane 3 at x, from 0x0 on\n" in one
    assert "memory       is not accessed: the guard is false in every lane\n" in none


def test_an_unknown_guard_leaves_the_access_and_the_registers_unknown(ptxvm):
    text = "ld.global.u32 n, [x]; setp.ne.u32 p, n, 0; mov.u32 r, 1; @p ld.global.u32 r, [x]; @p mov.u32 r, 2; add.u32 s, r, 1;"
    out = ptxvm("explain", text, "--set", "x=0").out
    assert of(out, "@p ld.global.u32 r, [x];")[-1] == "result depends on p, which is not known"
    assert of(out, "add.u32 s, r, 1;")[-1] == "result depends on r, which is not known"
    assert (
        of(ptxvm("explain", text, "--set", "x=0", "--set", "n=0", "--set", "r=9").out, "add.u32 s, r, 1;")[-1]
        == "result s 0x00000002 2"
    )


def test_a_guard_keeps_the_old_value_from_what_is_loaded(ptxvm):
    text = "mov.u32 r, 1; mov.u32 n, %laneid; setp.lt.u32 p, n, 2; @p ld.global.u32 r, [x]; add.u32 s, r, 1;"
    said = of(ptxvm("explain", text, "--set", "x=0", "--set", "r=9").out, "add.u32 s, r, 1;")
    assert "result s lanes 0-7 10 10 2 2 2 2 2 2" in said


def test_barriers_and_a_jump_at_the_end_change_no_register(ptxvm):
    text = "bar.sync 0; add.u32 a, b, 1; ret;"
    assert of(ptxvm("explain", text, "--set", "b=2").out, "add.u32 a, b, 1;")[-1] == "result a 0x00000003 3"


def test_lanes_that_are_too_many_for_a_table_have_a_row_for_each_sector(ptxvm):
    out = ptxvm("explain", "ld.global.f32 f, [x];", "--set", "x=(lane%2)*4096").out
    assert out.splitlines()[-3:] == [
        "lanes        sector  lanes",
        "             0x0     0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30",
        "             0x1000  1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31",
    ]


def test_the_pictures_show_each_access(ptxvm, tmp_path):
    text = "mov.u32 n, %laneid; shl.b32 a, n, 2; st.shared.f32 [a], f; ld.shared.f32 g, [a];"
    assert ptxvm("explain", text, "--svg", str(tmp_path / "chain.svg")).code == 0
    assert (tmp_path / "chain.svg").read_text().count("The words that the lanes of a warp access") == 2


def test_registers_that_no_size_fits_do_not_go_together(ptxvm):
    done = ptxvm("explain", "add.u32 a, b, 1; add.u64 c, a, 1; ld.global.u32 d, [a];")
    assert (done.code, done.err) == (2, "ptxvm explain: a is a .u32 in one instruction and a .u64 in 'add.u64 c, a, 1;'\n")


@pytest.mark.parametrize("text", ["cvt.rn.f16x2.e4m3x2 d, a;", "cvt.rn.f16x2.e4m3x2"])
def test_a_target_keeps_its_underscore(ptxvm, text):
    assert "sm 89" not in ptxvm("explain", text).out
    assert in_words(fp8_on_sm_89) == "fp8 on sm_89"


def test_a_value_of_all_lanes_is_drawn_once_beside_the_bytes_of_each_step(ptxvm, tmp_path):
    """Bytes 0 to 3 of a word with 100 between them: f16 numbers of 1,024 and more."""
    text = "prmt.b32 %r1, %r2, 0x64646464, 0x4140; sub.f16x2 %r3, %r1, %r4;"
    ptxvm("explain", text, "--set", "%r2=7", "--set", "%r4=1024,1024", "--svg", str(tmp_path / "chain.svg"))
    drawn = (tmp_path / "chain.svg").read_text(encoding="utf-8")
    assert drawn.count("7.0, 0.0") == 1
    assert "c = 0x4140" in drawn
    assert float(drawn.split("viewBox='0 0 ")[1].split()[0]) < 1000
