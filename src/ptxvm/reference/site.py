"""The reference as Markdown (MyST), made from the declarations; `docs/conf.py` has Sphinx render it.

All pages below `reference/` are made: those here from what the machine declares, and others, which the caller adds, from the
command line and the package's own interface.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from ptxvm.reference.campaign_page import campaign_page
from ptxvm.reference.code_pages import code_pages, fault_page
from ptxvm.reference.instruction_pages import instruction_pages
from ptxvm.reference.markdown import Files
from ptxvm.reference.metrics_page import metrics_page
from ptxvm.reference.numerics_page import numerics_page
from ptxvm.reference.table_pages import table_pages

FOLDER = "reference"


def site(opcodes: Collection[str] = ()) -> Files:
    """Every file of the reference; of instructions all, or those of some opcodes."""
    files, entries = instruction_pages(opcodes)
    return (
        files | campaign_page() | code_pages(entries) | fault_page() | metrics_page() | numerics_page(entries) | table_pages()
    )


def write(folder: Path, opcodes: Collection[str] = (), others: Mapping[str, str] | None = None) -> None:
    """Write the site and other pages of the reference into a folder, and remove what is none of it.

    Files that are right already keep their time, so that Sphinx reads them once.
    """
    files = site(opcodes) | dict(others or {})
    for path, text in files.items():
        file = folder / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for file in (folder / FOLDER).rglob("*.md"):
        if str(file.relative_to(folder)) not in files:
            file.unlink()


__all__ = ["site", "write"]
