"""Modules, libraries, kernels and the linker."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping
from pathlib import Path

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.code_images import texts_at
from ptxvm.driver.device import Device
from ptxvm.driver.kernel_clusters import ClusterAttribute
from ptxvm.driver.linker import Linker
from ptxvm.driver.module import Kernel, Module
from ptxvm.driver.results import BuildError, DriverError, Result
from ptxvm.libcuda.c_values import bytes_from, i32, put_bytes, put_i32, put_u64, put_u64_if, string, u64
from ptxvm.libcuda.calls.context import BANK_WIDTHS, CACHE_PREFERENCES, preferred
from ptxvm.libcuda.session import function, session, then_failure

INFO_LOG, INFO_LOG_SIZE, ERROR_LOG, ERROR_LOG_SIZE = 3, 4, 5, 6  # CUjit_option
WRONG_PTX = (Result.INVALID_PTX, Result.UNSUPPORTED_PTX_VERSION)
LOG = logging.getLogger("ptxvm.libcuda")
MAX_DYNAMIC_SHARED, CARVEOUT = 8, 9  # CUfunction_attribute that can be set


# ── modules and libraries ───────────────────────────────────────────────────────────────


def load(out: int, image: int, options: Mapping[int, int], *, library: bool = False) -> None:
    """Load an image, for the current context or as a library for all.

    Its errors go into the log of the options; where the client has none, the user is told what is wrong with its PTX.
    """
    put_u64(out, 0)
    if not image:
        raise DriverError(Result.INVALID_VALUE, "there is no image")
    with Log(options) as log:
        context, model = session().context, session().context.device.model
        life = None if library else context.life
        texts = texts_at(image, model.capability)
        try:
            made = Module(texts, model, context.device.ordinal, context.limits, life)
        except DriverError as wrong:
            if log.has_errors or wrong.result not in WRONG_PTX:
                raise
            raise BuildError(wrong.result, str(wrong).removeprefix(f"{wrong.result.symbol}: ")) from wrong
        for warning in made.warnings:
            LOG.warning("ptxvm: ptxas warning: %s", warning)
        log.write(INFO_LOG, INFO_LOG_SIZE, "\n".join(f"ptxas warning : {each}" for each in made.warnings))
        put_u64(out, session().handles.handle(made) if life is None else session().handles.own(made, life))


class Log:
    """The buffers of a client for messages; they get the message of a DriverError."""

    def __init__(self, options: Mapping[int, int]) -> None:
        self.options = options

    @property
    def has_errors(self) -> bool:
        """Has the client a buffer for errors?"""
        return bool(self.options.get(ERROR_LOG, 0))

    def __enter__(self) -> Log:  # noqa: PYI034 - it has no subclass
        """The buffers."""
        return self

    def __exit__(self, type: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DriverError):
            self.write(ERROR_LOG, ERROR_LOG_SIZE, str(error))

    def write(self, buffer: int, size: int, text: str) -> None:
        """Fill a buffer of the client, if it has one."""
        at, room = self.options.get(buffer, 0), self.options.get(size, 0) & 0xFFFFFFFF
        if at and room:
            data = text.encode()[: room - 1] + b"\0"
            put_bytes(at, data)


def options_at(count: int, numbers: int, values: int) -> dict[int, int]:
    """The options of a client: numbers, and values of 8 bytes."""
    return {i32(numbers + 4 * n): u64(values + 8 * n) for n in range(count)}


@function("cuModuleLoadData", "cuModuleLoadFatBinary")
def load_data(out: int, image: int) -> None:
    """A module of an image in memory."""
    load(out, image, {})


@function("cuModuleLoadDataEx")
def load_data_options(out: int, image: int, count: int, numbers: int, values: int) -> None:
    """A module of an image in memory, with options of the compiler."""
    load(out, image, options_at(count, numbers, values))


@function("cuModuleLoad")
def load_file(out: int, path: int) -> None:
    """A module of a file."""
    data = ctypes.create_string_buffer(contents(string(path)))
    load(out, ctypes.addressof(data), {})


@function("cuLibraryLoadData")
def load_library(
    out: int, image: int, jit: int, jit_values: int, jit_count: int, options: int, values: int, count: int
) -> None:
    """A library of an image in memory."""
    load(out, image, options_at(jit_count, jit, jit_values), library=True)


@function("cuLibraryLoadFromFile")
def load_library_file(
    out: int, path: int, jit: int, jit_values: int, jit_count: int, options: int, values: int, count: int
) -> None:
    """A library of a file."""
    data = ctypes.create_string_buffer(contents(string(path)))
    load(out, ctypes.addressof(data), options_at(jit_count, jit, jit_values), library=True)


def contents(path: str) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except OSError as wrong:
        raise DriverError(Result.FILE_NOT_FOUND, str(wrong)) from wrong


@function("cuModuleUnload", "cuLibraryUnload", any_state=True)
@then_failure
def unload(handle: int) -> None:
    """Forget a module, and the handles of its kernels."""
    handles = session().handles
    module = handles.object(handle, Module)
    session().driver.finish()
    for kernel in module.kernels.values():
        if id(kernel) in handles.numbers:
            handles.drop(handles.numbers[id(kernel)])
    handles.drop(handle)


@function("cuLibraryGetModule")
def module_of_library(out: int, handle: int) -> None:
    """The module of a library: the same object."""
    session().handles.object(handle, Module)
    put_u64(out, handle)


@function("cuModuleGetFunction", "cuLibraryGetKernel")
def kernel_of(out: int, handle: int, name: int) -> None:
    """A kernel by name."""
    put_u64(out, handle_of(session().handles.object(handle, Module).kernel(string(name))))


def handle_of(kernel: Kernel) -> int:
    """The handle of a kernel, which ends with its module."""
    handles, life = session().handles, kernel.module.life
    return handles.handle(kernel) if life is None else handles.own(kernel, life)


@function("cuLibraryGetManaged")
def managed_variable(address: int, size: int, handle: int, name: int) -> None:
    """The address and size of a managed variable by name; DriverError for another one."""
    if not session().handles.object(handle, Module).is_managed(called := string(name)):
        raise DriverError(Result.NOT_FOUND, f"the library has no managed variable '{called}'")
    variable(address, size, handle, name)


@function("cuModuleGetGlobal_v2", "cuLibraryGetGlobal")
def variable(address: int, size: int, handle: int, name: int) -> None:
    """The address and size of a variable by name."""
    module = session().handles.object(handle, Module).on(session().context.device)
    start, length = module.variable(string(name))
    put_u64_if(address, start)
    put_u64_if(size, length)


@function("cuLibraryGetUnifiedFunction")
def unified_function(out: int, handle: int, name: int) -> None:
    """An address of a function that the host may call too: there is none (CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS)."""
    session().handles.object(handle, Module)
    raise DriverError(Result.NOT_FOUND, f"{string(name)} has no address that the host may call")


@function("cuModuleGetFunctionCount", "cuLibraryGetKernelCount")
def kernel_count(out: int, handle: int) -> None:
    """The number of kernels."""
    put_i32(out, len(session().handles.object(handle, Module).kernels))


@function("cuModuleEnumerateFunctions", "cuLibraryEnumerateKernels")
def enumerate_kernels(out: int, count: int, handle: int) -> None:
    """The first kernels."""
    kernels = list(session().handles.object(handle, Module).kernels.values())
    for n, kernel in enumerate(kernels[:count]):
        put_u64(out + 8 * n, handle_of(kernel))


@function("cuModuleGetLoadingMode", any_state=True)
def loading_mode(out: int) -> None:
    """Modules are loaded at once (CU_MODULE_EAGER_LOADING)."""
    put_i32(out, 1)


# ── kernels ─────────────────────────────────────────────────────────────────────────────


@function("cuKernelGetFunction")
def function_of(out: int, handle: int) -> None:
    """The function of a kernel: the same object."""
    session().handles.object(handle, Kernel)
    put_u64(out, handle)


@function("cuFuncLoad")
def load_function(handle: int) -> None:
    """Load the code of a function; it always is."""
    session().handles.object(handle, Kernel)


@function("cuKernelGetLibrary", "cuFuncGetModule")
def module_of(out: int, handle: int) -> None:
    """The module of a kernel."""
    put_u64(out, session().handles.handle(session().handles.object(handle, Kernel).module))


@function("cuFuncGetName", "cuKernelGetName")
def kernel_name(out: int, handle: int) -> None:
    """The name of a kernel."""
    if not handle:
        raise DriverError(Result.INVALID_VALUE, "the kernel is null")
    put_u64(out, session().text(session().handles.object(handle, Kernel).kernel.name))


@function("cuFuncIsLoaded")
def is_loaded(out: int, handle: int) -> None:
    """Is the code loaded (CU_FUNCTION_LOADING_STATE_LOADED)?  Always."""
    session().handles.object(handle, Kernel)
    put_i32(out, 1)


@function("cuFuncGetAttribute")
def kernel_attribute(out: int, number: int, handle: int) -> None:
    """An attribute of a kernel."""
    put_attribute(out, number, session().handles.object(handle, Kernel), session().context.device)


def put_attribute(out: int, number: int, kernel: Kernel, device: Device) -> None:
    """Put an attribute of a kernel that is compiled for a device."""
    major, minor = device.model.capability
    values = {
        0: kernel.most_threads, 1: kernel.shared, 2: kernel.constant, 3: kernel.local, 4: kernel.registers,
        5: kernel.architecture, 6: 10 * major + minor, 7: 0,
        MAX_DYNAMIC_SHARED: kernel.most_dynamic_shared, CARVEOUT: kernel.carveout,
    } | kernel.clusters.values  # fmt: skip
    if number not in values:
        raise DriverError(Result.INVALID_VALUE, f"there is no attribute {number} of kernels")
    put_i32(out, values[number])


@function("cuKernelGetAttribute")
def kernel_attribute_on(out: int, number: int, handle: int, device: int) -> None:
    """An attribute of a kernel on a device."""
    on = session().driver.device(device)
    put_attribute(out, number, session().handles.object(handle, Kernel).on(on), on)


@function("cuFuncSetAttribute")
def set_kernel_attribute(handle: int, number: int, value: int) -> None:
    """Set an attribute of a kernel."""
    set_attribute(session().handles.object(handle, Kernel), session().context.device, number, value)


def set_attribute(kernel: Kernel, device: Device, number: int, value: int) -> None:
    """Set an attribute of a kernel that is compiled for a device."""
    if number == MAX_DYNAMIC_SHARED:
        most = device.attribute(Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) - kernel.shared
        if not 0 <= value <= most:
            raise DriverError(
                Result.INVALID_VALUE, f"a block of the kernel has 0 to {most} bytes of dynamic shared memory, not {value}"
            )
        kernel.most_dynamic_shared = value
    elif number == CARVEOUT:
        if not -1 <= value <= 100:
            raise DriverError(Result.INVALID_VALUE, f"a carveout is 0 to 100 percent, or -1 for the default, not {value}")
        kernel.carveout = value
    elif number in (*ClusterAttribute,):
        kernel.clusters.set(ClusterAttribute(number), value)
    else:
        raise DriverError(Result.INVALID_VALUE, f"attribute {number} of a kernel cannot be set")


@function("cuKernelSetAttribute")
def set_kernel_attribute_on(number: int, value: int, handle: int, device: int) -> None:
    """Set an attribute of a kernel on a device."""
    on = session().driver.device(device)
    set_attribute(session().handles.object(handle, Kernel).on(on), on, number, value)


@function("cuFuncSetCacheConfig", "cuKernelSetCacheConfig")
def set_cache(handle: int, value: int, device: int = 0) -> None:
    """Prefer a split of cache and shared memory; it has no effect."""
    session().handles.object(handle, Kernel)
    preferred(value, CACHE_PREFERENCES)


@function("cuFuncSetSharedMemConfig")
def set_banks(handle: int, value: int) -> None:
    """Prefer a width of banks; it has no effect."""
    session().handles.object(handle, Kernel)
    preferred(value, BANK_WIDTHS)


def kernel_in_context(handle: int) -> Kernel:
    """A kernel by its handle; DriverError where the thread has no context."""
    return session().handles.object(handle, Kernel).on(session().context.device)


@function("cuFuncGetParamInfo", "cuKernelGetParamInfo")
def parameter(handle: int, number: int, offset: int, size: int) -> None:
    """The offset and the size of a parameter; without a current context there is no answer, as on a GPU."""
    slots = kernel_in_context(handle).bank.slots
    if number >= len(slots):
        raise DriverError(Result.INVALID_VALUE, f"the kernel has {len(slots)} parameters")
    put_u64(offset, slots[number].offset)
    put_u64_if(size, slots[number].size)


@function("cuFuncGetParamCount", "cuKernelGetParamCount")
def parameter_count(handle: int, out: int) -> None:
    """The number of parameters."""
    put_u64(out, len(kernel_in_context(handle).bank.slots))


# ── the linker ──────────────────────────────────────────────────────────────────────────

MAX_REGISTERS = 0  # CUjit_option


@function("cuLinkCreate", "cuLinkCreate_v2")
def create_linker(count: int, numbers: int, values: int, out: int) -> None:
    """A linker, with options of the compiler."""
    linker = Linker()
    linker.options = options_at(count, numbers, values)
    linker.most_registers = linker.options.get(MAX_REGISTERS, 0) & 0xFFFF_FFFF
    put_u64(out, session().own(linker))


@function("cuLinkAddData", "cuLinkAddData_v2")
def add_data(handle: int, kind: int, data: int, size: int, name: int, count: int, numbers: int, values: int) -> None:
    """Add an image in memory."""
    linker = session().handles.object(handle, Linker)
    with Log(linker.options):
        linker.add(kind, bytes_from(data, size), string(name) if name else "")


@function("cuLinkAddFile", "cuLinkAddFile_v2")
def add_file(handle: int, kind: int, path: int, count: int, numbers: int, values: int) -> None:
    """Add a file."""
    linker = session().handles.object(handle, Linker)
    with Log(linker.options):
        linker.add(kind, contents(string(path)), string(path))


@function("cuLinkComplete")
def complete(handle: int, image: int, size: int) -> None:
    """The image, which lives as long as the linker."""
    linker = session().handles.object(handle, Linker)
    with Log(linker.options):
        linker.buffer = ctypes.create_string_buffer(linker.complete())
    put_u64(image, ctypes.addressof(linker.buffer))
    put_u64_if(size, len(linker.image))


@function("cuLinkDestroy", any_state=True)
def destroy_linker(handle: int) -> None:
    """Forget a linker and its image."""
    session().handles.object(handle, Linker)
    session().handles.drop(handle)
