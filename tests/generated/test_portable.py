"""The JIT on other processors: without AVX-512, AVX2 and F16C, and on aarch64, for which code is made and not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CONFORMANCE = "half or convert/floats or warp/shfl or float/arithmetic"
AARCH64 = """
import platform, sys
platform.machine = lambda: "aarch64"
import llvmlite.binding as llvm, ptxvm
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.engine.jit.abi.specialisation import Specialisation, VersionKind
llvm.initialize_all_targets(), llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="generic", opt=0, reloc="pic")
module = ptxvm.load(sys.argv[1])
for kernel in module.kernels.values():
    wanted = Specialisation(module.image.resolve(kernel.function), (32, 1, 1))
    text, _ = Translation(module.image, wanted).text(VersionKind.FIRST)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as made:
        made.triple, made.data_layout = machine.triple, str(machine.target_data)
        made.verify()
        print(kernel.name, int.from_bytes(machine.emit_object(made)[18:20], "little"))
"""

# Every f16 as f32; and every f16, what lies half way to the next one, and the neighbours of that, as f16.
HALVES = """
import numpy as np, ptxvm
from ptxvm.engine.jit.values import f16_soft
assert not f16_soft.native()
KERNEL = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 halves, .param .u64 wide, .param .u64 floats, .param .u64 narrow) {
    .reg .b64 %d<9>; .reg .b32 %r<5>; .reg .b16 %h<3>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [halves]; ld.param.u64 %d1, [wide]; ld.param.u64 %d2, [floats]; ld.param.u64 %d3, [narrow];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 256, %r0;
    mul.wide.u32 %d4, %r2, 2; mul.wide.u32 %d5, %r2, 4;
    add.u64 %d6, %d0, %d4; ld.global.b16 %h0, [%d6]; cvt.f32.f16 %f0, %h0;
    add.u64 %d6, %d1, %d5; st.global.f32 [%d6], %f0;
    add.u64 %d6, %d2, %d5; ld.global.f32 %f1, [%d6]; cvt.rn.f16.f32 %h1, %f1;
    add.u64 %d6, %d3, %d4; st.global.b16 [%d6], %h1;
    ret;
}
'''
every = np.arange(1 << 16, dtype=np.uint16)
half_way = (every.view(np.float16).astype(np.float32) + np.roll(every, -1).view(np.float16).astype(np.float32)) / 2
floats = np.concatenate([every.view(np.float16).astype(np.float32), half_way,
                         np.nextafter(half_way, np.float32(np.inf)), np.nextafter(half_way, np.float32(-np.inf))])
halves_given = np.resize(every, len(floats))
wide, narrow = np.zeros(len(floats), np.float32), np.zeros(len(floats), np.uint16)
ptxvm.load(KERNEL).kernel().launch(len(floats) // 256, 256, [halves_given, wide, floats, narrow], engine="jit")
expected = halves_given.view(np.float16).astype(np.float32)
number = ~np.isnan(expected)
assert (wide.view(np.uint32)[number] == expected.view(np.uint32)[number]).all()
assert (wide.view(np.uint32)[~number] == 0x7FFFFFFF).all()
expected = floats.astype(np.float16)
number = ~np.isnan(expected)
assert (narrow[number] == expected.view(np.uint16)[number]).all()
assert (narrow[~number] == 0x7FFF).all()
"""

# Some bytes and halves of rows, up to the last one before a page that nothing may read; the rows lie across pages, too.
ROWS = """
import numpy as np, ptxvm
from ptxvm.campaign.fuzz.engines import fenced
KERNEL = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 some, .param .u64 out, .param .u32 n) {
    .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .b16 %h<3>; .reg .pred %p<3>;
    ld.param.u64 %d0, [in]; ld.param.u64 %d1, [some]; ld.param.u64 %d2, [out]; ld.param.u32 %r4, [n];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 256, %r0;
    mul.wide.u32 %d4, %r2, SIZE; mul.wide.u32 %d5, %r2, 4;
    add.u64 %d1, %d1, %d5; ld.global.u32 %r5, [%d1]; setp.lt.u32 %p0, %r2, %r4; setp.ne.and.u32 %p1, %r5, 0, %p0;
    add.u64 %d0, %d0, %d4; add.u64 %d2, %d2, %d5;
    mov.b32 %r6, -1;
    @!%p1 bra END;
    ld.global.uBITS %r6, [%d0]; add.u32 %r6, %r6, 5; xor.b32 %r6, %r6, %r0;
END:
    st.global.u32 [%d2], %r6;
    ret;
}
'''
rng = np.random.default_rng(5)
threads = np.arange(12288, dtype=np.uint32)
for size, type in ((1, np.uint8), (2, np.uint16)):
    kernel = ptxvm.load(KERNEL.replace("SIZE", str(size)).replace("BITS", str(8 * size))).kernel()
    for count in (12288, 12267, 12001, 9000, 31, 1):
        for part in (1.0, 0.9, 0.1):
            given = fenced(rng.integers(0, 1 << 8 * size, count, dtype=type))
            some, out = (rng.random(12288) < part).astype(np.uint32), np.zeros(12288, np.uint32)
            kernel.launch(48, 256, [given, some, out, np.uint32(count)], engine="jit")
            chosen = (some != 0) & (threads < count)
            values = np.resize(given, 12288).astype(np.uint32) + 5 ^ threads % 256
            assert (out == np.where(chosen, values, 0xFFFFFFFF)).all()
"""


@pytest.mark.parametrize("without", ["", "avx512", "avx512,avx2,fma"])
def test_some_elements_of_a_row_where_memory_ends(without: str) -> None:
    environment = os.environ | {"PTXVM_CPU_WITHOUT": without}
    done = subprocess.run([sys.executable, "-c", ROWS], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("without", ["avx512", "avx512,avx2,fma", "avx512,avx2,fma,f16c"])
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(["generated/test_engines_agree.py", "-k", "random"], id="random"),
        pytest.param(["conformance/test_conformance.py", "-k", f"jit and ({CONFORMANCE})"], id="conformance"),
    ],
)
def test_the_bits_are_the_same_without(without: str, chosen: list[str]) -> None:
    environment = os.environ | {"PTXVM_CPU_WITHOUT": without, "PTXVM_RANDOM_KERNELS": "3"}
    path, *more = chosen
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(TESTS / path), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout[-5000:]


def test_every_half_without_instructions_for_it() -> None:
    """NumPy's conversions are the oracle; a NaN is the canonical one (PTX 9.7.9.21)."""
    environment = os.environ | {"PTXVM_CPU_WITHOUT": "f16c"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HALVES], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-5000:]


def test_the_benchmark_kernels_become_code_of_aarch64(shared: Path) -> None:
    environment = os.environ | {"PTXVM_CPU_WITHOUT": "avx,sse2"}  # whose instructions are the only ones that are named
    command = [sys.executable, "-c", AARCH64, str(shared / "kernels" / "kernels.ptx")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    made = dict(line.split() for line in done.stdout.splitlines())
    assert len(made) == 14
    assert set(made.values()) == {"183"}  # EM_AARCH64
