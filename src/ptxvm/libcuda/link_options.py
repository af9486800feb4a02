"""Options of nvJitLink: which there are, and what the library says of wrong ones (recorded from nvJitLink 13.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

from ptxvm.isa.targets import LOWEST, parse_target

FLAGS = frozenset(("-time", "-verbose", "-lto", "-ptx", "-g", "-lineinfo", "-optimize-unused-variables", "-no-cache", "-r"))
WITH_VALUE = frozenset((
    "-arch", "-maxrregcount", "-ftz", "-prec-div", "-prec-sqrt", "-fma", "-kernels-used", "-variables-used", "-Xptxas",
    "-Xnvvm", "-split-compile", "-split-compile-extended", "-jump-table-density", "-random-seed",
))  # fmt: skip
ARCHITECTURE = re.compile(r"(?:sm|compute|lto)_(\d+[af]?)")
LEVELS = ("0", "3")  # of optimisation


class LinkStatus(IntEnum):
    """What a call of nvJitLink comes to (nvJitLinkResult)."""

    SUCCESS = 0
    UNRECOGNIZED_OPTION = 1
    MISSING_ARCH = 2
    PTX_COMPILE = 4
    INTERNAL = 6
    INVALID_OPTIONS = 11
    UNRECOGNIZED_ARCH = 16


class LinkError(Exception):
    """A call of nvJitLink fails: with a status, and a text for the log of the link."""

    def __init__(self, status: LinkStatus, text: str = "") -> None:
        super().__init__(text)
        self.status = status


def check_options(options: Sequence[str]) -> None:
    """LinkError for the first option that is wrong, and where no architecture is chosen."""
    architecture = ""
    for each in options:
        name, equals, value = each.partition("=")
        if each.startswith("-O") and each[2:] not in LEVELS:
            raise LinkError(LinkStatus.UNRECOGNIZED_OPTION, f"unsupported value of -O: {each[2:]}. Only 0 and 3 are supported.")
        if not (each.startswith("-O") or each in FLAGS or (equals and name in WITH_VALUE)):
            raise LinkError(LinkStatus.UNRECOGNIZED_OPTION, f"unrecognized option: {each}")
        if name == "-arch":
            architecture = value
            check_architecture(value)
    if not architecture:
        raise LinkError(LinkStatus.MISSING_ARCH)
    if "-ptx" in options and "-lto" not in options:
        raise LinkError(LinkStatus.INVALID_OPTIONS, "ERROR: -ptx requires -lto")
    if architecture.startswith("compute_") and "-ptx" not in options:
        raise LinkError(LinkStatus.INVALID_OPTIONS, "ERROR: virtual arch requires -ptx")


def check_architecture(text: str) -> None:
    """LinkError for what is no name of an architecture, and for an architecture that there is not."""
    found = ARCHITECTURE.fullmatch(text)
    if found is None:
        raise LinkError(
            LinkStatus.UNRECOGNIZED_OPTION, f"ERROR NVJITLINK_ERROR_UNRECOGNIZED_OPTION: missing option value (-arch={text})"
        )
    if parse_target(f"sm_{found[1]}") not in LOWEST:
        raise LinkError(
            LinkStatus.UNRECOGNIZED_ARCH,
            f"ERROR NVJITLINK_ERROR_UNRECOGNIZED_ARCH: unrecognized architecture (compute_{found[1]})",
        )


__all__ = ["LinkError", "LinkStatus", "check_options"]
