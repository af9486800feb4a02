"""Records what a GPU computes, over the CUDA driver: the conformance files and the `.approx` instructions.

    python tools/record_hardware.py --dry-run           what would be recorded
    python tools/record_hardware.py                     all of it, under tests/oracle/hardware/
    python tools/record_hardware.py --conformance       the `//: run` lines only
    python tools/record_hardware.py --sweeps rcp sin    the sweeps of some functions only

It needs libcuda (the driver) and NumPy, nothing else of CUDA: the driver compiles the PTX.  `<device>.json` names the
device and the driver and holds, for each `//: run` line of each conformance file, the bytes of the result, or the fault,
or why it could not run there.  `<device>.npz` holds the sweeps: every input of an instruction in chunks.  Of every chunk
it has a checksum, and of every `STEP`th input the result itself, so that a difference can be seen and not only known.

`tests/oracle/test_hardware.py` holds the machine to it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import re
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).parents[1]
CONFORMANCE = ROOT / "tests" / "conformance"
HARDWARE = ROOT / "tests" / "oracle" / "hardware"

CHUNK = 1 << 24  # inputs at a time
STEP = 65521  # a prime: the inputs kept meet every pattern of low bits
THREADS = 256
Words = npt.NDArray[Any]


class Refused(Exception):  # noqa: N818 - it says what happened
    """The driver does not take a module or a launch; the message has the name of its error, `status` the number."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Missing(Exception):  # noqa: N818
    """There is no driver, or no device."""


@dataclass(frozen=True)
class Device:
    """What was recorded from."""

    name: str
    capability: tuple[int, int]
    driver: str

    @property
    def target(self) -> str:
        """Its `.target`."""
        return f"sm_{self.capability[0]}{self.capability[1]}"

    @property
    def slug(self) -> str:
        """The name of its files."""
        return re.sub(r"\W+", "-", self.name).strip("-").lower()


class Driver(Protocol):
    """What the recorder asks of a GPU; `Cuda` is the real one, the tests have others."""

    device: Device

    def run(self, text: str, kernel: str, shape: tuple[int, Sequence[int]], arguments: Sequence[Words | np.generic]) -> None:
        """Launch a kernel of a PTX text on `shape`, the CTAs and the threads; arrays are copied in and out.

        Raises `Refused` for whatever the driver answers but success.
        """


# ── the driver ──────────────────────────────────────────────────────────────────────────

LIBRARIES = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
LOG_BUFFER, LOG_BUFFER_BYTES = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
FATAL = 700  # from here on (cuda.h: illegal address ...) the context is lost


def library() -> Any:
    """The driver's library; raises `Missing`."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise Missing(f"no CUDA driver: none of {', '.join(LIBRARIES)} can be loaded. This needs a machine with an NVIDIA GPU")


class Cuda:
    """A device behind libcuda.  Modules stay loaded; a fault that loses the context gets a new one."""

    def __init__(self, cuda: Any, ordinal: int = 0) -> None:
        self.cuda = cuda
        try:
            self._call("cuInit", 0)
        except Refused as why:
            raise Missing(f"the CUDA driver does not start: {why}") from None
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if ordinal >= count.value:
            raise Missing(f"the CUDA driver has {count.value} devices, and number {ordinal} was wanted")
        self._number = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._number), ordinal)
        self.device = self._describe()
        self._context = ctypes.c_void_p()
        self._modules: dict[str, ctypes.c_void_p] = {}
        self._enter()

    def _describe(self) -> Device:
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, len(name), self._number)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        found = []
        for attribute in (MAJOR, MINOR):
            value = ctypes.c_int()
            self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, self._number)
            found.append(value.value)
        driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
        return Device(name.value.decode(), (found[0], found[1]), driver)

    def _enter(self) -> None:
        """Take the device's primary context."""
        self._modules = {}
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._number)
        self._call("cuCtxSetCurrent", self._context)

    def _renew(self) -> None:
        """A fresh context in place of a lost one."""
        self._call("cuDevicePrimaryCtxReset_v2", self._number)
        self._call("cuDevicePrimaryCtxRelease_v2", self._number)
        self._enter()

    def _call(self, function: str, *arguments: object) -> None:
        """Call the driver; whatever is not success is `Refused`."""
        status = getattr(self.cuda, function)(*arguments)
        if status:
            name = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(name))
            raise Refused(f"{(name.value or b'unknown error').decode()} ({status}) from {function}", status)

    def _module(self, text: str) -> ctypes.c_void_p:
        """A PTX text compiled by the driver."""
        if text not in self._modules:
            module, log = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
            options = (ctypes.c_int * 2)(LOG_BUFFER, LOG_BUFFER_BYTES)
            values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
            try:
                self._call("cuModuleLoadDataEx", ctypes.byref(module), text.encode() + b"\0", 2, options, values)
            except Refused as why:
                said = " ".join(log.value.decode(errors="replace").split())
                raise Refused(f"{why}: {said}" if said else str(why), why.status) from None
            self._modules[text] = module
        return self._modules[text]

    def run(self, text: str, kernel: str, shape: tuple[int, Sequence[int]], arguments: Sequence[Words | np.generic]) -> None:
        """See `Driver`."""
        function, held = ctypes.c_void_p(), list[tuple[ctypes.c_uint64, Words]]()
        self._call("cuModuleGetFunction", ctypes.byref(function), self._module(text), kernel.encode())
        try:
            passed = [self._passed(argument, held) for argument in arguments]
            pointers = (ctypes.c_void_p * max(len(passed), 1))(*(ctypes.addressof(each) for each in passed))
            grid, (x, y, z) = shape[0], (*shape[1], 1, 1)[:3]
            self._call("cuLaunchKernel", function, grid, 1, 1, x, y, z, 0, None, pointers, None)
            self._call("cuCtxSynchronize")
            for address, array in held:
                self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))
        except Refused as why:
            if why.status >= FATAL:
                self._renew()
                held.clear()
            raise
        finally:
            for address, _ in held:
                self._call("cuMemFree_v2", address)

    def _passed(self, argument: Words | np.generic, held: list[tuple[ctypes.c_uint64, Words]]) -> Any:
        """An argument as the driver takes it: bytes, or for an array the address of its copy on the device."""
        if not isinstance(argument, np.ndarray):
            return (ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes())
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(argument.nbytes))
        held.append((address, argument))
        self._call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(argument.ctypes.data), ctypes.c_size_t(argument.nbytes))
        return address


# ── the conformance files ───────────────────────────────────────────────────────────────

HANGS = ("deadlock",)  # faults of ptxvm that a GPU has no word for
WAITING = "from cuCtxSynchronize"  # where what a kernel did wrong comes out


@cache
def conformance() -> ModuleType:
    """The module that reads the `//:` lines."""
    spec = importlib.util.spec_from_file_location("conformance", CONFORMANCE / "test_conformance.py")
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    module = sys.modules.setdefault(spec.name, importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


def retargeted(text: str, target: str | None) -> str:
    """A module with the target that its `//: target` line names."""
    return re.sub(r"(?m)^(\s*\.target\s+)sm_\w+", rf"\g<1>{target}", text, count=1) if target else text


def scalars(text: str, run: Any) -> list[np.generic]:
    """The arguments of a run after the first, as the kernel declares them."""
    header = re.search(rf"\.entry\s+{re.escape(run.kernel)}\s*\((.*?)\)", text, re.DOTALL)
    types = re.findall(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)", header[1])[1:] if header else []
    made: list[np.generic] = []
    for type, word in zip(types, run.args, strict=True):
        bits, size = conformance().bits(word, type)
        made.append(np.frombuffer(bits.to_bytes(size, "little"), f"u{size}")[0])
    return made


def recorded_runs(driver: Driver, path: Path) -> dict[str, str]:
    """Each `run` line of a file with what came: `bytes 00…`, `fault NAME` or `not run: WHY`."""
    reader = conformance()
    source = path.read_text(encoding="utf-8")
    target, runs, errors = reader.parse(source)
    if errors:
        return {}
    text, found = retargeted(source, target), {}
    for run in runs:
        if run.fault in HANGS:
            found[run.text] = "not run: it would hang the device"
            continue
        out = np.zeros(reader.BYTES, np.uint8)
        try:
            driver.run(text, run.kernel, (run.grid, run.block), [out, *scalars(text, run)])
        except Refused as why:
            said = str(why)
            found[run.text] = f"fault {said.split(maxsplit=1)[0]}" if said.endswith(WAITING) else f"not run: {said}"
        else:
            found[run.text] = f"bytes {out.tobytes().hex()}"
    return found


# ── the sweeps ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sweep:
    """One instruction over every input: of 16 or 32 bits, or the upper 32 bits of an f64."""

    instruction: str
    version: str
    least: int  # the lowest target

    @property
    def type(self) -> str:
        """Its last modifier."""
        return self.instruction.rpartition(".")[2]

    @property
    def bits(self) -> int:
        """Of its operand."""
        return {"f16": 16, "bf16": 16, "f64": 64}.get(self.type, 32)

    @property
    def count(self) -> int:
        """How many inputs there are."""
        return 1 << min(self.bits, 32)

    def module(self, target: str) -> str:
        """A kernel that computes input `first + n` in thread `n`, and stores the result (the upper half of an f64)."""
        register = {16: "b16", 32: "b32", 64: "b64"}[self.bits]
        make = {16: "cvt.u16.u32 %x, %i;", 32: "mov.b32 %x, %i;", 64: "mov.b32 %lo, 0; mov.b64 %x, {%lo, %i};"}[self.bits]
        keep = {16: "cvt.u32.u16 %r, %y;", 32: "mov.b32 %r, %y;", 64: "mov.b64 {%lo, %r}, %y;"}[self.bits]
        if self.type in ("f32", "f64"):
            floating = f".reg .{self.type} %f, %g;"
            work = f"mov.b{self.bits} %f, %x; {self.instruction} %g, %f; mov.b{self.bits} %y, %g;"
        else:
            floating, work = "", f"{self.instruction} %y, %x;"
        return f"""
.version {self.version}
.target {target}
.address_size 64
.visible .entry sweep(.param .u64 results, .param .u32 first, .param .u32 count)
{{
    .reg .pred %p; .reg .b32 %i, %n, %r, %lo, %t; .reg .b64 %d; .reg .{register} %x, %y; {floating}
    mov.u32 %n, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %n, %n, {THREADS}, %t;
    ld.param.u32 %t, [count]; setp.ge.u32 %p, %n, %t; @%p exit;
    ld.param.u32 %i, [first]; add.u32 %i, %i, %n;
    {make} {work} {keep}
    ld.param.u64 %d, [results]; mad.wide.u32 %d, %n, 4, %d; st.global.u32 [%d], %r;
    ret;
}}
"""


SWEEPS = (
    *(Sweep(f"{name}.approx{ftz}.f32", "6.4", 50) for name in "rcp sqrt rsqrt sin cos lg2 ex2".split() for ftz in ("", ".ftz")),
    Sweep("tanh.approx.f32", "7.0", 75),
    Sweep("tanh.approx.f16", "7.0", 75),
    Sweep("tanh.approx.f16x2", "7.0", 75),
    Sweep("tanh.approx.bf16", "7.8", 90),
    Sweep("ex2.approx.f16", "7.0", 75),
    Sweep("ex2.approx.f16x2", "7.0", 75),
    Sweep("ex2.approx.ftz.bf16", "7.8", 90),
    Sweep("rcp.approx.ftz.f64", "6.4", 50),
    Sweep("rsqrt.approx.ftz.f64", "6.4", 50),
)


@dataclass(frozen=True)
class Swept:
    """What a sweep gave: a checksum (CRC-32) of each chunk's results, and the result of every `STEP`th input."""

    chunk: int
    sums: Words
    samples: Words


def chunks(sweep: Sweep, size: int = CHUNK) -> Iterator[range]:
    """The inputs, so many at a time."""
    for first in range(0, sweep.count, size):
        yield range(first, min(first + size, sweep.count))


def results(driver: Driver, sweep: Sweep, inputs: range) -> Words:
    """The results of neighbouring inputs."""
    out = np.zeros(len(inputs), np.uint32)
    shape = (-(-len(inputs) // THREADS), (THREADS,))
    text = sweep.module(f"sm_{sweep.least}")
    driver.run(text, "sweep", shape, [out, np.uint32(inputs.start), np.uint32(len(inputs))])
    return out


def swept(driver: Driver, sweep: Sweep, size: int = CHUNK) -> Swept:
    """Every input of an instruction."""
    sums, kept = [], []
    for inputs in chunks(sweep, size):
        out = results(driver, sweep, inputs)
        sums.append(zlib.crc32(out.tobytes()))
        kept.append(out[-inputs.start % step(sweep) :: step(sweep)])
    return Swept(size, np.array(sums, np.uint32), np.concatenate(kept))


def step(sweep: Sweep) -> int:
    """Which inputs are kept: all of 16 bits."""
    return 1 if sweep.bits == 16 else STEP


# ── the files ───────────────────────────────────────────────────────────────────────────


def record(driver: Driver, files: Iterable[Path], sweeps: Iterable[Sweep], folder: Path, size: int = CHUNK) -> Path:
    """Record all that is given, beside what an earlier call recorded of the device; returns the JSON file."""
    device = driver.device
    folder.mkdir(parents=True, exist_ok=True)
    said, data = folder / f"{device.slug}.json", folder / f"{device.slug}.npz"
    known = json.loads(said.read_text(encoding="utf-8")) if said.exists() else {}
    arrays = dict(np.load(data)) if data.exists() else {}
    runs = known.get("conformance", {})
    for path in files:
        found = recorded_runs(driver, path)
        if found:
            runs[path.relative_to(CONFORMANCE).as_posix()] = found
    left = known.get("left out", {})
    for sweep in sweeps:
        began = time.monotonic()
        try:
            got = swept(driver, sweep, size)
        except Refused as why:
            left[sweep.instruction] = str(why)
            continue
        arrays |= {f"{sweep.instruction} sums": got.sums, f"{sweep.instruction} samples": got.samples}
        arrays[f"{sweep.instruction} chunk"] = np.array(got.chunk)
        left.pop(sweep.instruction, None)
        print(f"{sweep.instruction}: {sweep.count} inputs in {time.monotonic() - began:.1f} s", file=sys.stderr)
    if arrays:
        np.savez_compressed(data, **arrays)
    record = {
        "device": device.name,
        "target": device.target,
        "driver": device.driver,
        "recorded": time.strftime("%Y-%m-%d"),
        "left out": left,
        "conformance": dict(sorted(runs.items())),
    }
    said.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return said


def plan(files: Sequence[Path], sweeps: Sequence[Sweep]) -> str:
    """What would be recorded."""
    counts = [(path, conformance().parse(path.read_text(encoding="utf-8"))) for path in files]
    lines = [f"{path.relative_to(CONFORMANCE)}: {len(runs)} runs" for path, (_, runs, errors) in counts if runs and not errors]
    total = sum(len(runs) for _, (_, runs, errors) in counts if not errors)
    lines += [f"{sweep.instruction}: {sweep.count} inputs in {len(list(chunks(sweep)))} chunks" for sweep in sweeps]
    return "\n".join([*lines, f"{total} runs, {len(sweeps)} sweeps"])


# ── the command ─────────────────────────────────────────────────────────────────────────


def chosen(names: Sequence[str] | None) -> list[Sweep]:
    """The sweeps of some functions (`rcp`) or instructions (`rcp.approx.f32`); all where none is named."""
    known = {sweep.instruction.partition(".")[0] for sweep in SWEEPS} | {sweep.instruction for sweep in SWEEPS}
    unknown = set(names or ()) - known
    if unknown:
        raise SystemExit(f"no sweep is called {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [s for s in SWEEPS if not names or {s.instruction, s.instruction.partition(".")[0]} & set(names)]


def main(words: Sequence[str] | None = None, driver: Driver | None = None) -> int:
    """Record, or say what would be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dry-run", action="store_true", help="list what would be recorded, and touch no GPU")
    parser.add_argument("--conformance", action="store_true", help="the conformance files only")
    parser.add_argument("--sweeps", nargs="*", metavar="NAME", help="the sweeps only, all or those of some functions")
    parser.add_argument("--device", type=int, default=0, help="the number of the GPU")
    parser.add_argument("--output", type=Path, default=HARDWARE, help="the folder of the results")
    options = parser.parse_args(words)
    files = [] if options.sweeps is not None and not options.conformance else sorted(CONFORMANCE.rglob("*.ptx"))
    sweeps = [] if options.conformance and options.sweeps is None else chosen(options.sweeps)
    if options.dry_run:
        print(plan(files, sweeps))
        return 0
    try:
        driver = driver or Cuda(library(), options.device)
    except Missing as why:
        print(f"record_hardware: {why}", file=sys.stderr)
        return 1
    print(f"{driver.device.name} ({driver.device.target}), driver {driver.device.driver}", file=sys.stderr)
    print(record(driver, files, sweeps, options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
