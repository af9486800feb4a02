"""Writes a tree as PTX text, which reads back as an equal tree.

Layout is one statement a line, in the order of the tree; comments and the spelling of blanks are gone, numbers
keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ptxvm.syntax import tree
from ptxvm.syntax.expressions import PRECEDENCE

_INDENT = "    "
_UNARY_LEVEL = 11
_OPERAND_LEVEL = 0


def print_module(module: tree.Module) -> str:
    """The text of a whole module."""
    return "".join(f"{line}\n" for statement in module.statements for line in _statement(statement))


def print_statement(statement: tree.Statement) -> str:
    """The text of one statement, of several lines if it has a body; no line end behind the last."""
    return "\n".join(_statement(statement))


def print_operand(operand: tree.Operand) -> str:
    """The text of an operand, initialiser or constant expression."""
    return _operand(operand, _OPERAND_LEVEL)


# ── operands and expressions ────────────────────────────────────────────────────────────


def _operand(node: tree.Operand, level: int = _OPERAND_LEVEL) -> str:
    """The text of an operand; in parentheses where an operator of this level would tear it apart."""
    return _OPERANDS[type(node)](node, level)


def _list(nodes: Iterable[tree.Operand]) -> str:
    return ", ".join([_operand(node) for node in nodes])


def _name(node: tree.Name, _level: int) -> str:
    return f"{node.text}.{node.component}" if node.component else node.text


def _integer(node: tree.Integer, _level: int) -> str:
    return node.text or f"{node.value}{'U' if node.unsigned else ''}"


def _float(node: tree.Float, _level: int) -> str:
    return node.text or (f"0f{node.bits:08X}" if node.width == 32 else f"0d{node.bits:016X}")


def _string(node: tree.String, _level: int) -> str:
    return f'"{node.text}"'


def _unary(node: tree.Unary, _level: int) -> str:
    return node.op + _operand(node.operand, _UNARY_LEVEL)


def _binary(node: tree.Binary, level: int) -> str:
    if node.op == "=":
        return f"{_operand(node.left)} = {_operand(node.right)}"
    first, chain = tree.chain(node)
    own = PRECEDENCE[chain[0].op]
    pieces, opened = [_operand(first, own)], 0
    for each, after in zip(chain, [*(PRECEDENCE[each.op] for each in chain[1:]), level], strict=True):
        blank = "" if each.op == "+" and each.left is first else " "
        own = PRECEDENCE[each.op]
        pieces.append(f"{blank}{each.op}{blank}{_operand(each.right, own + 1)}")
        if own < after:
            pieces.append(")")
            opened += 1
    return "(" * opened + "".join(pieces)


def _conditional(node: tree.Conditional, level: int) -> str:
    text = f"{_operand(node.condition, 1)} ? {_operand(node.yes)} : {_operand(node.no)}"
    return f"({text})" if level > _OPERAND_LEVEL else text


def _cast(node: tree.Cast, _level: int) -> str:
    return f"(.{node.type}) {_operand(node.operand, _UNARY_LEVEL)}"


def _call(node: tree.Call, _level: int) -> str:
    return f"{_operand(node.function)}({_operand(node.argument)})"


def _index(node: tree.Index, _level: int) -> str:
    return f"{node.name.text}[{_operand(node.index)}]"


def _address(node: tree.Address, _level: int) -> str:
    return f"[{_list(node.items)}]{'.unified' if node.unified else ''}"


def _vector(node: tree.Vector, _level: int) -> str:
    return f"{{{_list(node.items)}}}"


def _group(node: tree.Group, _level: int) -> str:
    return f"({_list(node.items)})"


def _pair(node: tree.Pair, _level: int) -> str:
    return f"{_operand(node.first)}|{_operand(node.second)}"


_OPERANDS: dict[type, Callable[..., str]] = {
    tree.Name: _name,
    tree.Integer: _integer,
    tree.Float: _float,
    tree.String: _string,
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Conditional: _conditional,
    tree.Cast: _cast,
    tree.Call: _call,
    tree.Index: _index,
    tree.Address: _address,
    tree.Vector: _vector,
    tree.Group: _group,
    tree.Pair: _pair,
}


# ── statements ──────────────────────────────────────────────────────────────────────────


def _statement(node: tree.Statement) -> Iterator[str]:
    """The lines of a statement."""
    return _STATEMENTS[type(node)](node)


def _instruction(node: tree.Instruction) -> Iterator[str]:
    guard = f"@{'!' if node.guard.negated else ''}{_operand(node.guard.name)} " if node.guard else ""
    head = node.head
    if "::" in head and node.opcode[0] in "%$":  # the name of a register or label, whose tail has no `::`
        head = head.replace(".", " .", 1)
    yield f"{guard}{head}{' ' if node.operands else ''}{_list(node.operands)};"


def _label(node: tree.Label) -> Iterator[str]:
    yield f"{node.name}:"


def _variable(node: tree.Variable) -> Iterator[str]:
    names = ", ".join(map(_declarator, node.declarators))
    yield f"{_specifiers(node)}{' ' if names else ''}{names};"


def _specifiers(node: tree.Variable) -> str:
    """Everything of a declaration that stands before its names."""
    words = [
        *([f".{node.linkage}"] if node.linkage else []),
        *([f".{node.space}"] if node.space else []),
        *([f".align {_operand(node.alignment)}"] if node.alignment else []),
        *_attributes(node.attributes),
        *([f".v{node.vector}"] if node.vector else []),
        f".{node.type}",
        *_pointer(node.pointer),
    ]
    return " ".join(words)


def _attributes(nodes: list[tree.Attribute]) -> list[str]:
    if not nodes:
        return []
    items = [f".{node.name}{f'({_list(node.arguments)})' if node.arguments else ''}" for node in nodes]
    return [f".attribute({', '.join(items)})"]


def _pointer(node: tree.Pointer | None) -> list[str]:
    if node is None:
        return []
    space = [f".{node.space}"] if node.space else []
    return [".ptr", *space, *([f".align {_operand(node.alignment)}"] if node.alignment else [])]


def _declarator(node: tree.Declarator) -> str:
    count = f"<{_operand(node.count)}>" if node.count else ""
    sizes = "".join(f"[{_operand(size) if size else ''}]" for size in node.dimensions)
    initial = f" = {_operand(node.initial)}" if node.initial else ""
    return f"{node.name}{count}{sizes}{initial}"


def _directive(node: tree.Directive) -> Iterator[str]:
    end = ";" if node.name in {"pragma", "alias"} else ""
    if node.name == "file":
        index, name, *rest = map(_operand, node.arguments)
        yield ", ".join([f".file {index} {name}", *rest])
    elif node.name == "loc_intermediate":
        yield " ".join([".loc_intermediate", *map(_operand, node.arguments)])
    else:
        yield f".{node.name}{' ' if node.arguments else ''}{_list(node.arguments)}{end}"


def _location(node: tree.Location) -> Iterator[str]:
    text = f".loc {node.file} {node.line} {node.column}"
    if node.function is not None and node.inlined_at is not None:
        file, line, column = node.inlined_at
        text += f", function_name {_operand(node.function)}, inlined_at {file} {line} {column}"
    yield text


def _section(node: tree.Section) -> Iterator[str]:
    if node.name == "@@DWARF":
        for line in node.lines:
            yield f"@@DWARF {line}"
        return
    yield f".section {node.name}"
    yield "{"
    for line in node.lines:
        yield f"{_INDENT}{line}"
    yield "}"


def _intermediate_sources(node: tree.IntermediateSources) -> Iterator[str]:
    yield ".nv_intermediate_source_section {"
    for block in node.blocks:
        yield f"{_INDENT}.code_block {{"
        yield f"{_INDENT * 2}.ir_name: {_operand(block.language)}"
        yield f"{_INDENT * 2}.sourceFileName: {_operand(block.file)}"
        yield f"{_INDENT * 2}.source_begin"
        yield from block.text.split("\n") if block.text else ()
        yield f"{_INDENT * 2}.source_end"
        yield f"{_INDENT}}}"
    yield "}"


def _prototype(node: tree.Prototype) -> Iterator[str]:
    results = f"{_parameters(node.results)} " if node.results else ""
    yield f"{node.label}: .callprototype {results}_ {_parameters(node.parameters)}{_inline(node.directives)};"


def _targets(node: tree.Targets) -> Iterator[str]:
    yield f"{node.label}: .{node.kind} {_list(node.names)};"


def _block(node: tree.Block) -> Iterator[str]:
    yield "{"
    for statement in node.statements:
        indent = "" if isinstance(statement, tree.Label) else _INDENT
        for line in _statement(statement):
            yield indent + line
    yield "}"


def _function(node: tree.Function) -> Iterator[str]:
    words = [
        *([f".{node.linkage}"] if node.linkage else []),
        f".{node.kind}",
        *_attributes(node.attributes),
        *([_parameters(node.results)] if node.results else []),
        node.name + _parameters(node.parameters) + _inline(node.directives),
    ]
    text = " ".join(words)
    if node.body is None:
        yield f"{text};"
    elif isinstance(node.body, tree.Unread):
        raise ValueError(f"the body of '{node.name}' is not read")
    else:
        yield text
        yield from _block(node.body)


def _parameters(nodes: list[tree.Variable]) -> str:
    return f"({', '.join(f'{_specifiers(node)} {_declarator(node.declarators[0])}' for node in nodes)})"


def _inline(nodes: list[tree.Directive]) -> str:
    """The directives between a signature and its body."""
    return "".join(f" {line}" for node in nodes for line in _directive(node))


_STATEMENTS: dict[type, Callable[..., Iterator[str]]] = {
    tree.Instruction: _instruction,
    tree.Label: _label,
    tree.Variable: _variable,
    tree.Directive: _directive,
    tree.Location: _location,
    tree.Section: _section,
    tree.IntermediateSources: _intermediate_sources,
    tree.Prototype: _prototype,
    tree.Targets: _targets,
    tree.Block: _block,
    tree.Function: _function,
}
