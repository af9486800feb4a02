"""What random kernels do with memory: each thread its own, or alike with others."""

from __future__ import annotations

from ptxvm.campaign.random_kernels import strategies as st
from ptxvm.campaign.random_kernels.parts import GUARD, REGISTERS, P, R, Statement, register

# ── memory ──────────────────────────────────────────────────────────────────────────────

OWN = 64  # bytes that a thread has in each space
BASES = {"global": ["%mine"], "shared": ["%own"], "local": ["%stack"], "": ["%any", "%mine", "%either", "%anystack"]}
FAR = [1 << 30, 1 << 62, (1 << 63) + 4096, (1 << 64) - 256]  # what an address may have been away from where it is
CELLS = {
    "u8": "hr", "s8": "hr", "b8": "hr", "u16": "h", "s16": "hr", "b16": "h", "u32": "r", "s32": "rd", "b32": "r", "f32": "f",
    "u64": "d", "s64": "d", "b64": "d",
}  # fmt: skip


def size_of(type: str) -> int:
    """Bytes of a type."""
    return int(type.lstrip("bfsu").removesuffix("x2")) // 8 * (2 if type.endswith("x2") else 1)


def letters_of(type: str, *, store: bool) -> str:
    """The letters of the registers that an access of a type takes; for a store not those that are wider."""
    return CELLS[type].replace("d", "") if store and size_of(type) < 8 else CELLS[type]


AWAY = {"%t0": 1 << 24, "%t1": 1 << 40}  # bytes behind which there is nothing, in shared memory and elsewhere


@st.composite
def misplaced(draw: st.Draw, where: str, size: int) -> str:
    """Nothing; or a line that moves the address of some lanes of an access off its multiple, or to where nothing is."""
    distance = draw(st.sampled_from([0, 0, 0, size // 2, size // 2, AWAY[where]]))
    bits = {"%t0": 32, "%t1": 64}[where]
    return f"@{draw(st.sampled_from(['', '!']))}{draw(P)} add.s{bits} {where}, {where}, {distance};" if distance else ""


@st.composite
def place(draw: st.Draw, base: str, size: int) -> tuple[str, str]:
    """An address in the thread's own memory, a constant or what a register says; and the lines that compute it."""
    if draw(st.booleans()):
        more = draw(st.sampled_from([0, 0, 64, -64]))
        at = size * draw(st.integers(0, OWN // size - 1))
        if not more:
            return "", f"{base}+{at}"
        where, bits = ("%t0", 32) if base == "%own" else ("%t1", 64)
        return f"sub.s{bits} {where}, {base}, {more};\n", f"{where}+{at + more}"
    index = draw(R)
    if base == "%own":
        return draw(st.sampled_from(OFFSETS_32)).format(index=index, mask=OWN - size, base=base), "%t0"
    lines = draw(st.sampled_from(OFFSETS_64)).format(index=index, mask=OWN - size, base=base)
    far = draw(st.sampled_from([0, 0, *FAR]))
    return lines + (f"add.u64 %t1, %t1, {far};\nsub.u64 %t1, %t1, {far};\n" if far else ""), "%t1"


OFFSETS_32 = [
    "and.b32 %t0, {index}, {mask};\nadd.u32 %t0, %t0, {base};\n",
    "and.b32 %t0, {index}, {mask};\nsub.u32 %t0, %t0, 0x80000001;\nadd.u32 %t0, %t0, {base};\nadd.u32 %t0, %t0, 0x80000001;\n",
    "mad.lo.u32 %t0, %thread, 0x9000004, {index};\nand.b32 %t0, %t0, {mask};\nadd.u32 %t0, %t0, {base};\n",
]
OFFSETS_64 = [
    "and.b32 %t0, {index}, {mask};\ncvt.u64.u32 %t1, %t0;\nadd.u64 %t1, %t1, {base};\n",
    """and.b32 %t0, {index}, {mask};
    sub.u32 %t0, %t0, 4096;
    cvt.s64.s32 %t1, %t0;
    add.s64 %t1, %t1, {base};
    add.s64 %t1, %t1, 4096;
    """,
    "and.b32 %t0, {index}, {mask};\nsub.u32 %t0, %t0, 4096;\nadd.u32 %t0, %t0, 4096;\nmad.wide.u32 %t1, %t0, 1, {base};\n",
    "mul.lo.u32 %t0, %thread, 0x9000004;\ncvt.u64.u32 %t1, %t0;\nand.b64 %t1, %t1, {mask};\nadd.u64 %t1, %t1, {base};\n",
    """mad.lo.s32 %t0, %thread, 0x7000004, {index};
    cvt.s64.s32 %t1, %t0;
    and.b64 %t1, %t1, {mask};
    add.u64 %t1, %t1, {base};
    """,
]
"""Offsets that are what they seem, and such as wrap: in 32 bits before they are extended, and in 64."""

WRAPS = [
    "mad.lo.u32 %t0, %thread, 0x9000001, {r};\ncvt.u64.u32 {d}, %t0;",
    "mul.lo.s32 %t0, %thread, 0x7000001;\ncvt.s64.s32 {d}, %t0;",
    "sub.u32 %t0, %thread, 7;\nmul.wide.u32 {d}, %t0, 4;",
    "sub.s32 %t0, 9, %thread;\nmad.wide.s32 {d}, %t0, -4, {d};",
    "shl.b32 %t0, %thread, 27;\nadd.u32 %t0, %t0, {r};\ncvt.u64.u32 {d}, %t0;",
]
"""Values that go up with the number of a thread until they wrap."""


@st.composite
def access(draw: st.Draw, *, stray: bool = False) -> Statement:
    """A load or a store of the thread's own memory, or a load of what nobody writes; a `stray` one may be wrong."""
    type, base = draw(st.sampled_from(list(CELLS))), draw(st.sampled_from([*BASES, "in", "const"]))
    size = size_of(type)
    count = draw(st.sampled_from([n for n in (1, 1, 2, 4) if n * size <= 16]))
    letter = draw(st.sampled_from(CELLS[type]))
    stores = base in BASES and letter != "d" * (size < 8) and draw(st.booleans())
    vector = f".v{count}" if count > 1 else ""
    numbers = draw(st.samples(range(REGISTERS[letter][1]), count))
    registers = ", ".join(f"%{letter}{n}" for n in numbers)
    registers = f"{{{registers}}}" if count > 1 else registers
    if base in ("in", "const"):
        return Statement(draw(elsewhere(base, f"{vector}.{type}", size * count, registers)))
    lines, where = draw(place(draw(st.sampled_from(BASES[base])), size * count))
    if stray:
        start, _, at = where.partition("+")
        own = "%t0" if start in ("%own", "%t0") else "%t1"
        lines += f"add.s{32 if own == '%t0' else 64} {own}, {start}, {at or 0};\n{draw(misplaced(own, size * count))}\n"
        where = own
    word = draw(st.sampled_from(["", "", ".volatile"])) if count == 1 and base != "local" else ""
    space = f".{base}" if base else ""
    guard = draw(GUARD)
    if stores:
        return Statement(f"{lines}{guard}st{word}{space}{vector}.{type} [{where}], {registers};")
    return Statement(f"{lines}{guard}ld{word}{space}{vector}.{type} {registers}, [{where}];")


@st.composite
def elsewhere(draw: st.Draw, base: str, modifiers: str, size: int, registers: str) -> str:
    """A load from the input at a random place, or from constant memory."""
    index = draw(R)
    if base == "const":
        start = f"and.b32 %t0, {index}, {128 - size};\nmov.u64 %t1, table;\nmad.wide.u32 %t1, %t0, 1, %t1;"
        return f"{start}\nld.const{modifiers} {registers}, [%t1];"
    word = draw(st.sampled_from(["", ".nc", ".cg", ".ca"]))
    return (
        f"and.b32 %t0, {index}, {INPUT - size};\ncvt.u64.u32 %t1, %t0;\nadd.u64 %t1, %t1, %in;\n"
        f"{draw(GUARD)}ld.global{word if modifiers.count('.') == 1 or word != '.nc' else ''}{modifiers} {registers}, [%t1];"
    )


INPUT = 1024  # bytes that nobody writes
TAIL = 256  # of them, the last
ROWS = [
    "add.u32 %t0, %thread, {near};", "sub.u32 %t0, {near}, %thread;", "mul.lo.u32 %t0, %thread, {few};",
    "shr.u32 %t0, %thread, {few};", "div.u32 %t0, %thread, {few};", "rem.u32 %t0, %thread, {few};",
    "xor.b32 %t0, %thread, {near};", "and.b32 %t0, %thread, {near};", "bfi.b32 %t0, {r}, %thread, {few}, 2;",
    "mov.u32 %t0, %ctaid.x;\nmad.lo.u32 %t0, %t0, {few}, %thread;", "and.b32 %t0, {r}, 7;\nadd.u32 %t0, %t0, %thread;",
    "and.b32 %t0, {r}, {near};", "selp.u32 %t0, {near}, %thread, {p};", "mov.u32 %t0, {few};",
]  # fmt: skip
"""Indices that are rows, parts of rows, rows in other orders, one element for several lanes, or anything."""
SHARED_ROWS = [
    "mov.u32 %t0, %n0;", "mov.u32 %t0, %n1;", "mov.u32 %t0, %tid.x;", "add.u32 %t0, %n0, {few};", "and.b32 %t0, %n0, {near};",
    "mad.lo.u32 %t0, %n1, {few}, %n0;", "mad.lo.u32 %t0, %n0, {few}, %n1;", "and.b32 %t0, %thread, {near};",
]  # fmt: skip
"""Indices that are one row for several parts of a CTA: those of its shape."""


@st.composite
def row(draw: st.Draw) -> Statement:
    """Some loads side by side from the input, by lanes whose index is within it, or some of them: it ends where memory ends."""
    type = draw(st.sampled_from(list(CELLS)))
    size, letter = size_of(type), draw(st.sampled_from(CELLS[type]))
    scale = size * draw(st.sampled_from([1, 1, 1, 2, 4]))
    loads = draw(st.integers(1, min(3, REGISTERS[letter][1])))
    index = draw(st.one_of(st.sampled_from(ROWS), st.sampled_from(SHARED_ROWS))).format(
        r=draw(R), p=draw(P), near=draw(st.sampled_from([1, 3, 5, 16, 31, 63])), few=draw(st.integers(1, 5))
    )
    numbers = draw(st.samples(range(REGISTERS[letter][1]), loads))
    word, first = draw(st.sampled_from(["", "", ".nc", ".volatile"])), draw(st.sampled_from([0, INPUT - TAIL, INPUT - TAIL]))
    load = f"ld{word * (word == '.volatile')}.global{word * (word == '.nc')}.{type}"
    lines = "".join(f"@%q1 {load} %{letter}{n}, [%t1+{first + at * size}];\n" for at, n in enumerate(numbers))
    within = f"%t0, {(TAIL - loads * size) // scale + 1}"
    guards = st.builds("setp.lt.and.u32 %q1, {}, {}{};".format, st.just(within), st.sampled_from(["", "!"]), P)
    some = draw(st.one_of(st.just(f"setp.lt.u32 %q1, {within};"), guards, guards))
    return Statement(f"{index}\n{some}\nmad.wide.u32 %t1, %t0, {scale}, %in;\n{lines}")


OWN_ATOMICS = {
    "add": "u32 s32 u64 f32 f16x2 bf16x2", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "and": "b32 b64",
    "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64", "inc": "u32", "dec": "u32", "cas": "b32 b64 b16",
}  # fmt: skip
SHARED_ATOMICS = {"add": "u32 u64", "min": "s32 u64", "max": "u32 s64", "and": "b32", "or": "b64", "xor": "b32"}
WORDS = [(op, type) for op, types in SHARED_ATOMICS.items() for type in types.split()]


@st.composite
def atomic(draw: st.Draw) -> Statement:
    """An atomic on the thread's own memory, whose old value counts, or on a word that all threads update alike."""
    space = draw(st.sampled_from(["global", "shared", ""]))
    if draw(st.booleans()):
        which = draw(st.integers(0, len(WORDS) - 1))
        op, type = WORDS[which]
        base = {"global": "%words", "shared": "%counts", "": "%anywords"}[space]
        source = draw(register({4: "r", 8: "d"}[size_of(type)]))
        word = draw(st.sampled_from(["", ".relaxed.gpu", ".relaxed.cta" if space == "shared" else ".relaxed.sys"]))
        return Statement(f"{draw(GUARD)}red{word}{'.' * bool(space)}{space}.{op}.{type} [{base}+{8 * which}], {source};")
    op = draw(st.sampled_from(list(OWN_ATOMICS)))
    type = draw(st.sampled_from(OWN_ATOMICS[op].split()))
    letter = "f" if type == "f32" else {2: "h", 4: "r", 8: "d"}[size_of(type)]
    lines, where = draw(place(draw(st.sampled_from(BASES[space][:3])), size_of(type)))
    rounding = ".noftz" if type.endswith("x2") else ""
    source = ", ".join(draw(register(letter)) for _ in range(1 + (op == "cas")))
    target = draw(register(letter))
    return Statement(f"{lines}{draw(GUARD)}atom{'.' * bool(space)}{space}.{op}{rounding}.{type} {target}, [{where}], {source};")


DOUBLES = [
    "ld.global.f64 {g}, [%mine+64];", "st.global.f64 [%mine+64], {g};", "atom.global.add.f64 {g}, [%mine+64], {g};",
    "red.global.add.f64 [%mine+64], {g};",
]  # fmt: skip
"""Doubles in memory have a place of their own: which payload a NaN has that arithmetic on two NaNs gives is open."""

WIDE = [
    "atom.global.add.v2.f32 {{%f0, %f1}}, [%mine+8], {{%f2, %f3}};",
    "red.global.add.v4.f32 [%mine+32], {{%f3, %f2, %f1, %f0}};",
    "mov.b128 %sa@n, {{%d0, {d}}};\natom.global.exch.b128 %sa@n, [%mine+16], %sa@n;\nmov.b128 {{%d2, %d3}}, %sa@n;",
    """mov.b128 %sa@n, {{{d}, %d1}};
    mov.b128 %sb@n, {{%d2, {d}}};
    atom.global.cas.b128 %sa@n, [%mine+32], %sa@n, %sb@n;
    mov.b128 {{%d4, %d1}}, %sa@n;""",
    """and.b32 %t0, {r}, 992;
    cvt.u64.u32 %t1, %t0;
    add.s64 %t1, %t1, %in;
    ld.global.v8.b32 {{%r7, %r6, %r5, %r4, %r3, %r2, %r1, %r0}}, [%t1];""",
    "and.b32 %t0, %n1, 31;\nmad.wide.u32 %t1, %t0, 32, %in;\nld.global.v4.b64 {{%d0, %d1, %d2, %d3}}, [%t1];",
]  # fmt: skip
"""Accesses and atomic operations of several elements, and of more than 8 bytes."""

COPIES = [
    "cp.async.ca.shared.global [%own+{at}], [%mine+{at}], 4;\ncp.async.wait_all;",
    "cp.async.ca.shared.global [%own+16], [%mine+32], 16, {r};\ncp.async.commit_group;\ncp.async.wait_group 0;",
    "cp.async.cg.shared.global [%own], [%in], 16;\ncp.async.wait_all;",
]
SPACES = [
    "isspacep.shared {p}, %any;",
    "isspacep.global {p}, %any;",
    "cvta.to.shared.u64 {d}, %any;\nsub.u64 {d0}, {d0}, {d0};",
]


@st.composite
def copy(draw: st.Draw) -> Statement:
    """An asynchronous copy within the thread's own memory."""
    template = draw(st.sampled_from(COPIES))
    size = f"min.u32 %t0, {draw(R)}, 16;\n" if "{r}" in template else ""
    return Statement(size + template.replace("{at}", str(4 * draw(st.integers(0, 15)))).replace("{r}", "%t0"))
