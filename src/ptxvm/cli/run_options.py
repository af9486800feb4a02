"""The options of `ptxvm run`."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

import click

AT_LEAST_0, AT_LEAST_1 = click.IntRange(0), click.IntRange(1)

Command = TypeVar("Command", bound=Callable[..., object])

FORMAT = click.option(
    "--format",
    "form",
    metavar="text|json|sarif|junit|github",
    default="text",
    help="How all of it is printed; the last three have findings only.",
)

SHAPE = (
    click.option("--grid", metavar="X[,Y,Z]", help="CTAs of the grid."),
    click.option("--block", metavar="X[,Y,Z]", help="Threads of a CTA."),
    click.option("--entry", metavar="NAME", help="The kernel, where the module has several."),
    click.option("--shared", metavar="BYTES", type=AT_LEAST_0, default=0, help="Dynamic shared memory."),
    click.option("--cluster", metavar="X[,Y,Z]", help="CTAs of a cluster."),
    click.option("--target", metavar="sm_NN", help="Run as this target."),
)
SEED = click.option("--seed", metavar="N", type=AT_LEAST_0, help="For arrays of random numbers, and for the schedule.")
ASYNCHRONOUS = click.option(
    "--async", "asynchronous", metavar="early|late|random", help="When copies, wgmma and tcgen05 end; random by --seed."
)
ALLOW = click.option(
    "--allow", metavar="CODE,...", default="", show_default=False, help="Findings that are meant, such as race-of-equal-values."
)
OPTIONS = (
    *SHAPE,
    click.option("--save", metavar="I=FILE.npy", multiple=True, help="Keep argument I (from 0, or a name) in a file."),
    SEED,
    click.option("--engine", metavar="auto|interp|jit", default="auto", help="What runs the kernel."),
    click.option(
        "--check", "checks", metavar="NAME,...", default="", show_default=False,
        help="What to look for: memory init sync race, or all; none trusts every access.",
    ),
    ALLOW,
    click.option(
        "--schedules", metavar="N", type=AT_LEAST_1, default=1, help="Check it so often: as usual, then in random schedules."
    ),
    FORMAT,
    click.option("--suppress", metavar="FILE", help="Findings that are meant: a line CODE FILE:LINE for each."),
    click.option(
        "--steps", metavar="N", type=AT_LEAST_1, help="Stop where the threads have executed more than N instructions."
    ),
    click.option("--timeout", metavar="SECONDS", type=float, help="Stop a kernel that runs longer."),
    click.option("--time", is_flag=True, help="Print how long it took."),
    click.option(
        "--threads", metavar="N", type=AT_LEAST_1, help="Threads of the host on the JIT; 1 runs CTAs in their order."
    ),
    click.option("--numerics", metavar="exact|fast", default="exact", help="How approximations are computed."),
    ASYNCHRONOUS,
    click.option("--dump", metavar="shapes|llvm|asm", help="Show what the JIT makes of it, and run nothing."),
)  # fmt: skip


def run_options(command: Command) -> Command:
    """Give a command the options of `ptxvm run`, in this order."""
    return with_options(command, OPTIONS)


def launch_options(command: Command) -> Command:
    """Give a command the options of `ptxvm run` but `--format`: it has formats of its own."""
    return with_options(command, [option for option in OPTIONS if option is not FORMAT])


def debug_options(command: Command) -> Command:
    """Give a command the options that say how a kernel is launched, and nothing of what is done with it."""
    return with_options(command, [*SHAPE, SEED, ASYNCHRONOUS])


def refuse_options_of_launches(names: Container[str]) -> None:
    """UsageError where the command line has an option with one of some names: a program launches its kernels itself."""
    context = click.get_current_context()
    for each in context.command.params:
        if each.name in names and context.get_parameter_source(each.name) is click.core.ParameterSource.COMMANDLINE:
            said = f"a program launches its kernels itself, and {each.opts[0]} says nothing of them"
            raise click.UsageError(f"{said}; the program's own options stand behind --", context)


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Give a command options, in this order."""
    for option in reversed(options):
        command = option(command)
    return command
