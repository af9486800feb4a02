"""A program of the driver and the library on three devices, in a process of its own: multimem addresses of all of them.

    python multicast_team.py ENGINE

Expected values are NumPy's sums, extremes and copies of what the devices hold (PTX 9.7.9.14, 9.7.9.26 and 9.7.9.27).
"""

from __future__ import annotations

import sys
from ctypes import byref, c_int, c_size_t, c_uint64
from typing import Any

import numpy as np
import pytest
from stream_driver import Driver

import ptxvm
from ptxvm.libcuda.structures import AccessDescription, AllocationProperties, MulticastProperties

ENGINE: Any = sys.argv[1]
UNIT, COUNT, READ_WRITE, INVALID_VALUE, NOT_PERMITTED, NOT_SUPPORTED = 2 << 20, 3, 3, 1, 800, 801
HEAD = ".version 9.1\n.target sm_90\n.address_size 64\n"
KERNEL = (
    HEAD
    + """.shared .align 16 .b8 room[4096];
.visible .entry k(.param .u64 team, .param .u64 out, .param .u64 more)
{
    .reg .b64 %team, %out, %more, %d<4>; .reg .b32 %t, %r<9>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .f64 %g<4>; .reg .pred %p;
    ld.param.u64 %team, [team]; ld.param.u64 %out, [out]; ld.param.u64 %more, [more]; mov.u32 %t, %tid.x;
    BODY
    ret;
}
"""
)


class Team:
    """A multicast object of some devices, the memory of each, and where all of it is mapped."""

    def __init__(self, cuda: Driver, devices: list[int]) -> None:
        self.cuda, self.devices, self.object = cuda, devices, c_uint64()
        cuda.cuMulticastCreate(byref(self.object), byref(MulticastProperties(len(devices), UNIT, 0, 0)))
        for each in devices:
            cuda.cuMulticastAddDevice(self.object, c_int(each))
        self.memories = [c_uint64() for _ in devices]
        for handle, each in zip(self.memories, devices, strict=True):
            cuda.cuMemCreate(byref(handle), c_size_t(UNIT), byref(AllocationProperties(1, 0, 1, each)), c_uint64(0))
            cuda.cuMulticastBindMem(self.object, c_size_t(0), handle, c_size_t(0), c_size_t(UNIT), c_uint64(0))
        self.address = self.mapped(self.object)
        self.own = [self.mapped(handle) for handle in self.memories]

    def mapped(self, handle: c_uint64) -> int:
        """Map memory, with access for all devices."""
        start = c_uint64()
        self.cuda.cuMemAddressReserve(byref(start), c_size_t(UNIT), c_size_t(0), c_uint64(0), c_uint64(0))
        self.cuda.cuMemMap(start, c_size_t(UNIT), c_size_t(0), handle, c_uint64(0))
        access = (AccessDescription * COUNT)(*(AccessDescription(1, each, READ_WRITE) for each in range(COUNT)))
        self.cuda.cuMemSetAccess(start, c_size_t(UNIT), access, c_size_t(COUNT))
        return start.value

    def of(self, number: int) -> np.ndarray:
        """The bytes of a device."""
        found = np.zeros(UNIT, np.uint8)
        self.cuda.cuMemcpyDtoH_v2(c_uint64(found.ctypes.data), c_uint64(self.own[number]), c_size_t(UNIT))
        return found

    def put(self, number: int, values: np.ndarray, offset: int = 0) -> None:
        """Write to the memory of a device."""
        self.cuda.cuMemcpyHtoD_v2(c_uint64(self.own[number] + offset), c_uint64(values.ctypes.data), c_size_t(values.nbytes))

    def random(self, rng: np.random.Generator, dtype: str, count: int = 64) -> np.ndarray:
        """Random values on each device, as rows."""
        if dtype[0] == "f":
            found = rng.normal(size=(len(self.devices), count)).astype(dtype)
        else:
            found = rng.integers(0, 256, (len(self.devices), count * np.dtype(dtype).itemsize), np.uint8).view(dtype)
        for number, row in enumerate(found):
            self.put(number, np.ascontiguousarray(row))
        return found


def run(body: str, *args: object, threads: int = 64, device: int = 0) -> None:
    """Run a kernel."""
    module = ptxvm.load(KERNEL.replace("BODY", body)).on(ptxvm.devices(COUNT)[device])
    module.kernel().launch(1, threads, list(args), engine=ENGINE)


OPERATIONS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
INTEGERS = {
    "u32": "add min max", "s32": "add min max", "u64": "add min max", "s64": "min max",
    "b32": "and or xor", "b64": "and or xor",
}  # fmt: skip


def integers(team: Team, rng: np.random.Generator) -> None:
    """Loads that reduce, reductions and stores of integers, by each operation."""
    for type, operations in INTEGERS.items():
        dtype, size, register = (
            type.replace("s", "i").replace("b", "u"),
            int(type[1:]) // 8,
            "%r0" if type[1:] == "32" else "%d0",
        )
        dtype = f"{dtype[0]}{size}"
        at = f"mul.wide.u32 %d1, %t, {size}; add.u64 %d2, %team, %d1; add.u64 %d3, %out, %d1;"
        for name in operations.split():
            held, out = team.random(rng, dtype), np.zeros(64, dtype)
            load = f"multimem.ld_reduce.relaxed.sys.global.{name}.{type} {register}, [%d2];"
            run(f"{at} {load} st.global.{type} [%d3], {register};", team.address, out, 0)
            assert (out == OPERATIONS[name].reduce(held, dtype=dtype)).all(), (type, name)
            x = rng.integers(0, 256, 64 * size, np.uint8).view(dtype)
            run(f"{at} ld.global.{type} {register}, [%d3]; multimem.red.relaxed.sys.global.{name}.{type} [%d2], {register};",
                team.address, x, 0, device=2)  # fmt: skip
            for number, row in enumerate(held):
                assert (team.of(number)[: 64 * size].view(dtype) == OPERATIONS[name](row, x)).all(), (type, name, number)
        run(
            f"{at} ld.global.{type} {register}, [%d3]; multimem.st.relaxed.sys.global.{type} [%d2], {register};",
            team.address,
            x,
            0,
        )
        assert all((team.of(number)[: 64 * size].view(dtype) == x).all() for number in range(len(team.devices)))


def floats(team: Team, rng: np.random.Generator) -> None:
    """Floats, vectors of them and packed ones; sums of halves that are rounded once."""
    at = "mul.wide.u32 %d1, %t, 16; add.u64 %d2, %team, %d1; add.u64 %d3, %out, %d1;"
    four, store = "{%r0, %r1, %r2, %r3}", "st.global.v4.b32 [%d3], {%r0, %r1, %r2, %r3};"
    held, out = team.random(rng, "f4", 256), np.zeros(256, "f4")
    run(f"{at} multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {four.replace('r', 'f')}, [%d2];"
        " st.global.v4.f32 [%d3], {%f0, %f1, %f2, %f3};", team.address, out, 0)  # fmt: skip
    assert (out == (held[0] + held[1]) + held[2]).all()
    for name in ("add", "min", "max", "add.acc::f32"):
        held, out = team.random(rng, "f2", 512), np.zeros(512, "f2")
        run(f"{at} multimem.ld_reduce.relaxed.sys.global.{name}.v4.f16x2 {four}, [%d2]; {store}", team.address, out, 0)
        if name == "add.acc::f32":
            single = held.astype("f4")
            expected = ((single[0] + single[1]) + single[2]).astype("f2")
        else:
            expected = OPERATIONS[name](OPERATIONS[name](held[0], held[1]), held[2])
        assert (out == expected).all(), name
    held, x = team.random(rng, "f2", 512), rng.normal(size=512).astype("f2")
    run(f"{at} ld.global.v4.b32 {four}, [%d3]; multimem.red.relaxed.sys.global.add.v4.f16x2 [%d2], {four};", team.address, x, 0)
    assert all((team.of(number)[:1024].view("f2") == row + x).all() for number, row in enumerate(held))
    eight = KERNEL.replace("BODY", "multimem.ld_reduce.weak.global.add.e5m2x4 %r0, [%team];").replace("sm_90", "sm_100f")
    with pytest.raises(ptxvm.Unsupported, match="over several devices"):
        ptxvm.load(eight).kernel().launch(1, 1, [team.address, 0, 0], engine=ENGINE)


def bulk(team: Team, rng: np.random.Generator) -> None:
    """Bulk copies from shared memory to all devices, and bulk sums."""
    fill = """ld.global.u32 %r0, [%out]; mad.lo.u32 %r0, %t, 3, %r0; mov.u32 %r1, room; mad.lo.u32 %r1, %t, 4, %r1;
    st.shared.u32 [%r1], %r0;
    fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p, %t, 0; mov.u32 %r1, room;"""
    wait = "@!%p cp.async.bulk.commit_group; @!%p cp.async.bulk.wait_group 0;"
    held, start = team.random(rng, "u4"), np.array([7], "u4")
    moved = 7 + 3 * np.arange(64, dtype="u4")
    run(f"{fill} @!%p multimem.cp.async.bulk.global.shared::cta.bulk_group [%team], [%r1], 256; {wait}", team.address, start, 0)
    assert all((team.of(number)[:256].view("u4") == moved).all() for number in range(len(team.devices)))
    held = team.random(rng, "u4")
    run(f"{fill} @!%p multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%team], [%r1], 256; {wait}",
        team.address, start, 0)  # fmt: skip
    assert all((team.of(number)[:256].view("u4") == row + moved).all() for number, row in enumerate(held))


def several(teams: list[Team], rng: np.random.Generator) -> None:
    """The lanes of a warp reach teams of three, two and one device by one instruction."""
    held = [each.random(rng, "u4") for each in teams]
    addresses, out = np.array([each.address for each in teams], "u8"), np.zeros(64, "u4")
    body = """rem.u32 %r1, %t, 3; mad.wide.u32 %d1, %r1, 8, %more; ld.global.u64 %d1, [%d1]; mad.wide.u32 %d2, %t, 4, %d1;
    setp.lt.u32 %p, %t, 50; @%p multimem.ld_reduce.relaxed.sys.global.add.u32 %r0, [%d2];
    @%p multimem.red.relaxed.sys.global.add.u32 [%d2], 1000; mad.wide.u32 %d3, %t, 4, %out; @%p st.global.u32 [%d3], %r0;"""
    run(body, 0, out, addresses)
    for k, (team, rows) in enumerate(zip(teams, held, strict=True)):
        asked = np.arange(64)[(np.arange(64) % 3 == k) & (np.arange(64) < 50)]
        assert (out[asked] == rows.sum(0, dtype="u4")[asked]).all()
        for number, row in enumerate(rows):
            expected = row.copy()
            expected[asked] += 1000
            assert (team.of(number)[:256].view("u4") == expected).all()
    assert not out[50:].any()


def together(team: Team, rng: np.random.Generator) -> None:
    """An all-reduce: the kernels of all devices meet at a multimem counter, add a part each, and meet again."""
    held = team.random(rng, "u4", 192)
    team_flags = 4096
    for number in range(COUNT):
        team.put(number, np.zeros(2, "u4"), team_flags)
    meet = """bar.sync 0; setp.eq.u32 %p, %t, 0; @%p multimem.red.release.sys.global.add.u32 [%team+{0}], 1;
    W{0}: ld.acquire.sys.global.u32 %r1, [%out+{0}]; setp.ne.u32 %p, %r1, 3; @%p bra W{0}; bar.sync 0;"""
    body = (
        meet.format(team_flags)
        + """cvt.u32.u64 %r2, %more; mad.lo.u32 %r2, %r2, 64, %t; mad.wide.u32 %d1, %r2, 4, %team;
    multimem.ld_reduce.relaxed.sys.global.add.u32 %r0, [%d1]; multimem.st.relaxed.sys.global.u32 [%d1], %r0;"""
        + meet.format(team_flags + 4)
    )
    module: Any = ptxvm.load(KERNEL.replace("BODY", body))
    started = [
        device.start(module.on(device).kernel(), 1, 64, [team.address, team.own[n], n], engine=ENGINE)
        for n, device in enumerate(ptxvm.devices(COUNT))
    ]
    for each in started:
        each.result(60)
    assert all((team.of(number)[:768].view("u4") == held.sum(0, dtype="u4")).all() for number in range(COUNT))


def lifetime(cuda: Driver) -> None:
    """Memory that is not bound on all devices is none; a team has each device once."""
    made, library = c_uint64(), cuda.library
    assert library.cuMulticastCreate(byref(made), byref(MulticastProperties(COUNT + 1, UNIT, 0, 0))) == NOT_SUPPORTED
    cuda.cuMulticastCreate(byref(made), byref(MulticastProperties(2, UNIT, 0, 0)))
    cuda.cuMulticastAddDevice(made, c_int(1))
    assert library.cuMulticastAddDevice(made, c_int(1)) == INVALID_VALUE
    handle = c_uint64()
    cuda.cuMemCreate(byref(handle), c_size_t(UNIT), byref(AllocationProperties(1, 0, 1, 1)), c_uint64(0))
    assert library.cuMulticastBindMem(made, c_size_t(0), handle, c_size_t(0), c_size_t(UNIT), c_uint64(0)) == NOT_PERMITTED
    cuda.cuMulticastAddDevice(made, c_int(0))
    assert library.cuMulticastAddDevice(made, c_int(2)) == INVALID_VALUE
    team = Team(cuda, [2, 0])
    run("multimem.st.relaxed.sys.global.u32 [%team], 5;", team.address, 0, 0)
    cuda.cuMulticastUnbind(team.object, c_int(0), c_size_t(0), c_size_t(UNIT))
    with pytest.raises(ptxvm.Fault) as caught:
        run("multimem.st.relaxed.sys.global.u32 [%team], 6;", team.address, 0, 0)
    assert caught.value.address == team.address
    assert [int(team.of(n)[0]) for n in (0, 1)] == [5, 5]
    library.cuMemUnmap(c_uint64(team.address), c_size_t(UNIT))
    cuda.cuMemAddressFree(c_uint64(team.address), c_size_t(UNIT))


if __name__ == "__main__":
    rng, driver = np.random.default_rng(int(sys.argv[2])), Driver()
    driver.handle("cuDevicePrimaryCtxRetain", 0)
    driver.cuCtxSetCurrent(driver.handle("cuDevicePrimaryCtxRetain", 0))
    all_devices = Team(driver, [1, 0, 2])
    integers(all_devices, rng)
    floats(all_devices, rng)
    bulk(all_devices, rng)
    several([all_devices, Team(driver, [2, 1]), Team(driver, [0])], rng)
    together(all_devices, rng)
    lifetime(driver)
