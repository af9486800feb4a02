"""A launch on any engine: pack the arguments, run the grid, give the memory back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ptxvm.algebra.float_environment import DefaultEnvironment
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.call_targets import called
from ptxvm.engine.interception import INTERCEPTOR
from ptxvm.engine.limits import Limits
from ptxvm.engine.protocol import Engine
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.handles import HANDLES
from ptxvm.machine.launch import LaunchShape, check_shared, launch_shape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult

if TYPE_CHECKING:
    from ptxvm.engine.watching import Watch
    from ptxvm.machine.allocation import Allocation
    from ptxvm.machine.arguments import Arguments
    from ptxvm.machine.image import Image
    from ptxvm.machine.memory import Memory

BYTE = np.dtype(np.uint8)


def launch(
    engine: Engine, kernel: Function, options: LaunchOptions, args: Sequence[object], watch: Watch | None = None
) -> LaunchResult:
    """Run a kernel to its end, and report what it does to a watcher, if there is one."""
    if INTERCEPTOR.runs is not None:
        return INTERCEPTOR.runs(engine.image, kernel, options, args)
    limits = Limits(options.steps, options.timeout) if options.limited else None
    with DefaultEnvironment():
        return _launch(engine, kernel, options, args, limits, watch)


def _launch(
    engine: Engine, kernel: Function, options: LaunchOptions, args: Sequence[object], limits: Limits | None, watch: Watch | None
) -> LaunchResult:
    memory, printed = engine.image.memory, engine.library.output
    shape = checked_shape(engine.image, kernel, options)
    printed.clear()
    try:
        packed, bank = engine.image.bank(kernel).pack(args, memory), None
    except Fault as fault:
        if watch is None:
            raise
        return not_run(kernel, shape, watch, fault)
    try:
        bank = lend_bank(memory, packed)
        began = time.perf_counter()
        if watch is not None:
            from ptxvm.engine.watching import WatchedLaunch, fresh  # noqa: PLC0415 - only watched launches need it

            new = fresh(memory.table.items, args)
            counters = WatchedLaunch(kernel, shape, bank.start, options, limits, watch, new, packed.allocations).run()
        else:
            counters = engine.launch(kernel, shape, bank.start, options, limits=limits, allocations=packed.allocations)
        seconds = time.perf_counter() - began
    finally:
        mark_written(args)
        if bank is not None:
            memory.take_back(bank)
        packed.release()
    return LaunchResult(
        grid=shape.grid,
        block=shape.block,
        instructions=counters.instructions,
        thread_instructions=counters.thread_instructions,
        steps=counters.steps,
        seconds=seconds,
        output="".join(printed),
        schedules=watch.schedules if watch is not None else 1,
        findings=watch.watcher.findings if watch is not None else [],
        cluster=shape.cluster,
    )


def checked_shape(image: Image, kernel: Function, options: LaunchOptions) -> LaunchShape:
    """The shape of a launch of a kernel that can run; ValueError or `Unsupported` where it cannot."""
    if not image.resolve(kernel).defined:
        raise ValueError(f"the kernel '{kernel.name}' has no body")
    refuse_unexecuted(image, kernel)
    shape = launch_shape(options.grid, options.block, options.cluster).for_kernel(kernel)
    check_shared(kernel, image.declared_shared(kernel), options.shared)
    return shape if options.cooperative else shape._replace(cooperative=False)


def lend_bank(memory: Memory, packed: Arguments) -> Allocation:
    """Memory with packed arguments, for `Memory.take_back` afterwards."""
    bank = memory.lend(max(len(packed.data), 1), Space.PARAM, "the parameters")
    bank.view(BYTE, 1).data[: len(packed.data)] = packed.data
    return bank


def refuse_unexecuted(image: Image, kernel: Function) -> None:
    """Raise `Unsupported` where the kernel, or a function that it calls, has an instruction that is only checked."""
    unexecuted = [bound for program in image.programs for bound in program.unexecuted]
    if not unexecuted:
        return
    functions = set(called(image, kernel))
    for bound in unexecuted:
        function = bound.function
        if function in functions and function.program is not None:
            source = function.program.source
            line, _ = source.location(bound.node.head_start)
            raise Unsupported(f"'{bound.i.mnemonic}'", f"{source.name}:{line}")


def not_run(kernel: Function, shape: LaunchShape, watch: Watch, fault: Fault) -> LaunchResult:
    """The result of a watched launch with faulty arguments: the fault as a finding, or raised where it is none."""
    from ptxvm.machine.events import Scene  # noqa: PLC0415 - only watched launches need it

    watch.watcher.begin(Scene(kernel.name, shape, ()), 0, watch.seed)
    if not watch.watcher.refused(fault, None, 0):
        raise fault
    return LaunchResult(
        shape.grid, shape.block, schedules=watch.schedules, findings=watch.watcher.findings, cluster=shape.cluster
    )


def mark_written(args: Sequence[object]) -> None:
    """Mark the device arrays of the arguments, and the sources of all surfaces, as written."""
    for each in args:
        if isinstance(each, DeviceArray):
            each.is_written = True
    for image in list(HANDLES.values()) if HANDLES else ():
        if image.kind == "surfref" and image.source is not None:
            image.source.is_written = True
