"""The table of special registers (PTX 10)."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import b32, pred, u16, u32, u64
from ptxvm.isa.special_registers import SPECIAL, lookup


def test_a_vector_and_its_components() -> None:
    whole, y, g = lookup("%tid"), lookup("%tid", "y"), lookup("%tid", "g")
    assert whole is not None
    assert y is not None
    assert (whole.type, whole.count, whole.legacy) == (u32, 4, (u16,))
    assert (y.type, y.count, y.component) == (u32, 1, 1)
    assert g == y


@pytest.mark.parametrize(
    ("name", "type", "needs"),
    [
        ("laneid", u32, "PTX 1.3"),
        ("gridid", u64, "PTX 1.0"),
        ("clock64", u64, "PTX 2.0, sm_20"),
        ("envreg31", b32, "PTX 1.0"),
        ("pm3", u32, "PTX 1.3"),
        ("pm7", u32, "PTX 3.0, sm_20"),
        ("pm7_64", u64, "PTX 4.0, sm_50"),
        ("reserved_smem_offset_1", b32, "PTX 7.6, sm_80"),
        ("is_explicit_cluster", pred, "PTX 7.8, sm_90"),
    ],
)
def test_types_and_needs(name: str, type: object, needs: str) -> None:
    register = lookup(name)
    assert register is not None
    assert (register.type, register.needs) == (type, needs)


@pytest.mark.parametrize(
    ("name", "component"),
    [("pm8", None), ("envreg32", None), ("laneid", "x"), ("tid", "v"), ("reserved_smem_offset_2", None)],
)
def test_what_does_not_exist(name: str, component: str | None) -> None:
    assert lookup(name, component) is None


def test_counters_change_from_read_to_read() -> None:
    assert {r.name for r in SPECIAL.values() if r.volatile} == {
        *(f"pm{n}" for n in range(8)),
        *(f"pm{n}_64" for n in range(8)),
        *("clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"),
    }


def test_the_constant() -> None:
    warp_size = lookup("WARP_SZ")
    assert warp_size is not None
    assert warp_size.value == 32
    assert (warp_size.spelling, warp_size.noun) == ("WARP_SZ", "a constant")
    assert (SPECIAL["tid"].spelling, SPECIAL["tid"].noun) == ("%tid", "a special register")
