"""vprintf's formatting against the C library of the host."""

import ctypes
import struct

import pytest
from hypothesis import given, strategies as st

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
