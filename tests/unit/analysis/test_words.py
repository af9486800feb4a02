"""What `ptxvm check` says of mistakes that people make: one message for each, at its place, with a way out.

The expectations are the rules of PTX (PTX 4 to 10): what the right line is.  The lines of ptxas are those that ptxas
13.5.37 printed for the same modules.
"""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.diagnostics import Diagnostic
from ptxvm.syntax.source import Source

FRAME = """.version 7.8
.target sm_80
.address_size 64
.global .u32 counter;
.func other() { ELSEWHERE: ret; }
.visible .entry k(.param .u64 n, .param .u64 data)
{
    .reg .pred %p<4>;
    .reg .b16 %h<4>;
    .reg .b32 %r<8>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<8>;
    .reg .f64 %fd<8>;
    .shared .b32 tile[64];
BEFORE:
    LINE
    ret;
}
"""


def found_in(line: str) -> tuple[Source, list[Diagnostic]]:
    """What is found in a kernel with that line."""
    source = Source(FRAME.replace("LINE", line))
    return source, analyse(source)[1].diagnostics


def the_one(line: str) -> tuple[str, Diagnostic]:
    """The only finding, and the text that it points at."""
    source, found = found_in(line)
    assert [d.line for d in found] == [16], found
    (one,) = found
    return source.text[one.span.start : one.span.end], one


# the line, what the carets are under, a part of the message, a part of the help
MISTAKES = [
    # instructions of other machines and languages, before their operands
    ("FADD R1,R2,R3;", "FADD", "unknown instruction 'FADD'", "`add.f32`"),
    ("IMAD R2, R4, R5, R6;", "IMAD", "unknown instruction", "`mad.lo.s32`"),
    ("S2R R0, SR_TID.X;", "S2R", "unknown instruction", "`mov.u32`"),
    ("MOV.u32 %r1, %r2;", "MOV", "unknown instruction", "`mov.b32`"),
    ("Mov.u32 %r1, %r2;", "Mov", "unknown instruction", "`mov`? Opcodes are in lower case"),
    ("cmp.lt.s32 %p1, %r2, %r3;", "cmp", "unknown instruction", "`setp.lt.s32 p, a, b;`"),
    ("jne BEFORE;", "jne", "unknown instruction", "`@p bra LABEL;`"),
    ("jmp BEFORE;", "jmp", "unknown instruction", "`bra LABEL;`"),
    ("sar.s32 %r1, %r2, 2;", "sar", "unknown instruction", "`shr.s32"),
    ("nop;", "nop", "unknown instruction", "leave it out"),
    ("return;", "return", "unknown instruction", "`ret;`"),
    ("atomicAdd.u32 %r1,[%rd1],1;", "atomicAdd", "unknown instruction", "`atom.global.add.u32"),
    ("__syncthreads();", "__syncthreads(", "does not begin an instruction", "`bar.sync 0;`"),
    ("if (%p1) bra BEFORE;", "if (", "does not begin an instruction", "`@p bra LABEL;`"),
    ("mov32 %r1, %r2;", "mov32", "unknown instruction", "`mov.b32`"),
    ("addu32 %r1, %r2, %r3;", "addu32", "unknown instruction", "`add.u32`"),
    ("add_s32 %r1, %r2, %r3;", "add_s32", "unknown instruction", "`add.s32`"),
    ("reg .u32 %z;", "reg", "unknown instruction", "`.reg`"),
    # modifiers
    ("mul.s32 %r1,%r2,%r3;", "mul.s32", "one of .hi, .lo or .wide", "`mul.hi.s32` or `mul.lo.s32`"),
    ("mad.u32 %rd1,%r2,%r3,%rd4;", "mad.u32", "one of .hi, .lo or .wide", "write `mad.wide.u32`"),
    ("add.i32 %r1,%r2,%r3;", ".i32", "'.i32' does not fit here in 'add'", "`.s32` or `.u32`"),
    ("add.int %r1,%r2,%r3;", ".int", "does not fit", "`.s32` or `.u32`"),
    ("add.float %f1,%f2,%f3;", ".float", "does not fit", "`.f32`"),
    ("add.double %fd1,%fd2,%fd3;", ".double", "does not fit", "`.f64`"),
    ("mov.U32 %r1, %r2;", ".U32", "does not fit", "`.u32`"),
    ("st.async.weird.u32 [%rd1], %r1, [%rd2];", ".weird", "does not fit here in 'st'", "form nearest to this is `st.async{"),
    ("barrier.cluster.wait.foo;", ".foo", "does not fit here in 'barrier'", "form nearest to this is `barrier.cluster.wait"),
    ("barrier.cluster.arrivee;", ".arrivee", "does not fit here in 'barrier'", "`.arrive`"),
    ("tcgen05.foo;", ".foo", "does not fit here in 'tcgen05'", "the form nearest"),
    ("and.u32 %r1, %r2, %r3;", ".u32", "does not fit", "`.b32`"),
    ("neg.u32 %r1, %r2;", ".u32", "does not fit", "`.s32`"),
    ("mul.wide.u64 %rd1, %rd2, 4;", ".wide", "does not fit", "`.hi` or `.lo`"),
    ("ld.share.u32 %r1, [tile];", ".share", "does not fit", "`.shared`"),
    ("setp.less.s32 %p1, %r2, %r3;", ".less", "does not fit", "`.lt`"),
    ("membar.sys.gl;", ".gl", "does not fit", "leave `.gl` out"),
    ("vote.sync.ballot %r1, %p1, 0xffffffff;", "vote.sync.ballot", "lacks a modifier: .b32", "`vote.sync.ballot.b32`"),
    ("match.any.b32 %r1, %r2, 0xffffffff;", "match.any.b32", "lacks a modifier: .sync", "`match.any.sync.b32`"),
    ("fma.f32 %f1,%f2,%f3,%f4;", "fma.f32", "one of .rn, .rz, .rm or .rp", "`fma.rn.f32`"),
    ("sin.f32 %f1,%f2;", "sin.f32", ".approx modifier required", "`sin.approx.f32`"),
    ("cvt.rn.s32.f32 %r1,%f1;", ".rn", "Illegal rounding modifier", "`.rni`"),
    ("add.u32 %rd1, %rd2, %rd3;", ".u32", "does not fit the operands, which are .b64 registers", "`.u64` or `.s64`"),
    # names
    ("add.s32 %r9,%r2,%r3;", "%r9", "'%r9' is not declared", "`%r<8>` declares `%r0` to `%r7`"),
    ("add.s32 %r8,%r8,%r8;", "%r8", "'%r8' is not declared", "`%r<8>` declares `%r0` to `%r7`"),
    (".reg .b32 %i<1>; mov.u32 %i1, 0;", "%i1", "'%i1' is not declared", "`%i<1>` declares `%i0` alone"),
    ("mov.u32 %r1, %r;", "%r", "'%r' is not declared", "`%r<8>` declares `%r0` to `%r7`"),
    ("@%p9 bra BEFORE;", "%p9", "'%p9' is not declared", "`%p<4>` declares `%p0` to `%p3`"),
    ("@p1 bra BEFORE;", "p1", "'p1' is not declared", "`%p1`"),
    ("mov.u32 %r1, r2;", "r2", "not declared", "`%r2`"),
    ("mov.u32 %r1, R2;", "R2", "not declared", "`%r2`"),
    ("mov.u32 %R1, %r2;", "%R1", "not declared", "`%r1`"),
    ("mov.u32 %r1, %tidx;", "%tidx", "'%tidx' is not declared", "`%tid.x`"),
    ("mov.u32 %r1, %tid_y;", "%tid_y", "not declared", "`%tid.y`"),
    ("mov.u32 %r1, tid.x;", "tid.x", "not declared", "`%tid.x`"),
    ("mov.u32 %r1, threadIdx.z;", "threadIdx.z", "not declared", "`%tid.z`"),
    ("mov.u32 %r1, %blockDim.x;", "%blockDim.x", "not declared", "`%ntid.x`"),
    ("mov.u32 %r1, warpSize;", "warpSize", "not declared", "`WARP_SZ`"),
    ("mov.u32 %r1, %lane_id;", "%lane_id", "not declared", "`%laneid`"),
    ("mov.u32 %r1, %laneid.x;", "%laneid.x", "'%laneid' has no component '.x'", "write `%laneid`"),
    ("mov.u32 %r1, %tid.q;", "%tid.q", "'%tid' has no component '.q'", ".x, .y, .z"),
    ("add.s32 %r1, %r2, %r3.x;", "%r3.x", "'%r3' has no component '.x'", "write `%r3`"),
    ("mov.u32 %r1, %tid;", "%tid", "'%tid' is a vector", "`%tid.x`"),
    ("ld.param.u64 %rd1, [N];", "N", "'N' is not declared", "`n`"),
    ("ld.param.u64 %rd1, [k_param_0];", "k_param_0", "not declared", "the parameters of 'k' are `n`, `data`"),
    ("ld.shared.u32 %r1, [Tile];", "Tile", "not declared", "`tile`"),
    ("bra before;", "before", "not declared", "`BEFORE`"),
    ("bra ELSEWHERE;", "ELSEWHERE", "not declared", "a label of 'other'"),
    ("bra NOWHERE;", "NOWHERE", "not declared", "no label of 'k'"),
    ("call printf;", "printf", "not declared", "`.extern .func printf;`"),
    ("mov.f32 %f1, inf;", "inf", "not declared", "`0f7F800000`"),
    ("mov.u32 %r1, $5;", "$5", "not declared", "`5`"),
    ("mov.u32 %z, 1;", "%z", "not declared", "`.reg .b32 %z;`"),
    ("exit\n ret;", "ret", "not declared", "`;` missing"),
    (".reg .u32 %r1;", "%r1", "declared twice", "`%r<8>` declares it"),
    # addresses
    ("ld.global.u32 %r1,%rd1;", "%rd1", "an address in brackets is expected", "`[%rd1]`"),
    ("st.global.u32 %rd1,%r1;", "%rd1", "an address in brackets is expected", "`[%rd1]`"),
    ("ld.param.u64 %rd1, n;", "n", "an address in brackets is expected", "`[n]`"),
    ("ld.global.u32 %r1,(%rd1);", "(", "an address stands in brackets", "`[%rd1]`"),
    ("ld.global.u32 %r1,4(%rd1);", "(", "expected", "`[%rd1+4]`"),
    ("ld.global.u32 %r1,[%rd1-4];", "-", "an offset is added", "`%rd1+-4`"),
    ("ld.global.u32 [%rd1],%r1;", "ld.global.u32", "in another order", "`ld.global.u32 d, [a]"),
    ("st.global.u32 %r1,[%rd1];", "st.global.u32", "in another order", "`st.global.u32 [a], b"),
    ("add.u32 %r1, [%rd1], %r2;", "[%rd1]", "an address in brackets stands where none is expected", "`ld` loads"),
    ("ld.shared.u32 %r1,[tile[4]];", "[", "expected `]`", "`tile[INDEX]`"),
    ("ld.const.u32 %r1, c[0][4];", "[", "expected `,` or `;`", "ld.param"),
    ("ld.global.v4.u32 (%r1,%r2,%r3,%r4), [%rd1];", "(", "a vector stands in braces", "`{%r1, …}`"),
    # numbers
    ("add.f32 %f1,%f2,1.0f;", "1.0f", "`1.0f` is not a number", "`1.0`"),
    ("add.f32 %f1,%f2,1.f;", "1.f", "is not a number", "`1.0`"),
    ("mov.f32 %f1, 1e5f;", "1e5f", "is not a number", "`1e5`"),
    ("add.f32 %f1,%f2,1;", "1", "an integer constant stands where a .f32 operand is needed", "write `1.0`"),
    ("add.f32 %f1,%f2,-1;", "-1", "an integer constant", "write `-1.0`"),
    ("mov.f32 %f1, 0;", "0", "an integer constant", "write `0.0`"),
    ("add.f32 %f1,%f2,0x3f800000;", "0x3f800000", "an integer constant", "`0f3F800000`"),
    ("add.s32 %r1,%r2,2.0;", "2.0", "a floating-point constant", "write `2`"),
    ("add.f16 %h1,%h2,1.5;", "1.5", "a floating-point constant", "0x3E00"),
    ("mov.f64 %fd1, 0x1.8p3;", "0x1.8p3", "is not a number", "`12.0`"),
    ("mov.u32 %r1, 5u;", "5u", "is not a number", "`5U`"),
    ("mov.u64 %rd1, 5ll;", "5ll", "is not a number", "`5`"),
    ("mov.u32 %r1, 0FFh;", "0FFh", "is not a number", "`0x0FF`"),
    ("mov.u32 %r1, 0o17;", "0o17", "is not a number", "`017`"),
    ("mov.u32 %r1, 0b102;", "0b102", "is not a number", "0 and 1"),
    ("mov.u32 %r1, 1_000;", "1_000", "is not a number", "`1000`"),
    ("mov.u32 %r1, #5;", "#", "no meaning", "`5`"),
    # registers of another sort
    ("mov.u32 %r1, %rd1;", "%rd1", "a .b64 register stands where a .u32", "`cvt.u32.u64`"),
    ("add.u64 %rd1, %rd2, %r1;", "%r1", "a .b32 register", "`cvt.u64.u32`"),
    ("add.s64 %rd1, %rd2, %r1;", "%r1", "a .b32 register", "`cvt.s64.s32`"),
    ("add.u32 %r1, %r2, %f3;", "%f3", "a .f32 register", "`cvt.rzi.u32.f32`"),
    ("add.u32 %r1, %r2, %tid.x;", "%tid.x", "a special register", "`mov.u32 r, %tid.x;`"),
    ("setp.lt.s32 %r1, %r2, %r3;", "%r1", "where a .pred", "`setp.ne.b32"),
    ("selp.s32 %r1, %p1, %r2, %r3;", "selp.s32", "in another order", "`selp.s32 d, a, b, {!}c;`"),
    # punctuation
    ("mov.u32 %r1 %r2;", "%r2", "expected `,` or `;`", "commas"),
    ("%p1 bra BEFORE;", "BEFORE", "expected", "`@%p1 BEFORE"),
    ("@(%p1) bra BEFORE;", "(", "expected a predicate", "`@%p1`"),
    ("@!%p1, bra BEFORE;", ",", "expected an instruction", "comma"),
    ("%r1 = add.s32 %r2, %r3;", "=", "expected", "the result is the first"),
    ("; a comment", ";", "does not begin a statement", "`//`"),
    ("# a comment", "#", "does not begin a statement", "`//`"),
    ("-- a comment", "-", "does not begin a statement", "`//`"),
    (".reg u32 %z1;", "u32", "expected a type", "`.u32`"),
    (".reg .int %z1;", ".int", "not the type", "`.s32` or `.u32`"),
    ("call other();", "(", "expected", "`call (results), other, (arguments);`"),
    ("add.f16 %h1, %h2, 010;", "010", "an integer constant stands", "0x4800"),  # octal: 8
]  # fmt: skip


@pytest.mark.parametrize(("line", "place", "message", "help"), MISTAKES, ids=[line for line, *_ in MISTAKES])
def test_a_mistake_has_one_message_with_a_way_out(line, place, message, help):
    if "\n" in line:
        source, (one,) = found_in(line)
        pointed = source.text[one.span.start : one.span.end]
    else:
        pointed, one = the_one(line)
    assert pointed == place
    assert message in one.message
    assert help in one.help


def test_an_integer_that_no_float_holds_is_refused_as_others_are():
    _, found = found_in(f"add.f16 %h1, %h2, {'9' * 400};")
    assert "an integer constant stands where a .f16 operand is needed" in {each.message for each in found}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("FADD R1,R2,R3;", "Not a name of any known instruction: 'FADD'"),
        ("add.i32 %r1,%r2,%r3;", "Unknown modifier '.i32'"),
        ("and.u32 %r1, %r2, %r3;", "Unexpected instruction types specified for 'and'"),
        ("mul.s32 %r1,%r2,%r3;", "Unexpected instruction types specified for 'mul'"),
        ("mul.wide.s32 %r1, %r2, 4;", "Arguments mismatch for instruction 'mul.wide'"),
        ("fma.f32 %f1,%f2,%f3,%f4;", "Rounding modifier required for instruction 'fma'"),
        ("match.any.b32 %r1, %r2, 0xffffffff;", ".sync modifier required for instruction 'match'"),
        ("ld.global.u32 %r1,%rd1;", "Arguments mismatch for instruction 'ld'"),
        ("st.global.u32 %r1,[%rd1];", "Arguments mismatch for instruction 'st'"),
        ("add.u32 %rd1, %rd2, %rd3;", "Arguments mismatch for instruction 'add'"),
        ("add.s32 %r9,%r2,%r3;", "Unknown symbol '%r9'"),
        ("mov.u32 %r1, %laneid.x;", "Unknown field '.x'"),
        ("add.f32 %f1,%f2,1.0f;", "Parsing error near 'f': syntax error"),
        ("; a comment", "Parsing error near ';': syntax error"),
        ("sqrt.reg.f32 %f1, %f2;", "Parsing error near '.reg': syntax error"),
        ("add.u32.entry %r1, %r2, %r3;", "Parsing error near '.entry': syntax error"),
        ("__syncthreads();", "Parsing error near ')': syntax error"),
    ],
)  # fmt: skip
def test_ptxas_has_its_own_words(line, said):
    assert the_one(line)[1].ptxas == said


GPU = "Illegal modifier '.gpu' for instruction '{}'"
APPROX = ".approx modifier required for instruction"
ROUNDS = "Illegal rounding modifier for instruction"
SIZE = "Argument vector size mismatch for instruction 'ld'"


@pytest.mark.parametrize(
    ("line", "said"),
    [  # as ptxas 13.0 says it: of two modifiers of a kind the last counts, and of a result that is no vector it speaks twice
        ("ld.global.v4.f32 {%f1,%f2}, [%rd1];", [SIZE, SIZE]),
        (
            "ld.global.v2.f32 %f1, [%rd1];",
            ["Result vector expected", SIZE, SIZE],
        ),
        (
            "st.global.v2.f32 [%rd1], {%f1,%f2,%f3};",
            ["Illegal vector size: 3", "Argument vector size mismatch for instruction 'st'"],
        ),
        ("ld.global.shared.u32 %r1, [%rd1];", ["Unexpected number of state spaces specified in instruction 'ld'"]),
        ("add.global.shared.s32 %r1, %r2, %r3;", ["No state space qualifier expected for instruction 'add'"]),
        (
            "ld.v2.v4.f32 {%f1,%f2}, [%rd1];",
            ["Multiple vector modifiers specified", SIZE, SIZE],
        ),
        ("ld.v2.v4.f32 {%f1,%f2,%f3,%f4}, [%rd1];", ["Multiple vector modifiers specified"]),
        ("mul.full.u32 %r1, %r2, %r3;", ["Unknown modifier '.full'", "Unexpected instruction types specified for 'mul'"]),
        ("add.foo.bar.s32 %r1, %r2, %r3;", ["Unknown modifier '.foo'", "Unknown modifier '.bar'"]),
        ("rcp.approx.rn.f32 %f1, %f2;", ["Rounding modifier or '.approx' modifier required for instruction 'rcp'"]),
        # Types come before what no form takes, but for `.sync` and operations of atomics; of more of a kind it says that first.
        ("add.relaxed %r1, %r2, %r3;", ["Unexpected instruction types specified for 'add'"]),
        ("mul.param.b64 %rd1, %rd2, %rd2;", ["Unexpected instruction types specified for 'mul'"]),
        ("mov.lo %r1, %r2;", ["Unexpected instruction types specified for 'mov'"]),
        ("cvta.to.global.param %rd1, %rd2;", ["Unexpected instruction types specified for 'cvta.to'"]),
        ("cvt.s32.gpu %r1, %f2;", ["Unexpected instruction types specified for 'cvt'"]),
        ("add.relaxed.s32 %r1, %r2, %r3;", ["Illegal modifier '.relaxed' for instruction 'add'"]),
        ("shl.nc.cas.eq %r1, %r2, 4;", ["Illegal modifier '.cas' for instruction 'shl'"]),
        ("prmt.gpu.sync %r1, %r2, %r3, %r1;", ["Illegal modifier '.sync' for instruction 'prmt'"]),
        ("min.b32.wide %r1, %r2, %r3;", ["Unknown modifier '.wide'", "Unexpected instruction types specified for 'min'"]),
        ("and.acquire.full %r1, %r2, %r3;", ["Unknown modifier '.full'", "Unexpected instruction types specified for 'and'"]),
        ("rsqrt.approx.rn.f32 %f1, %f2;", ["Illegal rounding modifier for instruction 'rsqrt'"]),
        (
            "cvt.rzi.rn.s32.f32 %r1, %f2;",
            ["Multiple rounding modifiers specified", "Illegal rounding modifier for instruction 'cvt'"],
        ),
        ("cvt.rn.rzi.s32.f32 %r1, %f2;", ["Multiple rounding modifiers specified"]),
        (
            "ld.acquire.release.gpu.u32 %r1, [%rd1];",
            ["Duplicate .release modifier", "Illegal modifier '.release' for instruction 'ld'"],
        ),
        ("ld.release.acquire.gpu.u32 %r1, [%rd1];", ["Duplicate .acquire modifier"]),
        ("membar.gl.cta;", ["Multiple scope modifiers specified"]),
        ("shf.wrap.b32 %r1, %r2, %r3, %r1;", ["Not a name of any known instruction: 'shf'"]),
        ("shf.foo.wrap.b32 %r1, %r2, %r3, %r1;", ["Unknown modifier '.foo'", "Not a name of any known instruction: 'shf'"]),
        ("shfl.sync.b32 %r1, %r2, 1, 31, -1;", ["Shuffle modifier required for instruction 'shfl'"]),
        # A modifier is refused between what is missed before and behind it.
        (
            "setp.gpu.s32 %p1, %r1, %r2;",
            [GPU.format("setp"), "Comparison modifier required for instruction 'setp'", GPU.format("setp")],
        ),
        (
            "fma.gpu.f32 %f1, %f2, %f1, %f2;",
            [GPU.format("fma"), GPU.format("fma"), "Rounding modifier required for instruction 'fma'"],
        ),
        (
            "lg2.rn.f32 %f1, %f2;",
            [".approx modifier required for instruction 'lg2'", "Illegal rounding modifier for instruction 'lg2'"],
        ),
        (
            "tanh.gpu.f32 %f1, %f2;",
            [f"{APPROX} 'tanh'", GPU.format("tanh"), GPU.format("tanh"), f"{APPROX} 'tanh'"],
        ),
        (
            "red.global.rn.u32 [%rd1], 1;",
            [
                "Illegal operation '' for instruction 'red'",
                "Operation  requires  type for instruction 'red'",
                "Reduction operation is required for instruction 'red'",
                "Illegal rounding modifier for instruction 'red'",
            ],
        ),
        ("prefetch.global.rn [%rd1];", [f"{ROUNDS} 'prefetch'", "Cache level modifier required for instruction 'prefetch'"]),
        ("mul.gpu.s32 %r1, %r2, %r3;", ["Unexpected instruction types specified for 'mul'"]),
        ("mul24.s32 %r1, %r2, %r3;", ["Not a name of any known instruction: 'mul24'"]),
        ("shl.b32.b32 %r1, %r2, 3;", ["Unexpected instruction types specified for 'shl'"]),
        ("vote.sync.ballot.ballot.b32 %r1, %p1, -1;", ["Multiple vote modifiers specified"]),
        ("ex2.f32 %f1, %f2;", [f"{APPROX} 'ex2'"] * 2),
        (
            "rcp.f64 %fd1, %fd2;",
            [
                "Rounding modifier or '.approx' modifier required for instruction 'rcp'",
                "Rounding modifier required for instruction 'rcp'",
            ],
        ),
        # Several that are missing have an order, too; an operand may tell which modifier it is.
        (
            "ldmatrix.sync.aligned.shared.b16 {%r1}, [%r2];",
            [f"{each} modifier required for instruction 'ldmatrix'" for each in ("Shape", ".num")],
        ),
        (
            "match.b32 %r1, %r2, -1;",
            [".sync modifier required for instruction 'match'", "'.any' or '.all' modifier required for instruction 'match'"],
        ),
        (
            "fence.sc;",
            ["Scope modifier required for instruction 'fence'", "Modifier '.sc' requires scope with 'fence' instruction"],
        ),
        ("setp.lt.s32 %p1, %r1, %r2, %p1;", ["Boolean operation is required for instruction 'setp'"]),
        (
            "vote.ballot.b32 %r1, %p1, -1;",
            [
                ".sync modifier required for instruction 'vote'",
                "Instruction 'vote' without '.sync' is not supported on .target sm_70 and higher from PTX ISA version 6.4",
            ],
        ),
        ("shl.b64 %rd1, {%r1, %r2, %r3}, 3;", ["Illegal vector size: 3", "Arguments mismatch for instruction 'shl'"]),
        ("bar.sync.arrive 0;", ["Unknown modifier '.arrive'"]),
        ("add.clamp.s32 %r1, %r2, %r3;", ["Illegal modifier 'Clamp' for instruction 'add'"] * 2),
        (
            "cvta.u64 %rd1, %rd2;",
            ["State space modifier required for instruction 'cvta'", "State space incorrect for instruction 'cvta'"],
        ),
    ],
)
def test_ptxas_goes_on_after_a_modifier(line, said):
    one = the_one(line)[1]
    assert [one.ptxas or one.message, *one.consequences.splitlines()] == said


def test_ptxas_names_the_argument_of_a_vector_atomic():
    line = "atom.global.add.v2.f32 {%f0,%f1}, [%rd1], {%f0,%f1,%f2,%f3};"
    frame = FRAME.replace(".version 7.8", ".version 8.1").replace("sm_80", "sm_90")
    (one,) = analyse(Source(frame.replace("LINE", line)))[1].diagnostics
    named = "Argument 2 of instruction 'atom instruction with vector types': Argument vector size mismatch"
    assert [one.ptxas, *one.consequences.splitlines()] == [named, "Argument vector size mismatch for instruction 'atom'"]
