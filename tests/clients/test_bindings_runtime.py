"""cuda.bindings.runtime on ptxvm's runtime library: the calls that clients of it make, with results known beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.bindings import driver, runtime
from cuda.core import Device

KINDS = runtime.cudaMemcpyKind
SUCCESS = runtime.cudaError_t.cudaSuccess


def done(result):
    """The values of a call that succeeds."""
    error, *values = result
    assert error == SUCCESS
    return values[0] if len(values) == 1 else tuple(values)


def test_memory_goes_there_and_back():
    there, back = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
    memory = done(runtime.cudaMalloc(there.nbytes))
    done(runtime.cudaMemcpy(memory, there.ctypes.data, there.nbytes, KINDS.cudaMemcpyHostToDevice))
    done(runtime.cudaMemset(memory, 0xFF, 40))
    done(runtime.cudaMemcpy(back.ctypes.data, memory, there.nbytes, KINDS.cudaMemcpyDeviceToHost))
    done(runtime.cudaFree(memory))
    assert (back[:10] == -1).all()
    assert (back[10:] == there[10:]).all()


def test_the_runtime_and_the_driver_are_on_one_device():
    done(runtime.cudaSetDevice(0))
    found = done(runtime.cudaGetDeviceProperties(0))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
    assert (driver.CUresult.CUDA_SUCCESS, found.major) == driver.cuDeviceGetAttribute(attribute, 0)
    assert done(runtime.cudaDeviceGetPCIBusId(13, 0))[:12].decode() == Device(0).pci_bus_id
    assert done(runtime.cudaRuntimeGetVersion()) // 1000 == done(runtime.getLocalRuntimeVersion()) // 1000


def test_streams_and_events():
    stream, start, end = done(runtime.cudaStreamCreate()), done(runtime.cudaEventCreate()), done(runtime.cudaEventCreate())
    memory = done(runtime.cudaMallocAsync(1 << 20, stream))
    done(runtime.cudaEventRecord(start, stream))
    done(runtime.cudaMemsetAsync(memory, 1, 1 << 20, stream))
    done(runtime.cudaEventRecord(end, stream))
    done(runtime.cudaFreeAsync(memory, stream))
    done(runtime.cudaStreamSynchronize(stream))
    assert done(runtime.cudaEventElapsedTime(start, end)) >= 0
    done(runtime.cudaStreamDestroy(stream))


def test_errors_have_names_and_texts_and_stay_until_asked():
    (error,) = runtime.cudaSetDevice(1000)
    assert error == runtime.cudaError_t.cudaErrorInvalidDevice
    assert runtime.cudaGetLastError() == (error,)
    assert runtime.cudaGetLastError() == (SUCCESS,)
    assert done(runtime.cudaGetErrorName(error)) == b"cudaErrorInvalidDevice"
    assert done(runtime.cudaGetErrorString(error)) == b"invalid device ordinal"


@pytest.mark.filterwarnings("ignore")
def test_what_needs_graphics_is_not_supported():
    error, *_ = runtime.cudaGraphicsGLRegisterBuffer(1, 0)
    assert error == runtime.cudaError_t.cudaErrorNotSupported


def test_a_device_of_cuda_core_is_waited_for():
    """It calls the runtime library for this."""
    device = Device()
    device.set_current()
    assert device.allocate(0, stream=device.default_stream).size == 0
    device.sync()
