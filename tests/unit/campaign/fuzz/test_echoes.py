"""Statements that resemble right ones, and operands of all classes: what they find."""

from __future__ import annotations

import re
import subprocess
import sys
from random import Random
from typing import Any

import pytest

import ptxvm
from ptxvm.campaign.fuzz import constants, echoes, engines, text
from ptxvm.campaign.random_kernels.kernels import Launch, RandomKernel, straight_kernels
from ptxvm.campaign.random_kernels.operand_classes import SPECIAL, on_class
from ptxvm.campaign.random_kernels.parts import written
from ptxvm.engine.jit.values.algebra import LlvmAlgebra

SEED = 777


def test_the_first_kernel_is_right_and_others_resemble_its_statements() -> None:
    made = echoes.module(3, SEED)
    assert made == echoes.module(3, SEED) != echoes.module(4, SEED)
    wrong = {each.line for each in ptxvm.check(made) if each.severity == "error"}
    second = made[: made.index(".entry k1(")].count("\n") + 1
    assert wrong
    assert min(wrong) > second
    right = made[: made.index(".entry k1(")].count(";")
    assert right > 20  # statements, and not registers alone


def test_numbers_of_the_sources_and_those_next_to_them_are_tried() -> None:
    found = constants.constants()
    assert {0, 255, 256, 257, 4095, 4096, 4097, 1 << 63} <= {*found}
    random = Random(1)
    tried = {constants.another("40", random) for _ in range(400)}
    assert {"39", "41", "80", "20"} < tried
    assert any(each.startswith("0x") for each in tried)
    assert constants.another("0x1p", random).lstrip("-").removeprefix("0x").isalnum()


def test_a_change_is_that_of_one_token() -> None:
    random, pieces = Random(2), text.tokens("    add.u32 %r1, %r2, 7 ; ")
    numbers = {tuple(text.renumbered(pieces, [], random)) for _ in range(20)}
    assert {each[:-2] for each in numbers} == {pieces[:-2]}
    assert all(each[-2].endswith(" ") for each in numbers)
    names = {"".join(text.renamed(pieces, ["%p5 "], random)) for _ in range(40)}
    assert "add.u32 %p5, %r2, 7 ; " in names
    plain = text.tokens("ret;")
    assert text.renumbered(plain, [], random) == text.renamed(plain, [], random) == [*plain]


WRONG_READER = """

from ptxvm.analysis.body_check import BodyCheck
from ptxvm.analysis.known_lines import KnownLines
from ptxvm.analysis.memo import Memo
from ptxvm.campaign.fuzz import text
from ptxvm.campaign.fuzz.workload import ECHOES, FuzzWorkload, Kind
from ptxvm.campaign.outcome import Job

enter, cases = BodyCheck.enter_key, FuzzWorkload(Kind.STATEMENTS, {seed})
BodyCheck.enter_key = lambda self, key, verdict, last: enter(self, key, replace(verdict, asks_for_value=False), last)
shows = next(number for number in range(0, 10 * ECHOES, ECHOES) if cases.run(Job(number)).failed)
BodyCheck.enter_key = enter
Memo.shared.clear()
KnownLines.shared.clear()
Memo.of.cache_clear()
text.editor.cache_clear()
assert not cases.run(Job(shows)).failed
"""


def test_what_is_learned_of_constants_is_found() -> None:
    """A reader that passes a line whose form it knows, whatever its constants are, is noticed in ten modules.

    It is one of a process of its own, which has learned nothing from other tests.
    """
    program = WRONG_READER.replace("{seed}", str(SEED))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_operands_of_all_classes_and_of_each_type_are_valid() -> None:
    bodies = [on_class().draw(random) for random in [Random(5)] for _ in range(400)]
    kernel = RandomKernel(bodies, [], (32,), [Launch((1,), 1, 2, 3)])
    assert not [each for each in ptxvm.check(kernel.text) if each.severity == "error"]
    lines = written(bodies)
    own = (r"ld.global.f64 %w\w", r"ld.global.b16 %u\w", r"cvt.u16.u32 %u", r"mul.wide.s32 %y", r"mov.b32 %x.\d+, %few")
    for words in (*own, r"setp.ne.u32 %z", r"mov.f32 %v\w", r"mov.b16 %u", r"mov.b64 %y", r"xor.pred %p", r"testp.nota"):
        assert re.search(words, lines), words


def test_special_numbers_are_those_of_all_sizes() -> None:
    assert {each & 0xFFFFFFFF for each in SPECIAL} >= {0, 0xFFFFFFFF, 0x80000000, 0x7F800000, 0x7FC00001}
    assert SPECIAL.count(0) > 1


def test_straight_kernels_are_the_same_for_a_number() -> None:
    one, too = (straight_kernels().draw(Random("1")) for _ in range(2))
    assert one.text == too.text
    assert len(one.launches) > 1


def test_what_compiled_code_does_otherwise_with_uniform_operands_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifts by more than the width, of values that do not differ between lanes."""
    right = LlvmAlgebra._shift

    def wrong(self: LlvmAlgebra, op: str, type: Any, varies: Any, llvm: str, x: str, n: str, amount: Any) -> Any:
        if varies or self.known(type, amount) is not None:
            return right(self, op, type, varies, llvm, x, n, amount)
        least = self.code.emit(f"and {llvm} {n}, {type.bits - 1}")
        return self.result(varies, self.code.emit(f"{'shl' if op == 'shl' else 'lshr'} {llvm} {x}, {least}"))

    shifts = on_class().filter(lambda each: "shl.b32" in each.lines and each.lines.count("[%in+") == 2)
    random = Random(3)
    kernel = RandomKernel([shifts.draw(random) for _ in range(3)], [], (32,), [Launch((1,), n, 2, 3) for n in range(6)])
    engines.compare(kernel)
    monkeypatch.setattr(LlvmAlgebra, "_shift", wrong)
    with pytest.raises(AssertionError, match="the engines disagree"):
        engines.compare(kernel)
