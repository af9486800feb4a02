"""Registration of device code and its symbols by the code that nvcc writes (`crt/host_runtime.h`); and symbols."""

from __future__ import annotations

from ptxvm.driver.kernel_facts import attributes_of
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_u64, put_u64_if, string, u64
from ptxvm.libcuda.calls.context import BANK_WIDTHS, CACHE_PREFERENCES, preferred
from ptxvm.libcuda.calls.entry import PER_THREAD, address_v2
from ptxvm.libcuda.calls.module import set_attribute
from ptxvm.libcuda.session import session
from ptxvm.libcudart.runtime_state import Fatbin, RegisteredSymbol, RuntimeApiError, RuntimeResult, function, runtime

VERSION_12, VERSION_13 = 12090, 13050  # of the two libraries


def fatbin(handle: int) -> Fatbin:
    """A fatbin by its handle; DriverError where there is none."""
    found = runtime().fatbins.get(handle)
    if found is None:
        raise DriverError(Result.INVALID_HANDLE, f"{handle:#x} is no handle of device code")
    return found


@function("__cudaRegisterFatBinary", stateless=True)
def register_fatbin(image: int) -> int:
    """Register the device code of a translation unit; its PTX is read at the first use."""
    made = Fatbin(image)
    runtime().fatbins[made.handle] = made
    return made.handle


@function("__cudaRegisterFatBinaryEnd", stateless=True)
def registered(handle: int) -> None:
    """No effect: a translation unit is completely registered."""


@function("__cudaUnregisterFatBinary", stateless=True)
def unregister(handle: int) -> None:
    """Forget device code, with its kernels and variables."""
    state = runtime()
    gone = state.fatbins.pop(handle, None)
    for symbols in (state.functions, state.variables):
        for address in [address for address, symbol in symbols.items() if symbol.fatbin is gone]:
            del symbols[address]


@function("__cudaRegisterFunction", stateless=True)
def register_function(
    handle: int, function: int, device: int, name: int, limit: int, tid: int, bid: int, block: int, grid: int, warp: int
) -> None:
    """Register a kernel under the address of a function of the program."""
    runtime().functions[function] = RegisteredSymbol(fatbin(handle), string(name))


@function("__cudaRegisterVar", stateless=True)
def register_variable(
    handle: int, variable: int, device: int, name: int, external: int, size: int, constant: int, visible: int
) -> None:
    """Register a variable of the device under the address of its shadow in the program."""
    runtime().variables[variable] = RegisteredSymbol(fatbin(handle), string(name))


@function("__cudaRegisterManagedVar", stateless=True)
def register_managed(
    handle: int, pointer: int, device: int, name: int, external: int, size: int, constant: int, visible: int
) -> None:
    """Register a managed variable: the program reaches it through a pointer, which `__cudaInitModule` fills."""
    found = fatbin(handle)
    found.managed.append((pointer, string(name)))
    runtime().variables[pointer] = RegisteredSymbol(found, string(name))


@function("__cudaInitModule")
def init_module(handle: int) -> int:
    """Load device code, before the program uses its managed variables."""
    fatbin(handle).module()
    return 0


# ── symbols ─────────────────────────────────────────────────────────────────────────────


def symbol(address: int) -> tuple[int, int]:
    """The address and size of a variable, by its shadow; of a managed one also by its own address."""
    found = runtime().variables.get(address)
    if found is None:
        for each in runtime().fatbins.values():
            for pointer, name in each.managed:
                if u64(pointer) == address:
                    return each.module().variable(name)
    return runtime().variable(address)


@function("cudaGetSymbolAddress")
def symbol_address(out: int, variable: int) -> None:
    """The address of a variable on the device."""
    put_u64(out, symbol(variable)[0])


@function("cudaGetSymbolSize")
def symbol_size(out: int, variable: int) -> None:
    """The bytes of a variable."""
    put_u64(out, symbol(variable)[1])


# ── kernels ─────────────────────────────────────────────────────────────────────────────


@function("__cudaGetKernel", "cudaGetKernel", stateless=True)
def get_kernel(out: int, address: int) -> None:
    """The handle of a kernel: the address of its function, since a handle is for all devices.

    It needs no context: what nvcc writes asks once for each kernel, also after a failure that a reset ends.
    """
    if address not in runtime().functions:
        raise RuntimeApiError(RuntimeResult.INVALID_DEVICE_FUNCTION, f"no kernel is registered for {address:#x}")
    put_u64(out, address)


@function("cudaGetFuncBySymbol")
def driver_function(out: int, address: int) -> None:
    """The handle of a kernel for the driver API."""
    put_u64(out, session().handles.handle(runtime().kernel(address)))


@function("cudaFuncGetName")
def name(out: int, address: int) -> None:
    """The name of a kernel."""
    put_u64(out, session().text(runtime().kernel(address).kernel.name))


@function("cudaFuncGetParamInfo")
def parameter(address: int, number: int, offset: int, size: int) -> None:
    """The offset and the size of a parameter."""
    slots = runtime().kernel(address).bank.slots
    if number >= len(slots):
        raise DriverError(Result.INVALID_VALUE, f"the kernel has {len(slots)} parameters")
    put_u64(offset, slots[number].offset)
    put_u64_if(size, slots[number].size)


@function("cudaFuncGetParamCount")
def parameter_count(address: int, out: int) -> None:
    """The number of parameters of a kernel."""
    put_u64(out, len(runtime().kernel(address).bank.slots))


@function("cudaFuncGetAttributes")
def attributes(out: int, address: int) -> None:
    """The attributes of a kernel."""
    put_bytes(out, attributes_of(runtime().kernel(address), session().context.device.model))


@function("cudaFuncSetAttribute")
def set_kernel_attribute(address: int, number: int, value: int) -> None:
    """Set an attribute of a kernel; the numbers are the driver's."""
    set_attribute(runtime().kernel(address), session().context.device, number, value)


@function("cudaKernelSetAttributeForDevice")
def set_kernel_attribute_on(address: int, number: int, value: int, device: int) -> None:
    """Set an attribute of a kernel on a device."""
    on = session().driver.device(device)
    set_attribute(runtime().kernel(address).on(on), on, number, value)


@function("cudaFuncSetCacheConfig")
def set_cache(address: int, value: int) -> None:
    """Prefer a split of cache and shared memory; it has no effect."""
    runtime().kernel(address)
    preferred(value, CACHE_PREFERENCES)


@function("cudaFuncSetSharedMemConfig")
def set_banks(address: int, value: int) -> None:
    """Prefer a width of banks; it has no effect."""
    runtime().kernel(address)
    preferred(value, BANK_WIDTHS)


@function("cudaProfilerStart", "cudaProfilerStop")
def profiler() -> None:
    """No effect: there is no profiler."""


@function("cudaGetExportTable", stateless=True)
def export_table(out: int, which: int) -> None:
    """NVIDIA's private tables; this library has none."""
    put_u64(out, 0)
    raise DriverError(Result.NOT_FOUND, f"there is no table of {which:#x}")


@function("cudaRuntimeGetVersion@12", stateless=True)
def version_12(out: int) -> None:
    """The version of the library."""
    put_i32(out, VERSION_12)


@function("cudaRuntimeGetVersion@13", stateless=True)
def version_13(out: int) -> None:
    """The version of the library."""
    put_i32(out, VERSION_13)


@function("cudaGetDriverEntryPointByVersion", stateless=True)
def driver_entry_by_version(name: int, out: int, version: int, flags: int, status: int) -> None:
    """The function of the driver for a name in a version, for the default stream that the caller has."""
    address_v2(name, out, version, flags or PER_THREAD * session().thread.has_default, status)


@function("cudaGetDriverEntryPoint@12", stateless=True)
def driver_entry_12(name: int, out: int, flags: int, status: int) -> None:
    """The function of the driver for a name in the version of the library."""
    driver_entry_by_version(name, out, VERSION_12, flags, status)


@function("cudaGetDriverEntryPoint@13", stateless=True)
def driver_entry_13(name: int, out: int, flags: int, status: int) -> None:
    """The function of the driver for a name in the version of the library."""
    driver_entry_by_version(name, out, VERSION_13, flags, status)
