"""The page on campaigns: the tables and keys of their files, from the declaration by which they are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields

from ptxvm.campaign.declaration import LAUNCH, PARAMETERS, TABLES, launch_options
from ptxvm.campaign.expressions import FUNCTIONS
from ptxvm.campaign.outcome import MEANINGS
from ptxvm.reference.markdown import Files, code, escaped, table

SAID = [
    "`ptxvm campaign FILE.toml` reads a file with these tables. [A guide](../how-to/campaigns.md) shows one.",
]
KINDS = {str: "text", int: "integer", float: "number", bool: "true or false", dict: "table"}


def campaign_page() -> Files:
    """A section for each table of the file."""
    lines = ["# Campaigns", "", *SAID, ""]
    for name, kind in TABLES.items():
        lines += [f"## [{name}]", "", f"{escaped(kind.__doc__ or '')}", ""]
        lines += [*table(("key", "type", "default", "meaning"), list(_rows(fields(kind)))), ""]
    functions = ", ".join(map(code, FUNCTIONS))
    lines += ["## [parameters]", "", escaped(PARAMETERS), "", "## [launch]", "", escaped(LAUNCH), ""]
    lines += [f"The keys are {', '.join(map(code, launch_options()))}.", ""]
    lines += [f"Expressions have arithmetic, comparisons, `X if C else Y`, and {functions}; `cdiv` rounds a quotient up.", ""]
    verdicts = [(code(verdict), meaning) for verdict, meaning in MEANINGS.items()]
    lines += ["## Verdicts", "", *table(("verdict", "how a case ended"), verdicts), ""]
    return {"reference/campaigns.md": "\n".join(lines)}


def _rows(keys: tuple[Field[object], ...]) -> Iterator[tuple[str, ...]]:
    for each in keys:
        default = "" if each.default in (MISSING, "", None) else code(str(each.default).lower())
        yield code(each.name), KINDS[each.metadata["kind"]], default, escaped(each.metadata["meaning"])


__all__ = ["campaign_page"]
