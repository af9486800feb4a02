"""`tools/record_hardware.py`, as far as it goes without a GPU.

Two stand-ins: a `Driver` that answers through ptxvm, and below it a libcuda of Python functions, called as ctypes calls
the real one, which has memory, modules and faults of its own.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import ptxvm

TOOL = Path(__file__).parents[3] / "tools" / "record_hardware.py"

spec = importlib.util.spec_from_file_location("record_hardware", TOOL)
tool = sys.modules["record_hardware"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

SUCCESS, INVALID_VALUE, NOT_FOUND, INVALID_PTX, ILLEGAL_ADDRESS = 0, 1, 500, 218, 700
NAMES = {
    INVALID_VALUE: b"CUDA_ERROR_INVALID_VALUE",
    NOT_FOUND: b"CUDA_ERROR_NOT_FOUND",
    INVALID_PTX: b"CUDA_ERROR_INVALID_PTX",
    ILLEGAL_ADDRESS: b"CUDA_ERROR_ILLEGAL_ADDRESS",
}


class Library:
    """A libcuda whose device is ptxvm; what it was asked stands in `calls`."""

    def __init__(self, devices=1):
        self.devices, self.calls = devices, []
        self.memory, self.modules, self.functions = {}, [], []
        self.lost = SUCCESS

    def __getattribute__(self, name):
        if name.startswith("cu"):
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)

    def cuInit(self, flags):
        return SUCCESS

    def cuGetErrorName(self, status, name):
        name._obj.value = NAMES[status]
        return SUCCESS

    def cuDeviceGetCount(self, count):
        count._obj.value = self.devices
        return SUCCESS

    def cuDeviceGet(self, device, ordinal):
        device._obj.value = ordinal
        return SUCCESS

    def cuDeviceGetName(self, name, length, device):
        name.value = b"Stand-in X1 (test)"
        return SUCCESS

    def cuDriverGetVersion(self, version):
        version._obj.value = 12080
        return SUCCESS

    def cuDeviceGetAttribute(self, value, attribute, device):
        value._obj.value = {75: 9, 76: 0}[attribute]
        return SUCCESS

    def cuDevicePrimaryCtxRetain(self, context, device):
        context._obj.value = 1
        return SUCCESS

    def cuDevicePrimaryCtxReset_v2(self, device):
        self.memory, self.modules, self.functions, self.lost = {}, [], [], SUCCESS
        return SUCCESS

    def cuDevicePrimaryCtxRelease_v2(self, device):
        return SUCCESS

    def cuCtxSetCurrent(self, context):
        return SUCCESS

    def cuModuleLoadDataEx(self, module, text, count, options, values):
        assert text.endswith(b"\0")
        assert list(options) == [5, 6]
        try:
            self.modules.append(ptxvm.load(text.rstrip(b"\0")))
        except ptxvm.InvalidPTX as wrong:
            ctypes.memmove(values[0], f"ptxas: {wrong.diagnostics[0].message}".encode()[: values[1]], 20)
            return INVALID_PTX
        module._obj.value = len(self.modules)
        return SUCCESS

    def cuModuleGetFunction(self, function, module, name):
        kernels = self.modules[module.value - 1].kernels
        if name.decode() not in kernels:
            return NOT_FOUND
        self.functions.append(kernels[name.decode()])
        function._obj.value = len(self.functions)
        return SUCCESS

    def cuMemAlloc_v2(self, address, size):
        array = np.zeros(size.value, np.uint8)
        address._obj.value = array.ctypes.data
        self.memory[array.ctypes.data] = array
        return SUCCESS

    def cuMemFree_v2(self, address):
        return SUCCESS if self.memory.pop(address.value, None) is not None else INVALID_VALUE

    def cuMemcpyHtoD_v2(self, address, host, size):
        ctypes.memmove(address.value, host.value, size.value)
        return SUCCESS

    def cuMemcpyDtoH_v2(self, host, address, size):
        ctypes.memmove(host.value, address.value, size.value)
        return SUCCESS

    def cuLaunchKernel(self, function, gx, gy, gz, x, y, z, shared, stream, parameters, extra):
        kernel = self.functions[function.value - 1]
        passed = []
        for parameter, place in zip(kernel.function.signature.parameters, parameters, strict=False):
            size = parameter.type.bits // 8
            word = np.frombuffer(ctypes.string_at(place, size), f"u{size}")[0]
            passed.append(self.memory.get(int(word), word))
        try:
            kernel.launch(grid=(gx, gy, gz), block=(x, y, z), args=passed)
        except ptxvm.Fault:
            self.lost = ILLEGAL_ADDRESS
        return SUCCESS

    def cuCtxSynchronize(self):
        return self.lost


class Virtual:
    """A `Driver` that answers through ptxvm, with a call for each launch."""

    device = tool.Device("Virtual GPU", (7, 5), "0.0")

    def __init__(self):
        self.launches = []

    def run(self, text, kernel, shape, arguments):
        self.launches.append((kernel, shape))
        try:
            ptxvm.load(text).kernel(kernel).launch(grid=shape[0], block=shape[1], args=arguments)
        except ptxvm.InvalidPTX as wrong:
            raise tool.Refused(f"CUDA_ERROR_INVALID_PTX (218) from cuModuleLoadDataEx: {wrong}") from None


@pytest.fixture
def conformance_file():
    return tool.CONFORMANCE / "logic" / "prmt.ptx"


# ── the plan, and the ends that need no GPU ─────────────────────────────────────────────


def test_the_plan_names_every_file_and_sweep(capsys):
    assert tool.main(["--dry-run"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^logic/prmt\.ptx: \d+ runs$", said, re.MULTILINE)
    assert "rcp.approx.f32: 4294967296 inputs in 256 chunks" in said
    assert "tanh.approx.f16: 65536 inputs in 1 chunks" in said


def test_a_plan_of_some_sweeps(capsys):
    assert tool.main(["--dry-run", "--sweeps", "tanh", "rcp.approx.f32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "0 runs, 5 sweeps"


def test_an_unknown_sweep_is_named():
    with pytest.raises(SystemExit, match=r"no sweep is called arctan; there are .*rcp"):
        tool.main(["--dry-run", "--sweeps", "arctan"])


def test_no_driver_is_an_error_that_says_so(monkeypatch, capsys):
    monkeypatch.setattr(tool, "LIBRARIES", ("libnothing-of-the-kind.so",))
    assert tool.main(["--conformance"]) == 1
    assert "no CUDA driver: none of libnothing-of-the-kind.so can be loaded" in capsys.readouterr().err


def test_no_device_is_an_error_that_says_so():
    with pytest.raises(tool.Missing, match="has 0 devices, and number 0 was wanted"):
        tool.Cuda(Library(devices=0))


# ── what the driver gives ───────────────────────────────────────────────────────────────


def test_the_device_is_described():
    device = tool.Cuda(Library()).device
    assert device == tool.Device("Stand-in X1 (test)", (9, 0), "12.8")
    assert (device.target, device.slug) == ("sm_90", "stand-in-x1-test")


def test_a_conformance_file_over_the_library(conformance_file):
    library = Library()
    found = tool.recorded_runs(tool.Cuda(library), conformance_file)
    reader = tool.conformance()
    _, runs, _ = reader.parse(conformance_file.read_text())
    assert list(found) == [run.text for run in runs]
    for run in runs:
        word, type = run.want[0]
        want, size = reader.bits(word, type)
        assert found[run.text].startswith(f"bytes {want.to_bytes(size, 'little').hex()}")
    assert library.calls.count("cuModuleLoadDataEx") == 1
    assert library.memory == {}, "everything was freed"


def test_a_fault_is_recorded_and_the_context_renewed():
    library = Library()
    found = tool.recorded_runs(tool.Cuda(library), tool.CONFORMANCE / "memory" / "faults.ptx")
    assert "fault CUDA_ERROR_ILLEGAL_ADDRESS" in found.values()
    assert library.calls.count("cuDevicePrimaryCtxReset_v2") == list(found.values()).count("fault CUDA_ERROR_ILLEGAL_ADDRESS")


def test_what_would_hang_is_not_run(tmp_path):
    text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry stuck(.param .u64 p) { bar.sync 0; ret; }\n"
    path = tmp_path / "stuck.ptx"
    path.write_text(f"//: run stuck() faults deadlock\n{text}")
    library = Library()
    assert tool.recorded_runs(tool.Cuda(library), path) == {"run stuck() faults deadlock": "not run: it would hang the device"}
    assert "cuLaunchKernel" not in library.calls


def test_what_the_driver_refuses_is_recorded_with_its_words(tmp_path):
    path = tmp_path / "wrong.ptx"
    path.write_text(
        "//: run k() == 1\n.version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p) { nonsense; ret; }\n"
    )
    (said,) = tool.recorded_runs(tool.Cuda(Library()), path).values()
    assert said.startswith("not run: CUDA_ERROR_INVALID_PTX (218) from cuModuleLoadDataEx: ptxas: ")


def test_a_module_gets_the_target_of_its_line():
    assert tool.retargeted(".version 9.0\n.target sm_70\n", "sm_80") == ".version 9.0\n.target sm_80\n"
    assert tool.retargeted(".target sm_70\n", None) == ".target sm_70\n"


# ── sweeps ──────────────────────────────────────────────────────────────────────────────


def test_chunks_cover_every_input_once():
    (sweep,) = tool.chosen(["rcp.approx.f32"])
    ranges = list(tool.chunks(sweep))
    assert ranges[0].start == 0
    assert ranges[-1].stop == 1 << 32
    assert all(a.stop == b.start for a, b in pairwise(ranges))


@pytest.mark.parametrize("sweep", tool.SWEEPS, ids=lambda sweep: sweep.instruction)
def test_the_kernel_of_a_sweep_is_valid_where_it_is_recorded(sweep):
    assert [d for d in ptxvm.check(sweep.module(f"sm_{sweep.least}")) if d.severity == "error"] == []


def test_results_are_those_of_the_inputs():
    (sweep,) = tool.chosen(["rcp.approx.f32"])
    got = tool.results(Virtual(), sweep, range(0x40000000, 0x40000000 + 300))
    assert got[0] == 0x3F000000
    assert len(set(got.tolist())) > 100


def test_of_an_f64_the_upper_halves_are_swept():
    (sweep,) = tool.chosen(["rcp.approx.ftz.f64"])
    assert tool.results(Virtual(), sweep, range(0x40000000, 0x40000001)).tolist() == [0x3FE00000]


class Counting:
    """Gives each input itself, so that samples tell where they came from."""

    device = tool.Device("Counter", (7, 5), "0.0")

    def run(self, text, kernel, shape, arguments):
        out, first, count = arguments
        out[:] = np.arange(first, int(first) + int(count), dtype=np.uint64).astype(np.uint32)


def test_samples_are_every_so_many_inputs_across_chunks(monkeypatch):
    monkeypatch.setattr(tool.Sweep, "count", property(lambda self: 1 << 20))
    (sweep,) = tool.chosen(["rcp.approx.f32"])
    got = tool.swept(Counting(), sweep, 1 << 17)
    assert len(got.sums) == 8
    assert got.samples.tolist() == list(range(0, 1 << 20, tool.STEP))


def test_a_sweep_of_16_bits_keeps_every_result():
    (sweep,) = tool.chosen(["tanh.approx.f16"])
    got = tool.swept(Counting(), sweep)
    assert got.samples.tolist() == list(range(1 << 16))


# ── the files ───────────────────────────────────────────────────────────────────────────


def test_the_record_names_device_and_driver_and_grows(tmp_path, conformance_file):
    sweeps = tool.chosen(["ex2.approx.f16"])
    said = tool.record(Virtual(), [conformance_file], [], tmp_path)
    tool.record(Virtual(), [], sweeps, tmp_path)
    record = json.loads(said.read_text())
    assert (record["device"], record["target"], record["driver"]) == ("Virtual GPU", "sm_75", "0.0")
    assert list(record["conformance"]) == ["logic/prmt.ptx"]
    assert record["left out"] == {}
    data = np.load(tmp_path / "virtual-gpu.npz")
    assert data["ex2.approx.f16 samples"].shape == (65536,)
    assert data["ex2.approx.f16 samples"][0] == 0x3C00, "two to the power 0 is 1"


def test_a_sweep_that_the_device_lacks_is_left_out_with_the_reason(tmp_path):
    class Old(Virtual):
        def run(self, text, kernel, shape, arguments):
            raise tool.Refused("CUDA_ERROR_NO_BINARY_FOR_GPU (209) from cuModuleLoadDataEx")

    said = tool.record(Old(), [], tool.chosen(["tanh.approx.bf16"]), tmp_path)
    assert json.loads(said.read_text())["left out"] == {
        "tanh.approx.bf16": "CUDA_ERROR_NO_BINARY_FOR_GPU (209) from cuModuleLoadDataEx"
    }


def test_the_command_records_what_it_is_asked(tmp_path, capsys):
    assert tool.main(["--sweeps", "tanh.approx.f16", "--output", str(tmp_path)], Virtual()) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(tmp_path / "virtual-gpu.json")
    assert "Virtual GPU (sm_75), driver 0.0" in shown.err
