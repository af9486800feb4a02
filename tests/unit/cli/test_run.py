"""`ptxvm run`."""

from __future__ import annotations

import io
import re
import sys

import ml_dtypes
import numpy as np
import pytest

from ptxvm.cli import arguments
from ptxvm.cli.failures import WrongCall

HEAD = ".version 6.4\n.target sm_75\n.address_size 64\n"
# out[i] = scale * in[i] for i < n, by one thread an element
SCALE = (
    HEAD
    + """
.visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 by, .param .u32 scale_param_3)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<6>;
    ld.param.u32 %r1, [scale_param_3];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p ret;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [in];
    ld.param.f32 %f1, [by];
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f1, %f2;
    add.u64 %rd5, %rd1, %rd3;
    st.global.f32 [%rd5], %f3;
    ret;
}
"""
)
LAUNCH = ["--grid", "2", "--block", "4"]


@pytest.fixture
def scale(module):
    return module(SCALE, "scale.ptx")


def test_it_prints_the_arrays_and_what_it_counted(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "f32[6]", "f32[6]=arange", "-1.5", "6")
    assert (done.code, done.err) == (0, "")
    table, counters = done.out.rsplit("\n", 2)[:2]
    assert table == (
        "   argument  array   values                    min  max    sum\n"
        "0  out       f32[6]  -0 -1.5 -3 -4.5 -6 -7.5  -7.5   -0  -22.5\n"
        "1  in        f32[6]  0 1 2 3 4 5                 0    5     15"
    )
    # 8 threads execute the 7 instructions up to the guarded ret; 6 of them 10 more.
    assert counters == f"2 CTAs, 8 threads, {8 * 7 + 6 * 10} thread-instructions"


def test_it_saves_arrays_by_number_and_by_name(ptxvm, scale, tmp_path):
    np.save(tmp_path / "in.npy", np.arange(6, dtype=np.float32))
    saves = ["--save", "0=a.npy", "--save", "out=b"]
    assert ptxvm("run", scale, *LAUNCH, *saves, "f32[6]=7", "@in.npy", "2", "4").code == 0
    for name in ("a.npy", "b"):
        np.testing.assert_array_equal(np.load(tmp_path / name), np.array([0, 2, 4, 6, 7, 7], np.float32))


def test_time_is_told_on_demand(ptxvm, scale):
    words = [*LAUNCH, "f32[6]", "f32[6]", "1", "6"]
    assert "read in" not in ptxvm("run", scale, *words).out
    last = ptxvm("run", scale, *words, "--time").out.splitlines()[-1]
    assert last.startswith("read in 0.")
    assert last.endswith("million thread-instructions a second")


def test_the_standard_input(ptxvm, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCALE.encode())))
    assert ptxvm("run", "-", *LAUNCH, "f32[6]", "f32[6]", "1", "6").code == 0


def test_random_arrays_are_those_of_the_seed(ptxvm, scale):
    words = [*LAUNCH, "f32[6]", "f32[6]=random", "1", "6"]
    first, again, other = (ptxvm("run", scale, *words, "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_what_a_kernel_prints_comes_first(ptxvm, module):
    text = (
        HEAD
        + """
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 hello[7] = {104, 101, 108, 108, 111, 10, 0};
.visible .entry k()
{
    .reg .b64 %rd<3>;
    mov.u64 %rd1, hello;
    cvta.global.u64 %rd2, %rd1;
    {
    .param .b64 p0;
    st.param.b64 [p0], %rd2;
    .param .b64 p1;
    st.param.b64 [p1], 0;
    .param .b32 r0;
    call.uni (r0), vprintf, (p0, p1);
    }
    ret;
}
"""
    )
    done = ptxvm("run", module(text), "--grid", "1", "--block", "2")
    assert done.code == 0
    assert done.out.startswith("hello\nhello\n1 CTA, 2 threads, ")


# ── faults and modules that are wrong ───────────────────────────────────────────────────


def test_a_fault_is_shown_at_its_line(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "f32[6]", "f32[5]", "1", "6")
    assert (done.code, done.out) == (1, "")
    first, *rest = done.err.splitlines()
    assert first.startswith("error[out-of-bounds]: reading 4 bytes")
    line = SCALE.splitlines().index("    ld.global.f32 %f2, [%rd4];") + 1
    assert rest[:4] == [
        f"  --> scale.ptx:{line}:5",
        "   |",
        f"{line} |     ld.global.f32 %f2, [%rd4];",
        "   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]
    assert "in kernel scale, CTA (1, 0, 0), thread (1, 0, 0)" in done.err


def test_a_step_budget_ends_a_loop(ptxvm, module):
    name = module(HEAD + ".entry k()\n{\nL: bra L;\n}\n")
    done = ptxvm("run", name, "--grid", "1", "--block", "1", "--steps", "100")
    assert done.code == 1
    assert done.err.startswith("error[step-budget]: ")


def test_a_wrong_module_is_shown_as_check_does(ptxvm, module):
    done = ptxvm("run", module(SCALE.replace("[by]", "[bye]")), *LAUNCH)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error[P0201]: 'bye' is not declared\n")
    assert done.err.endswith("\n1 error in m.ptx\n")


def test_what_ptxvm_lacks_is_named(ptxvm, module):
    body = "{ fabric.submit; ret; }"
    text = f".version 9.3\n.target sm_100a\n.address_size 64\n.entry k() {body}\n"
    done = ptxvm("run", module(text), *LAUNCH)
    assert (done.code, done.err) == (1, "ptxvm run: 'fabric.submit' is not supported yet (m.ptx:4)\n")


# ── wrong calls ─────────────────────────────────────────────────────────────────────────

PARAMETERS = "(out .u64, in .u64, by .f32, scale_param_3 .u32)"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--block", "4"], "missing option '--grid'; see --help"),
        (["--grid", "4"], "missing option '--block'; see --help"),
        (["--grid", "2,x", "--block", "4"], "--grid takes X, X,Y or X,Y,Z, not '2,x'"),
        (["--grid", "1,1,1,1", "--block", "4"], "--grid takes X, X,Y or X,Y,Z, not '1,1,1,1'"),
        (["--grid", "1", "--block", "0"], "--block takes X, X,Y or X,Y,Z, not '0'"),
        (["--grid", "1", "--block", "2000", "0", "0", "1", "0"], "block.x is 2000; it may be 1 to 1024"),
        ([*LAUNCH, "1", "2"], f"kernel 'scale' takes 4 arguments {PARAMETERS}, and 2 were given"),
        (
            [*LAUNCH, "0", "0", "1", "f32[2]"],
            "argument 3 (`scale_param_3`, .u32) is passed by value and cannot take an array",
        ),
        ([*LAUNCH, "0", "0", "1", "2.5"], "argument 3 (`scale_param_3`, .u32) is no floating-point number"),
        ([*LAUNCH, "--entry", "nix"], "the module has no kernel 'nix'; it has scale"),
        ([*LAUNCH, "--gird", "4"], "no such option: --gird; see --help"),
        ([*LAUNCH, "0", "0", "1", "0", "--check", "x"], "there is no check 'x'; there are memory, init, sync, race"),
        ([*LAUNCH, "0", "0", "1", "0", "--engine", "x"], "there is no engine 'x'; there are auto, interp"),
        ([*LAUNCH, "0", "0", "1", "0", "--save", "0=x"], "--save 0=x: argument 0 is no array"),
        (
            [*LAUNCH, "0", "0", "1", "0", "--save", "9=x"],
            "--save 9=x: there is no argument 9; they are numbered from 0 to 3",
        ),
        ([*LAUNCH, "0", "0", "1", "0", "--save", "0"], "--save takes I=FILE.npy, not '0'"),
        ([*LAUNCH, "--target", "x"], "no target is called 'x'; targets are written as sm_75 or sm_100a"),
    ],
)
def test_a_wrong_call_gets_one_line(ptxvm, scale, words, line):
    done = ptxvm("run", scale, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"ptxvm run: {line}")
    assert done.err.count("\n") == 1


def test_of_several_kernels_one_is_named(ptxvm, module):
    name = module(HEAD + ".entry a() { ret; }\n.entry b() { ret; }\n")
    done = ptxvm("run", name, "--grid", "1", "--block", "1")
    assert done.code == 2
    assert done.err == "ptxvm run: the module has 2 kernels; name one of a, b; name it with --entry\n"
    assert ptxvm("run", name, "--grid", "1", "--block", "1", "--entry", "b").code == 0


# ── arguments ───────────────────────────────────────────────────────────────────────────


def parse(word):
    return arguments.parse(word, lambda: np.random.default_rng(0))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("5", 5), ("-3", -3), ("0x10", 16), ("-0x10", -16), ("0b101", 5),
        ("2.5", 2.5), ("-1e-3", -1e-3), ("inf", np.inf), ("hex:00ff10", b"\x00\xff\x10"), ("hex:", b""),
    ],
)  # fmt: skip
def test_numbers_and_bytes(word, value):
    found = parse(word)
    assert (type(found), found) == (type(value), value)


DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64,
}  # fmt: skip


@pytest.mark.parametrize(("name", "held"), DTYPES.items())
def test_arrays(name, held):
    zeros, counted, ones = parse(f"{name}[2,3]"), parse(f"{name}[4]=arange"), parse(f"{name}[2]=ones")
    assert zeros.dtype == counted.dtype == held
    assert zeros.shape == (2, 3)
    assert not zeros.any()
    assert counted.tolist() == [0, 1, 2, 3]
    assert ones.tolist() == [1, 1]
    assert parse(f"{name}[3]=5").tolist() == [5, 5, 5]
    assert len(set(parse(f"{name}[100]=random").tolist())) > 20
    assert arguments.described(zeros) == f"{name.replace('b', 'u') if name in ('b8', 'b16', 'b32', 'b64') else name}[2,3]"


def test_arange_wraps_around_where_the_type_is_narrow():
    assert parse("u8[300]=arange")[255:258].tolist() == [255, 0, 1]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("abc", "'abc' is no argument: give a number, TYPE[SHAPE], TYPE[SHAPE]=FILL, @FILE.npy or hex:BYTES"),
        ("x32[4]", "'x32[4]': no type is called 'x32'; "),
        ("i32[4]", "'i32[4]': no type is called 'i32'; did you mean `s32`?"),
        ("float64[4]", "'float64[4]': no type is called 'float64'; did you mean `f64`?"),
        ("unsigned[4]", "'unsigned[4]': no type is called 'unsigned'; did you mean `u32`?"),
        ("f32[-1]", "'f32[-1]': a shape is a number of elements, or several with commas: f32[64,64]"),
        ("f32[]", "'f32[]': a shape is a number of elements, or several with commas: f32[64,64]"),
        (
            "f32[2]=arnge",
            "'f32[2]=arnge': an array is filled with arange, random, ones, zeros or a number; did you mean `arange`?",
        ),
        ("u8[2]=256", "'u8[2]=256': 256 is no value of the type"),
        ("s32[2]=1.5", "'s32[2]=1.5': 1.5 is no value of the type"),
        ("f64[999999999999999]", "'f64[999999999999999]' does not fit in memory: it has 7,999,999,999,999,992 bytes"),
        ("hex:0", "'hex:0' is no argument: hex: is followed by two hexadecimal digits a byte"),
        ("@nix.npy", "no such file: 'nix.npy'"),
    ],
)
def test_a_word_that_is_no_argument(word, message):
    with pytest.raises(WrongCall) as wrong:
        parse(word)
    assert str(wrong.value).startswith(message)


def test_files_that_hold_no_array(tmp_path):
    text, several = tmp_path / "text.npy", tmp_path / "several.npz"
    text.write_text("hello")
    np.savez(several, a=np.zeros(2), b=np.zeros(2))
    with pytest.raises(WrongCall, match=r"is not an \.npy file that numpy\.save wrote"):
        parse(f"@{text}")
    with pytest.raises(WrongCall, match="holds several arrays"):
        parse(f"@{several}")


def test_bf16_is_saved_as_its_bits(tmp_path):
    arguments.save(str(tmp_path / "x.npy"), np.array([1.0, -2.0], ml_dtypes.bfloat16))
    assert np.load(tmp_path / "x.npy").tolist() == [0x3F80, 0xC000]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (np.arange(8), "0 1 2 3 4 5 6 7"),
        (np.arange(9), "0 1 2 3 4 5 … 8"),
        (np.array([123456789, -1], np.int32), "123456789 -1"),
        (np.full(9, 1 / 3), "0.3333 0.3333 … 0.3333"),
        (np.full((3, 3), 1e10), "1e+10 1e+10 … 1e+10"),
        (np.zeros(1, bool), "False"),
    ],
)
def test_a_glimpse_of_an_array(values, shown):
    assert arguments.preview(values) == shown


def test_sums_of_integers_are_exact():
    full = np.full(3, 2**64 - 1, np.uint64)
    assert arguments.statistics(full) == (str(2**64 - 1), str(2**64 - 1), str(3 * (2**64 - 1)))
    assert arguments.statistics(np.array([-(2**63), -(2**63)], np.int64))[2] == str(-(2**64))
    assert arguments.statistics(np.array([-1, 3], np.int8)) == ("-1", "3", "2")


def test_the_jit_can_be_told_how_to_run(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "--engine", "jit", "--threads", "1", "f32[6]", "f32[6]=arange", "-1.5", "6")
    assert (done.code, done.err) == (0, "")
    assert "-0 -1.5 -3 -4.5 -6 -7.5" in done.out


def test_numerics_are_exact_or_fast(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "--numerics", "loose", "f32[6]", "f32[6]=arange", "-1.5", "6")
    assert done.code == 2
    assert "there are no numerics 'loose'; there are exact, fast" in done.err


def test_time_tells_what_was_waited_for(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "--engine", "jit", "--time", "f32[6]", "f32[6]=arange", "-1.5", "6")
    last = done.out.splitlines()[-1]
    assert re.fullmatch(
        r"read in [\d.]+ s, compiled in [\d.]+ s, ran in [\d.]+ s: [\d.,]+ million thread-instructions a second", last
    )


def test_dump_shows_shapes_and_runs_nothing(ptxvm, scale):
    done = ptxvm("run", scale, "--block", "32", "--dump", "shapes")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"add\.u64 %rd4, %rd2, %rd3; +base \+ 4·lane$", done.out, re.MULTILINE)
    assert re.search(r"ld\.global\.f32 %f2, \[%rd4\]; +varies +contiguous$", done.out, re.MULTILINE)
    assert max(map(len, done.out.splitlines())) <= 120


def test_dump_is_of_the_numerics_that_are_wanted(ptxvm, scale):
    done = ptxvm("run", scale, "--block", "32", "--dump", "shapes", "--numerics", "sloppy")
    assert done.code == 2
    assert "there are no numerics 'sloppy'; there are exact, fast" in done.err


def test_there_are_three_dumps(ptxvm, scale):
    done = ptxvm("run", scale, "--block", "32", "--dump", "everything")
    assert done.code == 2
    assert "no such dump: 'everything'; there are shapes, llvm, asm" in done.err


# ── on several processes ────────────────────────────────────────────────────────────────


def test_a_grid_in_ranges_leaves_the_same(ptxvm, scale):
    """The kernel, its arrays and the counters are those of the launch in one process."""
    words = [*LAUNCH, "f32[6]", "f32[6]=arange", "-1.5", "6"]
    whole, cut = ptxvm("run", scale, *words), ptxvm("run", scale, "--workers", "1", *words)
    assert (cut.code, cut.err) == (0, "")
    assert cut.out == whole.out


def test_a_grid_that_cannot_be_cut_says_why(ptxvm, module):
    text = HEAD + ".visible .entry k(.param .u64 a) { .reg .u64 %p; ld.param.u64 %p, [a]; red.global.inc.u32 [%p], 9; ret; }"
    done = ptxvm("run", module(text, "red.ptx"), *LAUNCH, "--workers", "2", "u32[1]")
    assert done.code == 0
    why = "'red.global.inc.u32' at line 4 is an atomic operation on memory that all CTAs share"
    assert done.err == f"ptxvm run: the grid runs whole: {why}\n"
    assert " 8 " in done.out.splitlines()[1]


def test_checks_do_not_go_with_several_processes(ptxvm, scale):
    done = ptxvm("run", scale, *LAUNCH, "--workers", "2", "--check", "race", "f32[6]", "f32[6]", "1", "6")
    assert done.code == 2
    assert "--check is of a launch in this process" in done.err
