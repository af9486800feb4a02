"""The public surface: check a source, load it as a module, launch its kernels."""

from __future__ import annotations

import operator
import os
import re
import weakref
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from ptxvm.algebra.memory_order import GridStep
from ptxvm.analysis.check import analyse
from ptxvm.analysis.collector import NoCollection
from ptxvm.analysis.link_checks import check_link
from ptxvm.analysis.linking import linked_functions
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.symbols import spelling
from ptxvm.diagnostics import Diagnostic, Severity
from ptxvm.diagnostics.errors import InvalidPTX, Unsupported
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.diagnostics.notebook import card
from ptxvm.diagnostics.render import render, summary
from ptxvm.machine import options, settings
from ptxvm.machine.cluster_of_machines import Client, is_client, launch_on
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import Check, Completion, Dump, EngineName, Extent, Numerics
from ptxvm.machine.streams import DEVICE, Stream, StreamLaunch
from ptxvm.syntax.source import Source

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.engine.interp.engine import Interpreter
    from ptxvm.engine.jit.checks.prefilter import Prefilter
    from ptxvm.engine.jit.engine import Jit
    from ptxvm.engine.jit.run.relaunch import Relaunch
    from ptxvm.engine.protocol import Engine
    from ptxvm.engine.watching import Host, Watch
    from ptxvm.machine.device import Device
    from ptxvm.machine.image import Image
    from ptxvm.machine.memory import Memory
    from ptxvm.machine.result import LaunchResult
    from ptxvm.machine.texture import Sampler, Surface, Texture
    from ptxvm.machine.warp_schedule import WarpSchedule
    from ptxvm.profile.stores import StoreLog
    from ptxvm.profile.trace import Trace

Text = str | bytes | os.PathLike[str]
PREFILTER_PAYS = 1 << 16  # threads of a launch from which on it pays to compile the kernel for the prefilter
MOST_OPTIONS = 64  # checked sets of options that a kernel remembers
Usual = tuple[Extent, Extent, int, bool]
"""The key of a usual launch, which gives nothing else: grid, block, bytes of dynamic shared memory, and is it profiled?"""

USUAL = (None, None, None, None, None, None, None, None, (), "auto", "exact", None, False, True)  # the other defaults
IS_TEXT = re.compile(r"\s*(\Z|\.version\b|//|/\*)|[^\n;]*[\n;]")
FIRST_KERNEL = re.compile(r"\.entry\s+([\w$%]+)")


def check(source: Text, target: str | None = None) -> list[Diagnostic]:
    """Every diagnostic of a module, which is a path, a text or bytes as for `load`, in the order of the text.

    `target` (`"sm_90"`) takes the place of the module's own, as `ptxas -arch` does.
    """
    _, report = analyse(read(source), wanted_target(target))
    return report.diagnostics


def load(source: Text, target: str | None = None, *, extended_shared: bool = False) -> Module:
    """A module ready to launch, from a path, a text or bytes.

    A string with a line break or a semicolon is a text, and so is one that is blank or begins with `.version` or a
    comment; any other is a path.  With `extended_shared` kernels may declare more than 48 KB of shared memory, as with
    `ptxas --enable-extended-smem`.  Raises `InvalidPTX`, whose `.diagnostics` has every finding.
    """
    program, report = analyse(read(source), wanted_target(target), extended_shared=extended_shared)
    if report.has_errors:
        refuse(program.source, report.diagnostics)
    return Module([program])


def link(modules: Iterable[Module]) -> Module:
    """One module of several: what is `.extern` in one is found in another (PTX 11.6).

    Raises `InvalidPTX` where nvlink would refuse the modules, with both places of what does not agree.
    """
    if isinstance(modules, Module | str | bytes) or not isinstance(modules, Iterable):
        raise TypeError(f"modules is a list of the modules to link, not {options.shown(modules)}")
    several = [options.instance("a module to link", each, Module, "what ptxvm.load returns") for each in modules]
    programs = [program for module in several for program in module.programs]
    if not programs:
        raise ValueError("there are no modules to link")
    if len({id(program) for program in programs}) < len(programs):
        raise ValueError("a module is linked with itself; load it again for a second one")
    if len({each.device for each in several}) > 1:
        raise ValueError("modules of several devices cannot be linked; link them first, and put the result on each")
    if found := check_link(programs):
        diagnostics = [diagnostic for _, some in found for diagnostic in some]
        raise InvalidPTX(f"{summary(diagnostics)} in the link\n{render(found).rstrip()}", diagnostics)
    return Module(programs, several[0].device)


def read(source: Text) -> Source:
    """The source that a user means; a text is named after its first kernel."""
    if isinstance(source, bytes) or (isinstance(source, str) and IS_TEXT.match(source)):
        found = Source(source)
        if kernel := FIRST_KERNEL.search(found.text):
            found.name = f"<{displayed(kernel[1])}>"
        return found
    options.instance("a source", source, (str, os.PathLike), "a path, or PTX as text or bytes")
    return Source.read(os.fspath(source))


def wanted_target(target: str | None) -> str | None:
    """The name of a target, checked for its type; None for the module's own."""
    options.instance("target", target, (str, type(None)), "the name of one, such as 'sm_90'")
    return target


def refuse(source: Source, diagnostics: list[Diagnostic]) -> None:
    """Raise what fits the errors of a source."""
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    more = f"\n... and {len(errors) - 10} more errors" if len(errors) > 10 else ""
    shown = render([(source, errors[:10])])
    raise InvalidPTX(f"{summary(errors)} in {source.name}\n{shown.rstrip()}{more}", diagnostics)


class Module:
    """One or more bound programs in the memory of a device, which is given back when the module is no longer referenced."""

    def __init__(self, programs: Sequence[Program], device: int = 0) -> None:
        self.programs, self.device = list(programs), device  # the number of the device
        self._of: Module | None = None  # the module on another device that this one was made of
        self._own: Memory | None = None  # in place of that of the device
        self.shared_unit = 1  # bytes: what a CTA's shared memory is rounded up to
        self._image: Image | None = None
        self._interpreter: Interpreter | None = None
        self._jit: Jit | None = None

    def __repr__(self) -> str:
        sources = ", ".join(program.source.name for program in self.programs)
        targets = ", ".join(dict.fromkeys(str(program.target) for program in self.programs))
        return f"<Module {sources} ({targets}): {', '.join(self.kernels) or 'no kernels'}>"

    def _repr_html_(self) -> str:
        """The module for a notebook: where it comes from, and its kernels with their parameters."""
        sources = [("source", f"{program.source.name}, for {program.target}") for program in self.programs]
        return card("Module", [*sources, *(("kernel", kernel.declaration) for kernel in self.kernels.values())])

    def on(self, device: Device) -> Module:
        """The same module in the memory of a device: its variables and kernels there."""
        made = Module(self.programs, device.number)
        made.shared_unit, made._of = self.shared_unit, self
        return made

    def apart(self) -> Module:
        """The same module in a memory of its own: its kernels reach nothing but arguments and what is in the module."""
        from ptxvm.machine.memory import Memory  # noqa: PLC0415 - NumPy comes with the first launch

        made = Module(self.programs)
        made._own = Memory(made._address_bits)
        return made

    @property
    def memory(self) -> Memory:
        """The memory of the device that the module lives on."""
        return self.image.memory

    @property
    def image(self) -> Image:
        """The module's variables and functions in memory; made when they are first needed."""
        if self._image is None:
            from ptxvm.machine.device import device  # noqa: PLC0415
            from ptxvm.machine.image import Image  # noqa: PLC0415 - NumPy comes with the first launch

            memory = self._own if self._own is not None else device(self.device).memory_of(self._address_bits)
            other = self._of.image if self._of is not None else None
            self._image = Image(self.programs, memory, self.shared_unit, other)
            weakref.finalize(self, self._image.release).atexit = False
        return self._image

    @property
    def _address_bits(self) -> int:
        bits = {p.address_size for p in self.programs}
        if len(bits) != 1:
            raise InvalidPTX("modules of different address sizes cannot be linked")
        return bits.pop()

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
            self._jit = loaded_jit()(self.image)
        return self._jit

    @cached_property
    def prefilter(self) -> Prefilter:
        """Compiled code that tells whether the checkers can find anything in a launch."""
        from ptxvm.engine.jit.checks.prefilter import Prefilter  # noqa: PLC0415 - only checks need it

        return Prefilter(self.jit)

    @property
    def share(self) -> float | None:
        """How much of the grid that compiled code runs now has begun, from 0 to 1; None where that is not known."""
        progress = self._jit.progress if self._jit is not None else None
        return progress.share if progress is not None else None

    @property
    def compiling(self) -> float:
        """The seconds for which launches have waited for compiled code."""
        return self._jit.seconds if self._jit is not None else 0.0

    def engine(self, name: str) -> Engine:
        """The interpreter for `interp`, the JIT for `jit` and `auto`."""
        return self.interpreter if name == "interp" else self.jit

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels by name."""
        functions = linked_functions(self.programs)
        return {name: Kernel(self, each) for name, each in functions.items() if each.entry and each.defined}

    def kernel(self, name: str | None = None) -> Kernel:
        """A kernel by its name; none is needed where there is only one.  KeyError lists what there is."""
        options.instance("a kernel", name, (str, type(None)), "called by its name")
        kernels = self.kernels
        if name is None:
            if len(kernels) != 1:
                raise KeyError(f"the module has {len(kernels)} kernels; name one of {', '.join(sorted(kernels))}")
            return next(iter(kernels.values()))
        if name not in kernels:
            raise KeyError(f"the module has no kernel '{name}'; it has {', '.join(sorted(kernels)) or 'none'}")
        return kernels[name]

    def symbol(self, name: str) -> npt.NDArray[Any]:  # of the type of the variable
        """The values of a module variable, to read and to write; KeyError lists what there is.

        They outlive the module.
        """
        return self.image.symbol(options.instance("a variable", name, str, "called by its name"))

    def bind(self, name: str, bound: Texture | Sampler | Surface) -> None:
        """Let the `.texref`, `.samplerref` or `.surfref` variable of that name stand for a texture, sampler or surface."""
        variable = self.image.variables.get(options.instance("a variable", name, str, "called by its name"))
        if variable is None or not variable.opaque:
            opaque = sorted(each for each, found in self.image.variables.items() if found.opaque)
            raise KeyError(f"the module has no texture or surface '{name}'; it has {', '.join(opaque) or 'none'}")
        from ptxvm.machine.opaque import Opaque  # noqa: PLC0415 - NumPy comes with the first launch

        options.instance("what is bound", bound, Opaque, "a Texture, Sampler or Surface")
        self.image.bind(variable, bound)


def loaded_jit() -> type[Jit]:
    """The engine that compiles; LLVM comes with the first launch that wants it.  `Unsupported` where there is no llvmlite."""
    if find_spec("llvmlite") is None:
        raise Unsupported("the JIT without llvmlite", 'engine="interp" needs none')
    with NoCollection():
        from ptxvm.engine.jit.engine import Jit  # noqa: PLC0415
    return Jit


class Kernel:
    """An `.entry` of a module."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module, self.function = module, function
        self.name = function.name
        self._options: dict[Usual | None, LaunchOptions] = {}  # checked options of usual launches; None is never a key

    @property
    def device(self) -> int:
        """The number of the device that its module lives on."""
        return self.module.device

    def __repr__(self) -> str:
        return f"<Kernel {self.declaration}>"

    @property
    def declaration(self) -> str:
        """The name of the kernel, and its parameters with their types."""
        return f"{self.name}({', '.join(f'{spelling(p)} {p.name}' for p in self.function.signature.parameters)})"

    def launch(  # noqa: PLR0913 - all of a launch stands in one call
        self,
        grid: Extent = 1,
        block: Extent = 1,
        args: Sequence[object] = (),
        *,
        shared: int = 0,
        cluster: Extent | Client | None = None,
        engine: EngineName = "auto",
        stream: Stream | None = None,
        programmatic: bool = False,
        cooperative: bool = True,
        check: Check | Literal["all"] | Collection[Check] | None = None,
        allow: Collection[str] = (),
        schedules: int = 1,
        seed: int | None = None,
        steps: int | None = None,
        timeout: float | None = None,
        threads: int | None = None,
        numerics: Numerics = "exact",
        asynchronous: Completion | None = None,
        profile: bool = False,
        trace: Trace | StoreLog | None = None,
    ) -> LaunchResult:
        """Run the kernel to its end, and return the result; a wrong access is a `Fault`, with its place.

        `grid` and `block` are extents in CTAs and threads.  In `args` NumPy arrays are used in place, NumPy scalars go by
        their bytes, Python numbers are converted, bytes are structs, a `DeviceArray` stays where it is.

        - `shared` is bytes of dynamic shared memory, `cluster` the CTAs of a cluster.  A client of Dask as the `cluster` is
          one of machines, which share the grid (`ptxvm.spread`): a race of these is a `Fault`, and other options are refused.
        - `engine` is "jit", "interp" (the reference) or "auto".
        - The launch runs at once, on a `stream` too; a `programmatic` one waits for those before it by
          `griddepcontrol.wait`; one that is not `cooperative` has no `grid.sync()`.
        - `check` names checks: wrong accesses and leaks (`memory`), uninitialised reads (`init`), misused barriers (`sync`),
          `race`, or `all` of them.  The result then has `findings`, faults included; `allow` has codes that are meant.
          `()` turns all checks off: a wrong access may end the process.
        - `schedules` counts runs from the same memory: all but the first are random, by `seed`.
        - `steps` limits the instructions of all threads, `timeout` the seconds; more is a `Fault`.
        - The JIT runs the grid on `threads` of the host: by default all, or `PTXVM_THREADS`; one for `steps`.
        - `numerics` is "exact", or "fast" within the manual's bounds.
        - `asynchronous` says when copies, `wgmma` and `tcgen05` end: "early"; "late", where a thread waits; "random"
          between, by `seed`.
        - A `profile` counts what the kernel does, beside checks in a run of its own; the interpreter records it in a `trace`.

        Raises TypeError, ValueError and `Unsupported`.
        """
        others = (
            check, stream, cluster, seed, steps, timeout, threads, asynchronous, allow, engine, numerics, trace, programmatic,
            cooperative,
        )  # fmt: skip
        extents = options.extent("grid", grid), options.extent("block", block)
        usual = (*extents, shared, profile) if is_usual(others, shared, schedules, profile) else None
        if usual in self._options:
            result = self.relaunch(self._options[usual], options.arguments(args), profiled=profile)
            if result is not None:
                return result
        args, schedules, feature = options.arguments(args), options.count("schedules", schedules), instrumented(profile, trace)
        if is_client(cluster):
            if not is_usual([None if each is cluster else each for each in others], 0, schedules, profile):
                raise TypeError("a launch on a cluster of machines has no options but grid, block, args, shared and cluster")
            return launch_on(cluster, self, *extents, args, options.count("shared", shared))
        checks, allow = wanted(engine, check, threads, numerics, stream, programmatic), options.allowed(allow)
        completion, seed = options.completion(asynchronous), options.count_or_none("seed", seed)
        refuse_watched(feature, engine, checks, schedules)
        engine = self._engine(engine, completion, watched=bool(feature or checks or schedules > 1))
        unwatched = trace is None and stream is None and not checks and schedules == 1 and engine != "interp"
        config = LaunchOptions(
            *extents, options.count("shared", shared), options.count_or_none("steps", steps),
            options.seconds_or_none("timeout", timeout), threads, numerics == "fast", checks is not None,
            options.cluster(cluster), completion, (seed or 0) if completion == "random" else 0,
            options.instance("cooperative", cooperative, bool, "True or False"),
        )  # fmt: skip
        if unwatched and steps is timeout is None and (result := self.relaunch(config, args, profiled=profile)) is not None:
            return result
        with DEVICE.launched(self.name, stream, args, self.device, programmatic=programmatic) as launched:
            watch = watching(self.module, engine, checks, schedules, seed, launched, allow)
            if watch is not None and profile:
                result = self._run_counted(engine, config, args, watch)
            elif feature:
                result = self._run_instrumented(engine, config, args, trace)
            else:
                result = self._run(engine, config, args, watch)
        if unwatched:
            self._prepare(config, result, usual if engine == "auto" else None, profiled=profile)
        return result

    def replay(self, schedule: str | os.PathLike[str] | WarpSchedule, args: Sequence[object] = ()) -> LaunchResult:
        """Run the kernel as under the debugger: the launch and the order of warps are those that `save schedule` wrote."""
        from ptxvm.engine.replay import replay  # noqa: PLC0415 - few launches are replayed

        return replay(self.module.image, self.function, schedule, options.arguments(args))

    def _engine(self, engine: EngineName, completion: str, *, watched: bool) -> EngineName:
        """The engine for `auto`: the JIT, unless it cannot defer work that ends late, or the kernel calls many functions.

        A `watched` launch, or one for a profile or a trace, defers nothing in compiled code: the interpreter runs it where
        that may tell.
        """
        if engine != "auto":
            return engine
        deferred = completion in ("", "early") or watched or self.module.jit.can_defer(self.function)
        return engine if deferred and self.module.jit.compilation_pays(self.function) else "interp"

    def relaunch(self, config: LaunchOptions, args: Sequence[object], *, profiled: bool = False) -> LaunchResult | None:
        """Run an unchecked launch as an equal short one before; None where there was none, or this one is unusual."""
        if profiled:
            from ptxvm.engine.profiling import repeated  # noqa: PLC0415 - few launches are profiled

            result = repeated(self.module.jit, self.function, config, args)
        else:
            result = self.module.jit.repeat(self.function, config, args)
        if result is not None:
            DEVICE.waited()
        return result

    def ready(self, config: LaunchOptions) -> Relaunch | None:
        """The quick path of unchecked launches with options, for a caller that keeps it; None where `relaunch` has none."""
        return self.module.jit.ready(self.function, config)

    def may_wait(self) -> bool:
        """Has the kernel a loop that polls memory?  The host may be what it waits for."""
        return self.module.jit.spins(self.function)

    @cached_property
    def lets_dependents_begin(self) -> bool:
        """May launches that depend on it begin before it has ended?"""
        from ptxvm.engine.call_targets import called  # noqa: PLC0415 - few launches are checked

        image = self.module.image
        bounds = (bound for each in called(image, image.resolve(self.function)) for bound in each.instructions)
        return any(fence.order is GridStep.LAUNCH_DEPENDENTS for bound in bounds for fence in bound.summary.fences)

    def launch_beside(
        self, config: LaunchOptions, args: Sequence[object], checks: frozenset[Check], stream: Stream | None, host: Host | None,
        *, programmatic: bool = False,
    ) -> LaunchResult:  # fmt: skip
        """Run a checked launch; the host may go on before it ends."""
        engine = "auto" if self.module.jit.compilation_pays(self.function) else "interp"
        with DEVICE.launched(self.name, stream, args, self.device, programmatic=programmatic) as launched:
            watch = watching(self.module, engine, checks, 1, None, launched, host=host)
            return self._run(engine, config, args, watch)

    def _run(self, engine: str, config: LaunchOptions, args: Sequence[object], watch: Watch | None) -> LaunchResult:
        """Run the kernel; the interpreter runs watched launches."""
        from ptxvm.engine.launch import launch  # noqa: PLC0415 - NumPy comes with the first launch

        settings.check()
        interprets = engine == "interp" or watch is not None
        return launch(self.module.interpreter if interprets else self.module.jit, self.function, config, args, watch)

    def _run_counted(self, engine: EngineName, config: LaunchOptions, args: Sequence[object], watch: Watch) -> LaunchResult:
        """Run the kernel for a watcher, and once more from the same memory for a profile."""
        from ptxvm.engine.profiling import CountedRun  # noqa: PLC0415 - LLVM comes with the first launch that wants it

        watch.counting = counting = CountedRun(self.module.jit, engine)
        result = self._run(engine, config, args, watch)
        result.profile = counting.profile(self.function, config, result)
        return result

    def _run_instrumented(
        self, engine: EngineName, config: LaunchOptions, args: Sequence[object], trace: Trace | StoreLog | None
    ) -> LaunchResult:
        """Run the kernel for a trace, or for a profile."""
        settings.check()
        if trace is None and engine == "interp":
            from ptxvm.engine.interp import profiling  # noqa: PLC0415 - few launches are profiled or traced

            return profiling.profiled(self.module.image, self.function, config, args)
        if trace is None:
            from ptxvm.engine.profiling import profiled  # noqa: PLC0415 - LLVM comes with the first launch that wants it

            return profiled(self.module.jit, engine, self.function, config, args)
        from ptxvm.engine.interp.instrumented import (  # noqa: PLC0415
            Instrument,
            InstrumentedInterpreter,
            Logging,
            Recording,
        )
        from ptxvm.engine.launch import launch  # noqa: PLC0415
        from ptxvm.profile.stores import StoreLog  # noqa: PLC0415

        instrument: Instrument = Logging(trace) if isinstance(trace, StoreLog) else Recording(trace)
        return launch(InstrumentedInterpreter(self.module.image, instrument), self.function, config, args)

    def _prepare(self, config: LaunchOptions, result: LaunchResult, usual: Usual | None, *, profiled: bool) -> None:
        """Prepare the JIT for the same launch again, and remember its options if it is a usual one."""
        from ptxvm.machine.launch import LaunchShape  # noqa: PLC0415 - NumPy comes with the first launch

        if usual is not None:
            if len(self._options) == MOST_OPTIONS:
                self._options.clear()
            self._options[usual] = config
        self.module.jit.prepare(
            self.function, config, LaunchShape(result.grid, result.block, result.cluster, config.cooperative), profiled=profiled
        )

    def dump(self, what: Dump, block: Extent = 1, *, shared: int = 0, numerics: Numerics = "exact") -> str:
        """What the JIT makes of the kernel for CTAs of a shape: `shapes`, `llvm` or `asm`.

        `shapes` is the PTX beside the shape of every value (constant, uniform, affine in the lane, or varying) and what
        each access of memory became (broadcast, contiguous rows, gather); `llvm` and `asm` are the best code of the
        version that runs first.  `shared` and `numerics` are those of the launch.
        """
        from ptxvm.engine.jit.show.dump import dump  # noqa: PLC0415 - LLVM comes with the first that wants it
        from ptxvm.machine.launch import launch_shape  # noqa: PLC0415

        options.one_of("what", what, options.DUMPS, "there is no dump of")
        options.one_of("numerics", numerics, options.NUMERICS, "there are no numerics")
        shared, block = options.count("shared", shared), options.extent("block", block)
        return dump(self.module.image, self.function, launch_shape(1, block).block, shared, what, fast=numerics == "fast")


def is_usual(others: Sequence[object], shared: object, schedules: object, profile: object) -> bool:
    """Is a launch a usual one, with plain numbers?  `others` are its other arguments, in the order of `USUAL`."""
    plain = type(shared) is type(schedules) is int and type(profile) is bool
    return plain and schedules == 1 and all(map(operator.is_, others, USUAL))


def wanted(
    engine: str,
    check: object,
    threads: int | None = None,
    numerics: str = "exact",
    stream: Stream | None = None,
    programmatic: object = None,
) -> frozenset[Check] | None:
    """Refuse wrong options by name; returns the wanted checks, None if the launch does not name any."""
    options.one_of("numerics", numerics, options.NUMERICS, "there are no numerics")
    options.count_or_none("threads", threads)
    options.one_of("engine", engine, options.ENGINES)
    if stream is not None:
        options.instance("stream", stream, Stream, "a ptxvm.Stream")
    elif programmatic is not None and options.instance("programmatic", programmatic, bool, "True or False"):
        raise ValueError("a programmatic launch follows another on a stream, and no stream is named")
    return options.checks(check)


def instrumented(profile: object, trace: object) -> str:
    """What follows a launch: a profile or a trace; empty if neither does."""
    options.instance("profile", profile, bool, "True or False")
    if trace is None:
        return "a profile" if profile else ""
    from ptxvm.profile.stores import StoreLog  # noqa: PLC0415 - few launches are traced
    from ptxvm.profile.trace import Trace  # noqa: PLC0415

    options.instance("trace", trace, (Trace, StoreLog), "a ptxvm.Trace")
    if profile:
        raise Unsupported("a profile and a trace of one launch")
    return "a trace"


def refuse_watched(feature: str, engine: EngineName, checks: frozenset[Check] | None, schedules: int) -> None:
    """Refuse by name what a launch for a profile or a trace cannot do, `feature`; a trace is the interpreter's."""
    if engine == "jit" and feature == "a trace":
        raise Unsupported(f"{feature} on the JIT")
    if feature == "a trace" and (checks or schedules > 1):
        raise Unsupported(f"{feature} of a launch with checks or several schedules: launch it once for each")


def watching(
    module: Module, engine: str, checks: frozenset[Check] | None, schedules: int, seed: int | None, launch: StreamLaunch,
    allow: Collection[str] = (), host: Host | None = None,
) -> Watch | None:  # fmt: skip
    """The watcher of the launch, if anything is checked; with the JIT it follows only what its prefilter suspects.

    Of a launch on a stream all accesses are wanted, for later ones to be compared with.  `host` is that of a `Watch`.
    """
    if not checks and schedules == 1:
        return None
    from ptxvm.checkers.checker import Checker  # noqa: PLC0415 - NumPy comes with the first launch
    from ptxvm.engine.watching import Watch  # noqa: PLC0415
    from ptxvm.machine.aliases import MAPPED  # noqa: PLC0415

    checks = checks or frozenset()
    has_aliases = "race" in checks and bool(MAPPED.aliases)  # which instrumented code knows by one address each
    prefilter = None if engine == "interp" or launch.followed or has_aliases else module.prefilter

    def checker() -> Checker:
        return Checker(checks or (), launch, frozenset(allow))

    return Watch(
        checker(),
        module.interpreter,
        schedules,
        seed,
        checks,
        prefilter,
        PREFILTER_PAYS if engine == "auto" else 0,
        checker,
        host,
    )


__all__ = ["Kernel", "Module", "check", "link", "load"]
