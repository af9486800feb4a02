"""What is not PTX, what is hostile, and what never ends: always a diagnostic or one of the errors, in time.

All cases run in one other process with bounds on its memory and on the time of each case, so that a crash or a hang of
one is seen and harms nobody.  `python test_bad_input.py NAME...` runs some of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import ptxvm

SECONDS = 30  # of a processor, for each step of a case: they do not pass while others have it; all take less than three
PATIENCE = 1200  # seconds, for the process; it waits for nothing, so this is for what should not be
MEMORY = 6 << 30
STEPS = 2_000_000  # of all 32 threads together
MANY = 4000

HEAD = ".version 6.4\n.target sm_75\n.address_size 64\n"


def kernel(body: str, module: str = "", parameters: str = "") -> str:
    return f"{HEAD}{module}\n.visible .entry k({parameters})\n{{\n{body}\n}}\n"


def functions(module: str, body: str = "call f; ret;") -> str:
    return kernel(body, module)


RUNS = {
    "a long chain of labels": kernel("".join(f"L{n}: bra L{n + 1};\n" for n in range(MANY)) + f"L{MANY}: ret;"),
    "a thousand million registers": kernel(".reg .b32 %r<1000000000>;\nmov.u32 %r999999999, 1; ret;"),
    "a declaration for each register": kernel("".join(f".reg .b32 %r{n};\n" for n in range(MANY)) + "ret;"),
    "a long initialiser": kernel("ret;", ".global .b32 a[] = {" + "1, " * 30_000 + "1};"),
    "a shift by far": kernel("ret;", ".global .u32 a = 1<<1000000000000;"),
    "a long name": kernel(f".reg .u32 %{'r' * 100_000}; ret;"),
    "ten thousand dimensions": kernel("ret;", ".global .b8 a" + "[1]" * 10_000 + ";"),
    "nested blocks": kernel("{" * 90 + "ret;" + "}" * 90),
    "a long chain of aliases": functions(
        ".func f0() { ret; }\n"
        + "".join(f".func f{n}(); .alias f{n}, f{n - 1};\n" for n in range(1, 500)) ,
        "call f499; ret;",
    ),
    "no ret": kernel(".reg .u32 %r; mov.u32 %r, 1;"),
    "no instruction": kernel(""),
    "a function without an instruction": functions(".func f() { }"),
    "one line of 200 kB": kernel(".reg .u32 %r<4>; " + "add.u32 %r1, %r2, %r3; " * 8000),
    "a comment of 8 MB": kernel("ret;", "//" + "x" * 8_000_000),
}  # fmt: skip

INVALID = {
    "nothing": "",
    "blanks": " \n\n",
    "zeros": b"\0" * 1000,
    "every byte": bytes(range(256)) * 200,
    "an ELF file": b"\x7fELF\x02\x01\x01" + bytes(5000),
    "UTF-16": kernel("ret;").encode("utf-16"),
    "half a file": kernel("ret;")[:60],
    "Python": "import numpy as np\nprint('hello')\n" * 50,
    "JSON": '{"a": [1, 2, {"b": null}]}',
    "C": "int main(void) { return 0; }",
    "HTML": "<html><body>no</body></html>",
    "a comment without an end": "/* " + kernel("ret;"),
    "no version": ".target sm_75\n.visible .entry k() { ret; }",
    "a version to come": ".version 99.9\n.target sm_75\n.visible .entry k() { ret; }",
    "a version too long": f".version {'9' * 5000}.1\n.target sm_75\n.visible .entry k() {{ ret; }}",
    "no such target": ".version 6.4\n.target sm_7777\n.visible .entry k() { ret; }",
    "addresses of 16 bits": ".version 6.4\n.target sm_75\n.address_size 16\n.visible .entry k() { ret; }",
    "thousands of unknown instructions": kernel("frob.u99 %nothing, 12;\n" * MANY),
    "thousands of unknown names": kernel("mov.u32 %a, %b;\n" * MANY),
    "thousands of wrong types": kernel(".reg .f32 %f<4>;\n" + "add.u32 %f1, %f2, %f3;\n" * MANY),
    "more registers than bytes": kernel(".reg .b32 %r<1000000000000000000>;\nmov.u32 %r5, 1; ret;"),
    "fewer than no registers": kernel(".reg .b32 %r<-1>; ret;"),
    "a const array of 2^40 bytes": kernel("ret;", ".const .b8 big[1099511627776];"),
    "a parameter of 2^40 bytes": kernel("ret;", "", ".param .b8 p[1099511627776]"),
    "an alignment of 3": kernel("ret;", ".global .align 3 .b8 big[64];"),
    "an alignment of 0": kernel("ret;", ".global .align 0 .b8 big[64];"),
    "an array of less than nothing": kernel("ret;", ".global .b8 big[-5];"),
    "initialisers that name each other": kernel("ret;", ".global .u64 a = b; .global .u64 b = a;"),
    "division by zero": kernel("ret;", ".global .u32 a = 1/0;"),
    "a long number": kernel(f".reg .u32 %r; mov.u32 %r, {'9' * 50_000}; ret;"),
    "blocks nested too deeply": kernel("{" * 3000 + "ret;" + "}" * 3000),
    "an expression nested too deeply": kernel("ret;", ".global .u32 a = " + "(" * 5000 + "1" + ")" * 5000 + ";"),
    "an initialiser nested too deeply": kernel("ret;", ".global .u32 a[1] = " + "{" * 5000 + "1" + "}" * 5000 + ";"),
    "a cyclic alias": functions(".func f(); .func g(); .alias f, g; .alias g, f;"),
    "an alias of itself": functions(".func f(); .alias f, f;"),
    "an alias of nothing": functions(".func f(); .alias f, nothing;"),
    "a label that is nowhere": kernel("bra NOWHERE;"),
    "a label twice": kernel("L: L: bra L;"),
    "a kernel that calls itself": kernel("call k; ret;"),
    "a call of nothing": kernel("call nothing; ret;"),
    "two kernels of one name": HEAD + ".visible .entry k() { ret; } .visible .entry k() { ret; }",
    "a block of no threads": HEAD + ".visible .entry k() .maxntid 0 { ret; }",
    "a vector of a hundred": kernel(".reg .u32 %r<4>; ld.v4.u32 {" + ", ".join(["%r1"] * 100) + "}, [0]; ret;"),
    "ten thousand operands": kernel(".reg .u32 %r<4>; add.u32 " + ", ".join(["%r1"] * 10_000) + "; ret;"),
    "ten thousand modifiers": kernel(".reg .u32 %r<4>; add" + ".u32" * 10_000 + " %r1, %r2, %r3; ret;"),
    "a variable of another module": kernel("st.global.u32 [a], 1; ret;", ".extern .global .b32 a;"),
    "a huge alignment": kernel("ret;", ".global .align 1099511627776 .b8 big[64];"),
}

POINTER = ".reg .u64 %p; mov.u64 %p, {}; "
ALONE = ".reg .pred %p; .reg .u32 %t; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; @%p bra A; "
FAULTS = {
    "a loop without an end": ("step-budget", kernel("L: bra L;")),
    "two labels that send to each other": ("step-budget", kernel("A: bra B; B: bra A;")),
    "recursion without an end": ("stack-overflow", functions(".func f() { call f; ret; }")),
    "recursion of two functions": (
        "stack-overflow", functions(".func f(); .func g() { call f; ret; } .func f() { call g; ret; }"),
    ),
    "recursion with a frame": (
        "stack-overflow", functions(".func f() { .local .b8 a[999]; st.local.u8 [a], 1; call f; ret; }"),
    ),
    "alloca of 2^40 bytes": (
        "stack-overflow", kernel(".reg .u64 %p; alloca.u64 %p, 1099511627776; ret;").replace("6.4", "7.3"),
    ),
    "a function of another module": ("invalid-call", kernel("call f; ret;", ".extern .func f();")),
    "a call of a null pointer": ("invalid-call", kernel(POINTER.format(0) + "P: .callprototype _ (); call %p, P; ret;")),
    "a call of a variable": (
        "invalid-call", kernel(POINTER.format("a") + "P: .callprototype _ (); call %p, P; ret;", ".global .b32 a;"),
    ),
    "a branch past the list": (
        "invalid-branch", kernel(".reg .u32 %r; mov.u32 %r, 7; T: .branchtargets A; brx.idx %r, T; A: ret;"),
    ),
    "two barriers that wait for each other": ("deadlock", kernel(ALONE + "bar.sync 1; ret; A: bar.sync 2; ret;")),
    "shared memory that nobody asked for": ("out-of-bounds", kernel("st.shared.u32 [a], 1;", ".extern .shared .b32 a[];")),
    "a null pointer": ("null-pointer", kernel(POINTER.format(0) + "st.u32 [%p], 1;")),
    "the top of memory": ("out-of-bounds", kernel(POINTER.format(-4) + "st.u32 [%p], 1;")),
    "a global array of 2^40 bytes": ("out-of-memory", kernel("ret;", ".global .b8 big[1099511627776];")),
    "a global array of 2^65 bytes": ("out-of-memory", kernel("ret;", ".global .b64 big[4611686018427387904];")),
    "a product of dimensions": ("out-of-memory", kernel("ret;", ".global .b64 a[4294967296][4294967296][4294967296];")),
    "a local array of 2^40 bytes": (
        "out-of-memory", kernel(".local .b8 big[1099511627776]; st.local.u32 [big], 1;"),
    ),
    "a huge alignment on the stack": (
        "out-of-memory", kernel(".local .align 2147483648 .b8 big[64]; st.local.u32 [big], 1;"),
    ),
}  # fmt: skip

EXPECTED = {
    **{name: (text, "runs") for name, text in RUNS.items()},
    **{name: (text, "InvalidPTX") for name, text in INVALID.items()},
    **{name: (text, f"Fault {kind}") for name, (kind, text) in FAULTS.items()},
    # a warning, as ptxas has it, and no launch: no CTA has that much
    "shared memory of 4 GB": (kernel("st.shared.u32 [big], 1;", ".shared .b8 big[4294967296];"), "InvalidPTX"),
    "shared memory of 1 TB": (kernel("st.shared.u32 [big], 1;", ".shared .b32 big[274877906944];"), "InvalidPTX"),
}


# ── the other process ───────────────────────────────────────────────────────────────────


class Late(BaseException):
    """A step took too long; no `except Exception` stops it."""


def late(*_: object) -> None:
    raise Late


def ring(*_: object) -> None:
    """The time is up; this is the signal that interrupts compiled code too."""
    signal.raise_signal(signal.SIGALRM)


def outcome(step: Callable[[], object]) -> str:
    """How a step ended, in a word or two."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        step()
    except ptxvm.Fault as fault:
        str(fault)
        return f"Fault {fault.kind}"
    except BaseException as wrong:  # noqa: BLE001 - this is what the test is about
        return type(wrong).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "runs"


def all_steps(text: str | bytes) -> tuple[str, str, int]:
    """How `check` ended and how `load` and `launch` did, and how many errors there were."""
    raw = text if isinstance(text, bytes) else text.encode()
    found: list[ptxvm.Diagnostic] = []
    checked = outcome(lambda: found.extend(ptxvm.check(raw)))
    errors = sum(each.severity == "error" for each in found)
    ran = outcome(lambda: ptxvm.load(raw).kernel("k").launch(1, 32, steps=STEPS))
    return checked, ran, errors


def main(names: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGPROF, ring)
    for name in names or EXPECTED:
        print(json.dumps({name: all_steps(EXPECTED[name][0])}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])


# ── the tests ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with contextlib.suppress(subprocess.TimeoutExpired):
        child = subprocess.run(
            [sys.executable, __file__], capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False
        )
        for line in child.stdout.splitlines():
            found |= json.loads(line)
        assert child.returncode == 0, f"the process ended after '{list(found)[-1:]}':\n{child.stderr[-2000:]}"
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_bad_input(name, outcomes):
    checked, ran, errors = outcomes[name]
    expected = EXPECTED[name][1]
    assert checked == "runs"  # a list of diagnostics
    assert ran == expected
    # what can be seen in the text is a diagnostic; what another module may provide is not, and that shared memory is
    # too large for the target is a warning of ptxas and an error of the launch
    if name != "a variable of another module" and not name.startswith("shared memory"):
        assert bool(errors) == (ran == "InvalidPTX")


@pytest.mark.parametrize("line", ["frob.u99 %a, 1;", "mov.u32 %a, %b;", "add.u32 %f1, %f2;", "L: bra M;", "ld.u32 %f1"])
def test_time_is_linear_in_the_errors(line):
    """Four times the errors take about four times the calls of functions; a quadratic check would take sixteen."""

    def calls(count: int) -> int:
        made = 0

        def count_call(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event in ("call", "c_call")

        text = kernel(".reg .f32 %f<4>;\n" + f"{line}\n" * count)
        before = sys.getprofile()
        sys.setprofile(count_call)
        try:
            ptxvm.check(text)
        finally:
            sys.setprofile(before)
        return made

    calls(10)  # what is loaded once
    assert calls(800) < 5 * calls(200)


@pytest.fixture(scope="module")
def saxpy() -> ptxvm.Kernel:
    return ptxvm.load(kernel("ret;", "", ".param .u64 p, .param .u32 n, .param .f32 a, .param .align 4 .b8 s[8]")).kernel()


X = np.zeros(4, np.float32)
GOOD = [X, 1, 2.0, bytes(8)]


@pytest.mark.parametrize(
    ("error", "changed"),
    [
        (TypeError, {"args": []}),
        (TypeError, {"args": [*GOOD, 1]}),
        (TypeError, {"args": [2.5, *GOOD[1:]]}),
        (TypeError, {"args": ["x", *GOOD[1:]]}),
        (TypeError, {"args": [object(), *GOOD[1:]]}),
        (TypeError, {"args": [X.astype(object), *GOOD[1:]]}),
        (TypeError, {"args": [np.zeros((4, 4), np.float32)[:, ::2], *GOOD[1:]]}),
        (TypeError, {"args": [np.float32(1), *GOOD[1:]]}),
        (TypeError, {"args": [X, X, *GOOD[2:]]}),
        (TypeError, {"args": [X, 1.5, *GOOD[2:]]}),
        (ValueError, {"args": [X, 1 << 32, *GOOD[2:]]}),
        (ValueError, {"args": [X, -(1 << 31) - 1, *GOOD[2:]]}),
        (TypeError, {"args": [X, np.int64(1), *GOOD[2:]]}),
        (TypeError, {"args": [X, 1, None, GOOD[3]]}),
        (TypeError, {"args": [*GOOD[:3], bytes(7)]}),
        (TypeError, {"args": [*GOOD[:3], 5]}),
        (ValueError, {"grid": 0}),
        (ValueError, {"grid": -1}),
        (ValueError, {"grid": (1, 1, 1, 1)}),
        (ValueError, {"grid": ()}),
        (ValueError, {"grid": 1.5}),
        (ValueError, {"grid": (1, 70_000)}),
        (ValueError, {"grid": None}),
        (ValueError, {"block": 1025}),
        (ValueError, {"block": (32, 33)}),
        (ValueError, {"block": "32"}),
        (ValueError, {"shared": -1}),
        (ValueError, {"engine": "silicon"}),
        (ValueError, {"check": ("everything",)}),
        (ValueError, {"steps": -1}),
    ],
)
def test_wrong_arguments(saxpy, error, changed):
    with pytest.raises(error) as caught:
        saxpy.launch(**{"grid": 1, "block": 1, "args": GOOD, **changed})
    assert caught.type is error
    assert str(caught.value)
