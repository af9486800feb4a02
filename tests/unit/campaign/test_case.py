from collections import Counter
from pathlib import Path

from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.declaration import declared
from ptxvm.campaign.outcome import Job, Outcome, Verdict

SAXPY = str(Path(__file__).parents[3] / "examples" / "saxpy.ptx")
LAUNCH = {"grid": "{cdiv(n, block)}", "args": ["{n}", "2.0", "f32[{n}]=random", "f32[{n}]=ones"]}


def outcomes(tables: dict[str, object]) -> dict[tuple[object, ...], Outcome]:
    """How the cases of a campaign end in this process, by the values of their parameters."""
    declaration = declared(tables)
    space, workload = declaration.space, DeclaredWorkload(declaration)
    return {
        tuple(space.parameters(space.position(number)).values()): workload.run(Job(number)) for number in range(space.cases)
    }


def saxpy(subjects: Path, **tables: object) -> dict[tuple[object, ...], Outcome]:
    whole = {
        "campaign": {"kernel": SAXPY}, "parameters": {"n": [1, 33, 200], "block": [32, 256], "engine": ["jit", "interp"]},
        "launch": LAUNCH, "expect": {"reference": f"{subjects}:saxpy"},
    }  # fmt: skip
    return outcomes({**whole, **tables})


def verdicts(found: dict[tuple[object, ...], Outcome]) -> dict[Verdict, int]:
    return dict(Counter(each.verdict for each in found.values()))


def test_a_kernel_that_computes_what_the_reference_does_passes(subjects: Path) -> None:
    assert verdicts(saxpy(subjects)) == {Verdict.PASSED: 12}


def test_a_kernel_that_differs_from_the_reference_fails_there(subjects: Path) -> None:
    """`wrong_saxpy` differs from the hundredth element on: of the sizes only 200 has it."""
    found = saxpy(subjects, expect={"reference": f"{subjects}:wrong_saxpy"})
    assert {n for (n, _, _), each in found.items() if each.verdict is Verdict.DIFFERS} == {200}
    assert verdicts(found) == {Verdict.PASSED: 8, Verdict.DIFFERS: 4}
    assert "in 100 of 200 elements of argument 3: at 100" in found[200, 32, "jit"].message


def test_an_error_may_be_allowed(subjects: Path) -> None:
    found = saxpy(subjects, expect={"reference": f"{subjects}:wrong_saxpy", "absolute": 1.5})
    assert verdicts(found) == {Verdict.PASSED: 12}


def test_findings_fail_a_case(subjects: Path) -> None:
    """An array that is one element short is read past its end: a finding of the check `memory`."""
    args = [*LAUNCH["args"][:3], "f32[{n - 1}]=ones"]
    found = saxpy(subjects, parameters={"n": [33], "block": [64]}, launch={**LAUNCH, "args": args, "check": "memory"})
    assert found[33, 64].reason == "finding out-of-bounds at saxpy.ptx:45"


def test_a_fault_has_its_place(subjects: Path) -> None:
    found = saxpy(subjects, parameters={"n": [33], "block": [64]}, launch={**LAUNCH, "args": [*LAUNCH["args"][:3], "f32[9]"]})
    assert found[33, 64].reason == "fault out-of-bounds at saxpy.ptx:45"


def test_engines_agree_or_not(tmp_path: Path) -> None:
    """The clock of the machine differs between the engines: nothing says what it is."""
    kernel = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {{ .reg .b64 %d<3>; {} }}"
    body = "ld.param.u64 %d1, [out]; mov.u64 %d2, {}; st.global.u64 [%d1], %d2; ret;"
    tables = {"launch": {"args": ["u64[1]"]}, "expect": {"agree": {"engine": ["interp", "jit"]}}}
    for register, verdict in (("7", Verdict.PASSED), ("%clock64", Verdict.DIFFERS)):
        path = tmp_path / f"{verdict}.ptx"
        path.write_text(kernel.format(body.format(register)))
        assert verdicts(outcomes({**tables, "campaign": {"kernel": str(path)}})) == {verdict: 1}


def test_another_kernel_is_an_expectation(tmp_path: Path) -> None:
    """Two versions of saxpy that differ in one instruction leave the same only where nothing is added."""
    changed = tmp_path / "other.ptx"
    text = Path(SAXPY).read_text()
    changed.write_text(text.replace("fma.rn.f32", "fma.rz.f32"))
    assert changed.read_text() != text
    expect = {"kernel": str(changed)}
    found = outcomes(
        {"campaign": {"kernel": SAXPY}, "parameters": {"n": [1, 4000], "block": [64]}, "launch": LAUNCH, "expect": expect}
    )
    assert found[4000, 64].reason == "differs from the other kernel at argument 3"


def test_what_is_no_launch_is_an_error_by_name(subjects: Path) -> None:
    found = saxpy(subjects, parameters={"n": [1], "block": [2000]})
    assert "it may be 1 to 1024" in found[1, 2000].message
    found = saxpy(subjects, parameters={"n": [1], "block": [32], "engine": ["gpu"]})
    assert "engine" in found[1, 32, "gpu"].message
    found = saxpy(subjects, campaign={"kernel": SAXPY, "entry": "axpy"}, parameters={"n": [1], "block": [32]})
    assert (found[1, 32].reason, found[1, 32].message) == (
        "error ValueError",
        "ValueError: the module has no kernel 'axpy'; it has saxpy",
    )


def test_a_wrong_value_in_a_function_has_its_place_and_a_refusal_of_ptxvm_its_message(tmp_path: Path) -> None:
    file = tmp_path / "cases.py"
    file.write_text("import ptxvm\ndef refused(n):\n    ptxvm.devices(n)\ndef wrong(n):\n    raise ValueError(n)\n")
    reasons = {
        name: outcomes({"campaign": {"function": f"{file}:{name}"}, "parameters": {"n": [0]}})[0,].reason
        for name in ("wrong", "refused")
    }
    assert reasons == {"wrong": "error ValueError at cases.py:5", "refused": "error ValueError"}
