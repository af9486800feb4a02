"""The public surface: check a source, load it as a module, launch its kernels."""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Function, Program
from ptxvm.diagnostics import Diagnostic, Severity
from ptxvm.diagnostics.errors import InvalidPTX, Unsupported
from ptxvm.diagnostics.render import render, summary
from ptxvm.machine.streams import DEVICE, Stream, Turn
from ptxvm.syntax.source import Source

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.engine.interp.engine import Interpreter
    from ptxvm.engine.jit.engine import Jit
    from ptxvm.engine.launch import Engine
    from ptxvm.engine.watching import Watch
    from ptxvm.machine.image import Image
    from ptxvm.machine.memory import Memory
    from ptxvm.machine.result import LaunchResult
    from ptxvm.machine.texture import Sampler, Surface, Texture

Extent = int | Sequence[int]
ENGINES = ("auto", "interp", "jit")
NUMERICS = ("exact", "fast")
DUMPS = ("shapes", "llvm", "asm")
CHECKS = ("memory", "init", "sync", "race")
WORTH_A_LOOK = 1 << 16  # threads from which on it pays to compile what looks for them whether a checker is needed
LACKING = "P0309"  # the code of an instruction that ptxvm lacks


def check(source: str | bytes, target: str | None = None) -> list[Diagnostic]:
    """Every diagnostic of a PTX text, in the order of the text.

    `target` (`"sm_90"`) takes the place of the module's own, as `ptxas -arch` does.
    """
    _, report = analyse(Source(source), target)
    return report.diagnostics


def load(source: str | bytes | os.PathLike[str], target: str | None = None) -> Module:
    """A module ready to launch, from a path, a text or bytes.

    A string with a line break or a semicolon is a text, any other is a path.  Raises `InvalidPTX`, whose
    `.diagnostics` has every finding, and `Unsupported` where only instructions that ptxvm lacks stand in the way.
    """
    program, report = analyse(read(source), target)
    if report.has_errors:
        refuse(program.source, report.diagnostics)
    return Module([program])


def link(modules: Sequence[Module]) -> Module:
    """One module of several: what is `.extern` in one is found in another (PTX 11.6); raises `InvalidPTX`."""
    return Module([program for module in modules for program in module.programs])


def read(source: str | bytes | os.PathLike[str]) -> Source:
    """The source that a user means."""
    if isinstance(source, bytes):
        return Source(source)
    if isinstance(source, str) and ("\n" in source or ";" in source):
        return Source(source)
    return Source.read(os.fspath(source))


def refuse(source: Source, diagnostics: list[Diagnostic]) -> None:
    """Raise what fits the errors of a source."""
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    if all(d.code == LACKING for d in errors):
        first = errors[0]
        raise Unsupported(first.message.removesuffix(" is not supported yet"), f"{source.name}:{first.line}")
    more = f"\n... and {len(errors) - 10} more errors" if len(errors) > 10 else ""
    shown = render([(source, errors[:10])])
    raise InvalidPTX(f"{summary(errors)} in {source.name}\n{shown.rstrip()}{more}", diagnostics)


class Module:
    """One or more bound programs in the memory of a device, which is given back when nobody has the module any more."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self.programs = list(programs)
        self._image: Image | None = None
        self._interpreter: Interpreter | None = None
        self._jit: Jit | None = None

    @property
    def memory(self) -> Memory:
        """The memory of the device that the module lives on."""
        return self.image.memory

    @property
    def image(self) -> Image:
        """The module's variables and functions in memory; made when they are first needed."""
        if self._image is None:
            from ptxvm.machine.image import Image  # noqa: PLC0415 - NumPy comes with the first launch
            from ptxvm.machine.memory import default_memory  # noqa: PLC0415

            bits = {p.address_size for p in self.programs}
            if len(bits) != 1:
                raise InvalidPTX("modules of different address sizes cannot be linked")
            memory = default_memory() if bits == {64} else default_memory(*bits)  # the cache tells () from (64)
            self._image = Image(self.programs, memory)
            weakref.finalize(self, self._image.release).atexit = False
        return self._image

    @property
    def interpreter(self) -> Interpreter:
        """The reference engine, with what it has traced of this module."""
        if self._interpreter is None:
            from ptxvm.engine.interp.engine import Interpreter  # noqa: PLC0415

            self._interpreter = Interpreter(self.image)
        return self._interpreter

    @property
    def jit(self) -> Jit:
        """The engine that compiles, with what it has compiled of this module."""
        if self._jit is None:
            from ptxvm.engine.jit.engine import Jit  # noqa: PLC0415 - LLVM comes with the first launch that wants it

            self._jit = Jit(self.image)
        return self._jit

    @property
    def compiling(self) -> float:
        """The seconds for which launches have waited for compiled code."""
        return self._jit.seconds if self._jit is not None else 0.0

    def engine(self, name: str) -> Engine:
        """`interp`, or `jit`, which `auto` takes: it runs whatever the interpreter runs."""
        return self.interpreter if name == "interp" else self.jit

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name."""
        return {f.name: Kernel(self, f) for p in self.programs for f in p.kernels}

    def kernel(self, name: str | None = None) -> Kernel:
        """A kernel by its name; none is needed where there is only one.  KeyError lists what there is."""
        kernels = self.kernels
        if name is None:
            if len(kernels) != 1:
                raise KeyError(f"the module has {len(kernels)} kernels; name one of {', '.join(sorted(kernels))}")
            return next(iter(kernels.values()))
        if name not in kernels:
            raise KeyError(f"the module has no kernel '{name}'; it has {', '.join(sorted(kernels)) or 'none'}")
        return kernels[name]

    def symbol(self, name: str) -> npt.NDArray[Any]:
        """The values of a module variable, to read and to write; KeyError lists what there is.

        They outlive the module.
        """
        return self.image.symbol(name)

    def bind(self, name: str, bound: Texture | Sampler | Surface) -> None:
        """Let the `.texref`, `.samplerref` or `.surfref` variable of that name stand for a texture, sampler or surface."""
        variable = self.image.variables.get(name)
        if variable is None or not variable.opaque:
            opaque = sorted(each for each, found in self.image.variables.items() if found.opaque)
            raise KeyError(f"the module has no texture or surface '{name}'; it has {', '.join(opaque) or 'none'}")
        self.image.bind(variable, bound)


class Kernel:
    """An `.entry` of a module."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.name = function.name

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({', '.join(f'.{p.type.name} {p.name}' for p in self.function.signature.parameters)})>"

    def launch(  # noqa: PLR0913 - all of a launch stands in one call
        self,
        grid: Extent = 1,
        block: Extent = 1,
        args: Sequence[Any] = (),
        *,
        shared: int = 0,
        cluster: Extent | None = None,
        engine: str = "auto",
        stream: Stream | None = None,
        check: Collection[str] | None = None,
        schedules: int = 1,
        seed: int | None = None,
        steps: int | None = None,
        threads: int | None = None,
        numerics: str = "exact",
    ) -> LaunchResult:
        """Run the kernel to its end on the CPU and return what it did.

        `grid` and `block` are extents in CTAs and threads, one number or up to three (x, y, z); `shared` is bytes of dynamic
        shared memory.  `args`: NumPy arrays are memory that the kernel reads and writes in place, NumPy scalars go by their
        bytes, Python numbers are converted to the declared parameter, bytes are structs, a `DeviceArray` stays where it is.
        Launches on different `stream`s may run at once on a device: here each runs when it is made, but the check `race`
        finds what they do to the same bytes without an order (see `Stream`).
        A wrong access of memory is a `Fault`, with its place.  `check` names what to look for instead: wrong accesses and
        leaks (`memory`), uninitialised reads (`init`), misused barriers (`sync`), data `race`s; what is found, faults
        included, is then in the result's `findings`, and the kernel goes on where it can.  `()` is for kernels that are
        known to be right: on the JIT nothing is checked then, and a wrong access may end the process.  `schedules` runs
        the grid so often, from the same memory: as usual first, then in random schedules from `seed` on.  Findings do not
        depend on the engine: what compiled code cannot clear, the interpreter follows.
        `steps` bounds how long the kernel runs.  `threads` of the host run it on the JIT, as many as there are processors
        unless it or `PTXVM_THREADS` says so; with 1, CTAs run in their order, which shows where several of them add floats
        to one place.  `numerics` is "exact", or "fast" for approximations within the bounds of the manual.  Raises
        `Fault` for what the kernel does wrong, with the place, TypeError and ValueError for wrong arguments, `Unsupported`
        for what ptxvm lacks.
        """
        wanted(engine, check or (), cluster, threads, numerics)
        unwatched = stream is None and not check and schedules == 1 and engine != "interp"
        what = self.function, grid, block, shared, numerics, check is None, threads
        if unwatched and steps is None and (done := self.module.jit.repeat(what, args)) is not None:
            DEVICE.waited()
            return done
        from ptxvm.engine.launch import launch  # noqa: PLC0415 - NumPy comes with the first launch

        fast, trusted = numerics == "fast", check is not None
        with DEVICE.launched(self.name, stream, args) as turn:
            watch = watching(self.module, engine, check, schedules, seed, turn)
            if engine == "interp" or watch is not None:
                return launch(
                    self.module.interpreter, self.function, grid, block, args, shared=shared, steps=steps, watch=watch
                )
            how = {"threads": threads, "fast": fast, "trusted": trusted}
            done = launch(self.module.jit, self.function, grid, block, args, shared=shared, steps=steps, how=how)
        if unwatched:
            self.module.jit.prepare(what, self.function, (done.grid, done.block), (shared, fast, trusted, threads))
        return done

    def dump(self, what: str, block: Extent = 1, *, shared: int = 0, numerics: str = "exact") -> str:
        """What the JIT makes of the kernel for CTAs of a shape: `shapes`, `llvm` or `asm`.

        `shapes` is the PTX beside the shape of every value (constant, uniform, linear in the lane, or varying) and what
        each access of memory became (broadcast, contiguous rows, gather); `llvm` and `asm` are the best code of the
        version that runs first.  `shared` and `numerics` are those of the launch.
        """
        from ptxvm.engine.jit.dump import dump  # noqa: PLC0415 - LLVM comes with the first that wants it
        from ptxvm.machine.launch import launch_shape  # noqa: PLC0415

        if what not in DUMPS:
            raise ValueError(f"there is no dump of '{what}'; there are {', '.join(DUMPS)}")
        wanted_numerics(numerics)
        return dump(self.module.image, self.function, launch_shape(1, block).block, shared, what, fast=numerics == "fast")


def wanted_numerics(numerics: str) -> None:
    """Refuse what there is not, by name."""
    if numerics not in NUMERICS:
        raise ValueError(f"there are no numerics '{numerics}'; there are {', '.join(NUMERICS)}")


def wanted(
    engine: str, check: Collection[str], cluster: Extent | None, threads: int | None = None, numerics: str = "exact"
) -> None:
    """Refuse what a launch cannot do, by name."""
    wanted_numerics(numerics)
    if threads is not None and threads < 1:
        raise ValueError(f"a kernel is run by 1 or more threads of the host, not {threads}")
    if engine not in ENGINES:
        raise ValueError(f"there is no engine '{engine}'; there are {', '.join(ENGINES)}")
    for each in names(check):
        if each not in CHECKS:
            raise ValueError(f"there is no check '{each}'; there are {', '.join(CHECKS)}")
    if cluster not in (None, 1, (1,), (1, 1), (1, 1, 1)):
        raise Unsupported("a cluster of several CTAs")


def names(check: Collection[str]) -> set[str]:
    """The checks that are asked for; one may stand alone."""
    return {check} if isinstance(check, str) else set(check)


def watching(
    module: Module, engine: str, check: Collection[str] | None, schedules: int, seed: int | None, turn: Turn
) -> Watch | None:
    """Who is to watch the launch, if anything is checked; on the JIT it is asked only for what is suspicious there.

    Of a launch on a stream all accesses are wanted, for later ones to be compared with.
    """
    if schedules < 1:
        raise ValueError(f"a launch is run 1 or more times, not {schedules}")
    if not check and schedules == 1:
        return None
    from ptxvm.checkers.checker import Checker  # noqa: PLC0415 - NumPy comes with the first launch
    from ptxvm.engine.watching import Watch  # noqa: PLC0415

    checks = names(check or ())
    sieve = None if engine == "interp" or turn.followed else module.jit.sieve
    return Watch(
        Checker(checks, turn, DEVICE.under_way),
        schedules,
        seed,
        frozenset(checks),
        sieve,
        WORTH_A_LOOK if engine == "auto" else 0,
    )


__all__ = ["Kernel", "Module", "check", "link", "load"]
