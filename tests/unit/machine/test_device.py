"""Several devices: memory of their own, peer access, launches side by side, and the scopes that reach across them.

Expected values are sums and copies that NumPy computes, and the rules of PTX 8.5 (scopes) and of the CUDA C++ Programming
Guide, "Peer Device Memory Access".
"""

from __future__ import annotations

from threading import Event, Thread

import numpy as np
import pytest

import ptxvm

ADD = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 count = 5;
.visible .entry add(.param .u64 to, .param .u64 from)
{
    .reg .b64 %to, %from;
    .reg .b32 %t, %x, %y;
    ld.param.u64 %to, [to];
    ld.param.u64 %from, [from];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %to, %t, 4, %to;
    mad.wide.u32 %from, %t, 4, %from;
    ld.global.u32 %x, [%from];
    ld.global.u32 %y, [%to];
    add.u32 %x, %x, %y;
    st.global.u32 [%to], %x;
    ret;
}
"""

# Two devices take turns at a word of the first: each waits for its number, and writes the next one.
TURNS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry turns(.param .u64 word, .param .u32 first, .param .u32 last)
{
    .reg .b64 %a;
    .reg .b32 %mine, %last, %seen;
    .reg .pred %p;
    ld.param.u64 %a, [word];
    ld.param.u32 %mine, [first];
    ld.param.u32 %last, [last];
wait:
    ld.acquire.sys.global.u32 %seen, [%a];
    setp.ne.u32 %p, %seen, %mine;
    @%p bra wait;
    add.u32 %seen, %seen, 1;
    st.release.sys.global.u32 [%a], %seen;
    add.u32 %mine, %mine, 2;
    setp.lt.u32 %p, %mine, %last;
    @%p bra wait;
    ret;
}
"""

COUNT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry count(.param .u64 word)
{
    .reg .b64 %a;
    ld.param.u64 %a, [word];
    red.relaxed.SCOPE.global.add.u32 [%a], 1;
    ret;
}
"""

ENGINES = ("interp", "jit")


@pytest.fixture
def pair():
    first, second = ptxvm.devices(2)
    yield first, second
    for one, other in ((first, second), (second, first)):
        if other in one.peers:
            one.disable_peer_access(other)


def words(device, rng, count=64):
    return device.from_host(rng.integers(0, 1 << 31, count, np.uint32))


def test_the_first_device_is_that_of_all_which_names_none(pair):
    assert ptxvm.devices(2) == list(pair)
    assert [each.number for each in pair] == [0, 1]
    assert ptxvm.DeviceArray(4).memory is pair[0].memory is ptxvm.load(ADD).memory


@pytest.mark.parametrize("engine", ENGINES)
def test_each_device_has_its_own_variables(pair, engine):
    module = ptxvm.load(ADD)
    there = module.on(pair[1])
    module.symbol("count")[...] = 7
    assert there.symbol("count") == 5
    assert there.kernel().device == 1
    x = pair[1].from_host(np.arange(64, dtype=np.uint32))
    there.kernel().launch(1, 64, [x, x], engine=engine)
    assert (x.array == 2 * np.arange(64)).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_access_needs_peer_access(pair, engine, rng):
    first, second = pair
    kernel, x, y = ptxvm.load(ADD).kernel(), words(first, rng), words(second, rng)
    before, expected = x.copy_to_host(), x.array + y.array
    for _ in range(2):
        for theirs in (y, y.array):
            with pytest.raises(ptxvm.Fault, match=r"of device 1, to which device 0 has no peer access") as refused:
                kernel.launch(1, 64, [x, theirs], engine=engine)
            assert refused.value.kind == "peer-access"
    assert (x.array == before).all()
    first.enable_peer_access(second)
    kernel.launch(1, 64, [x, y], engine=engine)
    assert (x.array == expected).all()
    late = words(second, rng)
    kernel.launch(1, 64, [x, late], engine=engine)
    assert (x.array == expected + late.array).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_peer_access_has_a_direction_and_ends(pair, engine, rng):
    first, second = pair
    kernel, x, y = ptxvm.load(ADD).on(second).kernel(), words(first, rng), words(second, rng)
    first.enable_peer_access(second)
    with pytest.raises(ptxvm.Fault, match="peer-access: reading"):
        kernel.launch(1, 64, [y, x], engine=engine)
    second.enable_peer_access(first)
    kernel.launch(1, 64, [y, x], engine=engine)
    second.disable_peer_access(first)
    assert second.peers == []
    with pytest.raises(ptxvm.Fault, match="peer-access: reading"):
        kernel.launch(1, 64, [y, x], engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_bounds_of_a_peers_memory_hold(pair, engine, rng):
    first, second = pair
    first.enable_peer_access(second)
    kernel, x, y = ptxvm.load(ADD).kernel(), words(first, rng), words(second, rng, 63)
    with pytest.raises(ptxvm.Fault, match=r"out-of-bounds.*just past the end of a DeviceArray"):
        kernel.launch(1, 64, [x, y], engine=engine)
    address = np.uint64(y.address)
    y.free()
    with pytest.raises(ptxvm.Fault, match="use-after-free"):
        kernel.launch(1, 64, [x, address], engine=engine)


def test_copies_between_devices_need_no_access(pair, rng):
    first, second = pair
    x = words(first, rng)
    y = second.from_host(x)
    assert y.memory is second.memory
    x.array[...] = 0
    assert y.array.any()
    x.copy_from_host(y)
    assert (x.array == y.array).all()


UPDATES = {
    "atom.add.sys.global.u32 %old, [%a], 1;": (np.uint32, 1000, 400_000),
    "red.add.sys.global.u64 [%a], 1;": (np.uint64, 1000, 400_000),
    "red.add.sys.global.f32 [%a], 0f3F800000;": (np.float32, 1000, 400_000),
    "again: ld.relaxed.sys.global.u32 %old, [%a]; add.u32 %new, %old, 1; atom.cas.sys.global.b32 %new, [%a], %old, %new;"
    "setp.ne.u32 %p, %new, %old; @%p bra again;": (np.uint32, 20, 60_000),
    "red.add.noftz.sys.global.f16x2 [%a], %ones;": (np.float16, 20, 30),  # they count to 2048
}
MANY_UPDATES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry many(.param .u64 word, .param .u32 times)
{
    .reg .b64 %a; .reg .b32 %n, %old, %new, %ones; .reg .pred %p;
    ld.param.u64 %a, [word]; ld.param.u32 %n, [times]; mov.b32 %ones, 0x3C003C00;
loop:
    UPDATE
    sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra loop;
    ret;
}
"""


@pytest.mark.parametrize("update", UPDATES, ids=lambda each: each[:30])
def test_no_update_is_lost_where_devices_run_on_different_engines(pair, update):
    """The interpreter runs on one device while compiled code on the other updates the same word (PTX 8.10.3)."""
    first, second = pair
    second.enable_peer_access(first)
    dtype, few, many = UPDATES[update]
    word, module = first.from_host(np.zeros(2, dtype)), ptxvm.load(MANY_UPDATES.replace("UPDATE", update))
    one = second.start(module.on(second).kernel(), 1, 32, [word, many], engine="jit")
    other = first.start(module.kernel(), 1, 32, [word, few], engine="interp")
    for each in (one, other):
        each.result(100)
    assert word.array[0] == 32 * (few + many)


@pytest.mark.parametrize("engine", ENGINES)
def test_launches_on_two_devices_run_at_once(pair, engine):
    """Each needs the other to go on, so they end only if both run."""
    first, second = pair
    second.enable_peer_access(first)
    module, word = ptxvm.load(TURNS), first.array(1, np.uint32)
    last = 100 if engine == "jit" else 10
    begun = [
        first.start(module.kernel(), args=[word, 0, last], engine=engine, timeout=60),
        second.start(module.on(second).kernel(), args=[word, 1, last], engine=engine, timeout=60),
    ]
    for each in begun:
        assert each.result(timeout=60).grid == (1, 1, 1)
        assert each.done
    assert word.array[0] == last


@pytest.mark.parametrize(("scope", "kinds"), [("sys", []), ("gpu", ["race"]), ("cta", ["race"])])
def test_scopes_below_sys_end_at_the_device(pair, scope, kinds):
    """PTX 8.5: the threads of .gpu are those of one device."""
    first, second = pair
    second.enable_peer_access(first)
    module, word = ptxvm.load(COUNT.replace("SCOPE", scope)), first.array(1, np.uint32)
    one = first.start(module.kernel(), args=[word], check=("race",))
    one._future.result(60)  # it has ended, and the host has not waited for it as a program does
    found = second.start(module.on(second).kernel(), args=[word], check=("race",)).result(60).findings
    assert [each.kind for each in found] == kinds
    if found and scope == "gpu":
        assert "a scope of .sys" in found[0].missing
    one.result(60)
    assert word.array[0] == 2


def test_waiting_for_a_launch_orders_the_next(pair, rng):
    first, second = pair
    second.enable_peer_access(first)
    module, x = ptxvm.load(ADD), words(first, rng)
    assert first.start(module.kernel(), 1, 64, [x, x], check="race").result(60).findings == []
    assert second.start(module.on(second).kernel(), 1, 64, [x, x], check="race").result(60).findings == []


def test_what_a_launch_raised_comes_with_its_result(pair, rng):
    first, second = pair
    kernel = ptxvm.load(ADD).on(second).kernel()
    begun = second.start(kernel, 1, 64, [words(first, rng), words(second, rng)])
    with pytest.raises(ptxvm.Fault, match="peer-access"):
        begun.result(60)


def test_misuse_is_refused(pair):
    first, second = pair
    module = ptxvm.load(ADD)
    for call, error, said in (
        (lambda: ptxvm.devices(0), ValueError, "there are 1 or more devices, not 0"),
        (lambda: first.enable_peer_access(first), ValueError, "is no peer of itself"),
        (lambda: first.enable_peer_access(1), TypeError, "a peer is one of ptxvm.devices"),
        (lambda: first.disable_peer_access(second), ValueError, "has no access"),
        (lambda: second.start(module.kernel()), ValueError, "is of device 0"),
        (lambda: ptxvm.link([module, ptxvm.load(COUNT.replace("SCOPE", "sys")).on(second)]), ValueError, "several devices"),
        (
            lambda: ptxvm.load(ADD.replace("64\n", "32\n", 1)).on(second).memory,
            ptxvm.Unsupported,
            "address_size 32 on device 1",
        ),
    ):
        with pytest.raises(error, match=said):
            call()
    first.enable_peer_access(second)
    with pytest.raises(ValueError, match="already"):
        first.enable_peer_access(second)


def test_a_store_of_one_device_is_never_undone_by_an_update_of_another(pair):
    """A compare-and-swap that fails writes nothing (PTX 8.10.3): a store beside it comes before it, or after it."""
    first, second = pair
    second.enable_peer_access(first)
    word = first.from_host(np.ones(1, np.uint32))
    address = np.uint64(word.address)
    began, ended = Event(), Event()

    def store():
        began.wait()
        second.memory.store(np.dtype(np.uint32), address, np.uint32(0))
        ended.set()

    def unchanged(old, *_):
        began.set()
        ended.wait(0.2)
        return old

    beside = Thread(target=store)
    beside.start()
    first.memory.atomic(np.dtype(np.float32), address, "cas", [np.float32(0)], unchanged)
    beside.join()
    assert word.array.tolist() == [0]
