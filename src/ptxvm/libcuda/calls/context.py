"""Contexts: primary ones, created ones, and the stack of each thread."""

from __future__ import annotations

from ptxvm.driver.context import Context
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import array_at, put_bytes, put_i32, put_u64, structure_at
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import ContextParameters, ExecutionAffinity

API_VERSION = 3020
MULTIPROCESSORS = 0  # CU_EXEC_AFFINITY_TYPE_SM_COUNT


def of(handle: int) -> Context:
    """A context by its handle; 0 is the current one."""
    return session().handles.object(handle, Context) if handle else session().context


@function("cuDevicePrimaryCtxRetain", any_state=True)
def retain(out: int, ordinal: int) -> None:
    """The context of a device that clients share."""
    context = session().driver.primary_context(ordinal)
    context.retain()
    put_u64(out, session().handles.handle(context))


@function("cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxRelease_v2", any_state=True)
def release(ordinal: int) -> None:
    """Release the context; the last client ends it."""
    context = session().driver.primary_context(ordinal)
    if not context.users:
        raise DriverError(Result.INVALID_CONTEXT, "the primary context was not retained")
    context.release()


@function("cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", any_state=True)
def reset(ordinal: int) -> None:
    """Reset the context, and the error of a kernel; one that no client has retained has ended, and stays so."""
    context = session().driver.primary_context(ordinal)
    if context.users:
        context.reset()


@function("cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2", any_state=True)
def set_primary_flags(ordinal: int, flags: int) -> None:
    """Set the flags of the context that clients share."""
    session().driver.primary_context(ordinal).flags = flags


@function("cuDevicePrimaryCtxGetState", any_state=True)
def primary_state(ordinal: int, flags: int, active: int) -> None:
    """The flags of the context, and whether a client has retained it."""
    context = session().driver.primary_context(ordinal)
    put_i32(flags, context.flags)
    put_i32(active, int(context.users > 0))


@function("cuCtxCreate", "cuCtxCreate_v2")
def create(out: int, flags: int, ordinal: int) -> None:
    """A new context, current in this thread."""
    context = Context(session().driver.device(ordinal), flags, owners=(session().driver.blocks, session()))
    session().stack.append(context)
    put_u64(out, session().handles.handle(context))


@function("cuCtxCreate_v3")
def create_v3(out: int, affinities: int, count: int, flags: int, ordinal: int) -> None:
    """A new context, with as many multiprocessors as an affinity of execution names, or all that there are."""
    asked = array_at(ExecutionAffinity, affinities, count) if affinities and count else ()
    if any(each.type != MULTIPROCESSORS or not each.count for each in asked):
        raise DriverError(Result.UNSUPPORTED_EXEC_AFFINITY, "the affinity of a context is to some multiprocessors")
    create(out, flags, ordinal)
    for each in asked:
        session().context.part = min(each.count, session().context.multiprocessors)


@function("cuCtxCreate_v4")
def create_v4(out: int, parameters: int, flags: int, ordinal: int) -> None:
    """A new context; DriverError for one that shares a device with a graphics interface."""
    if not parameters:
        create(out, flags, ordinal)
        return
    d = structure_at(ContextParameters, parameters)
    if d.graphics:
        raise DriverError(Result.NOT_SUPPORTED, "there is no graphics interface that a context could share a device with")
    create_v3(out, d.affinities, d.count, flags, ordinal)


@function("cuDeviceGetExecAffinitySupport")
def takes_affinity(out: int, type: int, ordinal: int) -> None:
    """May a context have a part of the multiprocessors?"""
    session().driver.device(ordinal)
    put_i32(out, int(affinity_of(type) == MULTIPROCESSORS))


@function("cuCtxGetExecAffinity")
def affinity(out: int, type: int) -> None:
    """The multiprocessors of the current context."""
    d = ExecutionAffinity(affinity_of(type), session().context.multiprocessors)
    put_bytes(out, bytes(d))


def affinity_of(type: int) -> int:
    """A type of affinities; DriverError where there is none."""
    if type != MULTIPROCESSORS:
        raise DriverError(Result.INVALID_VALUE, f"there is no affinity of type {type}")
    return type


@function("cuCtxAttach")
def attach(out: int, flags: int) -> None:
    """One more user of the current context."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of cuCtxAttach are 0")
    session().context.users += 1
    put_u64(out, session().handles.handle(session().context))


@function("cuCtxDetach", any_state=True)
def detach(handle: int) -> None:
    """One user less of the current context; the last one ends it."""
    if (context := session().any_context) is not of(handle):
        raise DriverError(Result.INVALID_CONTEXT, "a context that is not current cannot be detached")
    if context.users:
        context.users -= 1
    else:
        destroy(handle)


@function("cuCtxDestroy", "cuCtxDestroy_v2", any_state=True)
def destroy(handle: int) -> None:
    """End a context: its modules, arrays, streams and events have no handles any more."""
    context = session().handles.object(handle, Context)
    context.end()
    stack = session().stack
    if stack and stack[-1] is context:
        stack.pop()
    session().handles.drop(handle)


@function("cuCtxGetCurrent", any_state=True)
def current(out: int) -> None:
    """The current context of the thread, or null."""
    context = session().stack.current
    put_u64(out, session().handles.handle(context) if context is not None else 0)


@function("cuCtxSetCurrent", any_state=True)
def set_current(handle: int) -> None:
    """Replace the current context of the thread; null removes it, and what is no context leaves it."""
    stack = session().stack
    context = session().handles.object(handle, Context) if handle else None
    if stack:
        stack.pop()
    if context is not None:
        stack.append(context)


@function("cuCtxPushCurrent", "cuCtxPushCurrent_v2", any_state=True)
def push(handle: int) -> None:
    """Make a context current above the others."""
    session().stack.append(session().handles.object(handle, Context))


@function("cuCtxPopCurrent", "cuCtxPopCurrent_v2", any_state=True)
def pop(out: int) -> None:
    """Remove the current context."""
    context = session().any_context
    session().stack.pop()
    if out:
        put_u64(out, session().handles.handle(context))


@function("cuCtxGetDevice", any_state=True)
def device(out: int) -> None:
    """The device of the current context."""
    put_i32(out, session().any_context.device.ordinal)


@function("cuCtxGetDevice_v2", any_state=True)
def device_v2(out: int, handle: int) -> None:
    """The device of a context."""
    put_i32(out, of(handle).device.ordinal)


@function("cuCtxGetFlags", any_state=True)
def flags(out: int) -> None:
    """The flags of the current context."""
    put_i32(out, session().context.flags)


@function("cuCtxSetFlags", any_state=True)
def set_flags(value: int) -> None:
    """Set the flags of the current context."""
    session().context.flags = value


@function("cuCtxGetId", any_state=True)
def number(handle: int, out: int) -> None:
    """A number that names a context in the process."""
    put_u64(out, session().handles.handle(of(handle)))


@function("cuCtxGetApiVersion", any_state=True)
def api_version(handle: int, out: int) -> None:
    """The version of the interface with which a context was made."""
    of(handle)
    put_i32(out, API_VERSION)


@function("cuCtxGetLimit")
def limit(out: int, which: int) -> None:
    """A limit of the current context."""
    limits = session().context.limits
    if which not in limits:
        raise DriverError(Result.UNSUPPORTED_LIMIT, f"there is no limit {which}")
    put_u64(out, limits[which])


@function("cuCtxSetLimit")
def set_limit(which: int, value: int) -> None:
    """Set a limit of the current context."""
    limits = session().context.limits
    if which not in limits:
        raise DriverError(Result.INVALID_VALUE, f"there is no limit {which}")
    limits[which] = value


CACHE_PREFERENCES = range(4)  # CUfunc_cache: none, shared memory, cache, equal parts
BANK_WIDTHS = range(3)  # CUsharedconfig: the usual one, 4 bytes, 8 bytes


@function("cuCtxGetCacheConfig")
def cache(out: int) -> None:
    """The preferred split of cache and shared memory."""
    put_i32(out, session().context.cache)


@function("cuCtxSetCacheConfig")
def set_cache(value: int) -> None:
    """Prefer a split of cache and shared memory; it has no effect."""
    session().context.cache = preferred(value, CACHE_PREFERENCES)


@function("cuCtxGetSharedMemConfig")
def banks(out: int) -> None:
    """The width of the banks of shared memory: 4 bytes (CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE)."""
    put_i32(out, 1)


@function("cuCtxSetSharedMemConfig")
def set_banks(value: int) -> None:
    """Prefer a width of banks; it has no effect, as on hardware since compute capability 5.0."""
    preferred(value, BANK_WIDTHS)


def preferred(value: int, known: range) -> int:
    """A preference; DriverError for a number that stands for none."""
    if value not in known:
        raise DriverError(Result.INVALID_VALUE, f"{value} is no preference: there are {known[0]} to {known[-1]}")
    return value


@function("cuCtxGetStreamPriorityRange")
def priorities(least: int, greatest: int) -> None:
    """The lowest and the highest priority of a stream."""
    if least:
        put_i32(least, 0)
    if greatest:
        put_i32(greatest, -5)


@function("cuCtxSynchronize")
def synchronize() -> None:
    """Wait for all work of the current context."""
    session().context.sync()


@function("cuCtxSynchronize_v2")
def synchronize_v2(handle: int) -> None:
    """Wait for all work of a context."""
    of(handle).sync()


@function("cuCtxEnablePeerAccess")
def enable_peer(handle: int, flags: int) -> None:
    """Let kernels of the current context use memory of another device."""
    peer, context = of(handle), session().context
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags are 0")
    context.enable_peer_access(peer)


@function("cuCtxDisablePeerAccess")
def disable_peer(handle: int) -> None:
    """End that access, after the work that uses it."""
    session().driver.finish()
    session().context.disable_peer_access(of(handle))


@function("cuCtxResetPersistingL2Cache")
def reset_persisting() -> None:
    """Make persisting lines of the L2 cache normal ones; there is no such cache."""
    session().context  # noqa: B018 - raises where there is none
