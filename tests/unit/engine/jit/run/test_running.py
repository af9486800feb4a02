"""How compiled kernels are run: kept on disk, on several threads of the host, told apart, interrupted."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

import numpy as np
import pytest
from python_threads import at_once

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.objects import code_cache
from ptxvm.engine.jit.objects.code_cache import CodeCache
from ptxvm.engine.jit.run import callbacks, cta_distribution, tiering
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.settings import Tiering

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"

SCALE = """
.global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 data)
{
    .reg .b32 %r<8>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    mul.wide.u32 %d1, %r3, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.u32 %r4, [%d2];
    ld.global.u32 %r5, [factor];
    mul.lo.u32 %r6, %r4, %r5;
    st.global.u32 [%d2], %r6;
    ret;
}
"""
# Each CTA traps whose number is in the list, and is slow before it.
TRAPS = """
.visible .entry traps(.param .u64 bad, .param .u64 done, .param .u32 work)
{
    .reg .b32 %r<10>; .reg .b64 %d<8>; .reg .pred %p<3>;
    ld.param.u64 %d0, [bad];
    ld.param.u64 %d1, [done];
    ld.param.u32 %r0, [work];
    mov.u32 %r1, %ctaid.x;
    cvt.u64.u32 %d2, %r1;
    add.u64 %d3, %d0, %d2;
    ld.global.u8 %r2, [%d3];
LOOP:
    sub.u32 %r0, %r0, 1;
    setp.gt.s32 %p0, %r0, 0;
    @%p0 bra LOOP;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 trap;
    add.u64 %d4, %d1, %d2;
    mov.u32 %r3, 1;
    st.global.u8 [%d4], %r3;
    ret;
}
"""
COUNT = """
.visible .entry count(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %d<4>;
    .reg .OF %v<3>;
    ld.param.u64 %d0, [out];
    mov.u32 %r0, %tid.x;
    and.b32 %r0, %r0, 3;
    mul.wide.u32 %d1, %r0, SIZE;
    add.u64 %d0, %d0, %d1;
    mov.OF %v0, ONE;
    atom.global.OP %v1, [%d0], %v0;
    ret;
}
"""
BARRIERS = """
.visible .entry forever()
{
AGAIN:
    bar.sync 0;
    bra AGAIN;
}
"""


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waking a thread pays for the smallest grid."""
    monkeypatch.setattr(cta_distribution, "WORTH", 0.0)
    monkeypatch.setattr(cta_distribution, "FIRST", 1)


# ── kept on disk ────────────────────────────────────────────────────────────────────────

PROCESS = """
import json, sys
import numpy as np, ptxvm
data = np.arange(64, dtype=np.uint32)
module = ptxvm.load(sys.argv[1])
if len(sys.argv) > 2:
    module.symbol("factor")[...] = int(sys.argv[2])
module.kernel().launch(2, 32, [data], engine="jit")
compiles = {"llvmlite", "logging", "concurrent.futures", "ptxvm.diagnostics.mangled"}
compiles |= {"ptxvm.engine.jit.cfg.nodes", "ptxvm.engine.jit.ir.lane_values"}
print(json.dumps([data.tolist(), not compiles.isdisjoint(sys.modules)]))
"""


def process(folder: Path, source: Path, *words: str) -> tuple[list[int], bool]:
    """The result of a process of its own, and whether it needed LLVM, or what else is imported to compile."""
    environment = {**os.environ, "PTXVM_CACHE": str(folder)}
    command = [sys.executable, "-c", PROCESS, str(source), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    data, imported = json.loads(done.stdout)
    return data, imported


def test_the_next_process_needs_no_llvm_and_finds_its_own_addresses(tmp_path: Path) -> None:
    source = tmp_path / "scale.ptx"
    source.write_text(HEAD + SCALE)
    assert process(tmp_path / "kept", source) == ([3 * n for n in range(64)], True)
    assert process(tmp_path / "kept", source, "5") == ([5 * n for n in range(64)], False)  # in a variable of that process


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    source = tmp_path / "scale.ptx"
    source.write_text(HEAD + SCALE)
    process(tmp_path / "kept", source)
    for entry in (tmp_path / "kept").iterdir():
        entry.write_bytes(entry.read_bytes()[:-100] + bytes(100))
    assert process(tmp_path / "kept", source) == ([3 * n for n in range(64)], True)
    assert process(tmp_path / "kept", source) == ([3 * n for n in range(64)], False)


WHAT_CANNOT_BE_KEPT = """
import sys
import numpy as np, ptxvm
from pathlib import Path
source = Path(sys.argv[1]).read_text()
module = ptxvm.load(source)
image = ptxvm.Texture(np.arange(8, dtype=np.float32))
out = np.zeros(8, np.float32)
module.kernel().launch(1, 8, [image, out], engine="jit")
print(out.tolist(), "ptxvm.engine.jit.objects.codegen" in sys.modules)  # which compiles
"""
FETCH = """
.visible .entry fetch(.param .u64 image, .param .u64 out)
{
    .reg .b32 %r; .reg .b64 %d<4>; .reg .f32 %f<4>;
    ld.param.u64 %d0, [image];
    ld.param.u64 %d1, [out];
    mov.u32 %r, %tid.x;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r}];
    mul.wide.u32 %d2, %r, 4;
    add.u64 %d3, %d1, %d2;
    st.global.f32 [%d3], %f0;
    ret;
}
"""


def test_what_python_does_for_a_kernel_is_found_again(tmp_path: Path) -> None:
    source = tmp_path / "fetch.ptx"
    source.write_text(HEAD + FETCH)
    command = [sys.executable, "-c", WHAT_CANNOT_BE_KEPT, str(source)]
    environment = {**os.environ, "PTXVM_CACHE": str(tmp_path / "kept")}
    said = [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split("] ")
        for _ in range(2)
    ]
    assert [values for values, _ in said] == ["[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0"] * 2
    assert [compiled.strip() for _, compiled in said] == ["True", "False"]


def keys(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The keys of code that must not be taken for each other."""
    text, blocks = HEAD + SCALE, ((32, 1, 1), (64, 1, 1), (32, 2, 1))
    module = ptxvm.load(text)
    function = module.kernel().function
    shelves = {"plain": CodeCache(module.image)}
    shelves["text"] = CodeCache(ptxvm.load(text.replace("= 3", "= 4")).image)
    shelves["target"] = CodeCache(ptxvm.load(text, target="sm_100").image)
    found = {
        name: each.key(Specialisation(each.image.programs[0].kernels[0], (32, 1, 1)), VersionKind.FIRST)
        for name, each in shelves.items()
    }
    plain = shelves["plain"]
    found |= {f"block {block}": plain.key(Specialisation(function, block), VersionKind.FIRST) for block in blocks[1:]}
    found["shared"] = plain.key(Specialisation(function, (32, 1, 1), 64), VersionKind.FIRST)
    found["cluster"] = plain.key(Specialisation(function, (32, 1, 1), cluster=(2, 1, 1)), VersionKind.FIRST)
    usual = Specialisation(function, (32, 1, 1))
    for flag in (name for name, value in Specialisation._field_defaults.items() if value is False):
        found[flag] = plain.key(usual._replace(**{flag: True}), VersionKind.FIRST)
    found["version"] = plain.key(Specialisation(function, (32, 1, 1)), VersionKind.MASKED)
    with monkeypatch.context() as changed:
        changed.setattr(code_cache.cpu, "identity", lambda: "another processor")
        found["processor"] = plain.key(Specialisation(function, (32, 1, 1)), VersionKind.FIRST)
        changed.undo()
        changed.setattr(code_cache, "ourselves", lambda: "another ptxvm")
        found["ptxvm"] = plain.key(Specialisation(function, (32, 1, 1)), VersionKind.FIRST)
    return found


def test_code_is_kept_by_all_that_it_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = keys(monkeypatch)
    assert len(set(found.values())) == len(found)
    assert keys(monkeypatch) == found


def test_a_source_of_ours_that_changes_makes_another_version(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    file = tmp_path / "inside" / "code.py"
    file.write_text("a = 1")
    (tmp_path / "notes.txt").write_text("no code")
    before = sorted(code_cache.sources(tmp_path))
    assert [name for name, _, _ in before] == [str(file)]
    file.write_text("a = 12")
    assert sorted(code_cache.sources(tmp_path)) != before


def test_rooms_whose_sources_do_not_count_stand_above_the_engines() -> None:
    """By the contract of layers, which the imports are held to."""
    project = tomllib.loads((Path(__file__).parents[5] / "pyproject.toml").read_text())
    layers = next(each["layers"] for each in project["tool"]["importlinter"]["contracts"] if each["id"] == "layers")
    floors = [{room.strip(" ()") for room in layer.split("|")} for layer in layers]
    above = set().union(*itertools.takewhile(lambda floor: "engine" not in floor, floors))
    assert above >= code_cache.ABOVE


def test_a_better_tier_takes_the_place_of_a_quick_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    module = ptxvm.load(HEAD + SCALE)
    wanted = Specialisation(module.kernel().function, (32, 1, 1))
    tiering = [
        CodeCache(module.image).get(wanted, VersionKind.FIRST, tier).tier for tier in (Tier.QUICK, Tier.BEST, Tier.QUICK)
    ]
    assert tiering == [Tier.QUICK, Tier.BEST, Tier.BEST]


# ── threads ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_cta_runs_once(threads: int) -> None:
    data = np.arange(1000 * 32, dtype=np.uint32)
    kernel = ptxvm.load(HEAD + SCALE).kernel()
    for times in (3, 9):
        kernel.launch(1000, 32, [data], engine="jit", threads=threads)
        assert (data == times * np.arange(1000 * 32, dtype=np.uint32)).all()


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize(
    ("operation", "type", "one", "wanted"),
    [
        ("add.u32", "b32", "1", np.uint32(16000)),
        ("add.u64", "b64", "1", np.uint64(16000)),
        ("add.f32", "f32", "0f3F800000", np.float32(16000)),
        ("add.f64", "f64", "0d3FF0000000000000", np.float64(16000)),
        ("inc.u32", "b32", "0xffffffff", np.uint32(16000)),
        ("add.noftz.f16x2", "b32", "0x3c000001", np.uint32(0x68000800)),  # 2048 times 1 and 2^-24, where it stalls
        ("max.s32", "b32", "-5", np.uint32(0)),
        ("min.u32", "b32", "7", np.uint32(0)),
        ("or.b64", "b64", "0x100000001", np.uint64(0x100000001)),
        ("exch.b32", "b32", "9", np.uint32(9)),
    ],
)
def test_atomics_of_several_threads_lose_nothing(operation: str, type: str, one: str, wanted: np.generic) -> None:
    text = COUNT.replace("OF", type).replace("OP", operation).replace("ONE", one).replace("SIZE", str(wanted.itemsize))
    out = np.zeros(4, wanted.dtype)
    ptxvm.load(HEAD + text).kernel().launch(2000, 32, [out], engine="jit", threads=4)
    assert (out == wanted).all()


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("bad", [[0], [17, 18, 400], [499], [350, 351, 352, 353]])
def test_the_fault_of_the_first_cta_is_raised(threads: int, bad: list[int]) -> None:
    marks, done = np.zeros(500, np.uint8), np.zeros(500, np.uint8)
    marks[bad] = 1
    kernel = ptxvm.load(HEAD + TRAPS).kernel()
    for work in (1, 2000):
        done[:] = 0
        with pytest.raises(ptxvm.Fault) as caught:
            kernel.launch(500, 32, [marks, done, np.uint32(work)], engine="jit", threads=threads)
        assert caught.value.kind == "trap"
        assert caught.value.place.cta == (bad[0], 0, 0)
        assert done[: bad[0]].all()  # whatever came first has run to its end
        assert not done[marks != 0].any()
    marks[:] = 0
    kernel.launch(500, 32, [marks, done, np.uint32(1)], engine="jit", threads=threads)
    assert done.all()


def test_ctas_run_in_their_order_on_one_thread() -> None:
    text = COUNT.replace("OF", "f32").replace("OP", "add.f32").replace("ONE", "0f3F800000").replace("SIZE", "4")
    kernel = ptxvm.load(HEAD + text).kernel()
    found = []
    for _ in range(2):
        out = np.array([1e8, 0.1, 3, 7], np.float32)
        kernel.launch(300, 32, [out], engine="jit", threads=1)
        found.append(out.tobytes())
    out = np.array([1e8, 0.1, 3, 7], np.float32)
    kernel.launch(300, 32, [out], engine="interp")
    assert found == [out.tobytes()] * 2


def test_launches_of_several_python_threads_do_not_meet() -> None:
    kernel = ptxvm.load(HEAD + SCALE).kernel()
    wrong: list[int] = []

    def work(seed: int) -> None:
        data = np.arange(seed, seed + 640, dtype=np.uint32)
        for _ in range(30):
            before = data.copy()
            kernel.launch(20, 32, [data], engine="jit", threads=2)
            if not (data == 3 * before).all():
                wrong.append(seed)

    at_once(work, range(0, 4000, 1000))
    assert not wrong


def test_the_number_of_threads_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, data = ptxvm.load(HEAD + SCALE).kernel(), np.zeros(32, np.uint32)
    with pytest.raises(ValueError, match="1 or more threads of the host, not 0"):
        kernel.launch(1, 32, [data], threads=0)
    for text, found in (("3", 3), ("", cta_distribution.processors())):
        monkeypatch.setenv("PTXVM_THREADS", text)
        assert cta_distribution.usual_threads.__wrapped__() == found
    monkeypatch.setenv("PTXVM_THREADS", "several")
    with pytest.raises(ValueError, match="PTXVM_THREADS is a number of threads, not 'several'"):
        cta_distribution.usual_threads.__wrapped__()


def test_numerics_are_exact_or_fast() -> None:
    kernel, data = ptxvm.load(HEAD + SCALE).kernel(), np.zeros(32, np.uint32)
    with pytest.raises(ValueError, match="there are no numerics 'loose'; there are exact, fast"):
        kernel.launch(1, 32, [data], numerics="loose")


# ── memory ──────────────────────────────────────────────────────────────────────────────


def test_windows_and_the_bank_are_no_memory_between_launches() -> None:
    module = ptxvm.load(HEAD + SCALE)
    data = np.zeros(64, np.uint32)
    for _ in range(3):
        module.kernel().launch(2, 32, [data], engine="jit")
        assert not {each.space for each in module.memory.table.items} & {"shared", "local", "param"}


def test_no_access_is_checked_where_the_user_trusts_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(callbacks.Callbacks, "_check_access", refuse)
    module, data = ptxvm.load(HEAD + SCALE), np.arange(64, dtype=np.uint32)
    module.symbol("factor")[...] = 4
    module.kernel().launch(2, 32, [data], engine="jit", check=())
    assert (data == 4 * np.arange(64)).all()
    with pytest.raises(AssertionError, match="asked"):
        module.kernel().launch(2, 32, [data[:32]], engine="jit")


# ── interruptions ───────────────────────────────────────────────────────────────────────

INTERRUPTED = """
import signal, sys, threading, time
import numpy as np, ptxvm
signal.signal(signal.SIGINT, signal.default_int_handler)  # which may be ignored where the tests run
kernel = ptxvm.load(sys.argv[1]).kernel()
flag = np.zeros(1, np.uint32)
def tell():
    while not flag[0]:
        time.sleep(0.001)
    print("running", flush=True)
threading.Thread(target=tell, daemon=True).start()
try:
    kernel.launch(64, 64, [flag], engine="jit", threads=int(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
TELLS = """forever(.param .u64 flag)
{
    .reg .b64 %flag;
    ld.param.u64 %flag, [flag];
    st.volatile.global.u32 [%flag], 1;"""
"""The head of a kernel that tells that it runs."""
LOOP = """
.visible .entry forever()
{
AGAIN:
    bra AGAIN;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [LOOP, BARRIERS], ids=["a loop", "a loop of barriers"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_user_can_interrupt_a_kernel(text: str, threads: int, tmp_path: Path) -> None:
    source = tmp_path / "forever.ptx"
    source.write_text(HEAD + text.replace("forever()\n{", TELLS))
    command = [sys.executable, "-c", INTERRUPTED, str(source), str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "running\n"
        running.send_signal(signal.SIGINT)
        try:
            assert running.communicate(timeout=600)[0] == "interrupted\n"
        finally:
            running.kill()


@pytest.mark.parametrize("text", [LOOP, BARRIERS], ids=["a loop", "a loop of barriers"])
def test_the_budget_ends_a_kernel(text: str) -> None:
    with pytest.raises(ptxvm.Fault, match="did not end within 10 steps"):
        ptxvm.load(HEAD + text).kernel().launch(4, 64, [], engine="jit", steps=10, threads=2)


# ── tiers ───────────────────────────────────────────────────────────────────────────────


def test_a_kernel_that_runs_for_long_gets_better_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "policy", lambda: Tiering.AUTO)
    monkeypatch.setattr(tiering, "WARM", 0.0)
    monkeypatch.setattr(tiering, "FACTOR", 0.0)
    module = ptxvm.load(HEAD + SCALE)
    kernel, data = module.kernel(), np.arange(64, dtype=np.uint32)
    compiled = module.jit.compiled(Specialisation(kernel.function, (32, 1, 1)))
    assert compiled.versions[VersionKind.FIRST].tier == Tier.QUICK
    kernel.launch(2, 32, [data], engine="jit")
    for thread in threading.enumerate():
        if thread.name == "ptxvm compiles":
            thread.join()
    assert compiled.better is not None
    assert compiled.better.versions[VersionKind.FIRST].tier == Tier.BEST
    kernel.launch(2, 32, [data], engine="jit")
    assert (data == 9 * np.arange(64)).all()


# With a loop that is left at once: the results are no multiples of 32.
AGAIN = """
AGAIN:
    setp.eq.u32 %p, %r6, %r1;
    @%p bra AGAIN;
    ret;"""
LOOP = SCALE.replace(".reg .b64", ".reg .pred %p; .reg .b64").replace("\n    ret;", AGAIN)


def test_a_short_launch_without_loops_gets_a_sketch_and_a_long_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "policy", lambda: Tiering.AUTO)
    monkeypatch.setenv("PTXVM_CACHE", "off")
    few, many = np.ones(64, np.uint32), np.ones(32 * 1024, np.uint32)
    for text, sketched in ((SCALE, Tier.SKETCH), (LOOP, Tier.QUICK)):
        module = ptxvm.load(HEAD + text)
        kernel = module.kernel()
        kernel.launch(2, 32, [few], engine="jit")
        compiled = module.jit.compiled(Specialisation(kernel.function, (32, 1, 1)), LaunchShape.of(2, 32))
        assert compiled.versions[VersionKind.FIRST].tier == sketched
        kernel.launch(1024, 32, [many], engine="jit")
        assert compiled.versions[VersionKind.FIRST].tier == Tier.QUICK
    assert (few == 9).all()
    assert (many == 9).all()


def test_code_is_left_as_it_is_until_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "policy", lambda: Tiering.AUTO)
    module = ptxvm.load(HEAD + SCALE)
    compiled = module.jit.compiled(Specialisation(module.kernel().function, (32, 1, 1)))
    compiled.versions[VersionKind.FIRST].seconds = 0.5
    for spent, pays in ((0.0, False), (1.4, False), (1.6, True)):
        compiled.spent = spent
        assert tiering.pays(compiled) is pays
    compiled.improving = True
    assert not tiering.pays(compiled)


def test_the_tier_is_one_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_TIER", "best")
    assert tiering.policy.__wrapped__() == "best"
    monkeypatch.setenv("PTXVM_TIER", "fastest")
    with pytest.raises(ValueError, match="PTXVM_TIER is one of auto, quick, best, not 'fastest'"):
        tiering.policy.__wrapped__()
