"""Programs that LLVM compiles for this processor and to PTX: both compute the same.

The expectation is LLVM's back end for this processor; what it is given is no PTX.
"""

from __future__ import annotations

import ctypes
import functools

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvm_programs import WORDS, program

import ptxvm

TRIPLE = "nvptx64-nvidia-cuda"
TARGETS = {"sm_50": "+ptx60", "sm_75": "+ptx64", "sm_90": "+ptx80", "sm_100": "+ptx88", "sm_120": "+ptx88"}
THREADS = 128
KERNEL = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()

define ptx_kernel void @k(ptr %out, ptr %in) {
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = mul i32 %cta, %size
  %index = add i32 %first, %thread
  %wide = zext i32 %index to i64
  %from = getelementptr [8 x i64], ptr %in, i64 %wide
  %to = getelementptr [8 x i64], ptr %out, i64 %wide
  call void @f(ptr %to, ptr %from)
  ret void
}
"""
HOST = """
define void @k(ptr %out, ptr %in, i64 %threads) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr [8 x i64], ptr %in, i64 %i
  %to = getelementptr [8 x i64], ptr %out, i64 %i
  call void @f(ptr %to, ptr %from)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %threads
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


@functools.cache
def back_ends() -> None:
    """Make both back ends known to LLVM."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def optimised(text: str, machine: llvm.TargetMachine, level: int, triple: str | None = None) -> llvm.ModuleRef:
    """The module, after the passes of a level."""
    module = llvm.parse_assembly(text)
    if triple:
        module.triple = triple
        module.data_layout = str(machine.target_data)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=level))
    passes.getModulePassManager().run(module, passes)
    return module


def as_ptx(text: str, target: str, level: int) -> str:
    """What LLVM makes of it for a target of PTX."""
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=target, features=TARGETS[target], opt=level)
    return str(machine.emit_assembly(optimised(text, machine, level, TRIPLE)))


def on_the_host(text: str, numbers: np.ndarray) -> np.ndarray:
    """What this processor computes."""
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(optimised(text, machine, 2), machine)
    engine.finalize_object()
    results = np.zeros_like(numbers)
    ENTRY(engine.get_function_address("k"))(results.ctypes.data, numbers.ctypes.data, len(numbers))
    return results


def inputs(rng: np.random.Generator) -> np.ndarray:
    """Numbers of all sizes; the first warp has the same in all lanes."""
    numbers = rng.integers(0, 2**64, (THREADS, WORDS), dtype=np.uint64)
    numbers[rng.random(numbers.shape) < 0.4] &= np.uint64(255)
    numbers[rng.random(numbers.shape) < 0.1] = np.uint64(2**64 - 1)
    numbers[:32] = numbers[0]
    return numbers


def check(rng: np.random.Generator, target: str, statements: int) -> None:
    """Make a program, run it on the host and on both engines."""
    back_ends()
    module, numbers, level = program(rng, statements), inputs(rng), int(rng.integers(4))
    expected = on_the_host(module.text(HOST), numbers)
    ptx = as_ptx(module.text(KERNEL), target, level)
    for engine in ("interp", "jit"):
        results = np.zeros_like(numbers)
        ptxvm.load(ptx).kernel("k").launch(grid=2, block=THREADS // 2, args=[results, numbers], engine=engine)
        np.testing.assert_array_equal(results, expected, f"{engine}, level {level}, of\n{ptx}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", range(4))
def test_both_back_ends_compute_the_same(rng: np.random.Generator, target: str, n: int) -> None:
    check(rng, target, statements=30)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", range(40))
def test_long_programs_compute_the_same(rng: np.random.Generator, target: str, n: int) -> None:
    check(rng, target, statements=120)
