"""The contents of an entry: they are read as they were written, and what is damaged in any way is no entry."""

from __future__ import annotations

import importlib
import inspect
import pickle
import pkgutil
from dataclasses import is_dataclass
from typing import Any

import pytest

import ptxvm
from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import f16, f32, u32, u64
from ptxvm.engine import jit
from ptxvm.engine.jit.abi.metadata import Facts, HostCallSite, Site, SuspendedLayout
from ptxvm.engine.jit.lower.async_copies import PartialCopy, TransferCall
from ptxvm.engine.jit.lower.barriers import ColumnRequest, NoSuchBarrier
from ptxvm.engine.jit.lower.calls import LaunchCall, LibraryCall, MissingBody, NoFunction
from ptxvm.engine.jit.lower.deferred_work import (
    AwaitGroups,
    CommitGroup,
    PostArrival,
    StartCopy,
    StartProduct,
    StartTensorWork,
    StartTransfer,
)
from ptxvm.engine.jit.lower.mma_on_host import Multiplication
from ptxvm.engine.jit.lower.tensor_memory import TensorCall
from ptxvm.engine.jit.lower.textures import TextureQuestion
from ptxvm.engine.jit.lower.warpgroup_on_host import WarpgroupMultiplication
from ptxvm.engine.jit.memory.cluster_addresses import OutsideCluster
from ptxvm.engine.jit.node.counters import StepLimitExceeded
from ptxvm.engine.jit.node.host_queries import IsInSpace, NoTarget, PhaseGoesOn, ReplicaDistance, SpecialRegisterQuery
from ptxvm.engine.jit.node.stack import Overflow
from ptxvm.engine.jit.objects import cache_entry
from ptxvm.engine.jit.objects.cache_entry import packed, packed_code, unpacked, unpacked_code
from ptxvm.engine.jit.objects.loader import FlatCode
from ptxvm.isa.fragments import Product, mma_fragment
from ptxvm.isa.tensor_memory import Allocate, CopyToTensor, Load, Multiply, Tile
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct
from ptxvm.machine.tensor_core import Architecture
from ptxvm.machine.texture_sampling import Fetch
from ptxvm.machine.texture_unit import LookUp, query

FRAGMENTS = [mma_fragment(matrix, held, "m16n8k8") for matrix, held in zip("abcd", (f16, f16, f32, f32), strict=True)]
TRANSFER = TransferCall(Transfer(Pattern.TENSOR, Space.GLOBAL, Space.SHARED, operation="add", type=f32), (("a", 1), ("c", 2)))
TENSOR = TensorCall(Multiply("tcgen05.mma", kind="tf32", blocks=2), ("a", "b"), True)
WARPGROUP = WarpgroupMultiplication(
    WarpgroupProduct(Product(*FRAGMENTS), True, (False, True), (True, False)), Architecture.HOPPER, (4, 1, 2), True
)
WORKS: list[Any] = [
    NoTarget("list", 3), SpecialRegisterQuery("gridid"), IsInSpace(Space.SHARED), ReplicaDistance(2), NoSuchBarrier(),
    ColumnRequest(), OutsideCluster(4), TRANSFER,
    PartialCopy(8), StepLimitExceeded((3, 4)), LaunchCall("cudaLaunchDeviceV2"), LibraryCall("vprintf"), MissingBody("f"),
    NoFunction(), Overflow("alloca", 64),
    TextureQuestion(LookUp(Fetch("2d", component=1)), (("handle", 1), ("coordinates", 2))),
    TextureQuestion(LookUp(Fetch("1d", integers=True)), ()),
    Multiplication(Product(*FRAGMENTS, finite=True), Architecture.HOPPER, (4, 2, 4)),
    WARPGROUP, TENSOR,
    TensorCall(Allocate("tcgen05.alloc", True), ("a", "columns"), True),
    TensorCall(Load("tcgen05.ld", results=(u32, f32), tile=Tile.LANES_16_64B, registers=2, operation="min"), ("a",), False),
    TensorCall(CopyToTensor("tcgen05.cp", warps=(0, 64), format="b6x16_p32"), ("a", "b"), False),
    PhaseGoesOn(), StartCopy(16), StartTransfer(TRANSFER), PostArrival(Space.GENERIC, AsyncKind.TENSOR),
    StartTensorWork(TENSOR),
    StartProduct(WARPGROUP, (4, 5)), CommitGroup(AsyncKind.BULK), AwaitGroups(AsyncKind.PRODUCT, 1, (4, 5)),
]  # fmt: skip
STANDING = SuspendedLayout(32, 448, 64, 2, 8, 1, 16, {3: (1, True), 5: (2, False)})
FACTS = Facts(
    "k", 1, (18, 2, 1), 2, 128, 64, 0, frozenset({"malloc", "free"}), {"dynamic_smem_size": -1}, ((0, 10), (1, 2)), 1, (0, 8),
    (8,), (Site(3, Space.GLOBAL, 4, -4, writing=True),), (), STANDING, True, False,
)  # fmt: skip
CODE = FlatCode(b"\n7\n." * 10, {"grid": 0, "warp": 39}, {8: 16}, {32: "memcpy"})


@pytest.mark.parametrize("work", WORKS, ids=repr)
def test_what_is_written_is_read(work: Any) -> None:
    facts = FACTS._replace(host_calls=(HostCallSite(7, work, (u32, u64), ()), HostCallSite(8, None, (), (f32,))))
    found = unpacked(packed(facts, CODE, 2))
    assert found is not None
    assert found == (facts, CODE, 2)
    for name in ("sites", "host_calls"):  # a member of an enum is more than the word that equals it
        assert repr(getattr(found[0], name)) == repr(getattr(facts, name))


def test_all_that_python_does_has_a_form() -> None:
    """But for what is made on the way, whose parts have none."""
    found = {}
    for module in pkgutil.walk_packages(jit.__path__, "ptxvm.engine.jit."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            call = kind.__dict__.get("__call__") if isinstance(kind, type) and is_dataclass(kind) else None
            if call is not None and list(inspect.signature(call).parameters)[1:3] == ["host", "bound"]:
                found[name] = len(kind.__match_args__)
    assert found.keys() == {type(work).__name__ for work in WORKS} - {"LaunchCall"}  # which inherits how it is called
    for path, parts in cache_entry.HOST_CALLS.items():
        assert parts is not None
        assert len(parts) == found.get(path.partition(":")[2], 1)


def test_works_without_a_form_are_left_out() -> None:
    """They are found again when the kernel is translated."""
    works = [
        HostCallSite(0, TextureQuestion(query("texture", "width"), ()), (), ()),
        HostCallSite(1, MissingBody("two\nlines"), (), ()),
    ]
    found = unpacked(packed(FACTS._replace(host_calls=works), CODE, 0))
    assert found is not None
    assert [work.host_call for work in found[0].host_calls] == [None, None]


DAMAGE = {
    "empty": lambda data: b"",
    "pickle": lambda data: pickle.dumps((FACTS, CODE, 2)),
    "no size": lambda data: b"x" + data,
    "larger size": lambda data: b"1" + data,
    "a word for a number": lambda data: data.replace(b"\n128\n", b"\nfar\n"),
    "a number for a truth": lambda data: data.replace(b"-4\n1", b"-4\n7"),
    "an unknown class": lambda data: data.replace(b"IsInSpace", b"IsSystemX"),
    "an unknown type": lambda data: data.replace(b"u32", b"u33"),
    "a long sequence": lambda data: data.replace(b"\n2\ngrid", b"\n999999999999\ngrid"),
    "a short sequence": lambda data: data.replace(b"\n2\ngrid", b"\n1\ngrid"),
    "code elsewhere": lambda data: data.replace(b"warp\n39", b"warp\n40"),
    "code before": lambda data: data.replace(b"warp\n39", b"warp\n-1"),
    "an address past the end": lambda data: data.replace(b"\n32\nmemcpy", b"\n33\nmemcpy"),
    "no code": lambda data: data[: -len(CODE.code)],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_no_entry(damage: str) -> None:
    data = packed(FACTS._replace(host_calls=(HostCallSite(7, IsInSpace(Space.SHARED), (u32,), ()),)), CODE, 2)
    assert unpacked(data) is not None
    assert DAMAGE[damage](data) != data
    assert unpacked(DAMAGE[damage](data)) is None


def test_code_alone_is_an_entry() -> None:
    data = packed_code(CODE)
    assert unpacked_code(data) == CODE
    assert [n for n in range(len(data)) if unpacked_code(data[:n]) is not None] == []


def test_every_prefix_is_no_entry() -> None:
    data = packed(FACTS, CODE, 2)
    assert [n for n in range(len(data)) if unpacked(data[:n]) is not None] == []


def test_an_entry_of_wrong_types_is_made_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its digest is right, for whoever wrote it knows how that is made."""
    from ptxvm.engine.jit.objects.disk_cache import DiskCache

    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }"
    ptxvm.load(text).kernel().launch(engine="jit")
    (entry,) = tmp_path.iterdir()
    good, kept = entry.read_bytes(), DiskCache(tmp_path)
    for wrong in (pickle.dumps((1, 2, 3)), pickle.dumps(("facts", {}, None)), b"3\n1\n2"):
        kept.put(entry.stem, wrong)
        ptxvm.load(text).kernel().launch(engine="jit")
        assert entry.read_bytes() == good
