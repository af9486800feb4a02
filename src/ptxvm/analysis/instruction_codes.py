"""The codes of what is wrong with an instruction, beside the rules that it declares: `recognise` and `validate` find it."""

from __future__ import annotations

from ptxvm.diagnostics import register

_PAGES = {
    "P0301": (
        "unknown instruction",
        """
        No instruction of PTX has this name (PTX 9.7).  `ptxvm isa` lists those that there are.
        """,
    ),
    "P0302": (
        "wrong number of operands",
        """
        An instruction has the operands of its syntax line: no more, and no fewer but for those in braces.

            add.u32 %r1, %r2;              // wrong
            add.u32 %r1, %r2, %r3;         // right
        """,
    ),
    "P0303": (
        "wrong sort of operand",
        """
        What stands there has another form than the syntax line asks for: an address is in brackets, a list of arguments
        in parentheses, two destinations are written `d|p`, and only some operands can be negated.

            ld.u32 %r1, %rd1;              // wrong
            ld.u32 %r1, [%rd1];            // right
        """,
    ),
    "P0304": (
        "wrong type of operand",
        """
        A register has the size that the instruction asks for, and its sort: `.b` registers take anything, `.u` and
        `.s` mix, floating-point registers do not mix with integer ones (PTX 9.2).  Some operands are constants only,
        or registers only.

            .reg .f32 %f<4>;
            add.u32 %r1, %r2, %f1;         // wrong: add.f32, or mov.b32 first
        """,
    ),
    "P0305": (
        "modifier that does not fit",
        """
        The instruction has no such modifier, or not together with the others that it has here.  `ptxvm isa OPCODE`
        shows its syntax lines.

            add.sat.f64 %fd1, %fd2, %fd3;  // wrong: .sat is for .f32 (PTX 9.7.3.3)
        """,
    ),
    "P0306": (
        "version too old",
        """
        The feature came with a later version of PTX than the module names in `.version` (PTX 11.1.1).
        """,
    ),
    "P0307": (
        "target lacks the feature",
        """
        The architecture in `.target`, or the one that `--target` names, does not have the feature (PTX 11.1.2).
        Architectures are a succession: what `sm_80` has, `sm_90` has too.  Features of `sm_90a` are on that chip
        alone, those of `sm_100f` in its family.
        """,
    ),
    "P0308": (
        "modifier missing",
        """
        A modifier that the syntax line has without braces is missing: mostly the type.

            add %r1, %r2, %r3;             // wrong
            add.u32 %r1, %r2, %r3;         // right
        """,
    ),
    "P0310": (
        "guard that is no predicate",
        """
        The register behind `@` has type `.pred` (PTX 9.3).

            @%r1 bra L;                    // wrong
            setp.ne.u32 %p1, %r1, 0;
            @%p1 bra L;                    // right
        """,
    ),
    "P0312": (
        "blank inside an opcode",
        """
        Some opcodes have words that belong to them, such as `mul.lo`, `brx.idx` and `add.cc`: those follow directly.
        Before other modifiers a blank may stand.
        """,
    ),
}

for _code, (_title, _text) in _PAGES.items():
    register(_code, _title, _text)
