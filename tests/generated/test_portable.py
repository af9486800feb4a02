"""The JIT on other processors: without AVX-512, without AVX2, and on aarch64, for which code is made and not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFORMANCE = "half/arithmetic or convert/floats or warp/shfl or float/arithmetic"
AARCH64 = """
import sys, llvmlite.binding as llvm, ptxvm
from ptxvm.engine.jit.compiler import Translation
from ptxvm.engine.jit.shelf import Specialisation
llvm.initialize_all_targets(), llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="generic", opt=0, reloc="pic")
module = ptxvm.load(sys.argv[1])
for kernel in module.kernels.values():
    text, _ = Translation(module.image, Specialisation(module.image.resolve(kernel.function), (32, 1, 1))).text("first")
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as made:
        made.triple, made.data_layout = machine.triple, str(machine.target_data)
        made.verify()
        print(kernel.name, int.from_bytes(machine.emit_object(made)[18:20], "little"))
"""


@pytest.mark.parametrize("without", ["avx512", "avx512,avx2,fma"])
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(["generated/test_engines_agree.py", "-k", "random"], id="random"),
        pytest.param(["conformance/test_conformance.py", "-k", f"jit and ({CONFORMANCE})"], id="conformance"),
    ],
)
def test_the_bits_are_the_same_without(without: str, chosen: list[str]) -> None:
    environment = os.environ | {"PTXVM_CPU_WITHOUT": without, "PTXVM_RANDOM_KERNELS": "2"}
    path, *more = chosen
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(TESTS / path), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-5000:]


def test_the_benchmark_kernels_become_code_of_aarch64(shared: Path) -> None:
    environment = os.environ | {"PTXVM_CPU_WITHOUT": "avx512"}  # whose instructions are the only ones that are named
    command = [sys.executable, "-c", AARCH64, str(shared / "kernels" / "kernels.ptx")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    made = dict(line.split() for line in done.stdout.splitlines())
    assert len(made) == 14
    assert set(made.values()) == {"183"}  # EM_AARCH64
