"""`ptxvm explain`.  What instructions compute here stands in the manual, at the section that is named."""

from __future__ import annotations

import re
from itertools import pairwise, takewhile
from xml.etree import ElementTree as ET

import pytest

from ptxvm.reference.concepts import CONCEPTS
from ptxvm.reference.page import find, pages


def block(text: str, label: str) -> list[str]:
    """The lines behind a label, without it."""
    lines = iter(text.splitlines())
    first = next(line for line in lines if line.startswith(label))
    return [line[13:] for line in (first, *takewhile(lambda line: line.startswith(" " * 13), lines))]


# ── codes, registers, opcodes ───────────────────────────────────────────────────────────


def test_a_code_of_the_syntax(ptxvm):
    done = ptxvm("explain", "p0102")
    assert done.code == 0
    assert done.out.startswith("P0102: missing semicolon\n\nInstructions and declarations end with `;` (PTX 4.3).")
    assert "\n    mov.u32 %r1, 5             // here\n" in done.out  # examples keep their lines
    assert max(map(len, done.out.splitlines())) <= 80


def test_a_code_of_a_rule_names_its_instructions(ptxvm):
    done = ptxvm("explain", "P1501")
    assert done.out == (
        "P1501: The predicate result of lop3 comes with .and or .or, and only then.\n\na rule of    lop3  PTX ISA 9.7.8.6\n"
    )


def test_a_code_that_nobody_has(ptxvm):
    done = ptxvm("explain", "P9999")
    assert (done.code, done.out, done.err) == (1, "", "ptxvm explain: no diagnostic has the code P9999\n")


def test_a_special_register(ptxvm):
    assert ptxvm("explain", "%tid.x").out.splitlines() == [
        "%tid.x, a special register, .u32; PTX ISA 10.1",
        "",
        "The place of the thread in its CTA.",
        "",
        "needs        PTX 1.0",
    ]
    done = ptxvm("explain", "%laned")
    assert (done.code, done.err) == (
        1,
        "ptxvm explain: no special register is called '%laned'; did you mean `%laneid`?\n",
    )


def test_a_register_needs_no_percent_sign(ptxvm):
    assert ptxvm("explain", "tid.x").out == ptxvm("explain", "%tid.x").out
    assert ptxvm("explain", "bar").out == ptxvm("isa", "bar").out  # an instruction comes first


def test_a_modifier_names_its_instructions(ptxvm):
    done = ptxvm("explain", ".rz")
    assert done.out.startswith(".rz\n\na modifier   round toward zero\nof           add, cvt, div, fma")
    assert block(ptxvm("explain", ".shared::cluster").out, "a modifier") == ["shared memory of any CTA of the cluster"]
    done = ptxvm("explain", ".nosuch")
    assert (done.code, done.err) == (1, "ptxvm explain: no modifier, type or directive is called '.nosuch'\n")
    for word, meant in ((".fttz", ".ftz"), (".f16x3", ".f16x2"), (".maxntidd", ".maxntid")):
        said = f"ptxvm explain: no modifier, type or directive is called '{word}'; did you mean `{meant}`?\n"
        assert ptxvm("explain", word).err == said
    assert "did you mean `.L1::evict_last` or `.L2::evict_last`?" in ptxvm("explain", ".evict_last").err


@pytest.mark.parametrize("instruction", ["mov.u32 a, %r1;", "ld.global.u32 a, [%rd1];", "mov.b64 {a, b}, %rd1;"])
def test_a_result_without_its_percent_sign_is_a_register(ptxvm, instruction):
    done = ptxvm("explain", instruction)
    assert done.code == 0, done.err
    assert "d  a" in done.out or "d  {a, b}" in done.out


@pytest.mark.parametrize("word", ["shuffle", "atomics", "wavefront", "race condition", "dsmem", "l2", "membermask", "fp4"])
def test_words_that_are_no_part_of_ptx_are_concepts(ptxvm, word):
    done = ptxvm("explain", word)
    assert done.code == 0, done.err
    assert "\nexplain      " in done.out


def test_a_type_a_directive_and_a_target(ptxvm):
    # PTX 5.2.5; 11.7.1; 11.1.2
    assert ptxvm("explain", ".f16x2").out == (
        ".f16x2\n\na type       2 × .f16, packed in 32 bits\n             PTX ISA 5.2.5\nneeds        PTX 4.2, sm_53\n"
    )
    # PTX 5.2.3; 9.7.9.21: "cvt to bf16 introduced in PTX ISA 7.0, sm_80"; 9.7.15.5.2: wgmma, PTX ISA 8.0, sm_90a
    out = ptxvm("explain", ".bf16").out
    assert block(out, "a type") == ["bfloat16: the upper half of an f32", "PTX ISA 5.2.3"]
    assert block(out, "needs") == ["PTX 7.0, sm_80"]
    assert block(ptxvm("explain", "e4m3").out, "needs") == ["PTX 8.0, sm_90a"]
    assert block(ptxvm("explain", ".reqnctapercluster").out, "needs") == ["PTX 7.8, sm_90"]
    out = ptxvm("explain", "sm_90a").out
    assert out.startswith("sm_90a, a target; PTX 8.0 and later have it; PTX ISA 11.1.2\n\nCode for it runs on this chip only")
    assert "wgmma.mma_async" in " ".join(block(out, "brought"))
    # PTX 9.7.13.15: mbarriers need sm_80, though generic addresses of them need sm_20; 9.7.13.8: vote.ballot needs sm_20
    out = " ".join(block(ptxvm("explain", "sm_20").out, "brought"))
    assert "vote" in out
    assert "mbarrier" not in out
    assert "cp.async" not in out
    named = ptxvm("explain", "compute_90a").out
    assert named.startswith("sm_90a, a target")
    assert "compute_90a is what nvcc calls PTX for it: the module says" in named
    done = ptxvm("explain", "sm_999")
    assert (done.code, done.err) == (1, "ptxvm explain: there is no target 'sm_999'\n")


def test_an_opcode_alone_is_its_page(ptxvm):
    assert ptxvm("explain", "prmt").out == ptxvm("isa", "prmt").out
    assert ptxvm("explain", "prmt.b32.f4e").out.startswith(ptxvm("isa", "prmt").out + "modifiers    .b32  ")
    assert ptxvm("explain", "ret").out.startswith("ret;\n")  # is a whole instruction


# ── instructions in words ───────────────────────────────────────────────────────────────

PRMT = "prmt.b32 %r1, %r2, %r3, 0x5250;"


def test_an_instruction_in_words(ptxvm):
    assert ptxvm("explain", PRMT).out == (
        """\
prmt.b32 %r1, %r2, %r3, 0x5250;

Build a word from any four of the eight bytes of two words.

Each four bits of `c` choose a byte, or with the fourth bit set its sign eight
times; a mode takes two bits of `c` and chooses as its table says.

form         prmt.b32{.mode} d, a, b, c;
             PTX ISA 9.7.9.7; needs PTX 2.0, sm_20
modifiers    .b32  32 bits of any kind
operands     d  %r1     result, .b32
             a  %r2     source, .b32
             b  %r3     source, .b32
             c  0x5250  constant, .b32

bytes        byte of d        3       2       1       0
             selector         5       2       5       0
             taken from  %r3.b1  %r2.b2  %r3.b1  %r2.b0

result       depends on values: --set %r2=VALUE --set %r3=VALUE
"""
    )


def test_words_need_no_quotes_and_no_semicolon(ptxvm):
    assert ptxvm("explain", *PRMT.rstrip(";").split()).out == ptxvm("explain", PRMT).out


def test_each_modifier_is_said_in_words(ptxvm):
    out = ptxvm("explain", "cvt.rzi.ftz.sat.s8.f32 %r1, %f1").out
    assert block(out, "modifiers") == [
        ".rzi  round to an integer, toward zero",
        ".ftz  flush subnormal operands and results to zero of the same sign",
        ".sat  saturate: integers to the range of the type, floats to [0, 1]",
        "      with NaN as 0",
        ".s8   of the destination: 8-bit signed integer",
        ".f32  of the source: 32-bit floating-point number",
    ]


def test_memory_is_explained_without_values(ptxvm):
    out = ptxvm("explain", "@!%p1 ld.global.v2.f32 {%f1, %f2}, [%rd1+8];").out
    assert block(out, "operands") == [
        "d      {%f1, %f2}  result, .f32",
        "a      [%rd1+8]    address",
        "guard  %p1         only lanes where it is false do this",
    ]
    assert block(out, "effects") == ["accesses memory"]
    assert "\nresult" not in out
    done = ptxvm("explain", "@%p1 ld.u32 %r1, [%rd1];", "--set", "rd1=5")
    assert done.code == 2
    assert done.err == "ptxvm explain: values are missing: --set %p1=VALUE\n"


def test_what_only_old_versions_take_is_read_as_they_do(ptxvm):
    # PTX 9.7.3.7: mad.f32 without a rounding modifier is for targets before sm_20.
    out = ptxvm("explain", "mad.f32 %f1, %f2, %f3, %f4").out
    assert block(out, "note")[0].startswith("read as PTX 3.1, sm_20; later ones refuse it: Rounding modifier")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prmtt.b32 %r1, %r2;", "error[P0301]: unknown instruction 'prmtt'"),
        ("add.u31 %r1, %r2, %r3;", "error[P0305]: '.u31' does not fit here in 'add'"),
        ("add.u32 %r1, %r2;", "error[P0302]: 'add' takes 3 operands here, not 2"),
        ("add.u32 %r1, , %r2;", "error[P0112]: expected an operand, found `,`"),
        ("add.u32 %r1, %r2, %r3; .reg .b32 %r;", "error[P0101]: only instructions can be explained"),
        (".reg .b32 %r;", "error[P0101]: this is not an instruction"),
    ],
)
def test_what_is_no_instruction(ptxvm, text, message):
    done = ptxvm("explain", text)
    assert (done.code, done.out) == (1, "")
    first, arrow, *_ = done.err.splitlines()
    assert first == message
    assert arrow.startswith(" --> <instruction>:1:")


def test_a_misspelt_instruction_has_a_suggestion(ptxvm):
    assert ptxvm("explain", "prmtt.b32 %r1, %r2;").err.endswith("= help: did you mean `prmt`?\n")
    assert ptxvm("explain", "prmtt").err == "ptxvm explain: nothing is called 'prmtt'; did you mean `prmt`?\n"
    assert ptxvm("explain", "warpsz").err == "ptxvm explain: nothing is called 'warpsz'; did you mean `WARP_SZ`?\n"
    assert ptxvm("explain", "swizle").err == "ptxvm explain: nothing is called 'swizle'; did you mean `swizzle`?\n"


# ── values ──────────────────────────────────────────────────────────────────────────────


def test_prmt_byte_by_byte(ptxvm):
    # PTX 9.7.9.7: {b, a} is {b7 … b0}; 0x5250 picks b5, b2, b5, b0, and b5 is byte 1 of b.
    out = ptxvm("explain", PRMT, "--set", "%r2=0x80818283", "--set", "%r3=0x40414243").out
    assert block(out, "bytes")[-1] == "value         0x42    0x81    0x42    0x83"
    assert block(out, "values") == [
        "%r2     0x80818283  2155971203",
        "%r3     0x40414243  1078018627",
        "0x5250  0x00005250  21072",
    ]
    assert block(out, "result")[0].startswith("%r1  0x42814283  1115767427")


def test_the_bytes_of_constants_fit_a_terminal(ptxvm):
    # PTX 9.7.9.7; a constant is named by its operand.  0x6401 and 0x6400 are 1025 and 1024 (IEEE 754, binary16).
    out = ptxvm("explain", "prmt.b32 %r1, 0x03020100, 0x64646464, 0x4140").out
    assert block(out, "bytes")[2:] == ["taken from  b.b0  a.b1  b.b0  a.b0", "value       0x64  0x01  0x64  0x00"]
    assert block(out, "result")[2].strip() == "1024.0, 1025.0 as .f16x2"


def test_prmt_replicates_signs(ptxvm):
    # PTX 9.7.9.7: with the msb of a selector set, the sign of the byte fills it.
    out = ptxvm("explain", "prmt.b32 d, a, b, 0x9898", "--set", "a=0x00008001", "--set", "b=0").out
    assert block(out, "bytes")[2].split("  ")[-1] == "sign a.b0"
    assert block(out, "result")[0].startswith("d  0xff00ff00")


def test_prmt_with_a_mode(ptxvm):
    # PTX 9.7.9.7, the table: rc16 with selector 1 takes bytes 3 2 3 2.
    out = ptxvm("explain", "prmt.b32.rc16 d, a, b, c", "--set", "a=0x11223344", "--set", "b=0", "--set", "c=5").out
    assert block(out, "bytes")[1] == "taken from  a.b3  a.b2  a.b3  a.b2"
    assert block(out, "result")[0].startswith("d  0x11221122")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("0x80", "0x80 is d = a & b & c"),  # PTX 9.7.8.6, the examples
        ("0xFE", "0xFE is d = a | b | c"),
        ("0x40", "0x40 is d = a & b & ~c"),
        ("0x1A", "0x1A is d = ((a & b) | c) ^ a"),
        ("0x96", "0x96 is d = a ^ b ^ c, the parity of a, b and c"),
        ("0xE8", "0xE8 is d = (a & b) | (a & c) | (b & c), the majority of a, b and c"),
        ("0xCA", "0xCA is d = (a & b) | (~a & c), a ? b : c"),
    ],
)
def test_lop3_has_its_table_and_its_expression(ptxvm, table, said):
    out = ptxvm("explain", f"lop3.b32 %r1, %r2, %r3, %r4, {table}").out
    *rows, last = block(out, "truth")
    assert rows[:3] == ["a  0  0  0  0  1  1  1  1", "b  0  0  1  1  0  0  1  1", "c  0  1  0  1  0  1  0  1"]
    bits = f"{int(table, 16):08b}"[::-1]
    assert rows[3] == "d  " + "  ".join(bits)
    assert last == said


def test_lop3_computes(ptxvm):
    # PTX 9.7.8.6: 0x1A is (a & b | c) ^ a
    sets = [f"--set=r{n}={value:#x}" for n, value in ((2, 0x00FF00FF), (3, 0x0F0F0F0F), (4, 0x33333333))]
    out = ptxvm("explain", "lop3.b32 %r1, %r2, %r3, %r4, 0x1A", *sets).out
    expected = (0x00FF00FF & 0x0F0F0F0F | 0x33333333) ^ 0x00FF00FF
    assert block(out, "result")[0].startswith(f"%r1  0x{expected:08x}  {expected}")


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("add.s32 %r1, %r2, -7", ["r2=3"], "%r1  0xfffffffc  4294967292 unsigned, -4 signed"),
        # PTX 9.7.1.1: .sat limits to MININT and MAXINT
        ("add.sat.s32 %r1, %r2, 1", ["r2=0x7fffffff"], "%r1  0x7fffffff  2147483647"),
        ("fma.rn.f32 %f1, %f2, 2.0, 0f3F800000", ["f2=1.5"], "%f1  0x40800000  4.0 as .f32"),
        ("add.f16x2 %r1, %r2, %r3", ["r2=1,2.5", "r3=0x3c003c00"], "%r1  0x43004000  2.0, 3.5 as .f16x2"),
        ("add.u16x2 %r1, %r2, %r3", ["r2=1,2", "r3=3,4"], "%r1  0x00060004  4, 6 as .u16x2"),
        # PTX 5.2.3: e4m3 has 3 bits of fraction and a bias of 7, and no infinity: 448 is the greatest
        ("cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2", ["f1=1.5", "f2=500"], "%rs1  0x3c7e  448.0, 1.5 as .e4m3x2"),
        ("mul.wide.s32 %rd1, %r1, -4", ["r1=3"], "%rd1  0xfffffffffffffff4  18446744073709551604 unsigned, -12 signed"),
        ("not.pred %p1, %p2", ["p2=true"], "%p1  false"),
        ("selp.b32 %r1, 1, 2, %p1", ["p1=false"], "%r1  0x00000002  2"),
        ("popc.b32 %r1, 0xF0F", [], "%r1  0x00000008  8"),
    ],
)
def test_results(ptxvm, text, values, result):
    done = ptxvm("explain", text, *(f"--set={value}" for value in values))
    assert (done.code, done.err) == (0, "")
    assert block(done.out, "result")[0] == result


def test_the_carry_goes_in_and_comes_out(ptxvm):
    # PTX 9.7.2.2: d = a + b + CC.CF, and .cc writes the carry out.
    out = ptxvm("explain", "addc.cc.u32 %r1, %r2, 5", "--set", "%r2=0xffffffff", "--set", "CC.CF=1").out
    assert [line.split()[:2] for line in block(out, "result")] == [["%r1", "0x00000005"], ["CC.CF", "true"]]


def test_what_is_approximate_says_so(ptxvm):
    out = ptxvm("explain", "rcp.approx.f32 %f1, %f2", "--set", "f2=2").out
    assert block(out, "accuracy")[0].startswith("as silicon  The ISA bounds the error of .approx only")
    assert block(out, "result")[0].startswith("%f1  0x3f000000  0.5 as .f32")


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        ("add.u32 %r1, %r2, %r3", ["r2=5"], "values are missing: --set %r3=VALUE"),
        ("add.u32 %r1, %r2, %r3", ["r9=5"], "the instruction does not read %r9, but %r2, %r3"),
        ("add.u32 %r1, %r2, %r3", ["r2"], "--set takes NAME=VALUE, not 'r2'"),
        ("add.u32 %r1, %r2, %r3", ["r2=x"], "%r2: 'x' is not a number"),
        ("add.u32 %r1, %r2, %r3", ["r2=2.5"], "%r2: '2.5' is not an integer, and .u32 is wanted"),
        ("add.u32 %r1, %r2, %r3", ["r2=0x100000000"], "%r2: '0x100000000' does not fit the 32 bits of .u32"),
        ("not.pred %p1, %p2", ["p2=5"], "%p2: '5' is no predicate: give true or false"),
        ("add.f16x2 %r1, %r2, %r3", ["r2=1,2,3"], "%r2: .f16x2 has 2 elements, and '1,2,3' has 3"),
        ("mov.u64 %rd1, buffer", ["buffer=1"], "--set has no use here: 'mov.u64 %rd1, buffer;' takes an address"),
    ],
)
def test_a_wrong_value_gets_one_line(ptxvm, text, values, line):
    done = ptxvm("explain", text, *(f"--set={value}" for value in values))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ptxvm explain: {line}")
    assert done.err.count("\n") == 1


def test_what_the_jit_need_not_do_is_told(ptxvm):
    done = ptxvm("explain", "jit")
    assert done.code == 0
    assert "every kernel that the interpreter runs" in done.out


# ── several instructions, and lanes ─────────────────────────────────────────────────────

TO_F16 = "prmt.b32 %r1, %r2, 0x64646464, 0x4140; sub.f16x2 %r3, %r1, %r4"


def test_values_go_on_to_the_next_instruction(ptxvm):
    # Bytes under 0x64 are 1024 + byte as f16 (IEEE 754, binary16): the usual conversion of int8 to f16.
    done = ptxvm("explain", TO_F16, "--set", "%r2=0x03020100", "--set", "r4=1024,1024")
    assert (done.code, done.err) == (0, "")
    values, first, second = done.out.split("\n\n", 2)
    assert values.startswith("values       %r2  0x03020100  50462976\n")
    assert first.startswith("prmt.b32 %r1, %r2, 0x64646464, 0x4140;\n")
    assert "\nresult       %r1  0x64016400  1677812736\n" in second
    assert second.endswith(
        "sub.f16x2 %r3, %r1, %r4;\nSubtract one number from another.\nresult       %r3  0x3c000000  0.0, 1.0 as .f16x2\n"
    )


def test_a_sequence_asks_for_what_it_reads_first(ptxvm):
    out = ptxvm("explain", TO_F16).out
    assert out.endswith("\n\nresult       depends on values: --set %r2=VALUE --set %r4=VALUE\n")
    done = ptxvm("explain", TO_F16, "--set", "r1=1")
    assert (done.code, done.out) == (2, "")
    assert done.err == "ptxvm explain: the instructions do not read %r1, but %r2, %r4\n"


def test_the_carry_goes_from_one_instruction_to_the_next(ptxvm):
    # PTX 9.7.2.1, 9.7.2.2: 0xffffffff + 1 carries out.
    out = ptxvm("explain", "add.cc.u32 %r1, %r2, 1; addc.u32 %r3, 0, 0", "--set", "r2=-1").out
    assert "             CC.CF  true\n" in out
    assert out.endswith("result       %r3  0x00000001  1\n")


@pytest.mark.parametrize(("value", "true"), [("lane%3", lambda lane: lane % 3), ("lane-4", lambda lane: lane - 4)])
def test_a_predicate_is_true_where_an_expression_of_the_lane_is_not_0(ptxvm, value, true):
    done = ptxvm("explain", "vote.sync.ballot.b32 %r1, %p1, -1", f"--set=%p1={value}")
    assert done.code == 0
    assert f"{sum(1 << lane for lane in range(32) if true(lane)):#010x}" in done.out


def test_lanes_of_a_shuffle_have_their_numbers(ptxvm):
    # PTX 9.7.9.6: .bfly reads the lane whose number differs by XOR.
    out = ptxvm("explain", "shfl.sync.bfly.b32 %r1, %r2, 3, 0x1f, 0xffffffff").out
    assert block(out, "values")[1].split() == ["lanes", "8-15", *map(str, range(8, 16))]
    assert block(out, "result")[0].split() == ["%r1", "lanes", "0-7", *(str(lane ^ 3) for lane in range(8))]


def test_lanes_have_the_values_of_an_expression(ptxvm):
    # PTX 9.7.9.9 (vote.sync.ballot): bit n is the predicate of lane n.
    out = ptxvm("explain", "vote.sync.ballot.b32 %r1, %p1, 0xffffffff", "--set", "p1=lane/16").out
    assert block(out, "result")[0].startswith("%r1  0xffff0000")
    listed = ",".join(str(lane % 3) for lane in range(32))
    out = ptxvm("explain", "match.any.sync.b32 %r1, %r2, 0xffffffff", "--set", f"r2={listed}").out
    every_third = sum(1 << lane for lane in range(0, 32, 3))
    masks = [line.split()[-5:] for line in block(out, "result") if "0x" in line]
    assert [row[0] for row in masks] == [f"{every_third << n & 0xFFFFFFFF:#010x}" for n in range(3)]
    assert "".join(masks[0][1:]) == f"{every_third:032b}"
    assert "lanes 1, 4, 7, 10, 13, 16, 19, 22, 25, 28" in " ".join(" ".join(block(out, "result")).split())
    # each lane has a mask of its own: 32 masks in hexadecimal
    out = ptxvm("explain", "match.any.sync.b32 %r1, %r2, -1").out
    assert block(out, "result")[1].split() == ["lanes", "4-7", *(f"{1 << lane:#010x}" for lane in range(4, 8))]


def test_lanes_whose_guard_is_false_keep_what_they_have(ptxvm):
    out = ptxvm("explain", "@%p1 add.u32 %r1, %r1, 5", "--set", "p1=lane%2", "--set", "r1=lane*10").out
    assert block(out, "result")[0].split()[3:] == ["(0)", "15", "(20)", "35", "(40)", "55", "(60)", "75"]
    assert block(out, "result")[-1].strip() == "a lane in brackets has its old value: its guard is false"


def test_lanes_of_floats_have_fractions(ptxvm):
    """PTX mixes no integers and floats (4.5.5): those of an expression with a fraction are floats."""
    out = ptxvm("explain", "add.f32 %f1, %f2, 1.0", "--set", "f2=lane*0.5-1").out
    assert block(out, "result")[0].split()[3:] == ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0", "3.5"]
    out = ptxvm("explain", "add.f32 %f1, %f2, 1.0", "--set", "f2=lane/4").out
    assert block(out, "result")[0].split()[3:] == ["1.0"] * 4 + ["2.0"] * 4


def test_the_old_value_of_a_register_that_is_only_written_may_be_given(ptxvm):
    call = ("explain", "@%p1 add.u32 %r1, %r2, 5; mul.lo.u32 %r3, %r1, 2;", "--set", "r2=1", "--set", "r1=9")
    out = ptxvm(*call, "--set", "p1=lane%2").out
    assert "(9)" in block(out, "result")[0]
    assert out.splitlines()[-4].split()[-8:] == ["18", "12"] * 4
    out = ptxvm(*call, "--set", "p1=false").out
    assert [line.split()[-1] for line in out.splitlines() if "%r3  0x" in line] == ["18"]
    assert "values are missing: --set %r2=VALUE" in ptxvm("explain", call[1], "--set", "p1=0", "--set", "r1=9").err


def test_special_registers_have_given_values_in_lanes_and_through_instructions(ptxvm):
    """Without values they are those of a kernel of one warp."""
    out = ptxvm("explain", "mov.u32 %r1, %tid.x", "--set", "%tid.x=lane+64").out
    assert block(out, "result")[-1].split()[-8:] == [str(64 + lane) for lane in range(24, 32)]
    text = "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r1, 16, %r2;"
    assert ptxvm("explain", text, "--set", "ctaid.x=5").out.splitlines()[-1].split()[-1] == str(5 * 16 + 31)
    assert ptxvm("explain", text).out.splitlines()[-1].split()[-1] == "31"
    # a register of the program may have the name, without the percent sign
    assert "2" in block(ptxvm("explain", "add.u32 d, tid, lane;", "--set", "tid=1", "--set", "lane=1").out, "result")[0]


def test_what_no_lane_has_written_is_not_made_up(ptxvm):
    out = ptxvm("explain", "@%p1 mov.b32 %r1, 5", "--set", "p1=false").out
    assert block(out, "result") == ["%r1  is not written: the guard is false in every lane"]
    out = ptxvm("explain", "@%p1 mov.b32 %r1, 5", "--set", "p1=lane%2").out
    assert block(out, "result")[0].split()[3:] == ["-", "5"] * 4
    assert "(0)" not in out
    # what an instruction before gave is known
    out = ptxvm("explain", "mov.b32 %r1, 7; @%p1 mov.b32 %r1, 5", "--set", "p1=lane%2").out
    assert out.count("(7)   5 (7)   5 (7)   5 (7)   5") == 4


def test_a_matrix_instruction_shows_who_holds_what(ptxvm):
    # PTX 9.7.14.5.8, the fragments of m16n8k16: row = lane / 4, and 8 more for the elements 2 and 3.
    out = ptxvm(
        "explain",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f4,%f5,%f6,%f7}",
    ).out
    table = out.partition("\nD and C, 16 × 8 of .f32: lane and its elements\n")[2].splitlines()[:16]
    expected = [[f"{lane}:{element}" for lane in range(4 * n, 4 * n + 4) for element in ("0-1",)] for n in range(8)]
    assert [line.split()[1:] for line in table[:8]] == expected
    assert max(map(len, out.splitlines())) <= 118  # the instruction itself; all else fits 80 columns


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        (
            "add.u32 %r1, %r2, 1; add.u64 %r3, %r1, 1",
            [],
            "%r1 is a .u32 in one instruction and a .u64 in 'add.u64 %r3, %r1, 1;'",
        ),
        ("add.u32 %r1, %r2, 1; ret; add.u32 %r3, %r2, 1", ["r2=1"], "--set has no use here: 'ret;' acts on control flow"),
        ("add.u32 %r1, %r2, 1", ["r2=lane+"], "%r2: 'lane+' is no expression of numbers and 'lane'"),
        ("add.u32 %r1, %r2, 1", ["r2=lane*1.5"], "%r2: 'lane*1.5': integers and floating-point numbers do not mix"),
        ("add.u32 %r1, %r2, 1", ["r2=lane/0"], "%r2: 'lane/0': "),
    ],
)
def test_what_does_not_go_together_gets_one_line(ptxvm, text, values, line):
    done = ptxvm("explain", text, *(f"--set={value}" for value in values))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ptxvm explain: {line}")
    assert done.err.count("\n") == 1


# ── memory ──────────────────────────────────────────────────────────────────────────────


def test_lanes_that_are_neighbours_fill_their_sectors(ptxvm):
    """16 bytes a lane are 512 bytes: 16 sectors of 32, 4 lines of 128."""
    out = ptxvm("explain", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];").out
    assert block(out, "sectors") == ["16 sectors of 32 bytes in 4 lines of 128"]
    assert block(out, "lanes")[1].split() == ["0x0", "0-1", "2-3", "4-5", "6-7"]


def test_a_conflict_names_the_banks(ptxvm):
    """Every second word: lanes 0 and 16 want words 0 and 32, which lie in bank 0."""
    out = ptxvm("explain", "ld.shared.f32 %f1, [%r1];", "--set", "%r1=lane*8").out
    assert block(out, "wavefronts")[0] == "2; 1 would do"
    assert "those of bank 0 at 0x0, 0x80" in " ".join(block(out, "wavefronts"))


@pytest.mark.parametrize(
    ("code", "value", "said"),
    [
        ("atom.shared.add.u32 %r2, [%r1], 1;", "%r1=lane*4", ["1 step: each lane has an address of its own"]),
        ("red.shared.add.u32 [%r1], 1;", "%r1=0", ["32 steps, one after the other, for 1 address", "lanes 0-31: 32 at 0x0"]),
        ("red.global.add.u64 [%rd1], 1;", "%rd1=lane/16*8",
         ["16 steps, one after the other, for 2 addresses", "lanes 0-15: 16 at 0x0, and 16 at 1 more"]),
        ("atom.global.add.u32 %r2, [%rd1], 1;", "%rd1=lane/8*4",
         ["8 steps, one after the other, for 4 addresses", "lanes 0-7: 8 at 0x0, and 8 at each of 3 more"]),
    ],
)  # fmt: skip
def test_lanes_of_an_atomic_compete_for_addresses(ptxvm, code, value, said):
    assert block(ptxvm("explain", code, "--set", value).out, "contention") == said


def test_loads_of_one_address_and_what_is_misaligned_have_no_contention(ptxvm):
    assert "contention" not in ptxvm("explain", "ld.shared.f32 %f1, [%r1];", "--set", "%r1=0").out
    assert "contention" not in ptxvm("explain", "red.shared.add.u32 [%r1], 1;", "--set", "%r1=lane").out


def test_an_access_takes_its_address_only(ptxvm):
    done = ptxvm("explain", "st.shared.f32 [%r1], %f1;", "--set", "%f1=1.0")
    assert (done.code, done.err) == (2, "ptxvm explain: for its address the instruction does not read %f1, but %r1\n")


def test_a_misaligned_access_is_said_to_be_one(ptxvm):
    out = ptxvm("explain", "ld.global.f64 %fd1, [%rd1];", "--set", "%rd1=lane*8+4").out
    assert " ".join(block(out, "fault")) == "misaligned: an address is a multiple of 8; not that of lanes 0-31"


# ── modes, kinds, pictures ──────────────────────────────────────────────────────────────


def test_a_mode_of_prmt_is_a_table(ptxvm):
    """The table of modes in PTX 9.7.9.7: rc8 takes one byte four times."""
    out = ptxvm("explain", "prmt.b32.rc8 d, a, b, c;").out
    assert [row.split() for row in block(out, ".rc8")][3] == ["2", *["a.b2"] * 4]
    # the page of the opcode has all of them: b4e with 1 takes a.b1, a.b0, b.b3, b.b2, the lowest first
    assert "1  b.b2  b.b3  a.b0  a.b1" in "\n".join(block(ptxvm("explain", "prmt").out, "modes"))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("u32", ".u32\n\na type       32-bit unsigned integer\n"),  # PTX 5.2.1
        ("align", ".align\n\na directive  the address of the variable"),  # PTX 5.4.5
        ("global", ".global\n\na directive  global memory"),  # PTX 5.1.4
        ("2d", ".2d\n\na modifier   two dimensions\n"),  # PTX 9.7.10.3
        (".32x32b", ".32x32b\n\na modifier   32 lanes of 32 bits each\n"),  # PTX 9.7.16.8.1
        ("kind::tf32", ".kind::tf32\n\na modifier   elements of tf32\n"),  # PTX 9.7.16.10.9
        ("out_of_bounds", "out-of-bounds: access out of bounds\n"),
    ],
)
def test_a_word_needs_no_dot_and_a_kind_no_dashes(ptxvm, word, said):
    done = ptxvm("explain", word)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(said)


@pytest.mark.parametrize(
    ("word", "meant"),
    [("permute", "`prmt`"), ("branch", "`bra` or `brx`"), ("prmtt", "`prmt`"), ("out_of_bound", "`out-of-bounds`")],
)
def test_a_common_name_leads_to_the_instruction(ptxvm, word, meant):
    done = ptxvm("explain", word)
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(f"; did you mean {meant}?\n")


def test_a_type_that_only_the_machine_has_is_none(ptxvm):
    assert ptxvm("explain", ".u128").code == 1


def test_a_long_form_is_broken_between_modifiers(ptxvm):
    out = ptxvm("explain", "ld.global.f32 %f1, [%rd1];").out
    first, second, *_ = block(out, "form")
    assert first.startswith("ld{.mmio}{.order}{.scope}")
    assert first.endswith("}")
    assert second == "        {.prefetch}{.vec}.type d, [a]{, policy};"


def test_an_address_of_tensor_memory_is_a_register_of_32_bits(ptxvm):
    """PTX 9.7.16.8.1."""
    done = ptxvm("explain", "tcgen05.ld.sync.aligned.32x32b.x4.b32 {%r1, %r2, %r3, %r4}, [%r5];")
    assert (done.code, done.err) == (0, "")
    assert ".x4       4 times the columns of the shape" in done.out
    done = ptxvm("explain", "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;")
    assert (done.code, done.err) == (0, "")


def test_a_kind_that_is_none_is_guessed(ptxvm):
    done = ptxvm("explain", "out-of-bound")
    assert (done.code, done.err) == (
        1,
        "ptxvm explain: no fault or finding is called 'out-of-bound'; did you mean `out-of-bounds`?\n",
    )
    assert ptxvm("explain", "data-race").out.endswith("explain      race, memory model, bar.sync, fence\n")


@pytest.mark.parametrize(
    "text",
    [
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];",
        "txq.width.b32 %r1, [t];",
        "suld.b.1d.b32.trap %r1, [t, {%r2}];",
    ],
)
def test_a_texture_or_surface_needs_no_declaration(ptxvm, text):
    done = ptxvm("explain", text)
    assert (done.code, done.err) == (0, "")
    assert ["a", "t"] in [line.replace("[t]", "t").split()[:2] for line in block(done.out, "operands")]


# ── concepts ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("subject", "first"),
    [
        ("predicate", "predicate, PTX ISA 5.2.1"),
        ("vector", "vector, PTX ISA 5.4.2"),
        ("@p", "guard, PTX ISA 9.3"),
        ("@!%p1", "guard, PTX ISA 9.3"),
        ("State-Spaces", "state space, PTX ISA 5.1"),
        ("warp", "warp, PTX ISA 3.1"),
        ("bank conflicts", "bank"),
    ],
)
def test_a_word_that_is_no_part_of_an_instruction(ptxvm, subject, first):
    done = ptxvm("explain", subject)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{first}\n\n")


@pytest.mark.parametrize("subject", list(dict.fromkeys(see for each in CONCEPTS.values() for see in each.see)))
def test_what_a_concept_names_can_be_explained(ptxvm, subject):
    assert ptxvm("explain", subject).code == 0


@pytest.mark.parametrize(("words", "kind"), [("out of bounds", "out-of-bounds"), ("null pointer", "null-pointer")])
def test_a_kind_of_fault_may_be_words(ptxvm, words, kind):
    assert ptxvm("explain", words).out == ptxvm("explain", kind).out != ""


def test_words_that_are_no_instruction_are_not_read_as_one(ptxvm):
    done = ptxvm("explain", "illegal instruction")
    assert (done.code, done.out, done.err) == (1, "", "ptxvm explain: nothing is called 'illegal instruction'\n")
    assert "expected `,` or `;`" in ptxvm("explain", "ad r1 r2").err + ptxvm("explain", "ad r1 r2").out


def test_a_fault_and_an_instruction_of_one_name_are_both_explained(ptxvm):
    said = ptxvm("explain", "trap").out
    assert said.startswith("trap: trap\n")
    assert "\n\ntrap, PTX ISA 9.7.19.4\n" in said


@pytest.mark.parametrize(
    ("subject", "first", "see"),
    [
        ("threadIdx.x", "threadIdx, CUDA C++\n\nIn PTX it is `%tid`.", "%tid"),
        ("__syncthreads();", "__syncthreads, CUDA C++\n\nIn PTX it is `bar.sync`.", "bar.sync"),
        ("__SHARED__", "__shared__, CUDA C++\n\nIn PTX it is `.shared`.", ".shared"),
        ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address, an error of CUDA\n\nA program of CUDA gets it", "misaligned"),
        ("illegal-address", "illegal memory access, an error of CUDA", "out-of-bounds"),
        ("CUDA error: an illegal memory access was encountered", "illegal memory access, an error of CUDA", "out-of-bounds"),
        ("Misaligned address.", "misaligned address, an error of CUDA", "misaligned"),
    ],
)
def test_a_word_of_cuda(ptxvm, subject, first, see):
    done = ptxvm("explain", subject)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(first)
    assert see in block(done.out, "explain")[0].split(", ")


# ── mnemonics ───────────────────────────────────────────────────────────────────────────


def test_a_whole_mnemonic_has_its_modifiers_in_words_and_only_the_declaration_that_it_fits(ptxvm):
    said = ptxvm("explain", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32").out
    assert said.count("PTX ISA 9.7.14") == 1
    assert "modifiers    .sync      wait for the lanes or threads named\n" in said
    assert "D and C, 16 × 8 of .f32: lane and its elements\n" in said


@pytest.mark.parametrize(
    ("text", "selectors", "result"),
    [
        ("vsub4.u32.u32.u32 %r1, %r2.b0000, %r3, %r4;", [".b0000  bytes 0, 0, 0, 0"], "0xfffefdfc"),
        (
            "vadd2.u32.s32.s32 %r1.h1, %r2.h10, %r3.h32, %r4;",
            [".h1   half 1", ".h10  halves 0, 1", ".h32  halves 2, 3 of {b, a}"],
            "0x06080000",
        ),
    ],
)
def test_the_parts_that_a_video_instruction_picks_are_named(ptxvm, text, selectors, result):
    """PTX 9.7.18.2: a selector names elements of {b, a}, the lowest last, a mask those of the result that are written."""
    done = ptxvm("explain", text, "--set", "%r2=0x01020304", "--set", "%r3=0x05060708", "--set", "%r4=0")
    assert done.code == 0
    assert block(done.out, "modifiers")[-len(selectors) :] == selectors
    assert block(done.out, "result")[0].split()[1] == result


@pytest.mark.parametrize("opcode", sorted({page.of.forms[0].opcode for of_family in pages().values() for page in of_family}))
def test_the_first_mnemonic_of_every_declaration_is_explained(ptxvm, opcode):
    for page in find(opcode):
        mnemonic = next(page.of.variants()).mnemonic
        assert ptxvm("explain", mnemonic).code == 0, mnemonic


def test_a_result_that_a_register_of_bits_holds_is_of_bits(ptxvm):
    # PTX 9.7.9.21: the destination of a conversion to tf32 has the type .b32.
    assert "d  result, .b32, a register of bits" in ptxvm("explain", "cvt.rna.tf32.f32").out
    assert "d  %r1  result, .b32\n" in ptxvm("explain", "cvt.rna.tf32.f32 %r1, %f1;").out


def test_an_operand_that_is_read_and_written_is_both(ptxvm):
    assert "d        source and result, .b32" in ptxvm("explain", "wgmma.mma_async").out


def test_an_instruction_without_a_result_shows_none(ptxvm):
    assert "result" not in ptxvm("explain", "setmaxnreg.inc.sync.aligned.u32 240;").out


def test_an_instruction_longer_than_a_line_is_broken(ptxvm):
    text = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];"
    assert max(map(len, ptxvm("explain", text).out.splitlines())) <= 80


# ── matrices of warpgroups, and tensor memory ───────────────────────────────────────────


def test_a_wide_product_shows_its_first_columns_and_how_they_go_on(ptxvm):
    # PTX 9.7.15.5.1.1.1: lane t has row t / 4 (and 8 more for elements 2 and 3 of four), columns 2 (t % 4) and the next.
    said = ptxvm("explain", "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16").out
    assert "D (rows 16w to 16w + 15 in warp w), 16 × 256 of .f32: lane and its elements\n" in said
    assert "\n  9    4:2-3   5:2-3   6:2-3   7:2-3\n" in said
    assert "\n  8 columns further, the same lanes hold the elements 4 higher, and so on\n" in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize(
    ("variant", "shown"),
    [
        (
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
            "columns 4-7\n  0-31      16:0-31   20:0-31   24:0-31   28:0-31\n",
        ),
        ("wmma.mma.sync.aligned.row.col.m8n32k16.f32.f32", "columns 8-15\n  0-1    0:2-3  4:2-3   8:2-3"),
        ("wmma.mma.sync.aligned.row.col.m32n8k16.f32.f32", "A, 32 × 16 of .f16: lane and its elements\n  columns 0-7\n"),
    ],
)
def test_a_matrix_too_wide_for_a_line_comes_in_parts(ptxvm, variant, shown):
    # PTX 9.7.14.5.13 for m16n8k256: the column of B is lane / 4, and lane t has rows 32 (t % 4) to 32 (t % 4) + 31.
    said = ptxvm("explain", variant).out
    assert shown in said
    assert max(map(len, said.splitlines())) <= 80


def test_a_sparse_product_shows_metadata(ptxvm):
    # PTX 9.7.14.6.2.1: with selector 0, lane 4r has the metadata of rows r and r + 8.
    said = ptxvm("explain", "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32").out
    assert "metadata of A, 16 × 4 of .u4: lane and its elements\n  0    0:0-3\n  1    4:0-3\n" in said


@pytest.mark.parametrize(
    ("shape", "rows"),
    [
        # PTX 9.7.16.2.3.1, the figures of the shapes: thread and register by lane (down) and column (across).
        ("ld.sync.aligned.16x64b.x1", ["0    0:0   2:0", "1    4:0   6:0", "8    1:0   3:0"]),
        ("st.sync.aligned.16x64b.x1", ["0    0:0   2:0", "1    4:0   6:0", "8    1:0   3:0"]),
        ("ld.sync.aligned.16x128b.x1", ["0    0:0   1:0   2:0   3:0", "8    0:1   1:1   2:1   3:1"]),
        ("ld.sync.aligned.16x256b.x1", ["0    0:0-1   1:0-1   2:0-1   3:0-1", "8    0:2-3   1:2-3   2:2-3   3:2-3"]),
        ("st.sync.aligned.32x32b.x4", ["0    0:0-3", "31  31:0-3"]),
    ],
)
def test_cells_of_tensor_memory_have_their_threads(ptxvm, shape, rows):
    said = ptxvm("explain", f"tcgen05.{shape}.b32").out
    assert "tensor memory, " in said
    assert all(f"\n  {row}\n" in said for row in rows), said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ld.shared.f32 %f1, [%r1];", ">31</text>"),
        ("ld.global.f32 %f1, [%rd1];", "sector +96"),
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "%r2</text>"),
        ("prmt.b32 d, a, b, 0x5a10;", "c = 0x5a10"),
        ("lop3.b32 d, a, b, c, 0x96;", "immLut = 0x96"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];", "T31"),
    ],
)
def test_a_picture_is_a_file_of_svg(ptxvm, tmp_path, text, shown):
    import xml.etree.ElementTree as ET

    path = tmp_path / "picture.svg"
    assert ptxvm("explain", text, "--svg", str(path)).code == 0
    assert ET.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")  # noqa: S314 - our own text
    assert shown in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("what", ["race", "add.u32 %r1, %r2, %r3;"])
def test_what_has_no_picture_is_refused(ptxvm, tmp_path, what):
    done = ptxvm("explain", what, "--svg", str(tmp_path / "picture.svg"))
    assert done.code == 2
    assert "there is no picture of" in done.err


def test_ldmatrix_says_which_rows_lanes_name_and_which_elements_they_get(ptxvm, tmp_path):
    """PTX 9.7.14.5.15: lane T gets elements 2(T % 4) and the next of row T / 4."""
    text = "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r5];"
    done = ptxvm("explain", text, "--set", "%r5=lane*32", "--svg", "rows.svg")
    assert done.code == 0
    assert "memory       16 bytes for each of lanes 0-15 at %r5, from 0x0 on" in done.out
    assert "wavefronts   4; 2 would do" in done.out
    assert "each matrix, 8 × 8 of .b16: lane and its elements" in done.out
    assert "  5  20:0-1  21:0-1  22:0-1  23:0-1" in done.out
    assert "matrices     0: rows at the addresses of lanes 0-7, held in %r1" in done.out
    assert "             1: rows at the addresses of lanes 8-15, held in %r2" in done.out
    drawn = (tmp_path / "rows.svg").read_text(encoding="utf-8")
    assert "Lanes and the banks that they ask: 4 wavefronts, ideal 2" in drawn
    assert "The fragment of each matrix: which lane holds which element" in drawn


def test_stmatrix_says_which_registers_hold_a_matrix(ptxvm):
    done = ptxvm("explain", "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r5], {%r1};")
    assert "each matrix, 8 × 16 of .b8" in done.out
    assert "0: rows at the addresses of lanes 0-7, held in %r1" in done.out


def test_memory_has_colours_on_a_terminal(ptxvm, monkeypatch):
    """Sectors that are wanted whole are green, others yellow; bank conflicts are red."""
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = "ld.global.f32 %f1, [%rd1];"
    whole, partly = (ptxvm("explain", text, "--set", f"%rd1=lane*{stride}").out for stride in (4, 8))
    assert "\x1b[32m0-7\x1b[0m" in whole
    assert "\x1b[33m0-3\x1b[0m" in partly
    shared = ptxvm("explain", "ld.shared.f32 %f1, [%r1];", "--set", "%r1=lane*8").out
    assert "\x1b[31m2; 1 would do\x1b[0m" in shared


def test_pictures_of_a_file_stand_below_each_other(ptxvm, tmp_path):
    """A picture within a picture is as high as it says, and begins behind the one before."""
    operands = "{%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r2}, {%f4,%f5,%f6,%f7}"
    ptxvm("explain", f"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {operands}", "--svg", "fragments.svg")
    whole = ET.parse(tmp_path / "fragments.svg").getroot()  # noqa: S314 - our own
    inner = whole.findall("{http://www.w3.org/2000/svg}svg")
    places = [(float(each.attrib["y"]), float(each.attrib["height"])) for each in inner]
    assert len(places) == 4
    assert not any("style" in each.attrib for each in inner)  # which would give it another height
    assert all(top + height < after for (top, height), (after, _) in pairwise(places))
    assert sum(places[-1]) == float(whole.attrib["viewBox"].split()[-1])


def test_the_bytes_of_prmt_have_colours_on_a_terminal(ptxvm, monkeypatch):
    """A byte of the result has the colour of the byte that it comes from."""
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = ptxvm("explain", "prmt.b32 %r1, %r2, %r3, 0x0050;").out
    assert out.count("\x1b[31m%r2.b0\x1b[0m") == 3
    assert out.count("\x1b[35m%r3.b1\x1b[0m") == 1


def test_a_constant_of_the_language_is_no_register(ptxvm):
    """PTX 4.3."""
    for name in ("WARP_SZ", "%WARP_SZ"):
        assert ptxvm("explain", name).out.startswith("WARP_SZ, a constant, .u32; PTX ISA 4.3\n")
    assert ptxvm("explain", "%tid").out.startswith("%tid, a special register, .v4.u32;")


def test_a_register_that_a_module_declares_has_no_page(ptxvm):
    said = "ptxvm explain: no special register is called '%r1'; registers that `.reg` declares have no page\n"
    done = ptxvm("explain", "%r1")
    assert (done.code, done.out, done.err) == (1, "", said)


@pytest.mark.parametrize("nothing", ["", "  "])
def test_nothing_is_not_explained(ptxvm, nothing):
    done = ptxvm("explain", nothing)
    assert (done.code, done.err.splitlines()[0]) == (2, "ptxvm explain: name a code, a word or an instruction")


def test_the_instruction_that_runs_is_explained_before_one_that_does_not(ptxvm):
    titles = re.findall(r"^(\S+), PTX ISA", ptxvm("explain", "ld").out, re.MULTILINE)
    assert titles == ["ld", "ld.proxy::readonly", "ld.global.nc"]
