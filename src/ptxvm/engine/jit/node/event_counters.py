"""Event counters of profiled code: what its nodes, guards, branches and accesses count, in words that the host reads.

A word stands for metrics of instructions, with a factor each (`abi.metadata.Weight`).  A node that whole warps run counts
itself once; its word stands for all that such a run always does.  Only what depends on lanes or addresses is counted apart.

A side exit runs a node again, in another version.  A node that has one counts in variables of the warp function, and
commits them at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from itertools import groupby

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.counter_rows import FIRST_KEYS, MOST_KEYS, MOST_WORDS, ROW
from ptxvm.engine.jit.abi.metadata import Batch, Weight
from ptxvm.engine.jit.cfg.nodes import Node
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP

PART_OF_FIRST = 8  # of the words: the other versions have as much code, for whole warps and for some lanes
MOST_OF_FIRST = MOST_WORDS // PART_OF_FIRST
COMMIT = "  ; commit the counters"
POINTER = "%counters"
BASE = ".base"  # the end of the name of what is added to a count of requests

Key = tuple[object, ...]
Stands = Iterable[tuple[int, str, int]]  # of what a word stands for: the number of an instruction, a metric, a factor


@dataclass(eq=False, slots=True)
class CounterWords:
    """The words in which the versions of a kernel count."""

    words: int = 0
    most: int = MOST_OF_FIRST
    _at: dict[Key, int] = field(default_factory=dict)
    _weights: dict[int, tuple[Weight, ...]] = field(default_factory=dict)
    _keys: int = 0
    _batches: dict[Key, Batch] = field(default_factory=dict)

    def take(self, key: Key, count: int = 1) -> int:
        """The first of `count` words, which are those of the same key before."""
        if key not in self._at:
            first = -(-self.words // ROW) * ROW if count > 1 else self.words
            if first + count > self.most:
                self._refuse()
            self._at[key], self.words = first, first + count
        return self._at[key]

    def batch(self, key: Key, words: int, row: int, access: tuple[Space, Verb, int]) -> Batch:
        """The batch of a key, with so many words of keys; what it counts is added to a row."""
        if key not in self._batches:
            first, self._keys = FIRST_KEYS + self._keys, self._keys + words
            if self._keys > MOST_KEYS * self.most // MOST_WORDS:
                self._refuse()
            self._batches[key] = Batch(self.take(("kept", *key)), first, row, *access)
        return self._batches[key]

    def _refuse(self) -> None:
        if self.most == MOST_OF_FIRST:
            raise Uncounted("so large a kernel")
        raise Crash(f"the versions of a kernel count in more than {self.most} words; please report this")

    def stand(self, word: int, stands: Stands) -> None:
        """Say what a word stands for."""
        self._weights[word] = tuple(Weight(word, *each) for each in stands)

    @property
    def weights(self) -> list[Weight]:
        """The meanings of all words."""
        return [weight for weights in self._weights.values() for weight in weights]

    @property
    def batches(self) -> list[Batch]:
        """The batches of requests that are counted together."""
        return [*self._batches.values()]


class NodeCounters:
    """Writes the counters of a node; `version` and `full` tell its code from others of the same node."""

    def __init__(self, code: Code, words: CounterWords, version: int, node: int, *, full: bool) -> None:
        self.code, self.words, self.key = code, words, (version, node, full)
        self.stem = f"%{'F' if full else 'M'}{node}.counts"
        self.always: list[tuple[int, str, int]] = []  # what each run of the node for whole warps does
        self.used: dict[str, tuple[int, str]] = {}  # words and rows that are counted in: their numbers and types
        self.batches: Counter[Key] = Counter()  # how many the node has for accesses of one key
        self.kept: set[str] = set()  # of the words, those that count the requests of batches
        self.over = False  # the node has no side exit from here on

    # ── counting ────────────────────────────────────────────────────────────────────────

    def count(self, amount: str, key: Key, stands: Stands) -> None:
        """Add to a word of the node."""
        word = self.words.take((*self.key, *key))
        self.words.stand(word, stands)
        self.add(word, "i64", amount)

    def tell(self, amount: str, key: Key, stands: Stands) -> None:
        """Add to a word that is the same in all code of the kernel."""
        word = self.words.take(key)
        self.words.stand(word, stands)
        self.add(word, "i64", amount)

    def add(self, word: int, llvm: str, amount: str) -> None:
        """Add a number to a word, or a vector to a row."""
        pointer = self.pointer(word, llvm)
        before = self.code.emit(f"load {llvm}, ptr {pointer}, align 8", pure=False)
        after = self.code.emit(f"add {llvm} {before}, {amount}", pure=False)
        self.code.run(f"store {llvm} {after}, ptr {pointer}, align 8")

    def pointer(self, word: int, llvm: str) -> str:
        """The pointer of a word or a row: to a variable of the node, until the node is over."""
        if self.over:
            return self.word(word)
        name = f"{self.stem}.{word}"
        self.used[name] = (word, llvm)
        return name

    def batch(self, key: Key, words: int, row: int, access: tuple[Space, Verb, int]) -> tuple[str, ...]:
        """Pointers of the next batch of the node for a key, in the order of `memory.request_batches.POINTERS`.

        Requests that a node keeps before its side exit hold only when it commits.
        """
        self.batches[key] += 1
        batch = self.words.batch((*key, self.batches[key]), words, row, access)
        keys, held, total = (self.word(n) for n in (batch.keys, batch.kept, batch.row))
        if self.over:
            return keys, self._zero, held, held, total
        own = self.pointer(batch.kept, "i64")
        self.kept.add(own)
        return keys, f"{own}{BASE}", own, held, total

    def word(self, word: int) -> str:
        """The address of a word."""
        return self.code.emit(f"getelementptr i64, ptr {POINTER}, i64 {word}")

    @property
    def _zero(self) -> str:
        return f"@{self.code.unit.table('i64', (0,))}"

    def node(self, node: Node, number: Callable[[Bound], int], length: int, mask: str | None) -> None:
        """Count a run of a node, of so many instructions that all of its lanes run; what it has counted holds."""
        if length or self.always:
            self.block(node.code[:length], number, ("node",), mask, self.always)
        self.commit()

    def block(
        self, code: Sequence[Bound], number: Callable[[Bound], int], key: Key, mask: str | None, always: Stands = ()
    ) -> None:
        """Count a run of some instructions by the lanes of a mask, None for all."""
        numbered = [(number(bound), bound) for bound in code]
        if mask is None:
            width = self.code.width
            self.count("1", (*key, "whole"), [*executed(numbered, width // WARP, width), *always])
            return
        self.count(self.warps(mask), (*key, "warps"), executed(numbered, 1, 0))
        self.count(self.lanes(mask), (*key, "lanes"), executed(numbered, 0, 1))

    def guarded(self, number: int, bits: str) -> None:
        """Count the lanes for which the guard of an instruction holds."""
        self.tell(self.lanes(bits), ("guard", number), [(number, "thread_inst_executed_true", 1)])

    def parted(self, number: int, targets: Sequence[str]) -> None:
        """Count the warps whose lanes go on at several targets behind a branch, given the lanes that go to each."""
        seen, several = self.some(targets[0]), ""
        for bits in targets[1:]:
            here = self.some(bits)
            both = self.code.emit(f"and {self._flags} {seen}, {here}")
            several = self.code.emit(f"or {self._flags} {several}, {both}") if several else both
            seen = self.code.emit(f"or {self._flags} {seen}, {here}")
        self.tell(self._set(several), ("parted", number), [(number, "divergent_branches", 1)])

    # ── lanes ───────────────────────────────────────────────────────────────────────────

    def lanes(self, bits: str) -> str:
        """The number of lanes of a mask."""
        word = f"i{self.code.width}"
        return self._resized(self.code.intrinsic(word, f"llvm.ctpop.{word}", (word, bits)), self.code.width)

    def warps(self, bits: str) -> str:
        """The number of warps that have lanes in a mask."""
        return self._set(self.some(bits))

    def some(self, bits: str) -> str:
        """For each warp: has it lanes in a mask?"""
        count = self.code.width // WARP
        if count == 1:
            return self.code.emit(f"icmp ne i32 {bits}, 0")
        each = self.code.emit(f"bitcast i{self.code.width} {bits} to <{count} x i32>")
        return self.code.emit(f"icmp ne <{count} x i32> {each}, zeroinitializer")

    @property
    def _flags(self) -> str:
        """The type of a predicate for each warp."""
        count = self.code.width // WARP
        return "i1" if count == 1 else f"<{count} x i1>"

    def _set(self, predicates: str) -> str:
        count = self.code.width // WARP
        if count == 1:
            return self.code.emit(f"zext i1 {predicates} to i64")
        bits = self.code.emit(f"bitcast <{count} x i1> {predicates} to i{count}")
        wide = self.code.emit(f"zext i{count} {bits} to i64")
        return self.code.intrinsic("i64", "llvm.ctpop.i64", ("i64", wide))

    def _resized(self, number: str, bits: int) -> str:
        if bits == 64:
            return number
        return self.code.emit(f"{'zext' if bits < 64 else 'trunc'} i{bits} {number} to i64")

    # ── the end of the node ─────────────────────────────────────────────────────────────

    def commit(self) -> None:
        """The node is over: what it has counted holds."""
        self.code.lines.append(COMMIT)

    def finish(self, lines: list[str], *, leaves: bool) -> tuple[list[str], list[str], dict[str, str]]:
        """The lines that come before those of the node, these, and variables of the warp function with their types."""
        kept = [(f"{name}{BASE}", word) for name, (word, _) in self.used.items() if name in self.kept]
        if not leaves:
            before = [f"  {name} = getelementptr i64, ptr {POINTER}, i64 {word}" for name, (word, _) in self.used.items()]
            before += [f"  {base} = getelementptr i64, ptr {self._zero}, i64 0" for base, _ in kept]
            return before, [line for line in lines if line != COMMIT], {}
        before = [f"  store {llvm} zeroinitializer, ptr {name}, align 8" for name, (_, llvm) in self.used.items()]
        before += [f"  {base} = getelementptr i64, ptr {POINTER}, i64 {word}" for base, word in kept]
        committed: list[str] = []
        for is_commit, group in groupby(lines, COMMIT.__eq__):
            for each in group:
                committed += self._committed() if is_commit else [each]
        return before, committed, {name: llvm for name, (_, llvm) in self.used.items()}

    def _committed(self) -> list[str]:
        code = Code(self.code.unit)
        for name, (word, llvm) in self.used.items():
            counted = code.emit(f"load {llvm}, ptr {name}, align 8", pure=False)
            pointer = code.emit(f"getelementptr i64, ptr {POINTER}, i64 {word}")
            total = code.emit(f"load {llvm}, ptr {pointer}, align 8", pure=False)
            code.run(f"store {llvm} {code.emit(f'add {llvm} {total}, {counted}', pure=False)}, ptr {pointer}, align 8")
        return code.lines


def executed(instructions: Iterable[tuple[int, Bound]], warps: int, lanes: int) -> Stands:
    """What one run of some instructions by so many warps and lanes is; guards are counted apart."""
    for number, bound in instructions:
        if warps:
            yield number, "inst_executed", warps
        if lanes:
            yield number, "thread_inst_executed", lanes
            if bound.node.guard is None:
                yield number, "thread_inst_executed_true", lanes
