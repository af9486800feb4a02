"""Commands that look: at values, memory, code and calls; and those that change values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ptxvm.algebra.types import Type
from ptxvm.debug import inspection
from ptxvm.debug.commands.command import TAB, BadCommand, Debugger, Line, Style, command, number
from ptxvm.debug.commands.running import none
from ptxvm.debug.expressions import parse
from ptxvm.debug.session import Session
from ptxvm.debug.source_types import ArrayOf, Structure, spelled
from ptxvm.debug.values import MemoryPlace, Values, bits_of
from ptxvm.engine.interp import value_text
from ptxvm.machine.faults import plural

VALUES, CODE, CHANGES = "Values", "Code", "Changes"
FORMAT = re.compile(r"/(?P<count>\d*)(?P<letters>[a-z]*)\s*(?P<rest>.*)", re.DOTALL)
SIZES = {"b": 8, "h": 16, "w": 32, "g": 64}
KINDS = {"x": "b", "t": "b", "o": "b", "u": "u", "d": "s", "f": "f", "c": "u"}
FEW = inspection.FEW  # also the lines around the thread in focus that `list` shows
MOST = inspection.MOST
IN_LINE = 16  # bytes of a line of `x`


@command("print", "p", "inspect", usage="[/FORMAT] EXPRESSION [@ COUNT]", group=VALUES)
def print_(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the value of EXPRESSION for the thread in focus.

    It is C's, with the names of PTX: `%r1 + 4`, `%tid.x`, `buf[%r2]`, `.shared.f32[%r3 + 4]`, `&buf`; the name of a parameter
    is its value, and `x[3]` an element of the array that it points to. `x[0] @ 8` shows 8 elements.  FORMAT is /x /d /u /t /f.
    Where the PTX has debugging information (nvcc -G), names of the source do, too: `n`, `p[i]`, `s.x`, `q->next`, `*(p + 1)`.
    `(float)x` converts a value, `*(float*)%rd1` reads what is at an address.
    """
    letters, _, rest = formatted(text)
    if len(letters) > 1:
        raise no_format(letters)
    expression, _, wanted = rest.rpartition("@") if "@" in rest else (rest, "", "")
    if not expression.strip():
        raise BadCommand("the expression is missing")
    session = debugger.session
    if wanted:
        place = session.place(expression)
        values: Sequence[Values] = session.elements(place, min(number(wanted.strip(), "the count"), MOST))
    else:
        found = session.value(expression)
        if isinstance(found, MemoryPlace) and isinstance(found.source, ArrayOf | Structure):
            yield Line(f"{expression.strip()} = {inspection.text_at(session, found)}")
            return
        values = [found] if isinstance(found, Values) else session.elements(found, min(found.count or FEW, MOST))
    shown = [in_format(each, letters) for each in values]
    more = "" if wanted or not isinstance(found, MemoryPlace) or found.count <= len(shown) else ", …"
    yield Line(f"{expression.strip()} = {shown[0] if len(shown) == 1 else '{' + ', '.join(shown) + more + '}'}")


@command("whatis", "ptype", usage="EXPRESSION", group=VALUES)
def whatis(debugger: Debugger, text: str) -> Iterator[Line]:
    """Say the type of EXPRESSION: of a name of the PTX its own, of one of the source with the members of a structure."""
    if not text.strip():
        raise BadCommand("the expression is missing")
    found = parse(text).place(debugger.session.view())
    yield Line(f"type = {inspection.type_of(found)}")
    if isinstance(found, MemoryPlace) and isinstance(found.source, Structure):
        for name, (offset, member) in found.source.members.items():
            yield Line(f"  {offset:4}  {name}: {spelled(member)}")


def formatted(text: str) -> tuple[str, int | None, str]:
    """The letters and the count of `/8xw`, and the rest."""
    found = FORMAT.fullmatch(text)
    if found is None:
        return "", None, text
    return found["letters"], int(found["count"]) if found["count"] else None, found["rest"]


def in_format(values: Values, letters: str) -> str:
    """A value, by a letter, or as its type says."""
    bits, type = bits_of(values)[0], values.type
    match letters[:1]:
        case "":
            return inspection.text_of(values)
        case "x":
            return value_text.hexadecimal(type.as_bits, bits)
        case "t":
            return f"0b{bits:0{type.bits}b}"
        case "o":
            return f"0{bits:o}"
        case "u":
            return str(bits)
        case "d":
            return str(value_text.signed(bits, type.bits))
        case "c":
            return repr(chr(bits & 0xFF))
        case "f" if type.bits in (16, 32, 64):
            return value_text.number(type if type.is_float else Type.named[f"f{type.bits}"], bits)
    raise no_format(letters)


def no_format(letters: str) -> BadCommand:
    """The error for letters that are no format."""
    return BadCommand(f"there is no format /{letters}: there are /x /d /u /o /t /c /f")


@command("x", usage="/COUNT FORMAT SIZE EXPRESSION", group=VALUES)
def examine(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show memory from an address on: `x/8fw x`, `x/16xb &buf`, `x/4dw .shared.b32[%r3]`.

    SIZE is b, h, w or g (1, 2, 4 or 8 bytes); FORMAT as for `print`.  A variable stands for its own address, a parameter or a
    register for a generic address that it holds.
    """
    letters, count, expression = formatted(text)
    if not expression.strip():
        raise BadCommand("the address is missing")
    if wrong := [letter for letter in letters if letter not in SIZES and letter not in KINDS]:
        raise no_format(wrong[0])
    size = next((SIZES[letter] for letter in letters if letter in SIZES), 32)
    shape = next((letter for letter in letters if letter in KINDS), "x")
    place = debugger.session.place_at(expression)
    word = KINDS[shape] if KINDS[shape] != "f" or size > SIZES["b"] else "b"
    typed = MemoryPlace(place.space, place.address, Type.named[f"{word}{size}"])
    values = debugger.session.elements(typed, min(count or 1, 1 << 16))
    columns = max(1, min(8, IN_LINE * 8 // size))
    for first in range(0, len(values), columns):
        cells = [in_format(each, shape) for each in values[first : first + columns]]
        yield Line(f"{int(place.address[0]) + first * size // 8:#x}:\t" + "\t".join(cells))
    if count is not None and len(values) < count:
        yield Line("memory ends here", Style.ERROR)


@command("set", "set var", usage="PLACE = EXPRESSION", group=CHANGES)
def set_(debugger: Debugger, text: str) -> Iterator[Line]:
    """Change a register, a variable, or an element in memory, for the thread in focus: `set %r1 = 5`, `set buf[2] = 1.5`.

    The change is a part of the run: going back before it undoes it, and running on from there does not repeat it.
    """
    target, equals, expression = text.removeprefix("var ").partition("=")
    if not equals:
        raise BadCommand("write `set PLACE = EXPRESSION`")
    new = debugger.session.assign(target.strip(), expression)
    yield Line(f"{target.strip()} = {inspection.text_of(new)}")


@command("info registers", "info r", usage="[REGISTER...]", group=VALUES)
def info_registers(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the registers of the thread in focus, or some of them: `info registers %f*`; /x and the like are for `print`."""
    found = [each for word in text.split() or ["*"] for each in registers_called(debugger.session, word)]
    yield from debugger.table(("Name", "Type", "Value"), [(each.name, f".{each.type}", each.value) for each in found])


def registers_called(session: Session, pattern: str) -> list[inspection.RegisterView]:
    """The registers of the function in focus with a name, or with names that a pattern such as `%f*` stands for."""
    found = [each for each in inspection.registers(session) if fnmatchcase(each.name, pattern)]
    if not found:
        raise BadCommand(f"the function has no register {pattern}" if pattern != "*" else "the function has no registers")
    return found


@command("info special", usage="", group=VALUES)
def info_special(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the special registers of the thread in focus."""
    none(text)
    found = inspection.special_registers(debugger.session)
    yield from debugger.table(("Name", "Type", "Value"), [(each.name, f".{each.type}", each.value) for each in found])


@command("info args", usage="", group=VALUES)
def info_args(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the parameters of the kernel, or of the function of the thread in focus."""
    none(text)
    session = debugger.session
    for each in session.view().routine.function.signature.parameters:
        values = session.value(each.name)
        shown = "…" if isinstance(values, MemoryPlace) else inspection.text_of(values)
        yield Line(f"{inspection.declared(each)} = {shown}")


@command("info locals", usage="", group=VALUES)
def info_locals(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the variables of the source with their values, where the PTX has debugging information; else those of the PTX."""
    none(text)
    found = inspection.source_variables(debugger.session)
    if not found:
        yield from info_variables(debugger, text)
    for name, value in found:
        yield Line(f"{name} = {value}")


@command("info variables", usage="", group=VALUES)
def info_variables(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the variables that the thread in focus can name, with their spaces and types."""
    none(text)
    for each in inspection.variables(debugger.session):
        yield Line(inspection.declared(each))


@command("backtrace", "bt", "where", "info stack", usage="", group=CODE)
def backtrace(debugger: Debugger, text: str) -> Iterator[Line]:
    """Show the functions that the thread in focus is in, the innermost first."""
    none(text)
    frames = inspection.stack(debugger.session)
    if not frames:
        debugger.session.view()
    for each in frames:
        origin = f" ({each.origin})" if each.origin else ""
        mark = Style.CURRENT if each.level == debugger.session.frame else Style.PLAIN
        yield Line(f"#{each.level}  {each.function} at {each.file}:{each.line}{origin}", mark)


@command("frame", "f", usage="[NUMBER]", group=CODE)
def frame(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let commands be about function NUMBER of `backtrace`."""
    yield from framed(debugger, number(text, "the frame", debugger.session.frame))


@command("up", usage="[COUNT]", group=CODE)
def up(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let commands be about the function that has called this one."""
    yield from framed(debugger, debugger.session.frame + number(text, "the count", 1))


@command("down", usage="[COUNT]", group=CODE)
def down(debugger: Debugger, text: str) -> Iterator[Line]:
    """Let commands be about the function that this one has called."""
    yield from framed(debugger, debugger.session.frame - number(text, "the count", 1))


def framed(debugger: Debugger, wanted: int) -> Iterator[Line]:
    """Choose a frame."""
    frames = inspection.stack(debugger.session)
    if not frames:
        debugger.session.view()  # raises why there are none
    if not 0 <= wanted < len(frames):
        raise BadCommand(f"there is no frame {wanted}: `backtrace` lists 0 to {len(frames) - 1}")
    debugger.session.frame, debugger.listed = wanted, 0
    each = frames[wanted]
    yield Line(f"#{each.level}  {each.function} at {each.file}:{each.line}", Style.STOP)
    yield Line(f"{each.line}\t{each.text}", Style.CURRENT)


@command("list", "l", "disassemble", usage="[LINE | FUNCTION]", group=CODE)
def list_(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the PTX around the thread in focus, then what follows; around LINE or FUNCTION where one is named.

    `=>` is before the instruction that comes next, `b` before lines with a breakpoint.
    """
    session = debugger.session
    if text:
        sites = sorted(session.breakpoints.sites(text, session.here))
        around = session.code.routines[sites[0][0]].function.instructions[sites[0][1]].line
    else:
        around = debugger.listed + FEW if debugger.listed else inspection.current_line(session)
        around = around or session.kernel_routine.function.instructions[0].line
    lines = inspection.listing(session, around - FEW + 1, around + FEW)
    if not lines:
        raise BadCommand("there is nothing below")
    debugger.listed = lines[-1].number
    for each in lines:
        mark = "=>" if each.current else "b " if each.breakpoint else "  "
        head = f"{mark} {each.number:>4}  "
        style = Style.CURRENT if each.current else Style.PLAIN
        yield Line(f"{head}{each.text}".rstrip(), style, hang=len(head) + TAB)


@command("info line", usage="", group=CODE)
def info_line(debugger: Debugger, text: str) -> Iterator[Line]:
    """Say where the thread in focus is: line, instruction, and the source line that .loc names."""
    none(text)
    yield from debugger.where()


@command("info functions", usage="", group=CODE)
def info_functions(debugger: Debugger, text: str) -> Iterator[Line]:
    """List the functions that have a body, with their lines."""
    none(text)
    for routine in debugger.session.code.routines:
        if routine.end:
            yield Line(f"{routine.function.instructions[0].line}:\t{routine.function.name}")


@command("info time", usage="", group=CODE)
def info_time(debugger: Debugger, text: str) -> Iterator[Line]:
    """Say what time it is: how many instructions were issued, how far the run is known, and what its checkpoints take."""
    none(text)
    timeline = debugger.session.execution.timeline
    kept = f"{plural(len(timeline.checkpoints), 'checkpoint')}, {timeline.kept_bytes:,} bytes"
    yield Line(f"{plural(timeline.now, 'instruction')} issued; the run is known to {timeline.end}; {kept}")


__all__ = ["registers_called"]
