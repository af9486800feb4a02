"""Sources: the PTX, as a file where there is one, and what it was compiled from."""

from __future__ import annotations

from pathlib import Path

from ptxvm.analysis.program import Bound, Program
from ptxvm.debug.breakpoints import names
from ptxvm.debug.dap.adapter import Adapter, handler
from ptxvm.debug.dap.fields import Arguments, Refused, an_object, text, whole
from ptxvm.debug.dap.ids import Json
from ptxvm.syntax.tree import Location

MIME = "text/x-ptx"


def ptx_source(adapter: Adapter, program: Program) -> Json:
    """The PTX of a program: its path, or a reference for the text of one that is in no file."""
    path = Path(program.source.name)
    if path.is_file():
        return {"name": path.name, "path": str(path.resolve())}
    return {"name": program.source.name, "sourceReference": adapter.reference(program.source), "origin": "in no file"}


def source_of(adapter: Adapter, bound: Bound, location: Location | None) -> tuple[Json, int] | None:
    """The source and the line of an instruction: the `location` where its file is there, else the line of PTX."""
    program = bound.program
    if program is None:
        return None
    if adapter.configuration.get("show") == "source" and location is not None and location.line:
        path = Path(program.source.name).parent / program.files.get(location.file, "")
        if path.is_file():
            return {"name": path.name, "path": str(path.resolve())}, location.line
    return ptx_source(adapter, program), bound.line


def source_name(adapter: Adapter, source: Arguments) -> str:
    """The name by which breakpoints know the source of a request."""
    if reference := whole(source, "sourceReference", 0):
        return adapter.referred(reference).name
    name = text(source, "path", "") or text(source, "name", "")
    if not name:
        raise Refused("the source has no path")
    return name


@handler("loadedSources")
def loaded_sources(adapter: Adapter, arguments: Arguments) -> Json:  # noqa: ARG001 - a Handler
    """All sources."""
    session = adapter.session
    found = [ptx_source(adapter, program) for program in session.image.programs]
    for program in session.image.programs:
        for name in program.files.values():
            path = Path(program.source.name).parent / name
            found.append({"name": path.name, "path": str(path.resolve() if path.is_file() else name)})
    return {"sources": found}


@handler("source")
def source(adapter: Adapter, arguments: Arguments) -> Json:
    """The text of a source."""
    wanted = an_object(arguments.get("source") or {}, "'source'")
    if reference := whole(arguments, "sourceReference", 0) or whole(wanted, "sourceReference", 0):
        return {"content": adapter.referred(reference).text, "mimeType": MIME}
    path = text(wanted, "path", "")
    for program in adapter.session.image.programs:
        if path and names(path, program.source.name):
            return {"content": program.source.text, "mimeType": MIME}
    raise Refused("the text of that source is in its file")


__all__ = ["ptx_source", "source_name", "source_of"]
