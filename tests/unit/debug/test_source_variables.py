"""Variables of CUDA C++ by their names, in what nvcc 13.0 -G makes of `places.cu` and `bits.cu`.

Their values follow from these sources.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.debug import dwarf, inspection
from ptxvm.debug.console import Console
from ptxvm.debug.dap.ids import Handles
from ptxvm.debug.dap.variables import Variables
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason
from ptxvm.machine.launch_options import LaunchOptions

pytest.importorskip("elftools")

PLACES = (Path(__file__).parent / "places.ptx").read_text()
LINES = PLACES.split("\n")
STORE = 1 + next(n for n, line in enumerate(LINES) if line.strip() == "st.f32 \t[%rd22], %f11;")
SUM = 1 + next(n for n, line in enumerate(LINES) if line.strip() == ".loc\t1 10 3") + 1  # `return sum * by;`
BITS = (Path(__file__).parent / "bits.ptx").read_text()
LOOP = 1 + BITS.split("\n").index("\t.loc\t1 22 5") + 1
POINT = struct.pack("<iffhxx", 4, 0.5, 0.25, 11)


@pytest.fixture
def places() -> Iterator[Session]:
    module = ptxvm.load(PLACES)  # whose variables end with it
    kernel = module.kernel()
    session = Session(module.image, kernel.function, LaunchOptions(1, 8), [np.zeros(16, np.float32), POINT, 30])
    yield session
    session.close()


def shown(session: Session, *expressions: str) -> dict[str, str]:
    """Expressions, and the values that `print` shows."""
    console, found = Console(session), {}
    for each in expressions:
        (line,) = console.execute(f"print {each}")
        found[each] = line.text.removeprefix(f"{each} = ")
    return found


def stopped(session: Session, where: int | str) -> Session:
    session.break_at(str(where), "%tid.x == 5")
    session.start()
    session.resume()
    return session


def test_numbers_in_registers_have_their_types(places):
    expected = {
        "i": "5", "odd": "1", "low": "-3", "wide": str(1 << 40), "third": str(1 / 3), "colour": "GREEN", "k": "0",
        "got": "0.75", "n": "30", "i * 10 + low": "47", "wide > 5 && third < 1": "1",
    }  # fmt: skip
    assert shown(stopped(places, STORE), *expected) == expected


def test_members_elements_and_what_pointers_point_to(places):
    expected = {
        "head": "{value = 5, next = %s}", "head.value": "5", "head.next->value": "50", "(*head.next).value": "50",
        "moved[1].x": "6.5", "moved[1].tag": "-7", "moved[0].kind": "4", "first.y": "0.25", "row[1][2]": "30",
        "row": "{0, 0, 0, 0, 0, 0, 30, 0}", "origin": "{kind = 9, x = 1.5, y = -2.5, tag = -7}", "origin.y": "-2.5",
        "out[3]": "0.0", "*out": "0.0",
        "moved": "{{kind = 4, x = 0.5, y = 0.25, tag = 11}, {kind = 9, x = 6.5, y = -2.5, tag = -7}}",
    }  # fmt: skip
    session = stopped(places, STORE)
    expected["head"] %= shown(session, "head.next")["head.next"]
    assert shown(session, *expected) == expected


def test_a_reference_stands_for_what_it_refers_to_and_frames_have_their_own(places):
    session = stopped(places, SUM)
    assert shown(session, "p.x", "p", "by", "sum") == {
        "p.x": "0.5", "p": "{kind = 4, x = 0.5, y = 0.25, tag = 11}", "by": "1.0", "sum": "0.75",
    }  # fmt: skip
    assert "there is no 'i' here" in shown(session, "i")["i"]
    session.frame = 1
    assert shown(session, "i", "colour") == {"i": "5", "colour": "GREEN"}


def test_variables_are_in_sight_from_their_blocks_on(places):
    """`k` is the loop's, and has two passes."""
    places.break_at("*places+1", "%tid.x == 5")
    session, seen = stopped(places, STORE), []
    while session.stop is not None and session.stop.reason is not Reason.ENDED:
        seen.append(shown(session, "k")["k"])
        session.resume()
    assert [each if each.isdigit() else each[:18] for each in seen] == ["there is no 'k' he", "0", "1"]


def test_what_is_set_is_what_the_kernel_uses(places):
    session = stopped(places, SUM)
    console = Console(session)
    for command in ("set by = 3", "set p.y = 100.5", "up", "set head.next->value = -1", "set wide = 0", "set low = 127"):
        list(console.execute(command))
    session.frame = 0
    session.delete()
    stopped_again = session.break_at(str(STORE), "%tid.x == 5")
    session.resume()
    assert stopped_again.hits == 1
    assert shown(session, "got", "moved[0].y", "head.next->value", "low", "wide") == {
        "got": "2.25", "moved[0].y": "100.5", "head.next->value": "-1", "low": "127", "wide": "0",
    }  # fmt: skip


def test_conditions_know_them(places):
    places.break_at(str(STORE), "i == 3 && k == 1")
    places.start()
    places.resume()
    assert shown(places, "i", "k") == {"i": "3", "k": "1"}


def test_locals_are_listed_and_are_a_scope(places):
    session = stopped(places, STORE)
    names = [name for name, _ in inspection.source_variables(session)]
    assert set(names) == {
        "out", "first", "n", "last", "head", "moved", "i", "odd", "low", "wide", "third", "colour", "row", "k", "got",
    }  # fmt: skip
    assert "low = -3" in [line.text for line in Console(session).execute("info locals")]
    variables = Variables(session, Handles())
    assert next(variables.scopes())["name"] == "Locals"
    found = {each["name"]: each for each in variables.locals()}
    assert found["low"]["value"] == "-3"
    assert found["head"]["type"] == "Node"
    assert found["head"]["variablesReference"]


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("head.nxt", "'Node' has no member 'nxt'; did you mean `next`?"), ("i.x", "what stands before '.x' is no structure"),
        ("out * 1", "pointers take part in sums and differences alone"), ("*i", "an address has no type"),
        ("out + out", "cannot be added"), ("lows", "did you mean `low`?"),
        ("head + 1", "that is a structure"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(places, expression, said):
    assert said in shown(stopped(places, STORE), expression)[expression]


# ── bit fields, enumerations, pointers ──────────────────────────────────────────────────


@pytest.fixture
def bits() -> Iterator[Session]:
    """The kernel of `bits.cu` in thread 1, before the loop is run."""
    module = ptxvm.load(BITS)
    car = struct.pack("<iB3x8x4i", 5, 1, 10, 20, 30, 40)
    session = Session(module.image, module.kernel().function, LaunchOptions(1, 2), [np.zeros(4, np.int32), car])
    session.break_at(str(LOOP), "%tid.x == 1")
    session.start()
    session.resume()
    yield session
    session.close()


def test_bit_fields_have_their_values_and_take_others(bits):
    """Thread 1 stores low = 1, mid = -1, high = 2^39 + 1, set = 1 and last = 65."""
    assert shown(bits, "car.flags.high", "car.flags") == {
        "car.flags.high": str((1 << 39) + 1), "car.flags": f"{{low = 1, mid = -1, high = {(1 << 39) + 1}, set = 1, last = 65}}",
    }  # fmt: skip
    assert inspection.text_of(bits.assign("car.flags.mid", "-7")) == "-7"
    assert inspection.text_of(bits.assign("car.flags.last", "128 + 3")) == "3"  # of seven bits
    assert shown(bits, "car.flags")["car.flags"] == f"{{low = 1, mid = -7, high = {(1 << 39) + 1}, set = 1, last = 3}}"
    assert shown(bits, "&car.flags.mid")["&car.flags.mid"] == "a bit field has no address"


def test_whatis_says_types(bits):
    """Those of `bits.cu`, with the numbers of PTX."""
    expected = {
        "car": ".local Car", "car.wheels": ".local .s32[4]", "car.wheels[1]": ".local .s32", "p": ".local Node*",
        "&second": "Node*", "car.flags.mid": ".local .s32:5", "any": "void*", "1 + i": ".s32", "%tid.x": ".u32",
        ".local.f16[0]": ".local .f16",
    }  # fmt: skip
    found = {text: next(iter(Console(bits).execute(f"whatis {text}"))).text for text in expected}
    assert {text: line.removeprefix("type = ") for text, line in found.items()} == expected
    assert [line.text.split() for line in Console(bits).execute("ptype second")] == [
        ["type", "=", ".local", "Node"], ["0", "value:", ".s32"], ["8", "next:", "Node*"],
    ]  # fmt: skip


def test_values_of_enumerations_have_names(bits):
    expected = {
        "paint": "GREEN", "car.mode": "Mode::SAFE", "given.mode": "Mode::FAST", "paint == GREEN": "1", "NONE": "NONE",
        "NONE + 1": "0", "paint > RED": "1", "car.mode == Mode::SAFE && paint != NONE": "1",
    }  # fmt: skip
    assert shown(bits, *expected) == expected
    assert [line.text for line in Console(bits).execute("print/d paint")] == ["paint = 5"]
    assert [line.text for line in Console(bits).execute("set paint = RED")] == ["paint = RED"]
    assert inspection.text_of(bits.assign("paint", "3")) == "3"  # has no name


def test_pointers_move_by_elements(bits):
    """`q` is `car.wheels + 2`, `p` is `&second`."""
    expected = {
        "*(q + 1)": "40", "*(1 + q)": "40", "(q - 2)[1]": "20", "&q[1] - q": "1", "*car.wheels": "10",
        "&car.wheels[3] - &car.wheels[1]": "2", "*(&car.wheels[1] + 1)": "30", "q - 1 == &q[-1]": "1", "(p->next)->value": "31",
    }  # fmt: skip
    assert shown(bits, *expected) == expected
    addresses = shown(bits, "p", "p + 2", "any", "any + 3")  # in bytes, where there is no type
    first, second, third, fourth = (int(each, 16) for each in addresses.values())
    assert (second - first, fourth - third) == (32, 3)


def test_casts_convert_values_and_give_addresses_types(bits):
    expected = {
        "*(int*)any": "30", "((int const *)any)[1]": "40", "*(unsigned char*)any": "30", "((struct Node*)p)->value": "21",
        "(char)300": "44", "(float)i / 4": "0.25",
        "(int)2.75": "2", "(unsigned long long)-1": str((1 << 64) - 1), "(u8)-1": "255", "(i) - 1": "0",
        "(*(Node**)&second.next)->value": "31",
    }  # fmt: skip
    assert shown(bits, *expected) == expected
    assert "there is no type 'Nod' here" in shown(bits, "*(Nod*)any")["*(Nod*)any"]
    assert "a `void*` has no type" in shown(bits, "*any")["*any"]


# ── what is not there ───────────────────────────────────────────────────────────────────


def test_without_the_reader_the_way_out_is_told(places, monkeypatch):
    monkeypatch.setattr(dwarf, "find_spec", lambda _: None)
    dwarf.dwarf.cache_clear()
    session = stopped(places, STORE)
    assert "pip install 'ptxvm[debug]'" in shown(session, "i")["i"]
    assert shown(session, "origin")["origin"].startswith("{0x09, 0x00")
    dwarf.dwarf.cache_clear()


def test_information_that_is_not_understood_ends_nothing(rng):
    """Bytes of the sections are others: names of the source have a value, or none, and the rest of the PTX is as it was."""
    start = LINES.index("\t.section\t.debug_info")
    lines = LINES.copy()
    for number in rng.integers(start + 2, len(LINES) - 8, 40):
        if lines[number].startswith(".b8"):
            lines[number] = f".b8 {rng.integers(256)}"
    for text in (PLACES.replace(".b32 .debug_abbrev", ".b32 9999"), "\n".join(lines)):
        module = ptxvm.load(text)
        kernel = module.kernel()
        session = Session(module.image, kernel.function, LaunchOptions(1, 8), [np.zeros(16, np.float32), POINT, 30])
        stopped(session, STORE)
        for each in ("i", "head", "moved", "p", "origin"):
            assert shown(session, each)[each]
        assert inspection.source_variables(session) is not None
        assert shown(session, "%tid.x") == {"%tid.x": "5"}
        session.close()


def test_a_module_without_debugging_information_has_none(turn):
    turn.start()
    assert turn.view().source_variables == {}
    known = dwarf.dwarf(turn.here.function.program)
    assert "sections" not in vars(known)  # a large module is not parsed again
