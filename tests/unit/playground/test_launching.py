"""Checks and launches as a page asks for them; what kernels compute is simple enough to be written down."""

from __future__ import annotations

import pytest
from playground_kernels import DOUBLE, FOREVER


def test_a_module_is_checked(ask):
    found = ask("check", source=DOUBLE.replace("add.u32", "add.u33"))
    assert [(each["line"], each["severity"]) for each in found["diagnostics"]] == [(12, "error")]
    assert found["kernels"] == [{"name": "double", "parameters": [{"type": ".u64", "name": "data"}], "block": ""}]


def test_a_launch_gives_its_arrays_and_what_changed(ask):
    done = ask("run", source=DOUBLE, arguments=["u32[32]=arange"], checks=["memory"])
    assert (done["outcome"], done["kernel"], done["diagnostics"]) == ("done", "double", [])
    (data,) = done["arguments"]
    assert data["values"] == [2 * n for n in range(32)]
    assert data["changed"] == list(range(1, 32))  # twice 0 is 0
    assert (data["name"], data["type"], data["shape"], data["size"]) == ("data", "u32", [32], 32)
    assert done["counters"]["threads"] == 32


def test_a_fault_has_its_line(ask):
    done = ask("run", source=DOUBLE, arguments=["u32[31]"])
    assert done["outcome"] == "fault"
    assert [(each["code"], each["line"]) for each in done["diagnostics"]] == [("out-of-bounds", 11)]


def test_invalid_text_has_its_diagnostics(ask):
    done = ask("run", source=DOUBLE.replace("add.u32", "add.u33"))
    assert (done["outcome"], done["arguments"]) == ("invalid", [])
    assert [each["line"] for each in done["diagnostics"]] == [12]


def test_numbers_that_json_has_not_are_texts(ask):
    identity = DOUBLE.replace("add.u32 %r2, %r2, %r2;", "")
    done = ask("run", source=identity, block="1", arguments=["f32[3]=nan"])
    assert done["arguments"][0]["values"] == ["nan"] * 3
    done = ask("run", source=identity, block="1", arguments=["u64[1]=0xffffffffffffffff"])
    assert done["arguments"][0]["values"] == [str(2**64 - 1)]
    done = ask("run", source=identity, block="1", arguments=["f32[1]=0.1"])
    assert done["arguments"][0]["values"] == [0.1]  # as the type prints it, not as f64 does


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"arguments": ["@/etc/passwd"]}, "'@/etc/passwd': the playground reads no files"),
        ({"arguments": ["u32[9999999]"]}, "'u32[9999999]': the arrays of the playground have 4,194,304 elements together"),
        ({"arguments": ["u32[3e]"]}, "'u32[3e]': a shape is a number of elements"),
        ({"arguments": []}, "kernel 'double' takes 1 argument"),
        ({"grid": "0"}, "the grid is X, X,Y or X,Y,Z, not '0'"),
        ({"grid": "4096", "block": "1024"}, "the grid has 4,194,304 threads; the playground runs 1,048,576"),
        ({"entry": "triple"}, "the module has no kernel 'triple'"),
        ({"source": " "}, "there is no kernel: the text is empty"),
        ({"engine": "fast"}, "there is no engine 'fast'"),
        ({"checks": ["races"]}, "there is no check 'races'"),
        ({"arguments": ["u32[32]=random"], "seed": -1}, "the seed is 0 or more, not -1"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, changes, said):
    error = ask("run", **{"source": DOUBLE, "arguments": ["u32[32]"]} | changes)
    assert error["kind"] == "request"
    assert error["message"].startswith(said)


def test_a_kernel_that_does_not_end_is_ended_at_its_line(ask, monkeypatch):
    monkeypatch.setattr("ptxvm.playground.launching.SECONDS", 0.2)
    done = ask("run", source=FOREVER)
    assert done["outcome"] == "fault"
    assert [each["line"] for each in done["diagnostics"]] == [4]


def test_arrays_begin_where_those_of_a_device_do(ask):
    address = DOUBLE.replace("add.u32 %r2, %r2, %r2;", "cvt.u32.u64 %r2, %rd1; and.b32 %r2, %r2, 255;")
    for size in (1, 3, 100):
        done = ask("run", source=address, block="1", arguments=[f"u32[{size}]=ones"])
        assert done["arguments"][0]["values"][0] == 0
