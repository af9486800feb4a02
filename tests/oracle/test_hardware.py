"""The machine against what GPUs gave: `tools/record_hardware.py` wrote the files in `hardware/`."""

from __future__ import annotations

import importlib.util
import json
import lzma
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxvm

HERE = Path(__file__).parent
RECORDS = sorted((HERE / "hardware").glob("*.json"))
NOTHING = "nothing is recorded: run tools/record_hardware.py on a machine with an NVIDIA GPU"
BOUNDED = ("tanh",)  # the ISA bounds it, and no recording is built in


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record_hardware", HERE.parents[1] / "tools" / "record_hardware.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=RECORDS or [None], ids=lambda path: path.stem if path else "none")
def record(request) -> Path:
    if request.param is None:
        pytest.skip(NOTHING)
    return request.param


def module_as_there(text: str, target: str) -> ptxvm.Module:
    """The module for the device that ran it; where that refuses it (the driver keeps old meanings), for its own target."""
    try:
        return ptxvm.load(text, target)
    except (ptxvm.InvalidPTX, ptxvm.Unsupported):
        return ptxvm.load(text)


class Machine:
    """A `Driver` of the recorder that answers through ptxvm as the recorded device."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.modules: dict[str, ptxvm.Module] = {}

    def run(self, text, kernel, shape, arguments) -> None:
        if text not in self.modules:
            self.modules[text] = module_as_there(text, self.target)
        self.modules[text].kernel(kernel).launch(grid=shape[0], block=shape[1], args=arguments)


def result(machine: Machine, tool: ModuleType, text: str, run) -> str:
    """What the machine makes of a run, in the words of the record."""
    out = np.zeros(tool.conformance().BYTES, np.uint8)
    try:
        machine.run(text, run.kernel, (run.grid, run.block), [out, *tool.scalars(text, run)])
    except ptxvm.Fault:
        return "fault"
    return f"bytes {out.tobytes().hex()}"


def test_conformance_runs(record: Path, tool: ModuleType) -> None:
    recorded = json.loads(record.read_text())
    machine, wrong, compared = Machine(recorded["target"]), [], 0
    for name, said in recorded["conformance"].items():
        source = (tool.CONFORMANCE / name).read_text()
        target, runs, _ = tool.conformance().parse(source)
        for run in runs:
            want = said.get(run.text, "not run")  # a line that is younger than the record
            if want.startswith("not run") or run.fault:
                continue  # where a kernel is wrong, ptxvm faults and a GPU may go on
            compared += 1
            got = result(machine, tool, tool.retargeted(source, target), run)
            if got != re.sub(r"^fault .*", "fault", want):
                wrong.append(f"{name}:{run.line}: {run.text}: {got}, but {recorded['device']} gave {want}")
    assert compared or not recorded["conformance"]
    assert not wrong, "\n".join(wrong)


def recorded_sweeps(record: Path, tool: ModuleType) -> list[tuple[object, dict[str, np.ndarray]]]:
    """The sweeps of a record that the machine has to meet bit for bit."""
    path = record.with_suffix(".npz")
    if not path.exists():
        pytest.skip(f"{path.name} is missing: no sweep is recorded of this device")
    data = np.load(path)
    return [
        (sweep, {what: data[f"{sweep.instruction} {what}"] for what in ("chunk", "sums", "samples")})
        for sweep in tool.SWEEPS
        if f"{sweep.instruction} sums" in data and not sweep.instruction.startswith(BOUNDED)
    ]


def test_samples_of_the_sweeps(record: Path, tool: ModuleType, rng: np.random.Generator) -> None:
    """Of every sweep, some of the inputs whose results are kept."""
    machine = Machine(json.loads(record.read_text())["target"])
    for sweep, kept in recorded_sweeps(record, tool):
        for n in rng.choice(len(kept["samples"]), 64, replace=False).tolist():
            first = n * tool.step(sweep)
            (got,) = tool.results(machine, sweep, range(first, first + 1))
            assert got == kept["samples"][n], f"{sweep.instruction} of {first:#x}: {got:#x}, not {kept['samples'][n]:#x}"


@pytest.mark.long
def test_chunks_of_the_sweeps(record: Path, tool: ModuleType, rng: np.random.Generator) -> None:
    """Of every sweep, one whole chunk, by its checksum."""
    machine = Machine(json.loads(record.read_text())["target"])
    for sweep, kept in recorded_sweeps(record, tool):
        inputs = list(tool.chunks(sweep, int(kept["chunk"])))
        n = int(rng.integers(len(inputs)))
        got = zlib.crc32(tool.results(machine, sweep, inputs[n]).tobytes())
        assert got == kept["sums"][n], f"{sweep.instruction}: chunk {n} from {inputs[n].start:#x}"


def test_tanh_is_near_what_an_h200_gives(tool: ModuleType, rng: np.random.Generator) -> None:
    """Every result of a positive number from 2**-13 to 16 is recorded, as second differences (xz), by the bits of the inputs.

    How the unit computes them is not found: the true value, rounded, is within the bound of both (PTX 9.7.3.22).
    """
    file, machine = np.load(HERE / "hardware" / "nvidia-h200-tanh.npz"), Machine("sm_90")
    text = next(sweep.module("sm_75") for sweep in tool.SWEEPS if sweep.instruction == "tanh.approx.f32")
    for name in rng.choice(file.files, 3, replace=False):
        first = int(name.partition("-")[0], 16)
        recorded = np.frombuffer(lzma.decompress(file[name].tobytes()), "<i8").cumsum().cumsum().astype(np.uint32)
        out = np.zeros(len(recorded), np.uint32)
        machine.run(text, "sweep", (len(out) // 256, (256,)), [out, np.uint32(first), np.uint32(len(out))])
        near = np.abs(out.view(np.float32) / recorded.view(np.float32).astype(np.float64) - 1)
        assert near.max() < 2.0**-16, name
