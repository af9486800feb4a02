"""Variables and functions of modules in memory."""

import re

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.check import analyse
from ptxvm.analysis.constants import ConstantError
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.machine.image import Image, Placement
from ptxvm.machine.initialise import initial_bytes
from ptxvm.machine.memory import Memory
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

HEADER = ".version 8.5\n.target sm_80\n.address_size 64\n"


def program(text, header=HEADER):
    found, report = analyse(Source(header + text))
    assert not report.diagnostics, report.diagnostics
    return found


def image(*texts):
    return Image([program(text) for text in texts], Memory())


def values(text, name="x"):
    return image(text).symbol(name)


# ── initial values (PTX 5.4.4) ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".global .s32 x = 10;", 10),
        (".global .u32 x;", 0),
        (".const .f32 x[8] = {0.33, 0.25, 0.125};", np.array([0.33, 0.25, 0.125, 0, 0, 0, 0, 0], np.float32).tolist()),
        (".global .s32 x[3][2] = {{1,2}, {3}};", [[1, 2], [3, 0], [0, 0]]),
        (".global .u32 x[] = {0, 1, 2, 3, 4, 5, 6, 7};", list(range(8))),
        (".global .s32 x[][2] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}};", [[-1, 0], [0, -1], [1, 0], [0, 1]]),
        (".global .v4 .f32 x = {1.0, 2.0, 3.0, 4.0};", [1, 2, 3, 4]),
        (".global .v2 .u16 x[2] = {{1, 2}, {3, 4}};", [[1, 2], [3, 4]]),
        (".global .b8 x[4] = {97, 98, 99};", [97, 98, 99, 0]),
        (".global .u8 x = 65537;", 1),
        (".global .u64 x = -1;", (1 << 64) - 1),
        (".global .s64 x = 0x8000000000000000;", -(1 << 63)),
        (".global .u32 x = 2 * (3 + WARP_SZ);", 70),
        (".global .f32 x = 0f3FC00000;", 1.5),
        (".global .f64 x = 0d3FF8000000000000;", 1.5),
        (".global .f32 x = 0d3FF8000000000000;", 1.5),
        (".global .f64 x = 1.0 / 4.0;", 0.25),
        (".global .b32 x = 1.0;", 0x3F800000),
        (".global .f64 x[2];", [0, 0]),
    ],
)
def test_initial_values(text, expected):
    assert values(text).tolist() == expected


@pytest.mark.parametrize(
    ("initial", "dimensions", "expected"),
    [
        (tree.String("hi"), (4,), b"hi\0\0"),
        (None, (3,), b"\0\0\0"),
        (tree.Float(0x3FF0 << 48, 64), (), b"\0"),
    ],
)
def test_bytes(initial, dimensions, expected):
    variable = Variable("x", Space.GLOBAL, Type.named["b8"], 1, dimensions, initial=initial)
    assert initial_bytes(variable, lambda _: None, lambda _: 0) == expected


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (tree.Vector([tree.Integer(1)] * 3), "3 values for 2 elements"),
        (tree.Integer(1), "a list in braces is needed"),
        (tree.Vector([tree.Vector([]), tree.Integer(1)]), "this is not a constant"),
        (tree.Vector([tree.Name("y")]), "'y' is not a constant"),
    ],
)
def test_initial_values_of_the_wrong_form(initial, message):
    variable = Variable("x", Space.GLOBAL, Type.named["u32"], 1, (2,), initial=initial)
    with pytest.raises(ConstantError, match=message):
        initial_bytes(variable, lambda _: None, lambda _: 0)


def test_a_float_too_large_is_an_infinity():
    assert values(".global .f32 x[2] = {1.0e300, -1.0e300};").tolist() == [np.inf, -np.inf]


def test_bits_of_a_literal_are_kept():
    """A `0f` is the lower half of an f64 (ptxas 13.0)."""
    assert values(".global .f32 x = 0f7FC12345;").view(np.uint32) == 0x7FC12345
    assert values(".global .f64 x = 0f7FC12345;").view(np.uint64) == 0x7FC12345
    assert values(".global .f64 x = 0fFF800000;").view(np.uint64) == 0xFF800000


def test_the_view_has_the_type_of_the_variable():
    assert values(".global .f16 x[4];").dtype == np.float16
    assert values(".global .s8 x;").dtype == np.int8
    assert values(".global .f16x2 x[3];").shape == (3, 2)
    assert values(".global .b128 x = 5;").tolist() == (5, 0)
    assert values(".global .align 16 .v2 .f64 x[3][5];").shape == (3, 5, 2)


def test_the_host_may_write_a_variable():
    made = image(".global .u32 x[2] = {1, 2}; .const .f32 c = 1.0;")
    made.symbol("x")[1] = 7
    made.symbol("c")[...] = 2.5
    assert made.symbol("x").tolist() == [1, 7]
    assert made.symbol("c") == 2.5


def test_addresses_of_variables():
    made = image(
        """.const .u32 foo = 42; .global .u32 bar[] = {2, 3, 5};
        .global .u64 p[] = {foo, generic(foo), bar, generic(bar)+8, bar+4};
        .global .u8 bytes[8] = {0xFF(bar), 0xFF00(bar), 0xFF0000(bar), 0xFF000000(bar), 0xFF00000000(bar),
                                0xFF0000000000(bar), 0xFF000000000000(bar), 0xFF00000000000000(bar)};"""
    )
    foo, bar = (made.address(made.variables[name]) for name in ("foo", "bar"))
    assert made.symbol("p").tolist() == [foo, foo, bar, bar + 8, bar + 4]
    assert int(made.symbol("bytes").view(np.uint64)[0]) == bar


def test_addresses_of_functions():
    made = image(
        """.func f() { ret; } .func g() { ret; }
        .global .u64 table[3] = {f, g, f};
        .visible .entry k() { ret; }"""
    )
    f, g, again = made.symbol("table").tolist()
    assert f == again != g
    assert made.function_at(f).name == "f"
    assert made.function_at(g).name == "g"
    assert made.function_at(f + 4) is None
    assert made.function_at(0) is None


def test_a_variable_is_aligned_and_bounded():
    made = image(".global .align 128 .b8 x[3]; .const .align 4 .b8 y[8];")
    x, y = (made.allocations[made.variables[name]] for name in "xy")
    assert (x.start % 128, x.size, x.writable, x.space) == (0, 3, True, "global")
    assert (y.size, y.writable, y.space) == (8, False, "const")


def test_a_constant_bank_is_where_its_open_arrays_begin():
    """PTX 5.1.3.1: they are aliased, each pointing to the start of the bank."""
    text = ".extern .const[2] .b32 a[]; .extern .const[2] .f32 b[]; .extern .const[3] .b32 c[];"
    made = Image(program(text, ".version 2.0\n.target sm_20\n"), Memory(32))
    assert made.symbol("a").shape == (16384,)
    made.symbol("a")[3] = 0x3F800000
    assert made.symbol("b")[3] == 1.0
    assert made.symbol("c")[3] == 0


def test_an_opaque_variable_has_a_slot():
    made = image(".global .texref t; .global .surfref s[2];")
    assert made.allocations[made.variables["t"]].size == 8
    assert made.allocations[made.variables["s"]].size == 16


def test_variables_of_functions_are_in_memory_too():
    made = image(".visible .entry k() { .global .u32 a = 7; .const .u32 b = 8; ret; }")
    a, b = made.programs[0].functions["k"].variables
    assert made.allocations[a].bytes[0] == 7
    assert made.locate(b, made.functions["k"]) == (Placement.ABSOLUTE, made.allocations[b].start)


def test_what_is_not_there_is_named():
    made = image(".global .u32 x; .shared .u32 s;")
    with pytest.raises(KeyError, match=r"no variable 'y'; it has s, x"):
        made.symbol("y")
    with pytest.raises(ValueError, match=r"'s' is in \.shared"):
        made.symbol("s")


# ── places without an address ───────────────────────────────────────────────────────────


def test_parameters_lie_in_the_bank_at_their_alignment():
    made = image(".visible .entry k(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20], .param .f32 d) { ret; }")
    kernel = made.functions["k"]
    places = [made.locate(each, kernel) for each in kernel.signature.parameters]
    assert places == [(Placement.PARAMETER, 0), (Placement.PARAMETER, 8), (Placement.PARAMETER, 16), (Placement.PARAMETER, 36)]
    assert made.parameters(kernel).size == 40


def test_a_frame_has_the_local_variables():
    made = image(".visible .entry k() { .local .align 8 .b8 depot[24]; .local .u32 x; ret; }")
    kernel = made.functions["k"]
    depot, x = kernel.variables
    assert made.locate(depot, kernel) == (Placement.FRAME, 0)
    assert made.locate(x, kernel) == (Placement.FRAME, 24)
    assert made.frame_size(kernel) == 32


def test_parameters_of_a_function_lie_in_its_frame():
    made = image(".func (.param .b32 r) f(.param .b64 a, .param .b32 b) { .local .u16 x; ret; }")
    function = made.functions["f"]
    offsets = [made.locate(v, function) for v in function.variables]
    assert offsets == [
        (Placement.GENERIC_FRAME, 0),
        (Placement.GENERIC_FRAME, 8),
        (Placement.GENERIC_FRAME, 16),
        (Placement.FRAME, 20),
    ]


def test_blocks_that_follow_one_another_share_their_place():
    made = image(
        """.visible .entry k() { .local .b64 x;
        { .param .b64 p; { .param .b32 q; } }
        { .param .b64 r; } ret; }"""
    )
    kernel = made.functions["k"]
    offsets = {v.name: made.locate(v, kernel)[1] for v in kernel.variables}
    assert offsets == {"x": 0, "p": 8, "q": 16, "r": 8}


def test_shared_variables_and_what_the_launch_adds():
    made = image(
        """.shared .u32 s; .extern .shared .align 16 .b8 dynamic[];
        .func f() { .shared .f64 t; ret; }
        .visible .entry a() { .shared .b8 x[100]; ret; }
        .visible .entry b() { .shared .align 4 .b8 y[8]; ret; }"""
    )
    a, b, f = (made.functions[name] for name in "abf")
    assert made.locate(made.variables["s"]) == (Placement.ABSOLUTE, 0)
    assert made.locate(f.variables[0], f) == (Placement.ABSOLUTE, 8)
    assert made.locate(a.variables[0], a) == made.locate(b.variables[0], b) == (Placement.ABSOLUTE, 16)
    assert made.locate(made.variables["dynamic"], a) == (Placement.ABSOLUTE, 128)
    assert (made.shared_size(a), made.shared_size(b), made.shared_size(b, 64)) == (116, 24, 192)


def test_what_a_launch_adds_lies_behind_the_variables_of_its_own_kernel():
    """Other kernels of the module do not move it: a tile of the tensor memory accelerator at its beginning stays aligned."""
    made = image(
        """.extern .shared .align 16 .b8 dynamic[];
        .visible .entry a() { .shared .f64 x[2]; ret; }
        .visible .entry b() { .shared .b8 y[20]; ret; }
        .visible .entry c() { ret; }"""
    )
    a, b, c = (made.functions[name] for name in "abc")
    assert [made.locate(made.variables["dynamic"], each)[1] for each in (a, b, c)] == [16, 32, 0]
    assert [made.shared_size(each, 64) for each in (a, b, c)] == [80, 96, 64]


# ── linking (PTX 11.6) ──────────────────────────────────────────────────────────────────


def test_an_extern_variable_is_the_one_of_another_module():
    made = image(".extern .global .u32 x; .global .u64 p = x;", ".visible .global .u32 x = 5;")
    user = made.programs[0].variables["x"]
    assert made.symbol("x") == 5
    assert made.address(user) == made.address(made.variables["x"]) == made.symbol("p")


def test_a_visible_variable_goes_before_a_weak_one():
    made = image(".weak .global .u32 x = 1;", ".visible .global .u32 x = 2;", ".weak .global .u32 x = 3;")
    assert made.symbol("x") == 2
    assert len({made.address(each.variables["x"]) for each in made.programs}) == 1


def test_the_largest_of_common_variables_counts():
    made = image(".common .global .u32 x[2];", ".common .global .u32 x[4] = {1, 2, 3, 4};", ".common .global .u32 x;")
    assert made.symbol("x").tolist() == [1, 2, 3, 4]


def test_variables_that_are_not_visible_stay_apart():
    made = image(".global .u32 x = 1;", ".global .u32 x = 2;")
    one, two = (each.variables["x"] for each in made.programs)
    assert made.address(one) != made.address(two)


def test_a_private_variable_defines_nothing_for_others():
    with pytest.raises(InvalidPTX, match=re.escape("'x' is declared .extern and defined nowhere")):
        image(".extern .global .u32 x; .global .u64 p = x;", ".global .u32 x = 2;")


def test_functions_are_found_in_other_modules_and_through_aliases():
    made = image(
        ".extern .func g(); .func f(); .extern .func vprintf(); .visible .entry k() { ret; } .func f() { ret; }",
        ".visible .func h() { ret; } .visible .func g(); .alias g, h;",
    )
    user, definer = made.programs
    assert made.resolve(user.functions["f"]).defined
    assert made.resolve(definer.functions["g"]) is definer.functions["h"]
    assert made.function_address(definer.functions["g"]) == made.function_address(definer.functions["h"])
    printf = user.functions["vprintf"]
    assert made.resolve(printf) is printf
    assert made.function_at(made.function_address(printf)) is printf


def test_release_gives_everything_back():
    made = image(".global .u32 x; .const .u32 c; .func f() { ret; }")
    made.release()
    assert made.memory.table.items == []
