"""Modules that do not go together.

The verdicts and messages are those of nvlink 13.5 on the objects that ptxas makes of the same texts; it names objects where
these name sources, and the definition on both sides where a prototype differs.
"""

import re

import pytest

import ptxvm
from ptxvm.api import read
from ptxvm.diagnostics.errors import InvalidPTX

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def take(name, kernel="k"):
    """A kernel that takes the address of a symbol."""
    return (
        f".visible .entry {kernel}(.param .u64 o) {{ .reg .b64 %d<2>; ld.param.u64 %d0, [o]; mov.u64 %d1, {name}; "
        "st.global.u64 [%d0], %d1; ret; }"
    )


KERNEL = ".visible .entry k() { ret; }"
ARRAY = ".extern .global .u32 x[2]; " + take("x")
CALL = ".extern .func (.param .u32 r) f(); .visible .entry k() { .param .u32 a; call (a), f, (); ret; }"
FUNCTION = ".visible .func (.param .u32 r) f() { st.param.u32 [r], 22; ret; }"
LISTED = (
    ".extern .func f(); .visible .entry k(.param .u64 q) { .reg .b64 %d; ld.param.u64 %d, [q]; L: .calltargets f; "
    "call %d, L; ret; }"
)
ALIAS = ".visible .func f() { ret; } .visible .func g(); .alias g, f;"
PRINTF = (
    ".extern .func (.param .b32 q) vprintf(.param .b64 a, .param .b64 b); .visible .entry k() "
    "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], 0; st.param.b64 [b], 0; call (c), vprintf, (a, b); ret; }"
)


def linked(*texts, header=HEADER):
    return ptxvm.link([ptxvm.load(header + text) for text in texts])


def refused(*texts, header=HEADER):
    with pytest.raises(InvalidPTX) as caught:
        linked(*texts, header=header)
    return caught.value


FITTING = {
    "a definition": (ARRAY, ".visible .global .u32 x[2] = {1, 2};"),
    "types of one size": (ARRAY, ".visible .global .f32 x[2] = {1.0, 2.0};"),
    "bytes of one size": (ARRAY, ".visible .global .align 4 .b8 x[8];"),
    "dimensions of one size": (".extern .global .u32 x[2][3]; " + take("x"), ".visible .global .u32 x[3][2];"),
    "no size": (".extern .global .u32 x[]; " + take("x"), ".visible .global .u32 x[9];"),
    "another alignment": (".extern .global .align 16 .u32 x[2]; " + take("x"), ".visible .global .u32 x[2];"),
    "two private ones": (".global .u32 x[2];" + take("x"), ".global .u64 x[3]; .global .u64 y = x;"),
    "a private and a visible one": (".global .u32 x = 1;" + take("x"), ".visible .global .u32 x = 2;"),
    "weak and weak": (".weak .global .u32 x = 1;" + take("x"), ".weak .global .u32 x = 2;"),
    "weak and visible": (".weak .global .u32 x = 1;" + take("x"), ".visible .global .u32 x = 2;"),
    "common ones of two sizes": (".common .global .u32 x[4];" + KERNEL, ".common .global .u32 x[2];"),
    "common and larger": (".common .global .u32 x[2];" + KERNEL, ".visible .global .u32 x[4] = {3, 4};"),
    "extern and common": (ARRAY, ".common .global .u32 x[2];"),
    "extern, common and larger common": (ARRAY, ".common .global .u32 x[2];", ".common .global .u32 x[4];"),
    "dynamic shared memory": (
        ".extern .shared .u32 x[];" + take("x"),
        ".extern .shared .align 16 .b8 x[];" + take("x", "l"),
    ),
    "shared memory": (".extern .shared .u32 x[2];" + take("x"), ".visible .shared .u32 x[2];"),
    "functions": (CALL, FUNCTION),
    "the definition first": (FUNCTION, CALL),
    "signed and unsigned": (CALL, FUNCTION.replace(".u32", ".s32")),
    "a register as result": (CALL, ".visible .func (.reg .u32 r) f() { mov.u32 r, 22; ret; }"),
    "weak functions": (CALL, FUNCTION.replace("visible", "weak"), FUNCTION.replace("visible", "weak")),
    "a weak and a visible function": (CALL, FUNCTION.replace("visible", "weak"), FUNCTION),
    "an unused declaration": (".extern .func f(.param .u32 a); " + KERNEL, ".visible .func f(.param .u64 b) { ret; }"),
    "an unused undefined one": (".extern .func f(); " + KERNEL,),
    "used by dropped code": (".extern .func f(); .func g() { call f; ret; } " + KERNEL,),
    "only listed": (LISTED,),
    "weak kernels": (KERNEL.replace("visible", "weak"), KERNEL.replace("visible", "weak")),
    "a weak and a visible kernel": (KERNEL.replace("visible", "weak"), KERNEL),
    "a kernel elsewhere": (".extern .entry k(); .visible .entry l() { ret; }", KERNEL),
    "a kernel nowhere": (".extern .entry k(); .visible .entry l() { ret; }",),
    "an alias": (ALIAS, ".extern .func g(); .func h() { call g; ret; }"),
    "a function of the device": (PRINTF,),
}


@pytest.mark.parametrize("texts", FITTING.values(), ids=FITTING)
def test_what_fits_is_linked(texts):
    assert linked(*texts).kernels is not None


SIZE = "Size doesn't match for 'x' in 'B', first specified in 'A'"
SPACE = "Memory space doesn't match for 'x' in 'B', first specified in 'A'"
TWICE = "Multiple definition of '{}' in 'B', first defined in 'A'"
KIND = "Memory space doesn't match for 'f' in 'B', first specified in 'A'"
NOWHERE = "Undefined reference to '{}' in 'A'"
PROTOTYPE = "Prototype doesn't match for 'f' in 'A', first defined in 'B'"
LARGER = "Common symbol 'x' in file '{}' has larger size than initialization"
VARIABLES = {
    "larger": ("P0603", SIZE, ARRAY, ".visible .global .u32 x[3] = {1, 2, 3};"),
    "smaller": ("P0603", SIZE, ARRAY, ".visible .global .u32 x[1] = {1};"),
    "wider": ("P0603", SIZE, ARRAY, ".visible .global .u64 x[2] = {1, 2};"),
    "of two declarations": ("P0603", SIZE, ARRAY, ".extern .global .u32 x[3];" + take("x", "l")),
    "unused": ("P0603", SIZE, ".extern .global .u32 x[2]; " + KERNEL, ".visible .global .u32 x[3];"),
    "of weak ones": ("P0603", SIZE, ".weak .global .u32 x[1];" + KERNEL, ".weak .global .u32 x[2];"),
    "weak and visible": ("P0603", SIZE, ".weak .global .u32 x[4] = {1};" + KERNEL, ".visible .global .u32 x[2] = {3};"),
    "extern and common": ("P0603", SIZE, ARRAY, ".common .global .u32 x[3];"),
    "common without values": ("P0603", SIZE, ".common .global .u32 x[2];" + KERNEL, ".visible .global .u32 x[3];"),
    "shared": ("P0603", SIZE, ".extern .shared .u32 x[2];" + take("x"), ".extern .shared .u32 x[3];" + take("x", "l")),
    "global and const": ("P0604", SPACE, ARRAY, ".visible .const .u32 x[2] = {1, 2};"),
    "const and global": ("P0604", SPACE, ".extern .const .u32 x[2];" + take("x"), ".visible .global .u32 x[2];"),
    "shared and global": ("P0604", SPACE, ".extern .shared .u32 x[];" + take("x"), ".extern .global .u32 x[];"),
    "weak in two spaces": ("P0604", SPACE, ".weak .global .u32 x;" + KERNEL, ".weak .const .u32 x;"),
    "twice": ("P0601", TWICE.format("x"), ".visible .global .u32 x;" + take("x"), ".visible .global .u32 x;"),
    "common with values": ("P0601", TWICE.format("x"), ".common .global .u32 x = 1;" + KERNEL, ".visible .global .u32 x = 2;"),
    "common and smaller": ("P0607", LARGER.format("A"), ".common .global .u32 x[4];" + KERNEL, ".visible .global .u32 x = 1;"),
    "smaller and common": ("P0607", LARGER.format("B"), ".visible .global .u32 x = 1;" + KERNEL, ".common .global .u32 x[4];"),
    "common and weak": ("P0607", LARGER.format("A"), ".common .global .u32 x[4];" + KERNEL, ".weak .global .u32 x = 1;"),
    "managed": (
        "P0606",
        "Managed attribute doesn't match for 'x' in 'B', first specified in 'A'",
        ARRAY,
        ".visible .global .attribute(.managed) .u32 x[2];",
    ),
    "nowhere": ("P0602", NOWHERE.format("x"), ARRAY),
    "nowhere, unused": ("P0602", NOWHERE.format("x"), ".extern .global .u32 x[2]; " + KERNEL),
    "nowhere, in two modules": ("P0602", NOWHERE.format("x"), ARRAY, ".extern .global .u32 x[2];"),
    "nowhere, shared": ("P0602", NOWHERE.format("x"), ".extern .shared .u32 x[2];" + take("x")),
    "nowhere, without a size": ("P0602", NOWHERE.format("x"), ".extern .global .u32 x[];" + take("x")),
    "private elsewhere": ("P0602", NOWHERE.format("x"), ARRAY, ".global .u32 x[2] = {1, 2};"),
    "too many constants": (
        "P0522",
        "File uses too much global constant data (0x13880 bytes, 0x10000 max)",
        ".visible .const .u32 x[10000];" + take("x"),
        ".visible .const .u32 y[10000];" + take("y", "l"),
    ),
}


def result(text):
    return f".visible .func {text} f() {{ ret; }}"


def parameters(one, other):
    """A module that declares a function and takes its address, and one that defines it otherwise."""
    return f".extern .func f({one}); .global .u64 p = f; {KERNEL}", f".visible .func f({other}) {{ ret; }}"


FUNCTIONS = {
    "wider result": ("P0605", PROTOTYPE, CALL, result("(.param .u64 r)")),
    "float result": ("P0605", PROTOTYPE, CALL, result("(.param .f32 r)")),
    "bytes as result": ("P0605", PROTOTYPE, CALL, result("(.param .align 4 .b8 r[4])")),
    "larger result": ("P0605", PROTOTYPE, CALL, result("(.param .align 4 .b8 r[64])")),
    "no result": ("P0605", PROTOTYPE, CALL, result("")),
    "one parameter more": ("P0605", PROTOTYPE, CALL, ".visible .func (.param .u32 r) f(.param .u32 a) { ret; }"),
    "one less": ("P0605", PROTOTYPE, *parameters(".param .u32 a", "")),
    "float parameter": ("P0605", PROTOTYPE, *parameters(".param .u32 a", ".param .f32 a")),
    "bits and float": ("P0605", PROTOTYPE, *parameters(".param .b32 a", ".param .f32 a")),
    "wider parameter": ("P0605", PROTOTYPE, *parameters(".param .u32 a", ".param .u64 a")),
    "two for a wide one": ("P0605", PROTOTYPE, *parameters(".param .u32 a, .param .u32 b", ".param .u64 b")),
    "exchanged": ("P0605", PROTOTYPE, *parameters(".param .b32 a, .param .b64 b", ".param .b64 a, .param .b32 b")),
    "longer array": ("P0605", PROTOTYPE, *parameters(".param .b8 a[8]", ".param .b8 a[12]")),
    "array of other elements": ("P0605", PROTOTYPE, *parameters(".param .align 4 .b8 a[8]", ".param .align 4 .b32 a[2]")),
    "array and scalar": ("P0605", PROTOTYPE, *parameters(".param .align 8 .b8 a[8]", ".param .u64 a")),
    "open array": ("P0605", PROTOTYPE, *parameters(".param .b8 a[8]", ".param .b8 a[]")),
    "float register": ("P0605", PROTOTYPE, *parameters(".reg .u32 a", ".reg .f32 a")),
    "two weak ones": (
        "P0605",
        "Prototype doesn't match for 'f' in 'B', first defined in 'A'",
        ".weak .func f() { ret; } " + KERNEL,
        ".weak .func f(.param .u32 a) { ret; }",
    ),
    "weak kernels of two sizes": (
        "P0605",
        "Duplicate weak parameter bank for 'k' is not the same size",
        ".weak .entry k() { ret; }",
        ".weak .entry k(.param .u32 a) { ret; }",
    ),
    "a variable": (
        "P0604",
        KIND,
        CALL,
        ".visible .global .u32 f;",
    ),
    "of a variable": (
        "P0604",
        KIND,
        ".extern .global .u32 f;" + take("f"),
        FUNCTION,
    ),
    "a kernel": (
        "P0604",
        "Function 'k' not declared __global__ in all source files",
        ".extern .func k(); .visible .entry l() { call k; ret; }",
        KERNEL,
    ),
    "function twice": ("P0601", TWICE.format("f"), FUNCTION, FUNCTION),
    "kernel twice": ("P0601", TWICE.format("k"), KERNEL, KERNEL),
    "alias twice": (
        "P0601",
        TWICE.format("g"),
        ".visible .func f() { ret; } .visible .func g(); .alias g, f; " + KERNEL,
        ".visible .func g() { ret; }",
    ),
    "nowhere": ("P0602", NOWHERE.format("f"), CALL, ".global .u32 y;"),
    "nowhere, its address taken": ("P0602", NOWHERE.format("f"), ".extern .func f(); " + take("f")),
    "nowhere, in a table": (
        "P0602",
        NOWHERE.format("f"),
        ".extern .func f(); .global .u64 t[1] = {f};" + KERNEL,
    ),
    "private elsewhere": ("P0602", NOWHERE.format("f"), CALL, FUNCTION.replace(".visible ", "")),
}


@pytest.mark.parametrize("case", [*VARIABLES.values(), *FUNCTIONS.values()], ids=[*VARIABLES, *(f"f: {n}" for n in FUNCTIONS)])
def test_what_does_not_fit_is_refused_as_nvlink_does(case):
    code, words, *texts = case
    for number, letter in enumerate("AB"[: len(texts)], 1):
        names = [read(HEADER + text).name for text in texts]
        name = names[number - 1]
        name = f"{name} (module {number})" if names.count(name) > 1 else name
        words = words.replace(f"'{letter}'", f"'{name}'")
    found = refused(*texts).diagnostics
    assert [(each.code, each.ptxas) for each in found] == [(code, words)]


def test_both_places_are_named(tmp_path):
    for name, text in (("a.ptx", ARRAY), ("b.ptx", "\n\n.visible .global .u32 x[3];")):
        (tmp_path / name).write_text(HEADER + text)
    with pytest.raises(InvalidPTX) as caught:
        ptxvm.link([ptxvm.load(tmp_path / "a.ptx"), ptxvm.load(tmp_path / "b.ptx")])
    said = str(caught.value)
    assert f"{tmp_path / 'b.ptx'}:6:23" in said
    assert f"{tmp_path / 'a.ptx'}:4:" in caught.value.diagnostics[0].note
    assert "'x' has 12 bytes here, and 8 in another module" in said


def test_a_private_definition_elsewhere_is_pointed_at():
    (found,) = refused(ARRAY, "\n.global .u32 x[2];").diagnostics
    assert found.note == "not visible to other modules: <source>:5: .global .u32 x[2];"


def test_the_message_says_what_differs_of_a_prototype():
    (found,) = refused(*parameters(".param .u32 a, .param .b8 b[4]", ".param .u32 a, .param .b8 b[8]")).diagnostics
    assert found.message == "'f' has `.b8[4]` as parameter 2 here, and `.b8[8]` as parameter 2 in another module"


@pytest.mark.parametrize(
    ("one", "other"),
    [("sm_90a", "sm_80"), ("sm_80", "sm_90"), ("sm_103a", "sm_100f"), ("sm_50", "sm_121a")],
)
def test_targets_that_one_device_has_are_linked(one, other):
    texts = [f".version 9.0\n.target {target}\n.address_size 64\n" for target in (one, other)]
    modules = [ptxvm.load(f"{text}.visible .entry k{n}() {{ ret; }}") for n, text in enumerate(texts)]
    assert set(ptxvm.link(modules).kernels) == {"k0", "k1"}


@pytest.mark.parametrize(("one", "other"), [("sm_90a", "sm_100"), ("sm_90a", "sm_100a"), ("sm_100f", "sm_120")])
def test_targets_that_no_device_has_are_refused(one, other):
    texts = [f".version 9.0\n.target {target}\n.address_size 64\n" for target in (one, other)]
    modules = [ptxvm.load(f"{text}.visible .entry k{n}() {{ ret; }}") for n, text in enumerate(texts)]
    with pytest.raises(InvalidPTX, match=re.escape(f"no device runs a module for {one} and one for {other}")):
        ptxvm.link(modules)


def test_address_sizes_are_one():
    modules = [
        ptxvm.load(f".version 6.4\n.target sm_30\n.address_size {bits}\n.visible .entry k{bits}() {{ ret; }}")
        for bits in (64, 32)
    ]
    with pytest.raises(InvalidPTX, match="addresses have 32 bits here, and 64 in"):
        ptxvm.link(modules)


def test_nothing_is_not_linked():
    with pytest.raises(ValueError, match="there are no modules to link"):
        ptxvm.link([])
