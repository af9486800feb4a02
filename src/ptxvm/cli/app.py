"""The commands and their options.

A command's module is imported when the command runs; what stands here is what `--help` needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ptxvm.cli import checkout
from ptxvm.cli.failures import TRACEBACK
from ptxvm.cli.run_options import (
    ALLOW,
    ASYNCHRONOUS,
    AT_LEAST_0,
    AT_LEAST_1,
    debug_options,
    launch_options,
    refuse_options_of_launches,
    run_options,
)

NUMBERS = {"ignore_unknown_options": True}  # so that `-3` is an argument, and no option
files = click.argument("files", metavar="FILE...", nargs=-1, required=True)


class Interrupted(BaseException):
    """A KeyboardInterrupt that passes through click, which would end the line on stderr and raise an error of its own."""


class OrderedGroup(click.Group):
    """Commands that the help lists as they stand here; raises Interrupted where one is interrupted."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stopped:
            raise Interrupted from stopped

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands; without a checkout there is nothing to measure."""
        del ctx
        return [name for name in self.commands if name != "bench" or checkout.BENCHMARKS.is_file()]


@click.group(
    cls=OrderedGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True},
)
@click.version_option(package_name="ptxvm", message="%(prog)s %(version)s", help="Show the version.")
@click.option(TRACEBACK, is_flag=True, expose_value=False, help="Show where an error of ptxvm itself came from.")
@click.pass_context
def app(context: click.Context) -> None:
    """The PTX virtual machine: checks PTX modules, explains PTX, and runs kernels on a CPU."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@app.command()
@files
@click.option("--target", metavar="sm_NN", help="Check for this target instead of the module's own.")
@click.option(
    "--format", "form", metavar="text|ptxas|json|sarif|junit|github", default="text", help="How findings are printed."
)
@click.option("--suppress", metavar="FILE", help="Findings that are meant: a line CODE FILE:LINE for each.")
@click.option("--lint", is_flag=True, help="Note also what is legal and probably not meant, or slow.")
def check(files: Sequence[str], target: str | None, form: str, suppress: str | None, *, lint: bool) -> int:
    """Say what is wrong with PTX modules.

    FILE - is the standard input, a folder all .ptx files in it, and a pattern such as 'kernels/**/*.ptx' what matches.
    Exits with 0 where there are no errors, with 1 where there are some.
    """
    from ptxvm.cli.check import check

    return check(files, target, form, suppress, lints=lint)


@app.command(context_settings=NUMBERS)
@click.argument("file", metavar="FILE")
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@run_options
@click.option("--workers", metavar="N", type=AT_LEAST_1, help="Cut the grid into ranges of CTAs, for so many processes.")
@click.option("--scheduler", metavar="ADDRESS", help="Run them on a Dask cluster, as tcp://host:8786.")
def run(**options: Any) -> int:  # noqa: ANN401 - the fields of a Request, which click has converted
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
    """  # noqa: D301 - \b keeps click from filling the lines of a list
    from ptxvm.cli.run import RunRequest, run

    return run(RunRequest(**options))


@app.command(context_settings=NUMBERS)
@click.argument("file", metavar="FILE")
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("--lines", metavar="N", type=AT_LEAST_0, default=10, help="How many lines of PTX are listed.")
@click.option("--sort", metavar="METRIC", help="By what; else by instructions, sectors and wavefronts together.")
@click.option("--device", metavar="sm_NN", help="The card whose limits are shown, if not that of the target.")
@click.option("--json", "form", flag_value="json", help="Print all metrics, of each line, as --format json does.")
@click.option("--html", metavar="FILE", help="Write a page with source, pictures of accesses and lanes, and a roofline, too.")
@run_options
def profile(lines: int, sort: str | None, device: str | None, html: str | None, **options: Any) -> int:  # noqa: ANN401 - the fields of a Request
    """Run a kernel, and count what it does.

    Each ARG is an argument of the kernel, as for `ptxvm run`, whose options this has, too. The counts are exact, of PTX, and
    called as in Nsight Compute where they are the same. The last line says which engine counted. No time of a GPU is claimed.

    \b
    ptxvm profile transpose.ptx --grid 4,4 --block 32,32 \\
        'f32[128,128]' 'f32[128,128]=arange' 128
    """  # noqa: D301
    from ptxvm.cli.profile import profile
    from ptxvm.cli.run import RunRequest

    return profile(RunRequest(**options), lines, sort, device, html)


@app.command(context_settings=NUMBERS)
@click.argument("file", metavar="FILE")
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("--thread", metavar="CTA/THREAD", help="The thread; each is a number or X,Y,Z.  [default: 0/0]")
@click.option("--warp", metavar="CTA/WARP", help="All threads of a warp, by its number in the CTA.")
@click.option("--limit", metavar="N", type=AT_LEAST_1, default=1000, help="Instructions of each warp that are recorded.")
@click.option("--format", "form", metavar="text|json|perfetto", default="text", help="How the trace is printed.")
@launch_options
def trace(thread: str | None, warp: str | None, limit: int, form: str, **options: Any) -> int:  # noqa: ANN401 - the fields of a Request
    """Run a kernel, and print what a thread does.

    Each ARG is an argument of the kernel, as for `ptxvm run`, whose options this has, too. For each instruction: its line, the
    values that it reads and writes, the addresses that it accesses, where a branch goes. The interpreter runs the kernel.

    Format perfetto is for https://ui.perfetto.dev: a track for each warp, of the whole grid where no thread or warp is
    named. Its time is steps of the schedule: one for each instruction that some warp executes. No time of a GPU is claimed.

    \b
    ptxvm trace saxpy.ptx --grid 4 --block 256 --thread 0/5 \\
        1000 2.5 'f32[1000]=arange' 'f32[1000]=ones'
    """  # noqa: D301
    from ptxvm.cli.run import RunRequest
    from ptxvm.cli.trace import trace

    return trace(RunRequest(**options), thread, warp, limit, form)


@app.command(context_settings=NUMBERS)
@click.argument("file", metavar="FILE", required=False)
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@click.option("-ex", "--eval", "commands", metavar="COMMAND", multiple=True, help="Carry out a command; may be repeated.")
@click.option("-x", "--command", "script", metavar="FILE", help="Carry out the commands of a file first.")
@click.option("--batch", is_flag=True, help="Read no commands from the terminal.")
@click.option("-m", "module", metavar="MODULE", help="Debug the launches of a Python module, such as pytest; no FILE.")
@click.option("--exec", "execute", is_flag=True, help="FILE is a program, run as by `ptxvm exec`: debug its launches.")
@click.option("--dap", is_flag=True, help="Speak the Debug Adapter Protocol on the standard streams; no FILE.")
@click.option("--port", metavar="N", type=AT_LEAST_0, help="With --dap: on a port of this machine; 0 chooses a free one.")
@debug_options
def debug(
    file: str | None, commands: Sequence[str], script: str | None, module: str | None, port: int | None, *,
    batch: bool, dap: bool, execute: bool, **options: Any,  # noqa: ANN401 - the fields of a Request
) -> int:  # fmt: skip
    """Debug a kernel: stop it, step it forwards and back, look at it.

    Each ARG is an argument of the kernel, as for `ptxvm run`. Commands are cuda-gdb's, such as break, run, step, print, x and
    info cuda lanes; reverse-step and reverse-continue go back; help lists all. They come from -x, from -ex, and then from the
    standard input. With --batch it exits with 1 where the kernel has a fault, with 2 where a command fails.
    FILE.py, or -m MODULE, is a Python program with its ARGs: each of its launches stops before its first instruction. So do
    those of any program that calls CUDA, with --exec.

    \b
    ptxvm debug saxpy.ptx --grid 4 --block 256 \\
        1000 2.5 'f32[1000]=arange' 'f32[1000]=ones' -ex 'break 45' -ex run
    ptxvm debug --exec -- ./app 1000
    ptxvm debug --dap --port 4711
    """  # noqa: D301
    if dap:
        from ptxvm.cli.dap import serve

        return serve(port)
    if script is not None:
        from ptxvm.cli.debug import script_lines

        commands = [*script_lines(script), *commands]
    is_program = execute or module is not None or (file is not None and file.endswith(".py"))
    if is_program:
        refuse_options_of_launches(options.keys() - {"arguments"})
    if execute and file is not None:
        from ptxvm.cli.debug_exec import debug_command

        return debug_command([file, *options["arguments"]], commands, batch=batch)
    if is_program and (module is not None or file is not None):
        from ptxvm.cli.debug_program import debug_program

        words = [*([file] if module is not None and file is not None else []), *options["arguments"]]
        return debug_program(module or str(file), words, commands, module=module is not None, batch=batch)
    if file is None:
        raise click.MissingParameter(param_type="argument", param_hint="FILE")
    from ptxvm.cli.debug import debug
    from ptxvm.cli.run import RunRequest

    return debug(RunRequest(file=file, **options), commands, batch=batch)


@app.command(context_settings=NUMBERS)
@click.argument("file", metavar="A.ptx")
@click.argument("second", metavar="B.ptx")
@click.argument("arguments", metavar="[ARG]...", nargs=-1)
@launch_options
def diff(second: str, **options: Any) -> int:  # noqa: ANN401 - the fields of a Request
    """Run two versions of a kernel, and print where they part.

    Both get the same arguments, as for `ptxvm run`, whose options this has, too. What they leave in each argument is compared,
    then the stores of each thread to global memory in their order: the address in its argument, and the bits.
    Exits with 1 where they differ. The interpreter runs both.

    \b
    ptxvm diff before.ptx after.ptx --grid 4 --block 256 \\
        1000 2.5 'f32[1000]=arange' 'f32[1000]=ones'
    """  # noqa: D301
    from ptxvm.cli.diff import diff
    from ptxvm.cli.run import RunRequest

    return diff(RunRequest(**options), second)


@app.command()
@click.argument("what", metavar="CODE-or-INSTRUCTION...", nargs=-1, required=True)
@click.option("--set", "values", metavar="NAME=VALUE", multiple=True, help="The value of a register; may be repeated.")
@click.option("--svg", metavar="FILE", help="Draw bytes, lanes, fragments or memory there.")
@click.option(
    "--descriptor", metavar="OF", help="The argument is a descriptor of wgmma or tcgen05, of a kind as f16, or a tensormap."
)
def explain(what: Sequence[str], values: Sequence[str], svg: str | None, descriptor: str | None) -> int:
    """Explain a code, a word, an instruction, or several.

    \b
    ptxvm explain P0305
    ptxvm explain .ftz, tid.x, .f16x2, .maxntid or sm_90a
    ptxvm explain 'prmt.b32 %r1, %r2, %r3, 0x5250;' \\
        --set %r2=0x80818283 --set %r3=0x40414243
    ptxvm explain 'prmt.b32 %r1, %r2, 0x64646464, 0x4140;
        sub.f16x2 %r3, %r1, %r4;' --set %r2=7 --set %r4=1024,1024
    ptxvm explain 'shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;' --set '%r2=lane*10'
    ptxvm explain 'ld.shared.f32 %f1, [%r2];' --set '%r2=lane*8' --svg banks.svg
    ptxvm explain --descriptor wgmma 0x4000004000010040

    A VALUE is a number; bits as 0x8081, 0b101 or PTX's own 0f3F800000; the elements of a packed type, the lowest first,
    as 1.5,2; true or false; an expression with the number of the lane, as lane*10; or 32 values, one for each lane.
    """  # noqa: D301
    if descriptor is not None:
        from ptxvm.cli.descriptors import explain_descriptor

        return explain_descriptor(descriptor, " ".join(what))
    from ptxvm.cli.explain import explain

    return explain(" ".join(what), values, svg)


@app.command()
@click.argument("opcode", metavar="[OPCODE]", required=False)
def isa(opcode: str | None) -> int:
    """List the instructions, or show the page of one.

    OPCODE may have modifiers: mul, mul.wide, ld.global.nc.
    """
    from ptxvm.cli.isa import isa

    return isa(opcode)


@app.command()
@click.argument("name", metavar="[NAME]", required=False)
def examples(name: str | None) -> int:
    """List the examples, or print one.

    \b
    ptxvm examples saxpy.ptx > saxpy.ptx
    ptxvm examples litmus/message-passing.litmus > mp.litmus
    """  # noqa: D301
    from ptxvm.cli.examples import examples

    return examples(name)


@app.command("exec", context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True)
@click.option("--device", metavar="sm_NN", help="The card whose limits the device has.")
@click.option("--devices", metavar="N", type=AT_LEAST_0, help="How many devices there are.")
@click.option(
    "--check", "checks", metavar="all|memory,init,sync,race", default="", show_default=False,
    help="What to look for in every kernel.",
)  # fmt: skip
@ALLOW
@click.option("--suppress", metavar="FILE", help="Findings that are meant: a line CODE KERNEL:LINE for each.")
@ASYNCHRONOUS
@click.option("--seed", metavar="N", type=AT_LEAST_0, help="For --async random.")
@click.option("--summary", is_flag=True, help="End with a table: kernels, launches, time, findings.")
def execute(command: Sequence[str], **options: Any) -> int:  # noqa: ANN401 - what `cli.exec` takes, which click has converted
    """Run a program with ptxvm as its CUDA driver.

    \b
    ptxvm exec -- python app.py
    ptxvm exec --device sm_80 -- pytest tests

    Exits with the status of the program, or with 1 where a check found an error and the program none.
    """  # noqa: D301
    from ptxvm.cli.exec import execute

    return execute(command, **options)


@app.command()
@files
@click.option("--model", metavar="6.4|9.1", default="9.1", help="The version of chapter 8.")
@click.option("--format", "form", metavar="text|json", default="text", help="How judgements are printed.")
@click.option("--svg", "drawings", metavar="FOLDER", help="Draw an execution for each outcome there.")
@click.option("--witnesses", is_flag=True, help="Show an execution for each outcome, and why others are none.")
@click.option("--solver", metavar="auto|search|z3", default="auto", help="How executions are found; z3 is for many choices.")
@click.option("--runs", metavar="N", type=AT_LEAST_0, default=0, help="Run each as a kernel so often, in random schedules.")
@click.option(
    "--limit", metavar="SECONDS", type=click.FloatRange(0), default=60, help="How long the answer to a test may take."
)
def litmus(
    files: Sequence[str], model: str, form: str, drawings: str | None, *, witnesses: bool, solver: str, runs: int, limit: float
) -> int:
    """Say what the memory consistency model allows.

    Each FILE is a litmus test (.litmus), a template of tests (.test), or PTX whose kernels have lines such as
    //: litmus NAME, //: launch KERNEL<<<2, 1>>>(x) and //: exists (x == 1).
    """
    from ptxvm.cli.litmus import litmus

    return litmus(files, model, form, drawings, witnesses=witnesses, solver=solver, runs=runs, limit=limit)


@app.command()
@click.option("--port", metavar="N", type=click.IntRange(1, 65535), help="Wait for an editor at this port.")
@click.option("--host", metavar="NAME", default="127.0.0.1", help="The address of the port.")
@click.option("--stdio", is_flag=True, expose_value=False, help="Speak over the standard streams, as without a port.")
def lsp(port: int | None, host: str) -> int:
    """Serve editors: diagnostics, hover, completion, navigation.

    Editors start this command and speak the Language Server Protocol with it. It needs the extra 'lsp':
    pip install 'ptxvm[lsp]'.
    """
    from ptxvm.cli.lsp import lsp

    return lsp(host, port)


@app.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--repeat", metavar="N", type=AT_LEAST_1, default=5, help="How often each is run; medians are shown.")
@click.option("--shared", metavar="DIR", help="Where corpus/ and kernels/ are.")
@click.option("--large", is_flag=True, help="Measure what takes many minutes, too: kernels of 10^5 instructions.")
@click.option("--list", "list_names", is_flag=True, help="Print the names of the benchmarks, and what each measures.")
def bench(names: Sequence[str], *, json: bool, repeat: int, shared: str | None, large: bool, list_names: bool) -> int:
    """Measure how fast ptxvm is on this machine.

    Each NAME is a benchmark; without one, all run, and --list names them. They need a checkout of the repository, with
    the reference data beside it.
    """
    from ptxvm.cli.bench import bench, print_names

    return print_names() if list_names else bench(names, repeat, shared, json=json, large=large)


@app.command()
@click.argument("file", metavar="FILE.toml|fuzz")
@click.option("--folder", metavar="DIR", help="Where the results are, and go on.  [default: NAME.campaign]", show_default=False)
@click.option("--workers", metavar="N", type=AT_LEAST_1, help="Processes of this machine.  [default: one for each core]")
@click.option("--scheduler", metavar="ADDRESS", help="A Dask cluster, as tcp://host:8786, in place of this machine.")
@click.option("--shrink/--no-shrink", default=True, help="Make failures small, and write tests that repeat them.")
@click.option("--parquet", metavar="FILE", help="Write the results there at the end, as one Parquet file.")
@click.option("--kind", metavar="KIND", help="What fuzz runs: text, statements, kernels, engines or litmus.")
@click.option("--cases", metavar="N", type=AT_LEAST_0, help="Fuzz until so many have ended.")
@click.option("--budget", metavar="TIME", help="Fuzz so long: 30s, 10m or 8h.")
@click.option("--seed", metavar="N", type=AT_LEAST_0, help="Other cases of fuzz.")
@click.option("--corpus", metavar="FILE", multiple=True, help="PTX that fuzz starts from, too; may be repeated.")
def campaign(
    file: str,
    folder: str | None,
    workers: int | None,
    scheduler: str | None,
    *,
    shrink: bool,
    parquet: str | None,
    kind: str | None,
    cases: int | None,
    budget: str | None,
    seed: int | None,
    corpus: Sequence[str],
) -> int:
    """Run a kernel over many parameters, or fuzz; show what failed.

    FILE.toml says which kernel or Python function, its parameters, and what is expected. A campaign that was interrupted
    goes on where it was. Exits with 1 where a case failed.

    \b
    ptxvm campaign saxpy.toml
    ptxvm campaign fuzz --kind text --budget 8h
    """  # noqa: D301
    from ptxvm.cli.campaign import FuzzRequest, run_campaign, run_fuzz

    if file == "fuzz":
        if parquet is not None:
            raise click.UsageError("--parquet is for campaigns of a file: fuzz keeps no case that passed")
        return run_fuzz(FuzzRequest(kind, cases, budget, seed or 0, corpus, folder, workers, scheduler))
    if given := [
        name for name, each in {"kind": kind, "cases": cases, "budget": budget, "seed": seed}.items() if each is not None
    ]:
        raise click.UsageError(f"--{given[0]} is for fuzz, and '{file}' says what it needs")
    return run_campaign(file, folder, workers, scheduler, parquet, shrink=shrink)


@app.command()
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8471, help="Where; 0 is a free port.")
@click.option("--browser/--no-browser", default=True, help="Open the page.")
def play(port: int, *, browser: bool) -> int:
    """Serve a page to write, check, run and follow kernels.

    It is for this machine only, and sends nothing anywhere. Each kernel runs in a process of its own, with limits of time and
    memory.
    """
    from ptxvm.cli.play import play

    return play(port, browser=browser)
