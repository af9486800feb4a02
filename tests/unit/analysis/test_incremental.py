"""Incremental checking: after any edits, what a checker that remembers says is what reading the whole module says.

The oracle reads and binds the module in one go: it knows no outline, no memo and no remembered body.
"""

from __future__ import annotations

import random
import re
import time
from itertools import islice

import pytest

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.analysis import body_lines, expressions, incremental
from ptxvm.analysis.incremental import IncrementalChecker, whole
from ptxvm.analysis.sparse import SparseWalk
from ptxvm.syntax.instructions import Instructions
from ptxvm.syntax.source import Source

TEXT = """\
.version 8.0
.target sm_90
.address_size 64
.file 1 "a.cu"
.global .u32 table[16];
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 result) twice(.param .b32 x);
.visible .entry first(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .reg .pred %p<2>;
    .loc 1 10 5
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
$LOOP:
    add.s32 %r2, %r1, 16;
    setp.lt.s32 %p1, %r2, %r1;
    @%p1 bra $LOOP;
    .loc 1 20 5, function_name $info, inlined_at 1 10 5
    {
        .reg .b32 temporary;
        mov.b32 temporary, %r2;
        add.s32 %r3, temporary, 1;
    }
    {
        .param .b32 argument;
        .param .b32 value;
        st.param.b32 [argument], %r3;
        call.uni (value), twice, (argument);
        ld.param.b32 %r4, [value];
    }
    st.global.u32 [%rd1], %r4;
    ret;
}
.func (.param .b32 result) twice(.param .b32 x)
{
    .reg .b32 %r<3>;
    .shared .b32 cell[4];
    ld.param.b32 %r1, [x];
    shl.b32 %r2, %r1, 1;
    st.shared.b32 [cell], %r2;
    st.param.b32 [result], %r2;
    bra END;
END:
    ret;
}
.visible .entry second()
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    mov.u32 %r1, table;
    mov.u32 %r2, dynamic;
    .reg .b64 late;
    mov.u64 late, table;
    fma.rn.f32 %f1, %f2, %f3, 0f3F800000; /* a comment */
    ret;
}
"""
PIECES = [
    ";", "{", "}", "(", ")", "[", "]", ",", "\n", " ", "//", "/*", "*/", '"', ".", "%", "@", ":", "\0", "\u00e9", "\U0001f600",
    ".reg .b32 x;", "bra $LOOP;", "$LOOP:", "END:", "add.s32 %r1, %r2;", "add.s33", "%r9", "ret;", "ret", ".func f();",
    ".entry third() { ret; }", ".global .u32 table;", ".version 6.0", "mov.u32 %r1, nothing;", "@%p1 ", "1.5", "0f12", "twice",
    ".param .b32 x;", "ld.param.b32 %r1, [result];", "bra MISSING;", "{ .reg .pred q; }", '.pragma "x";', ".shared .b8 s[99];",
    "\n}\n", "\n{\n", "\n.visible .entry open()\n{\n", "\n.func declared();\n", '"{"',
    "/", '"\n', "mov.b64 {", "\n/ ", "\n.entry fourth() {", "{%r1, %r2}", "\n    {", "!", "\n'",
    ".loc 1 2 3, function_name $a, inlined_at 9 9 9\n", "L: .branchtargets END;", "brx.idx %r1, L;", ".alias a, b;", "\r\n",
    ".func f(", ".func (.reg .b32 %q", "\n.extern .shared", ".weak .func w(.param .b32 p);", "\n.reg .entry", ".align .func",
    '.file 2 "b.cu"', ".target sm_90", ".target debug", ".weak .f", "\n.weak .",
]  # fmt: skip


def oracle(text):
    with usual_arithmetic():
        return sorted(whole(Source(text)).diagnostics, key=lambda each: each.span.start)


def edited(text, rng):
    """The text after one edit: a piece put in, taken out or replaced, mostly where a word ends."""
    ends = [found.end() for found in re.finditer(r"\w+|\W", text)] or [0]
    at = rng.choice(ends)
    match rng.randrange(4):
        case 0:
            return text[:at] + rng.choice(PIECES) + text[at:]
        case 1:
            return text[:at] + text[min(len(text), at + rng.randrange(1, 30)) :]
        case 2:
            first = rng.choice(ends)
            return text[:at] + text[first : first + rng.randrange(60)] + text[at:]
    lines = text.split("\n")
    line = rng.randrange(len(lines))
    return "\n".join([*lines[:line], rng.choice([lines[line][: len(lines[line]) // 2], "", *lines]), *lines[line + 1 :]])


@pytest.mark.parametrize("session", range(8))
def test_edits_are_checked_as_the_whole_module_is(session, rng):
    """A session of edits; every few the module is right again, as it is while one works."""
    random_edits = random.Random(int(rng.integers(2**32)) + session)
    checker, text = IncrementalChecker(), TEXT
    assert checker.check(Source(text)) == oracle(text) == []
    for number in range(30):
        text = TEXT if number % 6 == 0 else edited(text, random_edits)
        assert checker.check(Source(text)) == oracle(text), text


TYPED = {
    ".func f(": False, ".func f(.param .u32 x)": False, ".extern .func f": False, ".func": False, ".visible": False,
    ".weak .func f();": False, ".weak .": False, ".weak .fun": False, '.file 2 "b.cu"': False, ".target sm_90": False,
    ".target sm_20, debug": False, ".weak .global .u32 v;": True,
    ".func twice(": True, ".func f; call f;": True, ".visible .global .u32 v;": True,
}  # fmt: skip
"""What is typed in the body of `first`, and is the whole module read for it?"""


@pytest.mark.parametrize(("typed", "reads_all"), TYPED.items(), ids=TYPED)
def test_what_belongs_to_a_module_and_is_typed_in_a_body_is_read_with_that_alone(typed, reads_all, monkeypatch):
    """Nothing else mentions `f`; another body declares and calls `twice`."""
    checker, text = IncrementalChecker(), TEXT.replace("    add.s32 %r2", f"    {typed}\n    add.s32 %r2")
    checker.check(Source(TEXT))
    read = []
    monkeypatch.setattr(incremental, "whole", lambda *of: read.append(of) or whole(*of))
    for _ in range(2):  # what it declares is declared again
        assert checker.check(Source(text)) == oracle(text)
    assert bool(read) is reads_all
    mentioned = text.replace("shl.b32", "mov.b32 %r1, f; shl.b32")
    assert checker.check(Source(mentioned)) == oracle(mentioned)
    assert checker.check(Source(TEXT)) == []


def test_each_of_several_equal_calls_is_checked():
    """A call is held against its function when the body was looked through; `twice` has one parameter."""
    wrong = "        call.uni (value), twice, (argument, argument);\n"
    text = TEXT.replace("        call.uni (value), twice, (argument);\n", 2 * wrong)
    found = IncrementalChecker().check(Source(text))
    assert found == oracle(text)
    assert [each.code for each in found] == ["P2006", "P2006"]


def reads(checker, text):
    """How many bodies a check looks at."""
    assert checker.check(Source(text)) == oracle(text)
    return checker.read


def test_only_the_edited_body_is_looked_at():
    checker = IncrementalChecker()
    assert reads(checker, TEXT) == 3
    assert reads(checker, TEXT) == 0
    assert reads(checker, TEXT.replace("shl.b32", "shr.b32")) == 1
    assert reads(checker, "// moved\n" + TEXT) == 0
    assert reads(checker, TEXT.replace("1, 16;", "1, %r99;")) == 1
    assert reads(checker, "\n\n" + TEXT.replace("1, 16;", "1, %r99;")) == 0
    assert reads(checker, TEXT.replace("END:", "END: {")) == 1


NUMBERS = ", ".join(map(str, range(64)))
"""Values of a table that is long enough to stay unread."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "typed",
    [
        ".visible .entry fresh(.param .u64 p)\n{\n    .reg .b32 %q<4>;\n    add.s32 %q1, %q2, 3;\n    ret;\n}\n",
        ".global .align 4 .u32 fresh[4] = {1, 2, 3, 4};\n",
        ".func (.reg .u32 r) fresh(.reg .u32 x)\n{\n    add.u32 r, x, 1;\n    ret;\n}\n",
    ],
)
@pytest.mark.parametrize("place", [".global .u32 table", ".const .u8", ".visible .entry first", ".visible .entry second"])
def test_what_is_typed_between_functions_is_checked_letter_by_letter(typed, place, monkeypatch):
    """A head without its body, or a list without its end, costs no reading of the whole module."""
    text = TEXT.replace(".extern .shared", f".const .u8 numbers[64] = {{{NUMBERS}}};\n.extern .shared")
    checker = IncrementalChecker()
    checker.check(Source(text))
    monkeypatch.setattr(incremental, "whole", None)
    above, below = text[: text.index(place)], text[text.index(place) :]
    for count in range(len(typed) + 1):
        written = f"{above}{typed[:count]}\n{below}"
        assert checker.check(Source(written)) == oracle(written), written


def test_an_error_at_the_brace_of_a_body_is_told_once():
    """It belongs to the head of the function, which is read each time."""
    checker, text = IncrementalChecker(), TEXT.replace("twice(.param .b32 x)\n{", "twice(.param .b32 x, \n{")
    assert any("found `{`" in each.message for each in oracle(text))
    for _ in range(3):
        assert checker.check(Source(text)) == oracle(text)


def test_what_only_looks_like_a_declaration_declares_nothing():
    """A modifier may stand on a line of its own: `.shared` belongs to `ld` (PTX 9.7.9.8)."""
    text = TEXT.replace("    .shared .b32 cell[4];", "    ld.para\n    .shared .b32 cell[4];")
    found = IncrementalChecker().check(Source(text))
    assert found == oracle(text)
    assert "'cell' is not declared" in {each.message for each in found}


def test_a_declaration_behind_an_error_counts():
    """The family is declared anew with fewer registers, of which the code below names more."""
    text = TEXT.replace("    add.s32 %r2, %r1, 16;\n", "    add.s32 %r2, %r1, 16\n    .reg .b32 %r<3>;\n")
    assert len(oracle(text)) > 3
    assert IncrementalChecker().check(Source(text)) == oracle(text)


def kernels_with_shared(sizes: list[int], more: str = "") -> str:
    """A module with a kernel for each size, which declares and stores to so many words of shared memory."""
    text = f".version 8.0\n.target sm_80\n.address_size 64\n{more}"
    for number, words in enumerate(sizes):
        text += f".entry k{number}() {{\n.shared .b32 own{number}[{words}];\nst.shared.b32 [own{number}], {number};\nret;\n}}\n"
    return text


def test_only_the_edited_body_is_looked_at_where_all_kernels_together_have_much_shared_memory():
    """A kernel may declare 48 KB (`ptxas -arch sm_80` refuses more); what the kernels of a module declare adds up to more."""
    text = kernels_with_shared([10_000, 11_000, 12_000])
    checker = IncrementalChecker()
    assert reads(checker, text) == 3
    assert reads(checker, text.replace("[own1], 1", "[own1], 7")) == 1


@pytest.mark.parametrize("sizes", [[10_000, 13_000, 1], [6_000, 6_000, 6_000]])
@pytest.mark.parametrize("more", ["", ".shared .b32 common[7000];\n", ".shared .b32 own1[1];\n"])
def test_too_much_shared_memory_of_a_kernel_is_found_in_a_module_that_is_edited(sizes, more):
    checker = IncrementalChecker()
    for text in (kernels_with_shared(sizes, more), kernels_with_shared(sizes, more).replace("[own1], 1", "[common], 7")):
        assert checker.check(Source(text)) == oracle(text)


def test_bodies_are_looked_at_again_where_a_name_that_they_mention_has_changed():
    checker = IncrementalChecker()
    reads(checker, TEXT)
    assert reads(checker, TEXT.replace(".global .u32 table[16]", ".global .f32 table[16]")) == 1
    assert reads(checker, TEXT.replace("twice(.param .b32 x)", "twice(.param .b64 x)")) == 2
    assert reads(checker, TEXT.replace("sm_90", "sm_80")) == 3


def test_a_second_definition_is_validated_where_the_first_is_gone():
    """The instructions of a second one are not validated, so nothing is known of them."""
    twice = TEXT.replace("entry second()\n{", "entry first()\n{\n    add.s32 %r1, %r2, missing;")
    checker = IncrementalChecker()
    for text in (twice, twice.replace(".visible .entry first(", ".visible: .entry first(", 1)):
        assert checker.check(Source(text)) == oracle(text)


WRONG = [
    "add.s32 %r2, %r1 16;", "add.s32 %r2, %r1, ;", "bra $NOWHERE;", "ld.param.u32 %r1, [m];", "/ add.s32 %r2, %r1, 16;",
    '.pragma "nounr;', '" add.s32 %r2, %r1, 16;', "mov.b64 {%r1, ;", "mov.b64 %rd1, {%r1;", "# 5;",
]  # fmt: skip
"""Statements that are being written: what opens is not closed yet."""


@pytest.mark.parametrize("wrong", WRONG)
def test_of_a_body_with_an_error_only_the_doubtful_statements_are_read(wrong, monkeypatch):
    """A thousand right instructions beside a wrong one cost no reading."""
    text = TEXT.replace("    ret;", "    add.s32 %r1, %r2, %r1;\n" * 1000 + f"    {wrong}\n    ret;", 1)
    checker = IncrementalChecker()
    checker.check(Source(TEXT))
    bound = []
    monkeypatch.setattr("ptxvm.analysis.expressions.operands", lambda checks, node, scope: bound.append(node))
    checker.check(Source(text))
    assert 0 < len(bound) < 50


OPENING = [
    "{", "/*", ".visible .entry open(", ".visible .entry open()", "}", ".visible .entry other() { ret; }", "{ .reg .b32 x;",
]  # fmt: skip
"""What is typed in a body: it stays open, or ends too early."""


@pytest.mark.parametrize("wrong", OPENING)
def test_of_a_body_that_is_open_only_what_is_doubtful_is_read(wrong, monkeypatch):
    """A brace, a comment or the head of a kernel is being written in a body of a thousand instructions."""
    kernel = "{\n    .reg .b32 %r<8>;\n" + "    add.s32 %r1, %r2, %r1;\n" * 500
    text = f"{TEXT}.visible .entry long()\n{kernel}    {wrong}\n" + "    add.s32 %r1, %r2, %r1;\n" * 500 + "    ret;\n}\n"
    read = []
    instruction = Instructions.instruction
    monkeypatch.setattr(Instructions, "instruction", lambda *of: read.append(of) or instruction(*of))
    checker = IncrementalChecker()
    checker.check(Source(TEXT))
    read.clear()
    found = checker.check(Source(text))
    assert len(read) < 50
    assert found == oracle(text) != []


@pytest.mark.parametrize("line", [".reg .entry", ".reg .entry k() {", ".align .func f() {", ".visible .entry k() {"])
def test_only_the_head_of_a_function_ends_what_is_open_above_it(line):
    """`.reg .entry` declares a register whose type is wrong; found by fuzzing."""
    text = TEXT.replace("$LOOP:", f"{line}\n$LOOP:", 1)
    assert IncrementalChecker().check(Source(text)) == oracle(text) != []


@pytest.mark.parametrize(
    "text",
    [
        ".entry first()\n{\n    setp.lt.s32 entry second()\n{\n    .%p1, %r2;\n    {\n}\n.visible .entry second()",
        "ld.param.\n.entry fourth() {u64 %rd1;\nn];\nadd.s32 %r2, %r1, 16;\nsetp.lt.s32 %p1, 1, 2;\n@%p1 bra LOOP;\n.loc 1 2 3",
    ],
)
def test_a_brace_behind_half_an_instruction_opens_what_the_parser_takes_it_for(text):
    """A block, whose end is looked for below, and the body of a kernel; found by random edits."""
    assert IncrementalChecker().check(Source(text)) == oracle(text) != []


@pytest.mark.parametrize("half", ["ad", "@%p1", "add.s32 %r1, %r2, 3"])
def test_a_label_below_a_statement_that_is_being_written_is_there(half, monkeypatch):
    """One walk over the body finds what is wrong: another would look at each line, as for a label that is missing."""
    text = TEXT.replace("$LOOP:", f"{half}\n$LOOP:", 1)
    checker = IncrementalChecker()
    checker.check(Source(TEXT))
    walks = []
    run = SparseWalk.run
    monkeypatch.setattr(SparseWalk, "run", lambda walk: walks.append(walk) or run(walk))
    assert checker.check(Source(text)) == oracle(text) != []
    assert len(walks) == 1


@pytest.mark.parametrize("line", ["\n", "// add.s32 %r1, %r2, 3;\n", f"/*{' ' * 80}*/\n"])
def test_thousands_of_lines_without_a_statement_are_passed_over(line):
    """Looking for labels behind each of them anew took half a minute."""
    text = TEXT.replace("$LOOP:", line * 20_000 + "$LOOP:", 1)
    begin = time.process_time()
    assert IncrementalChecker().check(Source(text)) == []
    assert time.process_time() - begin < 5


def test_a_declaration_within_a_wrong_statement_declares_nothing():
    """It looks like the declaration below, which names the register after its use."""
    wrong = "$LOOP:\n    add. .reg .b32 temporary;\n    mov.b32 temporary, %r2;\n    .reg .b32 temporary;\n"
    text = f".version 8.0\n.target sm_90\n.visible .entry first()\n{{\n    .reg .b32 %r<8>;\n{wrong}"
    for closed in (text, text + "    ret;\n}\n"):
        found = IncrementalChecker().check(Source(closed))
        assert "'temporary' is not declared" in [each.message for each in found]
        assert found == oracle(closed)


def slices(checker, text, size):
    """What a check says slice by slice, with the number of bodies that each looks at."""
    source = Source(text)
    while True:
        found = checker.check(source, slice=size)
        yield found, checker.read
        if not checker.waiting:
            return


def test_after_another_version_bodies_are_looked_at_slice_by_slice():
    """The room of one character is for one body at a time; until then a body has what was found in it last."""
    checker, wrong = IncrementalChecker(), TEXT.replace("shl.b32", "shk.b32")
    first = checker.check(Source(wrong))
    old = wrong.replace(".version 8.0", ".version 5.0").replace("sm_90", "sm_60")
    steps = list(slices(checker, old, 1))
    assert [read for _, read in steps] == [1, 1, 1]
    assert [found == first for found, _ in steps] == [True, True, True]
    assert steps[-1][0] == oracle(old)


def test_a_new_body_is_looked_at_before_those_that_only_have_another_version():
    checker = IncrementalChecker()
    checker.check(Source(TEXT))
    wrong = TEXT.replace(".version 8.0", ".version 7.0").replace("fma.rn", "fma.rx")  # in the last body
    (first, read), *_, (last, _) = slices(checker, wrong, 1)
    assert (first, read) == (last, 1)
    assert last == oracle(wrong) != []


def test_slices_end_where_a_body_is_read_with_the_module():
    """Such a body is never looked at by itself: bodies with another version do not wait for it."""
    checker, wrong = IncrementalChecker(), TEXT.replace("temporary, 1;\n    }", "temporary, 1;\n", 1)
    assert wrong != TEXT
    checker.check(Source(wrong))
    old = wrong.replace(".version 8.0", ".version 7.0")
    steps = list(islice(slices(checker, old, 1), 9))
    assert len(steps) < 9
    assert steps[-1][0] == oracle(old)


@pytest.mark.parametrize("session", range(4))
def test_the_last_slice_says_what_reading_the_whole_module_says(session, rng):
    random_edits = random.Random(int(rng.integers(2**32)) + session)
    checker, text = IncrementalChecker(), TEXT
    for number in range(20):
        text = TEXT if number % 6 == 0 else edited(text, random_edits)
        text = text.replace(".version 8.0", f".version {random_edits.choice(['8.0', '7.0', '5.0'])}")
        *_, (found, _) = slices(checker, text, random_edits.choice([1, 600, 5000]))
        assert found == oracle(text), text


def test_the_program_of_a_checked_module_is_read_body_by_body():
    checker = IncrementalChecker()
    program = checker.program(Source(TEXT))
    assert [len(each.instructions) for each in program.kernels] == [12, 5]
    moved = checker.program(Source("// moved\n" + TEXT))
    assert checker.read == 0
    lines = [TEXT[: TEXT.index(first)].count("\n") + 2 for first in ("ld.param.u64 %rd1, [out]", "mov.u32 %r1, table")]
    assert [each.instructions[0].line for each in moved.kernels] == lines
    assert checker.program(Source(TEXT.replace("shl.b32", "shk.b32"))) is None


def test_instructions_with_one_mistake_are_read_once_each(monkeypatch):
    """What is wrong with one is wrong with those like it, and they need not be read twice."""
    wrong = "".join(f"    add.s32 %r{n % 7}, %p1, {n};\n" for n in range(200))
    text = TEXT.replace("    ret;", f"{wrong}    ret;", 1)
    checker = IncrementalChecker()
    checker.check(Source(TEXT))
    bound = []
    operands = expressions.operands
    monkeypatch.setattr(
        expressions, "operands", lambda checks, node, scope: (bound.append(node), operands(checks, node, scope))
    )
    found = checker.check(Source(text))
    assert 200 < len(bound) < 200 + 50
    assert found == oracle(text)


LONG = TEXT.replace(
    "    ret;",
    "".join(
        f"    mul.lo.s32 %r{n % 8}, %r{n * 3 % 8}, {n % 7};\n" if n % 200 else f"$L{n}:\n    @%p1 bra $L{(n + 600) % 2000};\n"
        for n in range(2000)
    )
    + "    ret;",
    1,
)
"""The module with a kernel of 2,000 instructions."""


@pytest.fixture
def short_stretches(monkeypatch):
    """Some twenty stretches in the long body."""
    for module in (body_lines, incremental):
        monkeypatch.setattr(module, "STRETCH", 4096)


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("edit", ["\n", "    add.s32 %r1, %r2, 3;\n" * 20, "    .reg .f32 new;\n", "    add.s32 %r1, %r2;\n"])
def test_of_a_long_body_only_the_stretches_near_an_edit_are_taken_apart(edit):
    """The work that grows with the text is that of the stretches that are new, wherever the others have moved to."""
    checker = IncrementalChecker()
    checker.check(Source(LONG))
    steps = (checker.normalisation.unified, checker.normalisation.lines)
    before = [step.cache_info().misses for step in steps]
    assert min(before) >= 12
    at = LONG.index("$L600:")
    text = LONG[:at] + edit + LONG[at:]
    assert checker.check(Source(text)) == oracle(text)
    assert max(step.cache_info().misses - known for step, known in zip(steps, before, strict=True)) <= 5


@pytest.mark.usefixtures("short_stretches")
@pytest.mark.parametrize("session", range(3))
def test_random_edits_of_a_long_body_find_what_the_whole_module_has(session, rng):
    random_edits = random.Random(int(rng.integers(2**32)) + session)
    checker, text = IncrementalChecker(), LONG
    for number in range(6):
        text = LONG if number % 3 == 0 else edited(text, random_edits)
        assert checker.check(Source(text)) == oracle(text), text


@pytest.mark.parametrize("text", ["\0", "\0\1", "\x7fELF\2\1\1\0\0"])
def test_binary_files_are_read_as_a_whole(text):
    found = IncrementalChecker().check(Source(text))
    assert [each.message for each in found] == [each.message for each in whole(Source(text)).diagnostics] != []
