"""Records what a GPU answers to the cases of `hardware_cases`, over the CUDA driver, in several processes.

    python tools/record_cases.py OUTPUT                 every group
    python tools/record_cases.py OUTPUT fetches writes  some
    python tools/record_cases.py OUTPUT --processes 4

It needs libcuda and NumPy.  A launch that hangs, or after which the context is lost, costs its process, and another goes on
with the case after it.  `tests/oracle/test_recorded_cases.py` holds the machine to the records in tests/oracle/hardware/cases.
"""

from __future__ import annotations

import argparse
import ctypes
import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import record_hardware
from hardware_cases import Case, Group, Map, atomics, copies, fragments, instructions, warpgroups
from hardware_cases.recorded import Answer, save

GROUPS: dict[str, Group] = {
    "warps": instructions.warps,
    "matrices": instructions.matrices,
    "instructions": instructions.instructions,
    "fragments": fragments.through_memory,
    "atomics": atomics.atomics,
    "products": warpgroups.products,
    "fetches": copies.fetches,
    "writes": copies.writes,
    "slices": copies.slices,
}
MAPS = "maps"  # the group of arguments of cuTensorMapEncode*, which launches nothing
TENSOR = 1 << 20  # the address of their tensors
HANGS_AFTER = 20.0  # seconds without an answer
MODULES = 20  # that stay loaded
DYNAMIC_SHARED, STATIC_LIMIT = 8, 48 * 1024  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, and what needs it


class Gpu(record_hardware.Cuda):
    """A device that takes cases."""

    def answer(self, case: Case) -> Answer:
        """What is in the kept arrays after a launch, or the error; `record_hardware.Refused` where the context is lost."""
        if len(self._modules) >= MODULES:
            self._modules.clear()
        held: dict[int, ctypes.c_uint64] = {}
        try:
            return self._launched(case, held)
        except record_hardware.Refused as why:
            if why.status >= record_hardware.FATAL:
                held.clear()
                raise
            return str(why)
        finally:
            for address in held.values():
                self._call("cuMemFree_v2", address)

    def _launched(self, case: Case, held: dict[int, ctypes.c_uint64]) -> bytes:
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), self._module(case.text), case.kernel.encode())
        if case.shared > STATIC_LIMIT:
            self._call("cuFuncSetAttribute", function, DYNAMIC_SHARED, case.shared)
        for n, each in enumerate(case.arguments):
            if isinstance(each, np.ndarray):
                held[n] = ctypes.c_uint64()
                self._call("cuMemAlloc_v2", ctypes.byref(held[n]), ctypes.c_size_t(each.nbytes))
                self._call("cuMemcpyHtoD_v2", held[n], ctypes.c_void_p(each.ctypes.data), ctypes.c_size_t(each.nbytes))
        passed = [held[n] if n in held else self._value(each, held) for n, each in enumerate(case.arguments)]
        pointers = (ctypes.c_void_p * len(passed))(*(ctypes.addressof(each) for each in passed))
        shape = (*(*case.grid, 1, 1)[:3], *(*case.block, 1, 1)[:3])
        self._call("cuLaunchKernel", function, *shape, case.shared, None, pointers, None)
        self._call("cuCtxSynchronize")
        found = []
        for n in case.kept:
            array = np.empty_like(case.arguments[n])
            self._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), held[n], ctypes.c_size_t(array.nbytes))
            found.append(array.tobytes())
        return b"".join(found)

    def _value(self, argument: object, held: dict[int, ctypes.c_uint64]) -> ctypes.Array[ctypes.c_char]:
        """The bytes of a number, or of a tensor map as the driver encodes it."""
        if isinstance(argument, np.generic):
            return (ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes())
        assert isinstance(argument, Map)  # noqa: S101
        return (ctypes.c_char * 128).from_buffer_copy(self.encoded(argument, held[argument.tensor].value))

    def encoded(self, map: Map, tensor: int) -> bytes:
        """A tensor map of a tensor at an address; `Refused` where the driver refuses the arguments."""
        room = ctypes.create_string_buffer(192)
        where = -(-ctypes.addressof(room) // 64) * 64
        sizes, strides = (ctypes.c_uint64 * 5)(*map.sizes), (ctypes.c_uint64 * 5)(*map.strides)
        steps = (ctypes.c_uint32 * 5)(*map.steps)
        head = (ctypes.c_void_p(where), map.type, len(map.sizes), ctypes.c_void_p(tensor), sizes, strides)
        tail = (map.interleave, map.swizzle, 0, map.fill)
        if map.box:
            self._call("cuTensorMapEncodeTiled", *head, (ctypes.c_uint32 * 5)(*map.box), steps, *tail)
        else:
            corners = [(ctypes.c_int * 3)(*corner) for corner in (map.lower, map.upper)]
            self._call("cuTensorMapEncodeIm2col", *head, *corners, map.channels, map.pixels, steps, *tail)
        return ctypes.string_at(where, 128)

    def refuses(self, map: Map) -> bool:
        """Does the driver refuse these arguments?  The tensor lies at `TENSOR`, where nothing needs to be."""
        try:
            self.encoded(map, TENSOR)
        except record_hardware.Refused:
            return True
        return False


def work(cases: Sequence[Case], path: Path, done: int) -> None:
    """Answer cases from number `done` on; each answer is a record in a file."""
    gpu = Gpu(record_hardware.library())
    with path.open("ab") as file:
        for case in cases[done:]:
            try:
                answer = gpu.answer(case)
            except record_hardware.Refused as why:
                pickle.dump((case.name, str(why)), file)
                file.flush()
                os._exit(0)  # the context is lost, and what would take it apart waits for it
            pickle.dump((case.name, answer), file)
            file.flush()


def answers(path: Path) -> list[tuple[str, Answer]]:
    """The records of a file; the last may be cut off."""
    found: list[tuple[str, Answer]] = []
    with path.open("rb") as file:
        while True:
            try:
                found.append(pickle.load(file))  # noqa: S301 - our own
            except (EOFError, pickle.UnpicklingError):
                return found


class Worker:
    """A process over some cases, started again where it ends before them."""

    def __init__(self, cases: Sequence[Case], path: Path) -> None:
        self.cases, self.path = cases, path
        path.touch()
        self.start(0)

    def start(self, done: int) -> None:
        """Go on from a case."""
        self.process = multiprocessing.get_context("spawn").Process(target=work, args=(self.cases, self.path, done))
        self.process.start()
        self.seen, self.since = -1, time.monotonic()

    def ended(self) -> bool:
        """Is all answered?  A process that hangs is killed, and its case is called so."""
        size = self.path.stat().st_size
        if size != self.seen:
            self.seen, self.since = size, time.monotonic()
        hangs = time.monotonic() - self.since > HANGS_AFTER
        if self.process.is_alive() and not hangs:
            return False
        self.process.kill()
        self.process.join()
        done = len(answers(self.path))
        if done < len(self.cases) and (hangs or self.process.exitcode):
            with self.path.open("ab") as file:
                pickle.dump((self.cases[done].name, "hangs" if hangs else "crashes"), file)
            done += 1
        if done < len(self.cases):
            self.start(done)
            return False
        return True


def record(cases: Sequence[Case], processes: int) -> dict[str, Answer]:
    """The answers to cases; those of one text stay together."""
    texts = {case.text: n for n, case in enumerate(cases)}
    few = len(texts) < processes
    parts = [
        [case for n, case in enumerate(cases) if (n if few else texts[case.text]) % processes == k] for k in range(processes)
    ]
    with TemporaryDirectory() as folder:
        workers = [Worker(part, Path(folder, str(k))) for k, part in enumerate(parts) if part]
        left = list(workers)
        while left:
            left = [worker for worker in left if not worker.ended()]
            time.sleep(0.1)
        found = dict(answer for worker in workers for answer in answers(worker.path))
    return {case.name: found[case.name] for case in cases}


def main() -> None:
    """Record groups."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("output", type=Path, help="the folder of the records")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join([*GROUPS, MAPS])}")
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.groups or [*GROUPS, MAPS]:
        if name == MAPS:
            gpu = Gpu(record_hardware.library())
            refused = np.array([gpu.refuses(map) for map in copies.maps()])
            np.savez_compressed(options.output / f"{MAPS}.npz", refused=refused)
            print(f"{MAPS}: {refused.sum()} of {len(refused)} refused", file=sys.stderr)
            continue
        cases = list(GROUPS[name]())
        found = record(cases, options.processes)
        save(options.output / f"{name}.npz", found, cases)
        print(f"{name}: {sum(isinstance(each, bytes) for each in found.values())} of {len(found)} answered", file=sys.stderr)


if __name__ == "__main__":
    main()
