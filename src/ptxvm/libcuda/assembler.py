"""An assembler for x86-64 and aarch64, with the few instructions that the libraries need: stubs, and calls of imports.

An instruction is written by its encoding (x86-64: AMD64 Architecture Programmer's Manual, volume 3; aarch64: Arm Architecture
Reference Manual, C6.2).  Its size does not depend on the addresses in it, so code is written twice: the first time to find
the addresses of its labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from struct import pack
from types import MappingProxyType

from ptxvm.dataclass import dataclass

STUB = 32  # bytes of code of one function

Labels = Mapping[str, int]


@dataclass
class MachineCode:
    """Code from an address on; `labels` are the addresses that it names, 0 as long as they are unknown."""

    at: int
    labels: Labels
    data: bytearray = field(default_factory=bytearray)
    defined: dict[str, int] = field(default_factory=dict)

    @property
    def here(self) -> int:
        """The address of the next instruction."""
        return self.at + len(self.data)

    def label(self, name: str) -> None:
        """Name the address of the next instruction."""
        self.defined[name] = self.here

    def address(self, name: str) -> int:
        """The address of a label."""
        return self.labels.get(name, self.at)

    def words(self, *words: int) -> None:
        """Write instructions of 4 bytes."""
        self.data += pack(f"<{len(words)}I", *words)


@dataclass(frozen=True)
class Processor:
    """A processor: its number in ELF files, the numbers of two relocations (relative and absolute), and its code."""

    number: int
    relative: int
    symbolic: int

    def jump(self, at: int, number: int, slot: int) -> bytes:
        """The code of a function at an address: a jump through a slot, with the number of the slot in a register."""
        raise NotImplementedError

    def constant(self, result: int) -> bytes:
        """The code of a function that returns a number."""
        raise NotImplementedError

    def none(self) -> bytes:
        """The code of a function that stores a null pointer where its argument points, if it does, and returns 0."""
        raise NotImplementedError

    def begin(self, code: MachineCode) -> None:
        """The start of a function that calls others."""
        raise NotImplementedError

    def end(self, code: MachineCode) -> None:
        """The end of such a function."""
        raise NotImplementedError

    def arguments(self, code: MachineCode, values: Sequence[str | int], result: str = "") -> None:
        """Pass up to four arguments: addresses of labels, and numbers below 65,536; `result` is the address for a structure."""
        raise NotImplementedError

    def keep(self, code: MachineCode) -> None:
        """Keep the result of the last call."""
        raise NotImplementedError

    def kept(self, code: MachineCode) -> None:
        """Pass the kept result as the first argument."""
        raise NotImplementedError

    def call(self, code: MachineCode, cell: str) -> None:
        """Call the function whose address a cell has."""
        raise NotImplementedError

    def unless_linked(self, code: MachineCode, cell: str, label: str) -> None:
        """Go to a label where a cell has 0."""
        raise NotImplementedError

    def if_zero(self, code: MachineCode, label: str) -> None:
        """Go to a label if the last call returned 0."""
        raise NotImplementedError

    def go(self, code: MachineCode, label: str) -> None:
        """Go to a label."""
        raise NotImplementedError

    def fill(self, code: MachineCode, count: int, others: Mapping[str, str] = MappingProxyType({})) -> None:
        """A function that lets all `count` slots lead to `unfilled`, but `others`: targets, by the labels of slots."""
        raise NotImplementedError

    def give(self, code: MachineCode, label: str) -> None:
        """A function that returns the address of a label."""
        raise NotImplementedError

    def first_call(self, code: MachineCode) -> None:
        """The code that slots lead to at first: `pthread_once(once, start)`, then the function behind the slot.

        It keeps the arguments of the called function.  Where the slot still leads here, it goes to `unfilled`.
        """
        raise NotImplementedError


class X86(Processor):
    """x86-64, with the landing pads of control-flow enforcement."""

    ENDBR = b"\xf3\x0f\x1e\xfa"
    # lea rdi, rsi, rdx, rcx; mov edi, esi, edx, ecx
    ADDRESSES = (b"\x48\x8d\x3d", b"\x48\x8d\x35", b"\x48\x8d\x15", b"\x48\x8d\x0d")
    NUMBERS = (b"\xbf", b"\xbe", b"\xba", b"\xb9")

    def jump(self, at: int, number: int, slot: int) -> bytes:
        """`endbr64; mov $number, %r11d; jmp *slot(%rip)`."""
        code = self.ENDBR + b"\x41\xbb" + pack("<I", number) + b"\xff\x25" + pack("<i", slot - (at + 16))
        return code.ljust(STUB, b"\x90")

    def constant(self, result: int) -> bytes:
        """`endbr64; mov $result, %eax; ret`."""
        return (self.ENDBR + b"\xb8" + pack("<i", result) + b"\xc3").ljust(STUB, b"\x90")

    def none(self) -> bytes:
        """`endbr64; test %rdi, %rdi; je 1f; movq $0, (%rdi); 1: xor %eax, %eax; ret`."""
        store = b"\x48\xc7\x07" + pack("<i", 0)
        test = b"\x48\x85\xff\x74" + bytes([len(store)])
        return (self.ENDBR + test + store + b"\x31\xc0\xc3").ljust(STUB, b"\x90")

    def begin(self, code: MachineCode) -> None:
        """`endbr64; push %rbx`, which also aligns the stack."""
        code.data += self.ENDBR + b"\x53"

    def end(self, code: MachineCode) -> None:
        """`pop %rbx; ret`."""
        code.data += b"\x5b\xc3"

    def arguments(self, code: MachineCode, values: Sequence[str | int], result: str = "") -> None:
        """`lea value(%rip), %register` or `mov $value, %register`; the address of a result is the first argument."""
        for number, value in enumerate([result, *values] if result else values):
            if isinstance(value, int):
                code.data += self.NUMBERS[number] + pack("<I", value)
            else:
                self.relative_to_here(code, self.ADDRESSES[number], value)

    def keep(self, code: MachineCode) -> None:
        """`mov %eax, %ebx`."""
        code.data += b"\x89\xc3"

    def kept(self, code: MachineCode) -> None:
        """`mov %ebx, %edi`."""
        code.data += b"\x89\xdf"

    def call(self, code: MachineCode, cell: str) -> None:
        """`call *cell(%rip)`."""
        self.relative_to_here(code, b"\xff\x15", cell)

    def unless_linked(self, code: MachineCode, cell: str, label: str) -> None:
        """`mov cell(%rip), %rax; test %rax, %rax; je label`."""
        self.relative_to_here(code, b"\x48\x8b\x05", cell)
        self.relative_to_here(code, b"\x48\x85\xc0\x0f\x84", label)

    def if_zero(self, code: MachineCode, label: str) -> None:
        """`test %eax, %eax; je label`."""
        self.relative_to_here(code, b"\x85\xc0\x0f\x84", label)

    def go(self, code: MachineCode, label: str) -> None:
        """`jmp label`."""
        self.relative_to_here(code, b"\xe9", label)

    def relative_to_here(self, code: MachineCode, opcode: bytes, label: str) -> None:
        """An instruction whose last four bytes say how far its end is from a label."""
        code.data += opcode
        code.data += pack("<i", code.address(label) - (code.here + 4))

    def fill(self, code: MachineCode, count: int, others: Mapping[str, str] = MappingProxyType({})) -> None:
        """`endbr64; lea slots(%rip), %rdi; lea unfilled(%rip), %rax; mov $count, %ecx; rep stosq`, ..., `ret`.

        For each other one `lea target(%rip), %rax; mov %rax, slot(%rip)`.
        """
        code.data += self.ENDBR
        self.relative_to_here(code, b"\x48\x8d\x3d", "slots")
        self.relative_to_here(code, b"\x48\x8d\x05", "unfilled")
        code.data += b"\xb9" + pack("<I", count) + b"\xf3\x48\xab"
        for slot, target in others.items():
            self.relative_to_here(code, b"\x48\x8d\x05", target)
            self.relative_to_here(code, b"\x48\x89\x05", slot)
        code.data += b"\xc3"

    def give(self, code: MachineCode, label: str) -> None:
        """`endbr64; lea label(%rip), %rax; ret`."""
        code.data += self.ENDBR
        self.relative_to_here(code, b"\x48\x8d\x05", label)
        code.data += b"\xc3"

    def first_call(self, code: MachineCode) -> None:
        """Push rdi, rsi, rdx, rcx, r8, r9, r11 and rax, store xmm0 to xmm7; afterwards compare the slot, and jump."""
        saved = range(8)
        code.data += self.ENDBR + b"\x55\x48\x89\xe5" + b"\x57\x56\x52\x51\x41\x50\x41\x51\x41\x53\x50"
        code.data += b"\x48\x81\xec" + pack("<i", 16 * len(saved))
        code.data += b"".join(b"\x0f\x11" + bytes([0x84 | n << 3, 0x24]) + pack("<i", 16 * n) for n in saved)
        self.arguments(code, ["once", "start"])
        self.call(code, "pthread_once")
        code.data += b"".join(b"\x0f\x10" + bytes([0x84 | n << 3, 0x24]) + pack("<i", 16 * n) for n in saved)
        code.data += b"\x48\x81\xc4" + pack("<i", 16 * len(saved))
        code.data += b"\x58\x41\x5b\x41\x59\x41\x58\x59\x5a\x5e\x5f\x5d"
        self.relative_to_here(code, b"\x4c\x8d\x15", "slots")  # lea slots(%rip), %r10
        code.data += b"\x4f\x8b\x14\xda"  # mov (%r10,%r11,8), %r10
        self.relative_to_here(code, b"\x4c\x8d\x1d", "first call")  # lea ..., %r11
        code.data += b"\x4d\x39\xda"  # cmp %r11, %r10
        self.relative_to_here(code, b"\x0f\x84", "unfilled")
        code.data += b"\x41\xff\xe2"  # jmp *%r10


class Aarch64(Processor):
    """aarch64, with the landing pads of branch target identification."""

    BTI, RET = 0xD503245F, 0xD65F03C0
    RESULT = 8  # the register of the address of a result in memory

    def jump(self, at: int, number: int, slot: int) -> bytes:
        """`bti c; mov w17, #number; adrp x16, slot; ldr x16, [x16, :lo12:slot]; br x16`; `bti c` takes jumps through x16."""
        words = (self.BTI, 0x52800011 | number << 5, adrp(16, at + 8, slot), load(16, slot), 0xD61F0200)
        return pack("<5I", *words).ljust(STUB, b"\0")

    def constant(self, result: int) -> bytes:
        """`bti c; mov w0, #result; ret`."""
        return pack("<3I", self.BTI, 0x52800000 | result << 5, self.RET).ljust(STUB, b"\0")

    def none(self) -> bytes:
        """`bti c; cbz x0, 1f; str xzr, [x0]; 1: mov w0, #0; ret`."""
        return pack("<5I", self.BTI, 0xB4000040, 0xF900001F, 0x52800000, self.RET).ljust(STUB, b"\0")

    def begin(self, code: MachineCode) -> None:
        """`bti c; stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]`."""
        code.words(self.BTI, 0xA9BE7BFD, 0x910003FD, 0xF9000BF3)

    def end(self, code: MachineCode) -> None:
        """`ldr x19, [sp, #16]; ldp x29, x30, [sp], #32; ret`."""
        code.words(0xF9400BF3, 0xA8C27BFD, self.RET)

    def arguments(self, code: MachineCode, values: Sequence[str | int], result: str = "") -> None:
        """`adrp` and `add`, or `mov`; the address of a result has a register of its own."""
        for register, value in [*enumerate(values), *([(self.RESULT, result)] if result else [])]:
            if isinstance(value, int):
                code.words(0x52800000 | value << 5 | register)
            else:
                self.address(code, register, value)

    def address(self, code: MachineCode, register: int, label: str) -> None:
        """`adrp register, label; add register, register, :lo12:label`."""
        at = code.address(label)
        code.words(adrp(register, code.here, at), 0x91000000 | (at & 0xFFF) << 10 | register << 5 | register)

    def keep(self, code: MachineCode) -> None:
        """`mov w19, w0`."""
        code.words(0x2A0003F3)

    def kept(self, code: MachineCode) -> None:
        """`mov w0, w19`."""
        code.words(0x2A1303E0)

    def call(self, code: MachineCode, cell: str) -> None:
        """`adrp x16, cell; ldr x16, [x16, :lo12:cell]; blr x16`."""
        at = code.address(cell)
        code.words(adrp(16, code.here, at), load(16, at), 0xD63F0200)

    def unless_linked(self, code: MachineCode, cell: str, label: str) -> None:
        """`adrp x16, cell; ldr x16, [x16, :lo12:cell]; cbz x16, label`."""
        at = code.address(cell)
        code.words(adrp(16, code.here, at), load(16, at))
        self.branch(code, 0xB4000010, label)

    def if_zero(self, code: MachineCode, label: str) -> None:
        """`cbz w0, label`."""
        self.branch(code, 0x34000000, label)

    def branch(self, code: MachineCode, word: int, label: str) -> None:
        """A conditional branch, of 19 bits."""
        code.words(word | (code.address(label) - code.here >> 2 & 0x7FFFF) << 5)

    def go(self, code: MachineCode, label: str) -> None:
        """`b label`."""
        code.words(0x14000000 | code.address(label) - code.here >> 2 & 0x3FFFFFF)

    def fill(self, code: MachineCode, count: int, others: Mapping[str, str] = MappingProxyType({})) -> None:
        """The addresses in x0 and x1, `mov w2, #count`; `str x1, [x0], #8; subs w2, w2, #1; b.ne` back to the `str`.

        For each other one its addresses, and `str x1, [x0]`.
        """
        code.words(self.BTI)
        self.address(code, 0, "slots")
        self.address(code, 1, "unfilled")
        code.words(0x52800002 | count << 5, 0xF8008401, 0x71000442, 0x54FFFFC1)
        for slot, target in others.items():
            self.address(code, 0, slot)
            self.address(code, 1, target)
            code.words(0xF9000001)
        code.words(self.RET)

    def give(self, code: MachineCode, label: str) -> None:
        """`bti c`, the address in x0, and `ret`."""
        code.words(self.BTI)
        self.address(code, 0, label)
        code.words(self.RET)

    def first_call(self, code: MachineCode) -> None:
        """Store x0 to x8, x17 and q0 to q7; afterwards compare the slot, and jump."""
        pairs = [(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (8, 17, 10)]  # registers, and 8-byte units from sp
        vectors = [(0, 1, 6), (2, 3, 8), (4, 5, 10), (6, 7, 12)]  # ... and 16-byte units
        code.words(self.BTI, 0xA9B27BFD, 0x910003FD)  # stp x29, x30, [sp, #-224]!; mov x29, sp
        code.words(*(0xA9000000 | at << 15 | b << 10 | 31 << 5 | a for a, b, at in pairs))
        code.words(*(0xAD000000 | at << 15 | b << 10 | 31 << 5 | a for a, b, at in vectors))
        self.arguments(code, ["once", "start"])
        self.call(code, "pthread_once")
        code.words(*(0xAD400000 | at << 15 | b << 10 | 31 << 5 | a for a, b, at in vectors))
        code.words(*(0xA9400000 | at << 15 | b << 10 | 31 << 5 | a for a, b, at in pairs))
        code.words(0xA8CE7BFD)  # ldp x29, x30, [sp], #224
        self.address(code, 16, "slots")
        code.words(0xF8717A10)  # ldr x16, [x16, x17, lsl #3]
        self.address(code, 17, "first call")
        code.words(0xEB11021F)  # cmp x16, x17
        self.branch(code, 0x54000000, "unfilled")  # b.eq
        code.words(0xD61F0200)  # br x16


def adrp(register: int, at: int, target: int) -> int:
    """`adrp`: the page of a target."""
    pages = (target >> 12) - (at >> 12)
    return 0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register


def load(register: int, target: int) -> int:
    """`ldr register, [register, :lo12:target]`."""
    return 0xF9400000 | (target & 0xFFF) >> 3 << 10 | register << 5 | register


PROCESSORS: Mapping[str, Processor] = MappingProxyType({
    "x86_64": X86(62, relative=8, symbolic=6),
    "aarch64": Aarch64(183, relative=1027, symbolic=1025),
})  # fmt: skip

__all__ = ["PROCESSORS", "STUB", "Labels", "MachineCode", "Processor"]
