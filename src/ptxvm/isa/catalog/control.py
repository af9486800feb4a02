"""Control flow (PTX 9.7.12).  Guards (`@p`) belong to every instruction and stand in none of the declarations."""

from __future__ import annotations

from ptxvm.isa.model import Problem, instruction


@instruction("bra{.uni} tgt;", section="9.7.12.3", types="tgt: label", needs={"": "PTX 1.0"}, ends=True)
def bra(i, tgt, flow):
    """Go to a label; with .uni all lanes of the warp that are here agree."""
    flow.goto(tgt)


@bra.rule("P2000")
def label_with_offset(i):
    """The target of a branch is a label, without an offset."""
    if i.shape("tgt").detail == "offset":
        return "Label expected for argument 0 of instruction 'bra'"
    return None


@instruction(
    "brx.idx{.uni} index, tlist;",
    section="9.7.12.4",
    types="index: u32 plain, tlist: table",
    needs={"": "PTX 6.0, sm_30"},
    fixed=1,
    ends=True,
)
def brx_idx(i, index, tlist, flow):
    """Go to the label that the index picks from a `.branchtargets` list."""
    flow.switch(index, tlist)


@brx_idx.rule("P2001")
def not_branch_targets(i):
    """The list is one of .branchtargets."""
    if i.shape("tlist").detail not in (None, "branchtargets"):
        return "Label with '.branchtargets' directive expected for argument 1 of instruction 'brx.idx'"
    return None


@instruction(
    """
    call{.uni}  func;
    call{.uni}  func, (args);
    call{.uni}  (ret), func;
    call{.uni}  (ret), func, (args);
    """,
    section="9.7.12.5",
    types="ret args: any, func: function",
    needs={"": "PTX 1.0"},
)
def call(i, func, args, ret, flow):
    """Call a function by its name."""
    flow.call(func, args, ret, None)


@instruction(
    """
    call{.uni}  fptr, proto;
    call{.uni}  fptr, (args), proto;
    call{.uni}  (ret), fptr, proto;
    call{.uni}  (ret), fptr, (args), proto;
    """,
    section="9.7.12.5",
    types="ret args: any, fptr: u64 any, proto: prototype table any",
    needs={"": "PTX 2.1, sm_20"},
)
def call_indirect(i, fptr, args, ret, proto, flow):
    """Call the function whose address a register holds; a prototype or a list of targets tells its type."""
    flow.call(fptr, args, ret, proto)


@call_indirect.rule("P2003")
def not_a_function_pointer(i):
    """The address of the function is in a register of 32 or 64 bits."""
    fptr = i.shape("fptr")
    if fptr.kind == "register" and fptr.type.kind in "bsu" and fptr.type.bits in (32, 64):
        return None
    return Problem("P2003", "the address of a function is in a register of 32 or 64 bits", operand="fptr",
                   ptxas="Illegal target for instruction 'call'")  # fmt: skip


@call_indirect.rule("P2004")
def not_targets(i):
    """The last operand is a .callprototype, a .calltargets list, or an array that holds the targets."""
    proto = i.shape("proto")
    if proto.kind in ("prototype", "variable") or (proto.kind == "table" and proto.detail in (None, "calltargets")):
        return None
    return Problem("P2004", "a .callprototype, a .calltargets list or an array of targets stands last", operand="proto",
                   ptxas="Call target not recognized")  # fmt: skip


@instruction("ret{.uni};", section="9.7.12.6", needs={"": "PTX 1.0"}, ends=True)
def ret(i, flow):
    """Return from a function; from a kernel, end the thread."""
    flow.leave()


@instruction("exit;", section="9.7.12.7", needs={"": "PTX 1.0"}, ends=True)
def exit_(i, flow):
    """End the thread; barriers that wait for it alone are released."""
    flow.exit()
