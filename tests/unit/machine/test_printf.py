"""vprintf's formatting against the C library of the host."""

import ctypes
import struct

import pytest
from hypothesis import given, strategies as st

import ptxvm
from ptxvm.machine import printf

C = ctypes.CDLL(None)
TYPES = {"hh": ctypes.c_int, "h": ctypes.c_int, "": ctypes.c_int, "l": ctypes.c_longlong, "ll": ctypes.c_longlong}


def c_says(text, *arguments):
    buffer = ctypes.create_string_buffer(4096)
    C.snprintf(buffer, ctypes.c_size_t(4096), text.encode("latin-1"), *arguments)
    return buffer.value.decode("latin-1")


def we_say(text, *bits, strings=None):
    return printf.render(printf.parse(text), iter(bits), (strings or {}).__getitem__)


def bits_of(number):
    return struct.unpack("<Q", struct.pack("<d", number))[0]


FLAGS = st.text("-+ #0", max_size=3)
WIDTH = st.one_of(st.just(""), st.integers(1, 30).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 25).map(".{}".format))


@given(FLAGS, WIDTH, PRECISION, st.sampled_from(sorted(TYPES)), st.sampled_from("diuoxX"), st.integers(0, (1 << 64) - 1))
def test_integers(flags, width, precision, length, conversion, value):
    text = f"<%{flags}{width}{precision}{length}{conversion}>"
    held = TYPES[length]
    assert we_say(text, value & (1 << 8 * ctypes.sizeof(held)) - 1) == c_says(text, held(value))


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("diuoxX"), st.integers(-3, 3))
def test_small_integers(flags, width, precision, conversion, value):
    text = f"%{flags}{width}{precision}{conversion}"
    assert we_say(text, value & 0xFFFFFFFF) == c_says(text, ctypes.c_int(value))


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("eEfFgGaA"), st.floats(width=64))
def test_floats(flags, width, precision, conversion, number):
    text = f"<%{flags}{width}{precision}{conversion}>"
    assert we_say(text, bits_of(number)) == c_says(text, ctypes.c_double(struct.unpack("<d", struct.pack("<d", number))[0]))


@pytest.mark.parametrize("number", [0.0, -0.0, 1.0, 1.5, 0.1, 5e-324, 1.7976931348623157e308, 123456.0, 9.9999995, 1e15])
@pytest.mark.parametrize("text", ["%f", "%e", "%g", "%a", "%.3g", "%#g", "%.0f", "%#.0f", "%.0a", "%.3A", "%+012.3e", "%010f"])
def test_particular_floats(text, number):
    assert we_say(text, bits_of(number)) == c_says(text, ctypes.c_double(number))


@given(st.text("-0", max_size=2), WIDTH, PRECISION, st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=12))
def test_strings(flags, width, precision, value):
    text = f"<%{flags}{width}{precision}s>"
    if "0" in flags:
        return  # undefined in C
    assert we_say(text, 8, strings={8: value}) == c_says(text, ctypes.c_char_p(value.encode("latin-1")))


@pytest.mark.parametrize(
    ("text", "bits", "said"),
    [
        ("hello %d %f %s %llu\n", (42, bits_of(1.5), 16, 7), "hello 42 1.500000 text 7\n"),
        ("%c%c", (104, 105), "hi"),
        ("%5c|%-5c|", (120, 121), "    x|y    |"),
        ("%*d|%-*d|%.*f", (6, 42, 6, 42, 2, bits_of(3.14159)), "    42|42    |3.14"),
        ("%*d|", ((1 << 32) - 6, 42), "42    |"),
        ("%.*d", ((1 << 32) - 1, 0), "0"),
        ("%p %p", (0x7F0000001000, 0), "0x7f0000001000 (nil)"),
        ("%s", (0,), "(null)"),
        ("100%% of %u", (4294967295,), "100% of 4294967295"),
        ("%hhd %hd", (0x1FF, 0x18000), "-1 -32768"),
        ("%ld %lld", ((1 << 64) - 1, 1 << 63), "-1 -9223372036854775808"),
        ("%zu %jd %td", (5, (1 << 64) - 5, 3), "5 -5 3"),
        ("%y %d", (1,), "%y 1"),
        ("50%", (), "50%"),
        ("", (), ""),
    ],
)
def test_what_is_said(text, bits, said):
    assert we_say(text, *bits, strings={16: "text"}) == said


def test_the_buffer_has_every_argument_at_a_multiple_of_its_size():
    pieces = printf.parse("%d %f %c %s %hd %lld %*d %%")
    assert printf.layout(pieces) == [(0, 4), (8, 8), (16, 4), (24, 8), (32, 4), (40, 8), (48, 4), (52, 4)]


# More characters than a conversion may have: it stays as it is written, and takes its arguments.
TOO_WIDE = [
    ("%999999999999d|%d", (1, 2), "%999999999999d|2"),
    ("%65537u|", (1,), "%65537u|"),
    (f"%{'9' * 5000}d|%d", (1, 2), f"%{'9' * 5000}d|2"),
    ("%.999999999999d|%d", (1, 2), "%.999999999999d|2"),
    ("%.999999999999f|%d", (bits_of(1.5), 2), "%.999999999999f|2"),
    ("%*d|%d", (0x7FFF_FFFF, 1, 2), "%*d|2"),
    ("%*d|%d", (0x8000_0000, 1, 2), "%*d|2"),
    ("%.*f|%d", (0x7FFF_FFFF, bits_of(0.5), 2), "%.*f|2"),
    ("%-2147483648s|%d", (0, 2), "%-2147483648s|2"),
    ("%n%d", (2,), "%n2"),
]


@pytest.mark.parametrize(("text", "bits", "said"), TOO_WIDE)
def test_a_conversion_without_end_stays_as_it_is_written(text, bits, said):
    assert we_say(text, *bits) == said


@pytest.mark.parametrize("text", ["%4095d", "%-4095x|", "%.4000d", "%04095d", "%.000000000000000003f"])
def test_long_conversions_are_those_of_c(text):
    value = ctypes.c_double(1.5) if text.endswith("f") else ctypes.c_int(77)
    bits = bits_of(1.5) if text.endswith("f") else 77
    assert we_say(text, bits)[:4095] == c_says(text, value)


def test_the_precision_of_a_string_may_be_any():
    assert we_say("%.999999999999s|", 8, strings={8: "abc"}) == "abc|"


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("which", ["format", "string"])
def test_a_wild_pointer_is_the_fault_of_its_thread(engine, which):
    wild = {which: "0x7f0000000000"}
    source = """
.version 6.5
.target sm_75
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .b8 text[4] = {37, 115, 10, 0};
.visible .entry k()
{
    .local .align 8 .b8 args[8];
    .reg .u64 a, f; .reg .u32 t; .reg .pred p;
    mov.u64 a, text; mov.u32 t, %tid.x; setp.eq.u32 p, t, 7; @p mov.u64 a, WILD_STRING; st.local.u64 [args], a;
    mov.u64 f, text; @p mov.u64 f, WILD_FORMAT; mov.u64 a, args; cvta.local.u64 a, a;
    { .param .b32 r; .param .b64 x; .param .b64 y; st.param.b64 [x], f; st.param.b64 [y], a;
    call (r), vprintf, (x, y); }
    ret;
}
"""
    source = source.replace("WILD_STRING", wild.get("string", "text")).replace("WILD_FORMAT", wild.get("format", "text"))
    with pytest.raises(ptxvm.Fault, match="out-of-bounds: reading 1 byte at 0x7f0000000000") as raised:
        ptxvm.load(source).kernel().launch(1, 32, engine=engine)
    assert raised.value.place.thread == (7, 0, 0)
