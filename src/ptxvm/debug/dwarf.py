"""Variables of the source, from the DWARF in the sections of a PTX (PTX 11.5.2; DWARF 2 to 5).

Sections are assembled to bytes, which pyelftools reads.  A symbol of the PTX gets an address that nothing else has: of a
variable a range of its own, of a label the number of its function and of its instruction.  A register is the number that its
name is, read as big-endian characters (LLVM, `NVPTXRegisterInfo::getDwarfRegNum`; so does nvcc).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.util import find_spec
from io import BytesIO
from typing import Any, TypeAlias

from ptxvm.algebra.types import Type
from ptxvm.analysis.debugging import DIGITS, WIDTHS
from ptxvm.analysis.program import Function, Program
from ptxvm.debug.source_types import (
    ArrayOf,
    BitField,
    InMemory,
    InRegister,
    Number,
    Pointer,
    SourceType,
    SourceVariable,
    SourceVariables,
    Structure,
)
from ptxvm.diagnostics.mangled import read as demangled
from ptxvm.syntax import parse, tree
from ptxvm.syntax.lexer import integer

ADDRESS = 8  # bytes
FUNCTION = 1 << 32  # addresses of a function: its labels are at the numbers of their instructions
VARIABLES = 1 << 60  # where addresses of variables begin, each with so many as a function
ENCODINGS = {0x02: "u", 0x04: "f", 0x05: "s", 0x06: "s", 0x07: "u", 0x08: "u"}  # DWARF 5, 7.8: DW_ATE_boolean to unsigned_char
TRANSPARENT = ("DW_TAG_typedef", "DW_TAG_const_type", "DW_TAG_volatile_type", "DW_TAG_restrict_type")
STRUCTURES = ("DW_TAG_structure_type", "DW_TAG_class_type", "DW_TAG_union_type")
ENUMERATION = "DW_TAG_enumeration_type"
REFERENCES = ("DW_TAG_reference_type", "DW_TAG_rvalue_reference_type")
MOST_NAMES = 100  # of a type, by `typedef` and the like
INFORMATION = ".debug_info"
BASE = "__b_"  # nvcc has a member of such a name for a base class
CODE = ("DW_TAG_subprogram", "DW_TAG_lexical_block", "DW_TAG_inlined_subroutine")
VALUES = ("DW_TAG_variable", "DW_TAG_formal_parameter")
MISSING = "the names of the source are read with pyelftools: python -m pip install 'ptxvm[debug]'"

Die: TypeAlias = Any  # pyelftools has no types
Labels: TypeAlias = Mapping[str, int]


class Dwarf:
    """The debugging information of a program; it is read when it is first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions = {function.name: n + 1 for n, function in enumerate(program.functions.values())}
        self.symbols: list[str] = []  # the variables that sections name
        self.types: dict[int, SourceType | None] = {}
        self.known: dict[tuple[str, int], SourceVariables] = {}
        self.wrong = ""

    @cached_property
    def sections(self) -> dict[str, list[str]]:
        """The lines of the sections, by name."""
        module, _ = parse(self.program.source)
        return {each.name: each.lines for each in module.statements if isinstance(each, tree.Section)}

    @cached_property
    def info(self) -> Any:  # noqa: ANN401 - pyelftools has no types
        """What pyelftools makes of the sections; None where there are none, or where it is not installed."""
        if not self.has_variables or find_spec("elftools") is None:
            return None
        from elftools.dwarf.dwarfinfo import DebugSectionDescriptor, DwarfConfig, DWARFInfo  # noqa: PLC0415 - an extra

        made = {name: bytes(data) for name, data in self.assembled().items()}
        given = {
            f"{name.removeprefix('.')}_sec": DebugSectionDescriptor(BytesIO(data), name, 0, len(data), 0)
            for name, data in made.items()
        }
        wanted = {each: given.get(each) for each in SECTIONS}
        config = DwarfConfig(little_endian=True, machine_arch="CUDA", default_address_size=ADDRESS)
        return DWARFInfo(config, **wanted)

    @property
    def has_variables(self) -> bool:
        """Has it debugging information?  Other modules are not parsed for it."""
        return INFORMATION in self.program.source.text and INFORMATION in self.sections

    @property
    def trouble(self) -> str:
        """Why names of the source are not known, though the PTX has debugging information; else empty."""
        return self.wrong or (MISSING if self.has_variables and find_spec("elftools") is None else "")

    # ── addresses ───────────────────────────────────────────────────────────────────────

    def assembled(self) -> dict[str, bytearray]:
        """The bytes of each section."""
        offsets: dict[str, int] = dict.fromkeys(self.sections, 0)
        for lines in self.sections.values():
            at = 0
            for line in lines:
                if line.endswith(":"):
                    offsets[line[:-1]] = at
                else:
                    type, _, rest = line.partition(" ")
                    at += WIDTHS[type] // 8 * (1 + rest.count(",") if rest[:1] in DIGITS else 1)
        return {name: self.bytes_of(lines, offsets) for name, lines in self.sections.items()}

    def bytes_of(self, lines: list[str], offsets: Labels) -> bytearray:
        """The bytes of a section; `offsets` are those of sections and of labels within them."""
        made = bytearray()
        for line in lines:
            if line.endswith(":"):
                continue
            type, _, rest = line.partition(" ")
            size = WIDTHS[type] // 8
            words = rest.replace(" ", "").split(",")
            for value in map(number, words) if rest[:1] in DIGITS else [self.expression(words[0], offsets)]:
                made += (value % (1 << 8 * size)).to_bytes(size, "little")
        return made

    def expression(self, text: str, offsets: Labels) -> int:
        """`label`, `.debug_abbrev+4`, `a-b`."""
        if "-" in text:
            left, _, right = text.partition("-")
            return self.address(left, offsets) - self.address(right, offsets)
        left, _, right = text.partition("+")
        return self.address(left, offsets) + (number(right) if right else 0)

    def address(self, name: str, offsets: Labels) -> int:
        """The address of a name; 0 of a section that the PTX does not have, as of lines."""
        if name in offsets:
            return offsets[name]
        if name in self.labels:
            return self.labels[name]
        if name.startswith("."):
            return 0
        if name not in self.symbols:
            self.symbols.append(name)
        return VARIABLES + self.symbols.index(name) * FUNCTION

    @cached_property
    def labels(self) -> dict[str, int]:
        """The addresses of the labels, and of the functions."""
        found = {name: n * FUNCTION for name, n in self.functions.items()}
        for function in self.program.functions.values():
            base = self.functions[function.name] * FUNCTION
            found |= {name: base + label.index for name, label in function.labels.items()}
        return found

    # ── variables ───────────────────────────────────────────────────────────────────────

    def variables(self, function: Function, index: int) -> SourceVariables:
        """The variables in sight at an instruction: those of inner blocks hide others of their name."""
        place = function.name, index
        if place not in self.known:
            self.known[place] = {}
            try:
                if self.info is not None:
                    self.known[place] = self.looked_up(function, index)
            except Exception as wrong:  # noqa: BLE001 - whatever pyelftools stumbles over, of a text that anyone may have written
                self.misunderstood(wrong)
        return self.known[place]

    @cached_property
    def named(self) -> dict[str, SourceType]:
        """The structures and the enumerations by name, and the enumerations by the names of their values."""
        found = dict[str, SourceType]()
        try:
            for unit in () if self.info is None else self.info.iter_CUs():
                for die in unit.iter_DIEs():
                    type = self.described(die) if die.tag in (*STRUCTURES, ENUMERATION) else None
                    names = type.names.values() if isinstance(type, Number) else ()
                    found |= dict.fromkeys((*names, text_of(die, "DW_AT_name")), type) if type is not None else {}
        except Exception as wrong:  # noqa: BLE001 - whatever pyelftools stumbles over, of a text that anyone may have written
            self.misunderstood(wrong)
        return found

    def misunderstood(self, wrong: Exception) -> None:
        """Say in `trouble` that sections make no sense."""
        self.wrong = f"the debugging information is not understood: {type(wrong).__name__}: {wrong}"

    def looked_up(self, function: Function, index: int) -> SourceVariables:
        """Those variables, found among all entries."""
        address, found = self.functions[function.name] * FUNCTION + index, dict[str, SourceVariable]()
        for unit in self.info.iter_CUs():
            top = unit.get_top_DIE()
            for die in self.in_sight(top, address):
                if (name := text_of(die, "DW_AT_name")) and (type := self.type_of(die)) is not None:
                    found[name] = SourceVariable(type, self.location(die, address), is_local=die.get_parent() is not top)
        return found

    def in_sight(self, die: Die, address: int) -> Iterator[Die]:
        """The variables of a block, and of the blocks in it that have an address, the outer ones first."""
        inner = []
        for each in die.iter_children():
            if each.tag in VALUES:
                yield each
            elif each.tag in CODE and covers(each, address):
                inner.append(each)
        for each in inner:
            yield from self.in_sight(each, address)

    def location(self, die: Die, address: int) -> InRegister | InMemory | None:
        """Where a variable is at an address."""
        from elftools.dwarf.locationlists import LocationEntry, LocationExpr, LocationParser  # noqa: PLC0415 - an extra

        attribute = die.attributes.get("DW_AT_location")
        if attribute is None:
            return None
        parser = LocationParser(self.info.location_lists())
        found = parser.parse_from_attribute(attribute, die.cu["version"], die)
        if isinstance(found, LocationExpr):
            return self.place(die, found.loc_expr)
        entries = [each for each in found if isinstance(each, LocationEntry)]
        return next(
            (self.place(die, each.loc_expr) for each in entries if each.begin_offset <= address < each.end_offset), None
        )

    def place(self, die: Die, expression: list[int]) -> InRegister | InMemory | None:
        """The place that a location expression names; None for one that computes more."""
        match operations(die, expression):
            case [("DW_OP_regx", [code])]:
                return InRegister(code.to_bytes((code.bit_length() + 7) // 8, "big").decode("ascii", "replace"))
            case [("DW_OP_addr", [at]), *rest] if at >= VARIABLES and all(name == "DW_OP_plus_uconst" for name, _ in rest):
                symbol, offset = divmod(at - VARIABLES, FUNCTION)
                return InMemory(self.symbols[symbol], offset + sum(args[0] for _, args in rest))
        return None

    # ── types ───────────────────────────────────────────────────────────────────────────

    def type_of(self, die: Die) -> SourceType | None:
        """The type of a variable, a member or an element; None for one of no bytes."""
        if "DW_AT_type" not in die.attributes:
            origin = die.get_DIE_from_attribute("DW_AT_abstract_origin") if "DW_AT_abstract_origin" in die.attributes else None
            return None if origin is None else self.type_of(origin)
        held = die.get_DIE_from_attribute("DW_AT_type")
        for _ in range(MOST_NAMES):
            if held.tag in TRANSPARENT and "DW_AT_type" in held.attributes:
                held = held.get_DIE_from_attribute("DW_AT_type")
        if held.offset not in self.types:
            self.types[held.offset] = self.described(held)
        return self.types[held.offset]

    def described(self, die: Die) -> SourceType | None:
        """The type that an entry describes."""
        size = int(value_of(die, "DW_AT_byte_size", ADDRESS))
        if die.tag in {"DW_TAG_base_type", ENUMERATION}:
            kind = ENCODINGS.get(value_of(die, "DW_AT_encoding", 0x05), "")
            type = Type.named.get(f"{kind}{8 * size}")
            return None if type is None else Number(type, dict(enumerators(die)))
        if die.tag == "DW_TAG_pointer_type" or die.tag in REFERENCES:
            return self.pointer(die, size)
        if die.tag == "DW_TAG_array_type":
            return self.array(die)
        return self.structure(die, size) if die.tag in STRUCTURES else None

    def pointer(self, die: Die, size: int) -> Pointer:
        """A pointer; while its target is read, which may have such a pointer, it is known without one."""
        self.types[die.offset] = Pointer(None, size, die.tag in REFERENCES)
        return Pointer(self.type_of(die), size, die.tag in REFERENCES)

    def array(self, die: Die) -> SourceType | None:
        """An array, of arrays where it has several dimensions."""
        made = self.type_of(die)
        for each in reversed([each for each in die.iter_children() if each.tag == "DW_TAG_subrange_type"]):
            count = value_of(each, "DW_AT_count", value_of(each, "DW_AT_upper_bound", -1) + 1)
            made = made and ArrayOf(made, int(count))
        return made

    def structure(self, die: Die, size: int) -> Structure:
        """A structure: its members, and those of what it inherits from."""
        made = self.types[die.offset] = Structure(text_of(die, "DW_AT_name"), size)
        for each in die.iter_children():
            offset = member_offset(each)
            type = self.type_of(each) if offset is not None or "DW_AT_bit_size" in each.attributes else None
            if "DW_AT_bit_size" in each.attributes:
                offset, type = bit_field(each, offset, type)
            if type is None or offset is None:
                continue
            name = text_of(each, "DW_AT_name")
            is_base = each.tag == "DW_TAG_inheritance" or name.startswith(BASE)
            if is_base and isinstance(type, Structure):
                made.members |= {inner: (offset + at, held) for inner, (at, held) in type.members.items()}
            elif each.tag == "DW_TAG_member" and name:
                made.members[name] = offset, type
        return made


SECTIONS = (
    "debug_info_sec", "debug_aranges_sec", "debug_abbrev_sec", "debug_frame_sec", "eh_frame_sec", "debug_str_sec",
    "debug_loc_sec", "debug_ranges_sec", "debug_line_sec", "debug_pubtypes_sec", "debug_pubnames_sec", "debug_addr_sec",
    "debug_str_offsets_sec", "debug_line_str_sec", "debug_loclists_sec", "debug_rnglists_sec", "debug_sup_sec",
    "gnu_debugaltlink_sec", "debug_types_sec",
)  # fmt: skip
"""The sections that pyelftools asks for."""


def number(text: str) -> int:
    """An integer of a section."""
    found = integer(text.removeprefix("-"))
    return 0 if found is None else -found[0] if text.startswith("-") else found[0]


def value_of(die: Die, name: str, otherwise: int) -> int:
    """The value of an attribute."""
    found = die.attributes.get(name)
    return otherwise if found is None or not isinstance(found.value, int) else found.value


def text_of(die: Die, name: str) -> str:
    """The text of an attribute, of the entry itself or of that which it is a copy of; empty where it has none."""
    found = die.attributes.get(name)
    if found is None and "DW_AT_abstract_origin" in die.attributes:
        return text_of(die.get_DIE_from_attribute("DW_AT_abstract_origin"), name)
    return "" if found is None else str(found.value, "utf-8", "replace")


def enumerators(die: Die) -> Iterator[tuple[int, str]]:
    """The values of an enumeration, each with its name."""
    for each in die.iter_children():
        if each.tag == "DW_TAG_enumerator":
            name = text_of(each, "DW_AT_name")
            read = demangled(name)  # nvcc mangles those of an `enum class`
            yield value_of(each, "DW_AT_const_value", 0), name if read is None else read.name.replace(".", "::")


def bit_field(die: Die, offset: int | None, type: SourceType | None) -> tuple[int, BitField] | tuple[None, None]:
    """A bit field: the offset of its storage, and its place there; None of one that no integer of its size holds.

    DWARF 4 counts bits from the beginning of the structure, DWARF 2 from the highest bit of the storage.
    """
    if not isinstance(type, Number) or type.type.is_float:
        return None, None
    width, size = value_of(die, "DW_AT_bit_size", 0), value_of(die, "DW_AT_byte_size", type.size)
    first = value_of(die, "DW_AT_data_bit_offset", -1)
    if first >= 0:
        offset, first = divmod(first, 8 * size)
        offset *= size
    else:
        first = 8 * size - value_of(die, "DW_AT_bit_offset", 0) - width
    storage = Type.named.get(f"u{8 * size}")
    if offset is None or storage is None or not 0 <= first <= first + width <= 8 * size:
        return None, None
    return offset, BitField(type, storage, first, width)


def covers(die: Die, address: int) -> bool:
    """Does a block have the code at an address?  Without addresses it has none; a size may stand for its end."""
    low, high = die.attributes.get("DW_AT_low_pc"), die.attributes.get("DW_AT_high_pc")
    if low is None or high is None:
        return False
    end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
    return bool(low.value <= address < end)


def operations(die: Die, expression: list[int]) -> list[tuple[str, list[int]]]:
    """The operations of a location expression, with their arguments."""
    from elftools.dwarf.dwarf_expr import DWARFExprParser  # noqa: PLC0415 - an extra

    return [(each.op_name, each.args) for each in DWARFExprParser(die.cu.structs).parse_expr(expression)]


def member_offset(die: Die) -> int | None:
    """The offset of a member in bytes; None for what is no part of the structure."""
    found = die.attributes.get("DW_AT_data_member_location")
    if found is None:
        return 0 if die.tag == "DW_TAG_member" and die.get_parent().tag == "DW_TAG_union_type" else None
    if isinstance(found.value, int):
        return found.value
    match operations(die, found.value):
        case [("DW_OP_plus_uconst", [offset])]:
            return int(offset)
    return None


@lru_cache(maxsize=64)
def dwarf(program: Program) -> Dwarf:
    """The debugging information of a program."""
    return Dwarf(program)


__all__ = ["Dwarf", "dwarf"]
