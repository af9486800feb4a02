"""Mutants of whole pipelines: the examples' products by `wgmma` and `tcgen05`, each with one fault, and what names it.

The kernels are those that nvcc made of examples/*.cu: a ring of buffers that tensor copies fill and products empty.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptxvm

EXAMPLES = Path(__file__).parents[3] / "examples"
Mutation = Callable[[str], str]

WAIT = re.compile(r"again: mbarrier\.try_wait\.parity\.shared::cta\.b64 over, (\[%r\d+\]), (%r\d+);")
USE = re.compile(r"tcgen05\.mma|wgmma\.mma_async|expect_tx|tcgen05\.ld\b")
SKIPPED = "again: setp.eq.u32 over, 0, 0;"
OTHER_PHASE = r""".reg .b32 other; xor.b32 other, \2, 1;
again: mbarrier.try_wait.parity.shared::cta.b64 over, \1, other;"""


def waits(before: str, instead: str) -> Mutation:
    """Every wait whose next use of a buffer is a product, a copy or a load, changed."""

    def changed(text: str) -> str:
        def one(wait: re.Match[str]) -> str:
            use = USE.search(text, wait.end())
            return wait.expand(instead) if use and use[0] == before else wait[0]

        return WAIT.sub(one, text)

    return changed


def replaced(pattern: str, instead: str = "", count: int = 0) -> Mutation:
    """What matches a pattern, replaced."""
    return lambda text: re.sub(pattern, instead, text, count=count)


def last_barrier(text: str) -> str:
    """Without its last barrier."""
    return "".join(text.rpartition("bar.sync \t0;")[::2])


COPY, PRODUCT, LOAD = "cp.async.bulk.tensor", "tcgen05.mma", "tcgen05.ld"
AT_ONCE = replaced(r"tcgen05\.commit\S+ (\[%r(?:72|117|132)\]);", r"mbarrier.arrive.shared::cta.b64 _, \1;")
ALLOCATE, FREE, POLL = "tcgen05.alloc", "tcgen05.dealloc", "mbarrier.try_wait"
TCGEN05: dict[str, tuple[Mutation, str, tuple[str, ...]]] = {
    "a product does not wait for its buffer": (waits(PRODUCT, SKIPPED), "race", (PRODUCT, COPY)),
    "a product waits for the other phase": (waits(PRODUCT, OTHER_PHASE), "race", (PRODUCT, COPY)),
    "a copy does not wait for its buffer": (waits("expect_tx", SKIPPED), "race", (COPY, COPY)),
    "a buffer is given back at once": (AT_ONCE, "race", (PRODUCT, COPY)),
    "a copy waits for the other phase": (waits("expect_tx", OTHER_PHASE), "deadlock", (POLL,)),
    "a load does not wait for the products": (waits(LOAD, SKIPPED), "race", (LOAD, PRODUCT)),
    "a load waits for the other phase": (waits(LOAD, OTHER_PHASE), "race", (LOAD, PRODUCT)),
    "the bytes are not announced": (replaced(r"mbarrier\.arrive\.expect_tx", "// "), "deadlock", (POLL,)),
    "the buffer is not given back": (replaced(r"tcgen05\.commit\S+ \[%r(72|117|132)\];"), "deadlock", (POLL,)),
    "the end is not told": (replaced(r"tcgen05\.commit\S+ \[%r150\];"), "deadlock", (POLL,)),
    "a load is not waited for": (replaced(r"tcgen05\.wait::ld\.sync\.aligned;"), "race", (LOAD, FREE)),
    "memory is not given back": (replaced(r"tcgen05\.dealloc[^;]*;"), "tensor-memory", (ALLOCATE,)),
    "memory is given back in use": (last_barrier, "race", (LOAD, FREE)),
    "too much memory is allocated": (replaced(r"(tcgen05\.alloc.*), 32", r"\1, 64"), "tensor-memory", (FREE,)),
    "memory is allocated too late": (
        replaced("tcgen05.alloc", r"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\ntcgen05.alloc", 1),
        "tensor-memory", (ALLOCATE,),
    ),
    "a warp loads another's lanes": (
        replaced(r"tcgen05\.ld\.sync", r"add.u32 %r230, %r230, 0x200000;\ntcgen05.ld.sync", 1), "tensor-memory", (LOAD,),
    ),
    "the address is read too early": (replaced(r"bar\.sync \t0;", "", 1), "race", (ALLOCATE, "ld.shared")),
    "an mbarrier is not made": (replaced(r"mbarrier\.init\S+ \[%r37\], 1;"), "invalid-mbarrier", (POLL,)),
    "an mbarrier expects too many": (replaced(r"(mbarrier\.init\S+ \[%r38\]), 1", r"\1, 2"), "deadlock", (POLL,)),
}  # fmt: skip
MULTIPLY = "wgmma.mma_async"
WGMMA: dict[str, tuple[Mutation, str, tuple[str, ...]]] = {
    "a product does not wait for its buffer": (waits(MULTIPLY, SKIPPED), "race", (COPY, MULTIPLY)),
    "a product waits for the other phase": (waits(MULTIPLY, OTHER_PHASE), "deadlock", (POLL,)),
    "a copy does not wait for its buffer": (waits("expect_tx", SKIPPED), "race", (COPY, COPY)),
    "a copy waits for the other phase": (waits("expect_tx", OTHER_PHASE), "deadlock", (POLL,)),
    "registers are not ordered": (replaced(r"wgmma\.fence\.sync\.aligned;"), "missing-fence", (MULTIPLY,)),
    "products are not waited for": (replaced(r"wgmma\.wait_group\.sync\.aligned 0;"), "race", (MULTIPLY, COPY)),
    "all but the last are waited for": (replaced(r"(wgmma\.wait_group\S+) 0;", r"\1 1;"), "race", (MULTIPLY, COPY)),
    "products are in no group": (replaced(r"wgmma\.commit_group\.sync\.aligned;"), "race", (MULTIPLY, COPY)),
    "the buffer is not given back": (replaced(r"mbarrier\.arrive\.shared::cta\.b64 _, \[%r\d+\];"), "deadlock", (POLL,)),
    "the bytes are not announced": (replaced(r"mbarrier\.arrive\.expect_tx", "// "), "deadlock", (POLL,)),
    "mbarriers are used before they are made": (replaced(r"bar\.sync \t0;", "", 1), "race", ("mbarrier.init", POLL)),
}  # fmt: skip


@cache
def examples():
    spec = importlib.util.spec_from_file_location("ptxvm_examples", EXAMPLES / "run.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def findings(name: str, mutation: Mutation) -> list[ptxvm.Finding]:
    """What the checks find in one block of an example."""
    text = (EXAMPLES / f"{name}.ptx").read_text()
    changed = mutation(text)
    assert (changed == text) == (mutation is str)
    example = getattr(examples(), name)(np.random.default_rng(1))
    kernel = ptxvm.load(changed).kernel(name)
    return kernel.launch(1, example.block, example.args[:5], check=("memory", "race", "sync"), engine="interp").findings


@pytest.mark.parametrize("name", ["gemm_tcgen05", "gemm_wgmma"])
def test_the_pipelines_have_no_findings(name):
    assert findings(name, str) == []


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "what"), [("gemm_tcgen05", what) for what in TCGEN05] + [("gemm_wgmma", what) for what in WGMMA]
)
def test_a_mutant_is_found_and_its_instructions_are_named(name, what):
    mutation, kind, opcodes = (TCGEN05 if name == "gemm_tcgen05" else WGMMA)[what]
    found = [each for each in findings(name, mutation) if each.kind == kind]
    named = {tuple(access.place.text.removeprefix("again: ").split()[0] for access in each.accesses) for each in found}
    assert any(
        len(each) == len(opcodes) and all(one.startswith(start) for one, start in zip(each, opcodes, strict=True))
        for each in named
    ), named


@pytest.mark.parametrize(
    ("name", "mutation", "missing"),
    [
        ("gemm_tcgen05", AT_ONCE, "tcgen05.commit"),
        ("gemm_wgmma", replaced(r"wgmma\.wait_group\.sync\.aligned 0;"), "wgmma.wait_group"),
        ("gemm_wgmma", waits(MULTIPLY, SKIPPED), "cp.async.bulk.wait_group (or the mbarrier)"),
    ],
)
def test_what_is_missing_is_the_wait_for_the_earlier_access(name, mutation, missing):
    races = [each for each in findings(name, mutation) if each.kind == "race"]
    first = COPY if missing.startswith("cp") else MULTIPLY if missing.startswith("wgmma") else PRODUCT
    said = {each.missing.startswith(missing) for each in races if each.accesses[0].place.text.split()[0].startswith(first)}
    assert said == {True}
