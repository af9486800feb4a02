"""Machine code that starts Python in a process without it, at the first call of a function of a library.

It uses Python's own interface for embedding (Python/C API, "Python Initialization Configuration"), in an isolated
configuration: the environment, the signals and the standard streams of the process stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.dataclass import dataclass
from ptxvm.libcuda.assembler import Labels, MachineCode, Processor

PYTHON = (
    "Py_IsInitialized", "PyConfig_InitIsolatedConfig", "PyConfig_SetBytesArgv", "Py_InitializeFromConfig",
    "PyRun_SimpleString", "PyEval_SaveThread", "PyGILState_Ensure", "PyGILState_Release",
)  # fmt: skip
IMPORTS = ("pthread_once", "dlopen", "write", *PYTHON)
CONFIG = 4096  # bytes for a PyConfig, which takes some 450
STATUS = 64  # bytes for a PyStatus, which takes 32
STANDARD_ERROR = 2
FOR_ALL = 0x102  # RTLD_NOW | RTLD_GLOBAL: Python's own extensions look its functions up among those of the process
NO_PYTHON = (
    b"ptxvm: this process has no Python and could not start one: the shared library of Python is missing. Install a Python "
    b"that has one (Debian: libpython3-dev; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared), and ptxvm in it\n"
)


@dataclass(frozen=True)
class Starter:
    """A script, and the Python that runs it (the path of its program and of its library, "" for none)."""

    script: str
    program: str
    python: str

    def data(self) -> dict[str, bytes]:
        """The data of the code, by label: memory and strings."""
        return {
            "once": bytes(8),
            "argv": bytes(8),  # the address of `program`
            "status": bytes(STATUS),
            "config": bytes(CONFIG),
            "python": self.python.encode() + b"\0",
            "program": self.program.encode() + b"\0",
            "script": self.script.encode() + b"\0",
            "no Python": NO_PYTHON,
        }


def starting_code(cpu: Processor, at: int, labels: Labels, count: int, texts: Sequence[int] = ()) -> MachineCode:
    """The code from an address on, of a library with `count` slots; it defines `first call`, `start` and `forked`.

    `texts` are the numbers of the slots of functions that return the text of their label in a forked process.
    """
    code = MachineCode(at, labels)
    code.label("first call")
    cpu.first_call(code)
    code.label("start")
    cpu.begin(code)
    cpu.unless_linked(code, "Py_IsInitialized", "none")
    cpu.call(code, "Py_IsInitialized")
    cpu.if_zero(code, "new")
    cpu.call(code, "PyGILState_Ensure")
    cpu.keep(code)
    call(cpu, code, "PyRun_SimpleString", "script")
    cpu.kept(code)
    cpu.call(code, "PyGILState_Release")
    cpu.go(code, "done")
    code.label("new")
    cpu.unless_linked(code, "dlopen", "global")
    call(cpu, code, "dlopen", "python", FOR_ALL)
    code.label("global")
    call(cpu, code, "PyConfig_InitIsolatedConfig", "config")
    call(cpu, code, "PyConfig_SetBytesArgv", "config", 1, "argv", result="status")
    call(cpu, code, "Py_InitializeFromConfig", "config", result="status")
    cpu.call(code, "Py_IsInitialized")
    cpu.if_zero(code, "none")
    call(cpu, code, "PyRun_SimpleString", "script")
    cpu.call(code, "PyEval_SaveThread")
    cpu.go(code, "done")
    code.label("none")
    call(cpu, code, "write", STANDARD_ERROR, "no Python", len(NO_PYTHON))
    code.label("done")
    cpu.end(code)
    code.label("forked")
    cpu.fill(code, count, {slot_label(n): f"give {n}" for n in texts})
    for n in texts:
        code.label(f"give {n}")
        cpu.give(code, text_label(n))
    return code


def slot_label(number: int) -> str:
    """The label of a slot."""
    return f"slot {number}"


def text_label(number: int) -> str:
    """The label of the text that the function of a slot returns in a forked process."""
    return f"text {number}"


def call(cpu: Processor, code: MachineCode, cell: str, *arguments: str | int, result: str = "") -> None:
    """A call with arguments; `result` is the address for a result in memory."""
    cpu.arguments(code, arguments, result)
    cpu.call(code, cell)


__all__ = ["IMPORTS", "Starter", "slot_label", "starting_code", "text_label"]
