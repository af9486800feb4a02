"""What fuzzing makes, and what it notices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

import ptxvm
from ptxvm.analysis.report import Report
from ptxvm.campaign.fuzz import engines, kernels, litmus, statements, text
from ptxvm.campaign.fuzz.coverage import Coverage, Tracer
from ptxvm.campaign.fuzz.seeds import declared_kernel, seeds
from ptxvm.campaign.random_kernels.columns import PERMUTATIONS
from ptxvm.campaign.random_kernels.control import arms
from ptxvm.campaign.random_kernels.kernels import (
    INSTRUCTIONS,
    LONG,
    SHORT,
    Launch,
    RandomKernel,
    Watch,
    all_positions,
    kernel_of,
    random_kernel,
)
from ptxvm.campaign.random_kernels.memory import WIDE, row
from ptxvm.campaign.random_kernels.parts import REGISTERS, Shape, Statement, Strategy, written
from ptxvm.campaign.random_kernels.rows import row_walk
from ptxvm.campaign.random_kernels.strategies import just
from ptxvm.campaign.random_kernels.warps import LOCK
from ptxvm.diagnostics import Diagnostic, Span
from ptxvm.diagnostics.errors import Place
from ptxvm.engine.jit.cfg import if_conversion
from ptxvm.engine.jit.memory import row_windows
from ptxvm.engine.jit.memory.addressing import Addressing
from ptxvm.isa.targets import Target
from ptxvm.model import read_litmus
from ptxvm.model.translate import as_kernel
from ptxvm.syntax.source import Source

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
    .reg .u64 %p;
    .reg .u32 %n;
    ld.param.u64 %p, [p];
    ld.param.u32 %n, [n];
    add.u32 %n, %n, 1;
    st.global.u32 [%p], %n;
    ret;
}
"""


@pytest.mark.parametrize("short", [False, True])
def test_kernels_of_declared_instructions_are_valid(short: bool) -> None:
    for number in range(20):
        found = declared_kernel(Random(number), short=short)
        assert not [each.message for each in ptxvm.check(found) if each.severity == "error"], found


def test_mutants_differ_from_their_text_and_survive(rng: object) -> None:
    first, other = seeds(2)
    mutants = {text.mutated(first, other, Random(number)) for number in range(30)}
    assert len(mutants) > 25
    for each in mutants:
        text.survive(each)


def test_mutated_kernels_run_on_zeros_ones_and_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def launch(_: ptxvm.Kernel, *, args: list[Any], **_how: object) -> None:
        seen.append((set(args[0].tolist()), args[1]))

    monkeypatch.setattr(ptxvm.Kernel, "launch", launch)
    assert {"add.u32", "st.global.u32"} <= (kernels.run_all(KERNEL, ["k"]) or set())
    assert seen[:2] == [({0}, 3), ({0xFFFFFFFF}, 0)]
    assert {0, 1, 0x80000000, 65536} <= seen[2][0]
    assert kernels.run_all(KERNEL.replace("add.u32", "add.u31"), ["k"]) is None


def test_texts_have_all_kinds_of_instructions_and_directives() -> None:
    """Of Hopper and Blackwell too; what is not valid has a diagnostic."""
    texts = seeds(400, short=True)
    missing = {
        "wgmma.",
        "tcgen05.",
        "cp.async.bulk",
        "mbarrier.",
        "tex.",
        ".alias",
        ".samplerref",
        ".debug_info",
        ".abi_preserve",
    }
    assert not [each for each in missing if not any(each in text for text in texts)]
    for each in texts[:80]:
        text.survive(each)


def test_modifiers_of_an_opcode_are_crossed_with_those_of_others() -> None:
    found = {"".join(text.crossed(["ld.global.v2.u32 ", "%r1"], ["st.weak "], Random(number))) for number in range(400)}
    assert {"ld.global.v2 %r1", "ld.weak.v2.u32 %r1", "ld.global.weak.v2.u32 %r1", "ld.v2.global.u32 %r1"} <= found
    assert text.crossed(["ret", ";"], [], Random(1)) == ["ret", ";"]


def test_a_reader_that_prints_another_module_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxvm.campaign.fuzz.text.print_module", lambda module: ".version 8.0\n")
    with pytest.raises(AssertionError, match="as another module"):
        text.survive(seeds(1)[0])


@pytest.mark.parametrize(
    ("defect", "how"),
    [("ptxvm.campaign.fuzz.text.analyse", "read in parts"), ("ptxvm.campaign.fuzz.text.editor", "checked after others")],
)
def test_a_way_of_reading_that_finds_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch, defect: str, how: str) -> None:
    broken = "add.s32 %r1;"
    report = Report(Source(broken))
    report.error("P0112", "another", Span(0, 1))

    class Editor:
        def check(self, _: Source) -> list[Diagnostic]:
            return report.diagnostics

    text.survive(broken)
    monkeypatch.setattr(defect, lambda *_: Editor() if how == "checked after others" else (None, report))
    with pytest.raises(AssertionError, match=f"what is {how} has other diagnostics: 'another' for"):
        text.survive(broken)


def test_a_text_of_eight_is_read_in_one_more_way() -> None:
    assert [len(text.ways_of(number)) for number in range(16)] == [1, 0, 0, 0, 0, 0, 0, 0] * 2
    assert {way for number in range(0, 32, 8) for way in text.ways_of(number)} == {*text.WAYS}


def test_mutated_statements_of_a_module_are_read_one_by_one() -> None:
    """Each is on lines of its own, and what is wrong with one leaves the next ones alone."""
    made = statements.module(3, 1)
    assert made != statements.module(4, 1)
    assert made == statements.module(3, 1)
    lines = made.split("L:\n")[1].splitlines()
    assert len(lines) > statements.STATEMENTS
    assert len({each.line for each in text.survive(made)}) > statements.STATEMENTS / 3
    codes = {each.code for number in range(8) for each in text.survive(statements.module(number, 1))}
    assert {"P0301", "P0305"} <= codes  # an instruction, and a modifier that does not fit


@pytest.mark.parametrize(
    ("statement", "closed"),
    [("ret;", True), ("{ ret; }", True), ("ret", False), ("{ ret;", False), ("} ret;{", False), ("ret /*;", False)],
)
def test_what_takes_the_next_statements_with_it_comes_last(statement: str, closed: bool) -> None:
    assert statements.ends(statement) is closed


def test_statements_are_for_many_targets() -> None:
    settings = [statements.setting(1, generation) for generation in range(60)]
    assert 20 < settings.count(("9.5", Target(100, "a"))) < 40
    assert len({target for _, target in settings}) > 10


def test_random_litmus_tests_are_litmus_tests() -> None:
    threads = [len(read_litmus(litmus.random_test(number)).threads) for number in range(40)]
    assert set(threads) == {2, 3}


def test_what_the_model_forbids_is_noticed() -> None:
    """Coherence: a thread that has read 1 does not read 0 again (PTX 8.9.2, by both versions)."""
    rows = [
        " P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;", " st.relaxed.gpu x, 1 | ld.relaxed.gpu r0, x ;", " | ld.relaxed.gpu r1, x ;",
    ]  # fmt: skip
    forbidden = "\n".join(["PTX t", "{", "x = 0;", "}", *rows, "exists (x == 1)", ""])
    allowed, wrong = ((("P1:r0", first), ("P1:r1", 1 - first), ("x", 1)) for first in (0, 1))
    litmus.refuse_forbidden(forbidden, "9.1", {"interp": {allowed, None}})
    with pytest.raises(AssertionError, match=r"jit shows what PTX 9\.1 forbids: P1:r0 == 1"):
        litmus.refuse_forbidden(forbidden, "9.1", {"interp": {allowed}, "jit": {allowed, wrong}})


def test_every_outcome_of_accesses_of_several_sizes_that_race_is_allowed() -> None:
    """PTX 8.6.2; in order the same accesses have one outcome."""
    race = (
        "PTX t\n{\nb32 x = 0;\n}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak.b16 x+2, 1 | ld.weak r0, x ;\nexists (x == 1)\n"
    )
    litmus.refuse_forbidden(race, "9.1", {"jit": {(("P1:r0", 7), ("x", 65536))}})
    alone = race.replace(" | P1@cta 1,gpu 0", "").replace(" | ld.weak r0, x", "")
    litmus.refuse_forbidden(alone, "9.1", {"jit": {(("x", 65536),)}})
    with pytest.raises(AssertionError, match="forbids: x == 1"):
        litmus.refuse_forbidden(alone, "9.1", {"jit": {(("x", 1),)}})


def test_litmus_tests_have_devices_parts_and_reductions() -> None:
    texts = "\n".join(litmus.random_test(number) for number in range(60))
    assert all(each in texts for each in ("gpu 1", ".b16 ", "+2", "red.", "ld.volatile", "st.volatile"))


def test_litmus_tests_have_aliases_branches_arrivals_and_counters_that_the_machine_can_run() -> None:
    """All are kernels, too: what could not be translated would never be compared."""
    texts = [litmus.random_test(number) for number in range(120)]
    words = (
        "aliases x",
        "fence.proxy.alias",
        "beq r",
        "END:",
        "bar.cta.sync",
        "bar.cta.arrive",
        "mbarrier.wait",
        "mbarrier.arrive.release",
    )
    assert all(any(word in text for text in texts) for word in words)
    assert {len(as_kernel(read_litmus(each)).test.threads) for each in texts} == {2, 3}


def test_coverage_tells_each_feature_once() -> None:
    coverage = Coverage()
    assert coverage.new(["b", "a", "b"]) == ("a", "b")
    assert coverage.new(["a", "c"]) == ("c",)


def test_lines_of_the_package_are_traced_until_they_have_been_seen() -> None:
    tracer = Tracer()
    valid, wrong = ".version 8.0\n.target sm_80\n", ".version 8.0\n.target sm_80\n.entry k() { add.u32 %r1, 1 }"
    first, again, other = (tracer.traced(lambda text=text: ptxvm.check(text)) for text in (valid, valid, wrong))
    assert any(each.startswith("syntax/parser.py:") for each in first)
    assert not first & (again | other)
    assert len(again) < len(first)
    assert any(each.startswith("syntax/instructions.py:") for each in other)


def test_random_kernels_are_valid_short_and_the_same_for_a_number() -> None:
    for number in range(40):
        kernel = random_kernel(number)
        assert not [each.message for each in ptxvm.check(kernel.text) if each.severity == "error"], kernel
        assert kernel.text == random_kernel(number).text
        assert len(written(kernel.body).splitlines()) <= max(LONG, 4 * SHORT, 16 * INSTRUCTIONS) + len(LOCK.splitlines())


def test_random_kernels_have_what_compilers_write() -> None:
    """Loops by an index and a pointer, in steps of the grid too, rows of all threads, tiles, reductions, copies, early ends."""
    missing = {"%total;\n    bra LOOP", "setp.lt.u64 %za", "mov.u32 %xt", "shr.u32 %xs", " exit;", "call (%result), f1"}
    missing |= {", %columns;", "st.shared.u32 [%xp", "mbarrier.try_wait", ".exch.b128", ".v8.b32"}
    for number in range(300):
        text = random_kernel(number).text
        missing = {each for each in missing if each not in text}
        if not missing:
            return
    pytest.fail(f"no kernel has {missing}")


@pytest.mark.parametrize("permutation", sorted(set(PERMUTATIONS)))
@pytest.mark.parametrize(("grid", "shape"), [((1, 2, 3), (5, 3, 2)), ((3,), (33,)), ((2, 1, 2), (1,)), ((1,), (16, 4))])
def test_each_thread_has_a_column_of_its_own(permutation: str, grid: Shape, shape: Shape) -> None:
    body = [Statement("mov.u32 %r0, %column;\nmov.b64 %d0, %columns;")]
    launch = Launch(grid, 1, 0, 0)
    kernel = RandomKernel(body, [], shape, [launch], permutation=permutation)
    memory = engines.Memory(kernel, launch)
    engines.launched(memory, ptxvm.load(kernel.text).kernel(), engine="interp")
    columns = memory.rows()["result"][:, :4].copy().view(np.uint32).ravel()
    assert sorted(columns) == list(range(launch.ctas * kernel.threads))


def test_wide_accesses_of_the_largest_cta_stay_within_their_arrays() -> None:
    """It has 33 rows of threads, one more than the input has wide elements."""
    body = [Statement(each.format(r="%r0", d="%d4")) for each in WIDE]
    kernel = RandomKernel(body, [], (31, 33), [Launch((1,), 1, 0, 0)])
    engines.launched(engines.Memory(kernel, kernel.launches[0]), ptxvm.load(kernel.text).kernel(), engine="interp")


def test_a_random_kernel_is_made_smaller_by_its_statements() -> None:
    whole = next(kernel for n in range(99) if len((kernel := random_kernel(n)).body) > 2 and kernel.body[0].blocks)
    number = next(n for n in range(99) if random_kernel(n).text == whole.text)
    every = all_positions(str(number))
    assert kernel_of(every).text == whole.text == kernel_of(str(number)).text
    positions = every.partition(": ")[2].split()
    fewer = kernel_of(f"{number}: {' '.join(positions[1:])}")
    assert len(fewer.body) == len(whole.body) - 1  # what stands in the first goes with it
    assert kernel_of(f"{number}: {positions[0]}").body[0].blocks == [[] for _ in whole.body[0].blocks]


def arms_forget_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect: what an arm overwrites is lost for the arm behind it, unless it is read where both have met."""
    right = if_conversion._Search._block
    monkeypatch.setattr(if_conversion._Search, "_block", lambda self, block, _: right(self, block, 0))


def parts_of_a_cta_share_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect: a row that several parts of a CTA load under a guard has the lanes of the first of them."""
    right = Addressing._load_pieces

    def wrong(self: Addressing, *how: Any) -> list[str]:
        at, real, asked = self.at, self.at.active_vector, list[bool]()

        def active() -> str | None:
            asked.append(True)
            return None if at.mask is None and len(asked) == 1 else real()

        monkeypatch.setattr(at, "active_vector", active)
        try:
            return right(self, *how)
        finally:
            monkeypatch.setattr(at, "active_vector", real)

    monkeypatch.setattr(Addressing, "_load_pieces", wrong)


def row_windows_serve_longer_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect: a load takes what a shorter one has filled, and is no fault where its address is misaligned."""
    right = row_windows._Record.load
    anything = str(2**63 - 1)
    monkeypatch.setattr(
        row_windows._Record, "load", lambda self, llvm, at: anything if at == row_windows.UNIT else right(self, llvm, at)
    )


@pytest.mark.parametrize(
    ("plant", "statement", "shape", "numbers"),
    [
        (arms_forget_each_other, arms(), (64,), range(30)),
        (parts_of_a_cta_share_masks, row(), (16, 16), range(30)),
        (row_windows_serve_longer_loads, row_walk(just([]), stray=True), (32,), range(20, 50)),  # one of 60 does
    ],
)
def test_defects_that_were_are_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    statement: Strategy[Statement],
    shape: Shape,
    numbers: range,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of few kernels shows a defect that compiled code had, and passes without it."""
    plant(monkeypatch)
    stray = plant is row_windows_serve_longer_loads
    shows = next(kernel for kernel in map(partial(kernel_with, statement, shape, stray=stray), numbers) if disagrees(kernel))
    monkeypatch.undo()
    assert not disagrees(shows)


def kernel_with(statement: Strategy[Statement], shape: Shape, number: int, *, stray: bool) -> RandomKernel:
    """A kernel of a few statements of a kind; one of which may be wrong has one, which is run on several data."""
    random, names = Random(number), [f"%{letter}{n}" for letter, (_, count) in REGISTERS.items() for n in range(count)]
    body = [statement.draw(random) for _ in range(1 if stray else 4)]
    launches = [Launch((2,), number, few, 32) for few in ((0, 1, 2, 3, 5, 8) if stray else (3,))]
    dead = frozenset(random.sample(names, len(names) // 2))
    return RandomKernel(body, [], shape, launches, dead=dead, stray=stray)


def disagrees(kernel: RandomKernel) -> bool:
    """Do the engines disagree on a kernel?"""
    try:
        engines.compare(kernel)
    except AssertionError:
        return True
    return False


def test_what_an_engine_leaves_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is put in: compiled code that leaves another byte, counts another instruction or finds what is not there."""
    random, launched = random_kernel(1), engines.launched

    def wrong(memory: engines.Memory, kernel: ptxvm.Kernel, **how: Any) -> Any:
        result = launched(memory, kernel, **how)
        if how["engine"] == "jit":
            memory.arrays[3][7] ^= np.uint8(1)
        return result

    engines.compare(random)
    monkeypatch.setattr(engines, "launched", wrong)
    with pytest.raises(AssertionError, match="the engines disagree: byte 7 of result of thread 0, and 1 bytes in all"):
        engines.compare(random)


def row_kernel(number: int, *, stray: bool) -> RandomKernel:
    """A kernel that walks along rows."""
    random = Random(number)
    body = [row_walk(just([]), stray=stray).draw(random) for _ in range(2)]
    return RandomKernel(body, [], (32,), [Launch((2,), number, 3, 32)], stray=stray)


def test_walks_along_rows_stay_within_them_unless_they_are_stray() -> None:
    """Some of those that are stray are faults, of addresses and of alignment."""
    kinds, read = set(), 0
    for number in range(60):
        kernel = row_kernel(number, stray=number % 2 == 1)
        read += kernel.has_rows
        try:
            engines.launched(engines.Memory(kernel, kernel.launches[0]), ptxvm.load(kernel.text).kernel(), engine="interp")
        except ptxvm.Fault as fault:
            kinds.add((fault.kind, kernel.stray))
    assert ("misaligned", True) in kinds
    assert kinds & {("out-of-bounds", True), ("use-after-free", True)}  # of an array that was where nothing is now
    assert all(stray for _, stray in kinds)
    assert read > 40


def test_texts_that_are_only_read_are_short() -> None:
    """What is drawn is most of a text, and not what is the same in all of them."""
    long, short = (sum(map(len, seeds(32, short=each)[2:])) for each in (False, True))
    assert short * 2 < long


@pytest.mark.parametrize(("thread", "line", "cta", "open_"), [(3, 8, 0, False), (4, 9, 0, True), (3, 9, 1, True)])
def test_a_thread_has_one_first_fault(thread: int, line: int, cta: int, open_: bool) -> None:
    one = Place(line=9, cta=(0, 0, 0), thread=(3, 0, 0))
    assert engines.are_of_different_threads(one, Place(line=line, cta=(cta, 0, 0), thread=(thread, 0, 0))) is open_


def test_addresses_of_faults_are_compared_where_arrays_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generic address of shared memory is another one in each launch; one beside an array is not."""
    stray = """@%p0 add.s64 %t1, %any, 1099511627776;
    @!%p0 add.s64 %t1, %any, 1099511627776;
    ld.volatile.b64 %d3, [%t1];"""
    launch = Launch((1,), 1, 0, 0)
    for watch in (Watch.NOTHING, Watch.CHECKS):
        engines.compare(RandomKernel([Statement(stray)], [], (32,), [launch], stray=True, watch=watch))
    kernel = RandomKernel([Statement("ld.global.b32 %r0, [%mine+2];")], [], (32,), [launch], stray=True)
    engines.compare(kernel)
    launched = engines.launched

    def wrong(*args: Any, engine: str, **how: Any) -> Any:
        try:
            return launched(*args, engine=engine, **how)
        except ptxvm.Fault as fault:
            fault.address = (fault.address or 0) + 8 * (engine == "jit")
            raise

    monkeypatch.setattr(engines, "launched", wrong)
    with pytest.raises(AssertionError, match="the engines have different faults"):
        engines.compare(kernel)


def test_another_fault_of_one_engine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect is put in: compiled code tells the fault of a thread at another line."""
    launched, planted = engines.launched, list[ptxvm.Fault]()

    def wrong(*args: Any, engine: str, **how: Any) -> Any:
        if engine == "jit" and planted:
            raise planted[0]
        return launched(*args, engine=engine, **how)

    for number in range(1, 60, 2):
        kernel = row_kernel(number, stray=True)
        try:
            engines.launched(engines.Memory(kernel, kernel.launches[0]), ptxvm.load(kernel.text).kernel(), engine="interp")
        except ptxvm.Fault as fault:
            engines.compare(kernel)
            place = replace(fault.place, line=fault.place.line + 1)
            planted.append(ptxvm.Fault(fault.kind, fault.message, place=place, address=fault.address, size=fault.size))
            break
    monkeypatch.setattr(engines, "launched", wrong)
    with pytest.raises(AssertionError, match="the engines have different faults"):
        engines.compare(kernel)
