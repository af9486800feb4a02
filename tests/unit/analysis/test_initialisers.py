"""Initial values and constant expressions; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest

from ptxvm.analysis.expressions import overflows

NAMES = (
    ".global .b32 b, bb[4]; .const .b32 c; .shared .b32 s; .func f() { ret; } .entry e() { ret; } "
    ".extern .global .b32 x[]; .global .texref t;\n"
)


@pytest.mark.parametrize(
    "declaration",
    [
        "b32 a = 1.0",
        "b8 a = 0f3F800000",
        "u16 a = 65536",
        "f32 a = 0d3FF0000000000000",
        "f64 a = 6.0/3.0",
        "u32 a = 1.0<2.0",
        "u64 a = 18446744073709551616",
        "u32 a = WARP_SZ+1",
        "b32 a[2] = {}",
        "b32 a[2][2] = {{1}, {2}}",
        "b32 a[][2] = {{1, 2}, {3, 4}, {5, 6}}",
        "v2 .b32 a[2] = {{1, 2}}",
        "f16 a[2] = {}",
        "u32 a = b",
        "u64 a = bb+4*2",
        "u64 a = a",
        "u64 a = x",
        "u64 a = f",
        "u64 a = e",
        "u64 a = generic(c)+4",
        "u8 a[2] = {0xFF(b), 0xFF00000000000000(generic(b)+4)}",
        "u32 a = 0xFF(b)",
        "texref a = {width = 8, height = 1+1, filter_mode = nearest, addr_mode_0 = wrap}",
        "surfref a = {}",
        "texref a[2] = {{width = 1}, {width = 2}}",
    ],
)
def test_what_ptxas_takes(errors, declaration):
    assert errors(f"{NAMES}.global .{declaration};") == []


@pytest.mark.parametrize(
    ("declaration", "code", "place"),
    [
        ("u32 a = 1.0", "P0516", "1.0"),
        ("f32 a = 1", "P0516", "1"),
        ("f32 a = 1.0<2.0", "P0516", "1.0<2.0"),
        ("f16x2 a = 1.0", "P0516", "1.0"),
        ("b32 a = {1}", "P0516", "{1}"),
        ("b32 a[2] = 1", "P0516", "1"),
        ("b32 a[2] = {1, 2, 3}", "P0516", "3"),
        ("b32 a[2][2] = {1, 2}", "P0516", "1"),
        ("b32 a[2] = {{1}, 2}", "P0516", "{1}"),
        ("v2 .b32 a = {1}", "P0516", "{1}"),
        ("v2 .b32 a = 1", "P0516", "1"),
        ("f16 a = 1.0", "P0515", "1.0"),
        ("b64 a = b", "P0516", "b"),
        ("u16 a = b", "P0516", "b"),
        ("u64 a = s", "P0516", "s"),
        ("u64 a = f+4", "P0516", "f+4"),
        ("u64 a = generic(f)", "P0516", "generic(f)"),
        ("u16 a = 0xFF(b)", "P0516", "0xFF(b)"),
        ("u8 a = 0xFF0(b)", "P0516", "0xFF0(b)"),
        ("u64 a = nosuch", "P0201", "nosuch"),
        ("u64 a = generic(nosuch)", "P0201", "nosuch"),
        ("u64 a = %tid", "P0201", "%tid"),
        ("u64 a = 7/(1-1)", "P0517", "(1-1"),
        ("f64 a = 1.0/0.0", "P0517", "0.0"),
        ("f64 a = 1.0 + 1", "P0517", "1.0 + 1"),
        ("f64 a = 1 ? 2.0 : 3.0", "P0517", "2.0"),
        ("u64 a = ~1.0", "P0517", "~1.0"),
        ("u64 a = b+1.0", "P0517", "b+1.0"),
        ("f64 a = 1e400", "P0517", "1e400"),
        ("f64 a = 1e-320", "P0517", "1e-320"),
        ("u64 a = 99999999999999999999", "P0517", "99999999999999999999"),
        ("texref a = 1", "P0516", "1"),
        ("texref a = {1}", "P0518", "1"),
        ("texref a = {memory_layout = 1}", "P0518", "memory_layout"),
        ("surfref a = {channel_order = rgba}", "P0518", "rgba"),
    ],
)
def test_what_ptxas_refuses(errors, declaration, code, place):
    (found,) = errors(f"{NAMES}.global .{declaration};")
    assert found[0] == code
    assert found[1].lstrip("(").startswith(place.lstrip("("))


def test_a_name_is_declared_before_its_address_is_taken(errors):
    assert errors(".global .u64 a = b; .global .b32 b;") == [("P0201", "b")]


@pytest.mark.parametrize(
    ("version", "value", "code"),
    [("2.0", "b", "P0506"), ("3.0", "generic(b)", "P0506"), ("7.0", "0xFF(b)", "P0506"), ("2.1", "b", None)],
)
def test_the_versions_of_addresses(errors, version, value, code):
    text = f".version {version}\n.target sm_20\n.global .b32 b; .global .u32 a = {value};"
    assert [found for found, _ in errors(text)] == [code] * (code is not None)


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("18446744073709551615", False),
        ("18446744073709551616", False),  # 2^64, which ptxas takes as 0
        ("36893488147419103232", False),
        ("99999999999999999999", True),
        ("340282366920938463463374607431768211456", True),
        ("0x1FFFFFFFFFFFFFFFF", False),
        ("0xFFFFFFFFFFFFFFFFF", True),
        ("0x1" + "0" * 32, False),
        ("0b" + "1" * 64, False),
        ("0b" + "1" * 65, True),
        ("07777777777777777777777", False),
        ("0777777777777777777777777", True),
    ],
)
def test_the_overflows_that_ptxas_sees(literal, expected):
    assert overflows(literal) == expected


@pytest.mark.parametrize(
    ("operand", "code"),
    [("1+2", None), ("1+2.0", "P0517"), ("3/0", "P0517"), ("0777777777777777777777777", "P0517"), ("(.s64)1", None)],
)
def test_constants_in_instructions(errors, operand, code):
    found = errors(f".entry k() {{ .reg .u32 r; mov.u32 r, {operand}; ret; }}")
    assert [each for each, _ in found][:1] == [code] * (code is not None)


def test_offsets_are_integers(errors):
    text = ".global .b32 g; .entry k() { .reg .b32 r; ld.global.b32 r, [g+1.0]; ret; }"
    assert errors(text) == [("P0517", "1.0")]
