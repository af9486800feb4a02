"""The commands and their options.

A command's module is imported when the command runs; what stands here is what `--help` needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ptxvm.cli import run_options
from ptxvm.cli.command_line import Argument, Commands, Option
from ptxvm.cli.failures import TRACEBACK

VERSION = "--version"

app = Commands(
    "ptxvm",
    "The PTX virtual machine: checks PTX modules, explains PTX, and runs kernels on a CPU.",
    {VERSION: "Show the version.", TRACEBACK: "Show where an error of ptxvm itself came from."},
)


def called(words: Sequence[str]) -> int:
    """Do what a command line says; the exit code."""
    done = app.run(words)
    if done == VERSION:
        from ptxvm import __version__

        print(f"ptxvm {__version__}")
    return done if isinstance(done, int) else 0


Files = Annotated[list[str], Argument("FILE")]
Target = Annotated[str | None, Option(metavar="sm_NN", help="Check for this target instead of the module's own.")]
Format = Annotated[str, Option("--format", metavar="text|ptxas|json|sarif", help="How findings are printed.")]


@app.command()
def check(files: Files, target: Target = None, form: Format = "text") -> int:
    """Say what is wrong with PTX modules.

    FILE - is the standard input.  Exits with 0 where there are no errors, with 1 where there are some.
    """
    from ptxvm.cli.check import check

    return check(files, target, form)


@app.command(passes_unknown=True)  # so that `-3` is an argument, and no option
def run(
    file: run_options.File,
    *,
    arguments: run_options.Arguments = None,
    grid: run_options.Grid = None,
    block: run_options.Block = None,
    entry: run_options.Entry = None,
    shared: run_options.Shared = 0,
    cluster: run_options.Cluster = None,
    target: run_options.Target = None,
    save: run_options.Save = None,
    seed: run_options.Seed = None,
    engine: run_options.Engine = "auto",
    checks: run_options.Checks = "",
    allow: run_options.Allow = "",
    schedules: run_options.Schedules = 1,
    form: run_options.Format = "text",
    steps: run_options.Steps = None,
    timeout: run_options.Timeout = None,
    time: run_options.Time = False,
    threads: run_options.Threads = None,
    numerics: run_options.Numerics = "exact",
    dump: run_options.Dump = None,
) -> int:
    """Run a kernel on arrays, and print them.

    FILE - is the standard input.  Each ARG is an argument of the kernel, in its order:

    \b
      5  -3  0x10  2.5  inf  a number, converted to the type of the parameter
      f32[1024]              an array of zeros; the types are f16 bf16 f32 f64,
                             s8 to s64, u8 to u64, b8 to b64
      f32[64,64]=arange      or of arange, random, ones, or any number
      @in.npy                an array from a file of NumPy
      hex:00ff10             bytes, for a structure passed by value

    \b
    ptxvm run saxpy.ptx --grid 4 --block 256 \\
        1000 2.5 'f32[1000]=arange' 'f32[1000]=ones'
    """  # noqa: D301 - \b keeps the lines of a list from being filled
    from ptxvm.cli.run import Request, run

    request = Request(
        file, arguments or [], grid, block, entry=entry, shared=shared, cluster=cluster, target=target, save=save or [],
        seed=seed, engine=engine, checks=checks, allow=allow, schedules=schedules, form=form, steps=steps, timeout=timeout,
        time=time, threads=threads, numerics=numerics, dump=dump,
    )  # fmt: skip
    return run(request)


@app.command()
def explain(
    what: Annotated[list[str], Argument("CODE-or-INSTRUCTION")],
    values: Annotated[
        list[str] | None,
        Option("--set", metavar="NAME=VALUE", help="The value of a register; may be repeated."),
    ] = None,
    descriptor: Annotated[
        str | None,
        Option(metavar="OF", help="The argument is a descriptor of wgmma or tcgen05, or of a kind as f16."),
    ] = None,
) -> int:
    """Explain a diagnostic code or an instruction.

    \b
    ptxvm explain P0305
    ptxvm explain 'prmt.b32 %r1, %r2, %r3, 0x5250;' \\
        --set %r2=0x80818283 --set %r3=0x40414243
    ptxvm explain --descriptor wgmma 0x4000004000010040

    A VALUE is a number; bits as 0x8081, 0b101 or PTX's own 0f3F800000; the elements of a packed type, the lowest first,
    as 1.5,2; or true or false.
    """  # noqa: D301
    if descriptor is not None:
        from ptxvm.cli.descriptors import explain_descriptor

        return explain_descriptor(descriptor, " ".join(what))
    from ptxvm.cli.explain import explain

    return explain(" ".join(what), values or [])


@app.command()
def isa(opcode: Annotated[str | None, Argument("OPCODE")] = None) -> int:
    """List the instructions, or show the page of one.

    OPCODE may have modifiers: mul, mul.wide, ld.global.nc.
    """
    from ptxvm.cli.isa import isa

    return isa(opcode)


@app.command("exec", passes_unknown=True, ends_at_argument=True)
def execute(
    command: Annotated[list[str], Argument("COMMAND")],
    *,
    device: Annotated[str | None, Option(metavar="sm_NN", help="The card whose limits the device has.")] = None,
    devices: Annotated[int | None, Option(metavar="N", least=0, help="How many devices there are.")] = None,
    checks: Annotated[str, Option("--check", metavar="memory,init,sync,race", help="What to look for in every kernel.")] = "",
    summary: Annotated[bool, Option("--summary", help="End with a table: kernels, launches, time, findings.")] = False,
) -> int:
    """Run a program with ptxvm as its CUDA driver.

    \b
    ptxvm exec -- python app.py
    ptxvm exec --device sm_80 -- pytest tests

    Exits with the status of the program, or with 1 where a check found an error and the program none.
    """  # noqa: D301 - the help reads the backspace
    from ptxvm.cli.exec import execute

    return execute(command, device, devices, checks, summary=summary)


@app.command()
def litmus(
    files: Files,
    *,
    model: Annotated[str, Option(metavar="6.4|9.1", help="The version of chapter 8.")] = "9.1",
    form: Annotated[str, Option("--format", metavar="text|json", help="How judgements are printed.")] = "text",
    drawings: Annotated[str | None, Option("--svg", metavar="FOLDER", help="Draw an execution for each outcome there.")] = None,
    witnesses: Annotated[
        bool, Option("--witnesses", help="Show an execution for each outcome, and why others are none.")
    ] = False,
    solver: Annotated[str, Option(metavar="auto|search|z3", help="How executions are found; z3 is for many choices.")] = "auto",
    runs: Annotated[int, Option(metavar="N", least=0, help="Run each as a kernel so often, in random schedules.")] = 0,
    limit: Annotated[float, Option(metavar="SECONDS", least=0, help="How long the answer to a test may take.")] = 60,
) -> int:
    """Say what the memory consistency model allows.

    Each FILE is a litmus test (.litmus), a template of tests (.test), or PTX whose kernels have lines such as
    //: litmus NAME, //: launch KERNEL<<<2, 1>>>(x) and //: exists (x == 1).
    """
    from ptxvm.cli.litmus import litmus

    return litmus(files, model, form, drawings, witnesses=witnesses, solver=solver, runs=runs, limit=limit)


@app.command()
def bench(
    names: Annotated[list[str] | None, Argument("NAME")] = None,
    json: Annotated[bool, Option("--json", help="Print the numbers as JSON.")] = False,
    repeat: Annotated[int, Option(metavar="N", least=1, help="How often each is run; medians are shown.")] = 5,
    shared: Annotated[str | None, Option(metavar="DIR", help="Where corpus/ and kernels/ are.")] = None,
) -> int:
    """Measure how fast ptxvm is on this machine.

    Each NAME is a benchmark: import, check, matmul, checkers, collatz, kernels, wild, start, compile, litmus or driver.
    Without one, all run. They need a checkout of the repository, with the reference data beside it.
    """
    from ptxvm.cli.bench import bench

    return bench(names or [], repeat, shared, json=json)
