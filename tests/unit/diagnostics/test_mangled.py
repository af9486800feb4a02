"""Names of C++ and of Numba as messages show them; what they stand for was written by hand or read by `c++filt`."""

from __future__ import annotations

import pytest

from ptxvm.diagnostics import mangled
from ptxvm.diagnostics.errors import Fault, Place
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.diagnostics.suppressions import Suppressions

ARRAYS = "_ZN8__main__4vaddB2v2B92cw51cXTLSUwv1sDUaKthoaNgoKmjgOR3W3CwAkMXLaJtQYkOIgxJU0gCqOkEJoHkbttqdVhoqlspQGNFHSgJ5BnXagIAE"
VADD = ARRAYS + "5ArrayIfLi2E1C7mutable7alignedE5ArrayIfLi1E1C7mutable7alignedEi8UniTupleIfLi3EE"
NUMBA = "_ZN8__main__10add_5b1_5dB2v1B2cwEd"
LONG = "_ZN3lib6kernelINS_5outerINS_5innerILi1ELi22222222ELi33333333EEENS2_ILi4ELi5EEEEEEEvT_"
UNKNOWN = "_ZN3lib6kernelIXadL_Z1fvEEEEvv"  # the address of a function is an expression, which is not read


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("saxpy", "saxpy"),
        ("_Z5saxpyifPfS_", "saxpy"),
        ("_ZN3foo3barEPKd", "foo::bar"),
        ("_Z4copyILi4EdEvPKT0_PS0_", "copy<4, float64>"),
        ("_Z4packIJifdEEvDpT_", "pack<int32, float32, float64>"),
        ("_Z4nonei", "none"),
        ("_Z4kindILN2ns4KindE2EEvv", "kind<2>"),
        ("_ZN1A8MMA_64x6ILb1EEEvv", "A::MMA_64x6<1>"),
        ("_Z1fI1AIiES1_EvT_T0_", "f<A<int32>, A<int32>>"),
        ("_Z1fI1AIiES0_IdEEvT_T0_", "f<A<int32>, A<float64>>"),
        (LONG, "lib::kernel<...#3cb4>"),
        (UNKNOWN, "lib::kernel<...#6c8a>"),
        ("_Z6kernelIXadL_Z1fvEEEvv", "kernel<...#1c29>"),
        ("_ZNXadL_Z1fvE", "_ZNXadL_Z1fvE"),
        ("_Z" + "70" + "a" * 70 + "v", "_Z" + "70" + "a" * 70 + "v"),
        (NUMBA, "__main__.add[1]"),
        ("_ZN8__main__6lam_01B2v1Ed", "__main__.lam_01"),
    ],
)  # fmt: skip
def test_names_in_messages(name, shown):
    assert displayed(name) == shown


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("_Z5saxpyifPfS_", "saxpy(int32, float32, float32*, float32*)"),
        ("_Z4donev", "done()"),
        ("_ZN3foo3barEPKd", "foo.bar(float64*)"),
        ("_Z4fillIfEvPT_S0_", "fill<float32>(float32*, float32)"),
        ("_Z4copyILi4EdEvPKT0_PS0_", "copy<4, float64>(float64*, float64*)"),
        (
            VADD,
            ("__main__.vadd(Array<float32, 2, C, mutable, aligned>, Array<float32, 1, C, mutable, aligned>, int32, "
            "UniTuple<float32, 3>)"),
        ),
        ("main", None),
        ("_Z5sax", None),
        ("_Z9999999x", None),
        ("_ZN", None),
        ("_Z1fI", None),
        ("_Z1fS9_", None),
        ("_Z1fS", None),
        ("_Z1fILi1", None),
        ("_ZNK1A3getEv", "A.get()"),
        ("_Z1f" + "P" * 5000 + "f", None),
    ],
)  # fmt: skip
def test_mangled_names_are_read_back(name, read):
    found = mangled.read(name)
    assert (found and str(found)) == read


@pytest.mark.parametrize(
    ("name", "called", "so"),
    [
        ("_ZN2ns4fillIfEEvv", "ns::fill", True),
        ("_ZN2ns4fillIfEEvv", "fill", True),
        ("_ZN2ns4fillIfEEvv", "ill", False),
        (UNKNOWN, "kernel", False),
        ("fill", "fill", False),
    ],
)
def test_names_that_a_user_gives(name, called, so):
    assert mangled.is_called(name, called) == so


def test_a_checksum_tells_apart_what_the_arguments_left_out_differ_in():
    assert displayed(LONG) != displayed(LONG.replace("Li4E", "Li6E"))


def test_a_fault_shows_the_name_and_keeps_the_mangled_one():
    fault = Fault("trap", "it stops", place=Place(kernel=LONG, cta=(0, 0, 0), thread=(1, 0, 0)))
    assert str(fault).splitlines()[1] == "  in kernel lib::kernel<...#3cb4>, CTA (0, 0, 0), thread (1, 0, 0)"
    assert fault.place.kernel == LONG


def test_suppressions_name_a_kernel_as_messages_do_or_mangled():
    rules = Suppressions.parse("race lib::kernel*:7\ntrap _ZN3lib*", {"race", "trap"}.__contains__)
    assert rules.names(LONG, "race", 7)
    assert rules.names(LONG, "trap", 1)
    assert not rules.names(LONG, "race", 8)
    assert not rules.names("_Z5saxpyifPfS_", "race", 7)
