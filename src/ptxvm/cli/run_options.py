"""The options of `ptxvm run`."""

from __future__ import annotations

from typing import Annotated

from ptxvm.cli.command_line import Argument, Option

File = Annotated[str, Argument("FILE")]
Arguments = Annotated[list[str] | None, Argument("ARG")]
Grid = Annotated[str | None, Option(metavar="X[,Y,Z]", help="CTAs of the grid.")]
Block = Annotated[str | None, Option(metavar="X[,Y,Z]", help="Threads of a CTA.")]
Entry = Annotated[str | None, Option(metavar="NAME", help="The kernel, where the module has several.")]
Shared = Annotated[int, Option(metavar="BYTES", least=0, help="Dynamic shared memory.")]
Cluster = Annotated[str | None, Option(metavar="X[,Y,Z]", help="CTAs of a cluster.")]
Target = Annotated[str | None, Option(metavar="sm_NN", help="Run as this target.")]
Save = Annotated[list[str] | None, Option(metavar="I=FILE.npy", help="Keep argument I (from 0, or a name) in a file.")]
Seed = Annotated[int | None, Option(metavar="N", least=0, help="For arrays of random numbers, and for the schedule.")]
Engine = Annotated[str, Option(metavar="auto|interp|jit", help="What runs the kernel.")]
Checks = Annotated[
    str,
    Option("--check", metavar="NAME,...", help="What to look for: memory init sync race; none trusts every access."),
]
Allow = Annotated[str, Option(metavar="CODE,...", help="Findings that are meant, such as race-of-equal-values.")]
Schedules = Annotated[int, Option(metavar="N", least=1, help="Check it so often: as usual, then in random schedules.")]
Format = Annotated[
    str, Option("--format", metavar="text|json|sarif", help="How all of it is printed; sarif has findings only.")
]
Steps = Annotated[
    int | None, Option(metavar="N", least=1, help="Stop where the threads have executed more than N instructions.")
]
Timeout = Annotated[float | None, Option(metavar="SECONDS", help="Stop a kernel that runs longer.")]
Time = Annotated[bool, Option("--time", help="Print how long it took.")]
Threads = Annotated[
    int | None, Option(metavar="N", least=1, help="Threads of the host on the JIT; 1 runs CTAs in their order.")
]
Numerics = Annotated[str, Option(metavar="exact|fast", help="How approximations are computed.")]
Dump = Annotated[str | None, Option(metavar="shapes|llvm|asm", help="Show what the JIT makes of it, and run nothing.")]
