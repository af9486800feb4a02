"""What ptxas finds in the options together and in their values, before it reads a module; in its order."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.cli.ptxas_options import PtxasCall, RefusedError, as_int, number
from ptxvm.diagnostics import Severity
from ptxvm.isa.targets import parse_target

Found = Iterator[tuple[Severity, str]]

FEWEST, MOST = 24, 255
"""The registers of a thread that its calling convention needs, and those that an instruction can name."""
LEVELS = range(11)
"""The levels of `--register-usage-level`."""
FAST = ("max", "mid", "min", "0")
"""The levels of `--Ofast-compile`."""
LOADS, STORES = ("ca", "cg", "cs", "lu", "cv"), ("wb", "cg", "cs", "wt")
"""The cache operators of loads and of stores (PTX 9.7.9.1)."""
DIMENSIONS = 3
CONFLICT = "Conflicting options {} specified, ignoring {} option"
WHOLE = "Command line option '{}' not supported for 'whole program compilation', will be ignored"
UNSUPPRESSED = "Option suppress-debug-info requires option device-debug or lineinfo; ignoring since latter is not specified"
LEGACY = "'--legacy-bar-warp-wide-behavior'"
TOOLS = "compile-as-tools-patch"
HOPPER = 90  # the first target for which relocations are not kept
UNEXPECTED = "and may not work as expected"
OPTIMIZED = "Optimized debugging not supported"


def of_options(call: PtxasCall) -> Found:
    """Errors and warnings about options; RefusedError where ptxas goes no further."""
    if call.target.startswith("lto_") and call.target.endswith("a"):
        raise RefusedError(f"Unsupported gpu architecture '{call.target}'")
    for option in ("compile-only", "extensible-whole-program"):
        if call.has(TOOLS) and call.has(option):
            raise RefusedError(f"Conflicting options '--{option}' and --{TOOLS} specified")
    if (fast := call.last("Ofast-compile", "0")) not in FAST:
        raise RefusedError(f"Invalid value for --Ofast-compile/-Ofc ({fast}), is not 'max', 'mid', 'min', or '0'")
    level = call.last("register-usage-level", "5")
    if number(level) not in LEVELS:
        yield Severity.WARNING, f"Value of RegUsageLevel ({level}) is out of valid range {{0..10}}, option will be ignored"
    if number(threads := call.last("split-compile", "1")) < 0:
        raise RefusedError(f"Invalid value '{threads}' for option '--split-compile'")
    yield from debugging(call)
    yield from cache_operators(call)
    if call.has("device-debug") and optimizes(call):
        raise RefusedError(OPTIMIZED)
    yield from without_effect(call)
    yield from limits(call)
    if call.has("preserve-relocs") and parse_target(call.target).number >= HOPPER:
        yield Severity.WARNING, f"'--preserve-relocs' option is not fully implemented for '{call.target}' {UNEXPECTED}"


def optimizes(call: PtxasCall) -> bool:
    """Is a level of optimization asked for that is not 0?"""
    return number(call.last("opt-level", "0")) > 0


def debugging(call: PtxasCall) -> Found:
    """Options that have no meaning beside `-g`."""
    if not call.has("device-debug"):
        return
    if call.has("generate-line-info"):
        yield Severity.WARNING, CONFLICT.format("--device-debug and --generate-line-info", "--generate-line-info")
    if call.has("register-usage-level"):
        options = "'--device-debug' and '--register-usage-level'"
        yield Severity.WARNING, CONFLICT.format(options, "'--register-usage-level'")


def cache_operators(call: PtxasCall) -> Found:
    """Cache operators that an access does not have."""
    for name in ("def-load-cache", "def-store-cache", "force-load-cache", "force-store-cache"):
        access, allowed = ("load", LOADS) if "load" in name else ("store", STORES)
        if call.has(name) and (operator := call.last(name)) not in allowed:
            yield Severity.ERROR, f"Invalid default cache modifier on {access} specified: {operator}"


def without_effect(call: PtxasCall) -> Found:
    """Options that have no meaning with the others, or no longer any."""
    if call.has("extensible-whole-program") and call.has("compile-only"):
        options = "'--compile-only' and '--extensible-whole-program'"
        yield Severity.WARNING, CONFLICT.format(options, "'--extensible-whole-program'")
    if call.has("suppress-debug-info") and not (call.has("device-debug") or call.has("generate-line-info")):
        yield Severity.WARNING, UNSUPPRESSED
    if call.has("legacy-bar-warp-wide-behavior"):
        yield Severity.WARNING, f"{LEGACY} is a deprecated option, It will be removed in future release and is not recommended"
        yield Severity.WARNING, f"Command line option {LEGACY} not supported for '.target sm_70', will be ignored"


def limits(call: PtxasCall) -> Found:
    """Limits of registers and of threads."""
    yield from registers(call, "maxrregcount")
    if call.has("compile-only"):
        yield from registers(call, "device-function-maxrregcount")
    elif call.has("device-function-maxrregcount"):
        yield Severity.WARNING, WHOLE.format("device-function-maxrregcount")
    if call.has("minnctapersm") and call.has("maxrregcount"):
        yield Severity.WARNING, CONFLICT.format("-maxrregcount and -minnctapersm", "-minnctapersm")
    if not call.has("maxntid"):
        return
    if call.has("maxrregcount"):
        yield Severity.WARNING, CONFLICT.format("-maxrregcount and -maxntid", "-maxntid")
    elif len(call.all("maxntid")) > DIMENSIONS:
        yield Severity.WARNING, "Too many values specified for option '-maxntid', option will be ignored"


def registers(call: PtxasCall, option: str) -> Found:
    """A limit of registers that is none, or that no thread can have."""
    limit = call.last(option, "archmax")
    if limit in ("archmax", "archmin"):
        return
    try:
        count = as_int(number(limit))
    except ValueError:
        raise RefusedError(f"Invalid value '{limit}' for option '{option}'") from None
    if not 0 <= count <= MOST:
        yield Severity.WARNING, f"Too big maxrregcount value specified {count}, will be ignored"
    elif count < FEWEST:
        adjusting = f"adjusting per thread register count of {count} to lower bound of {FEWEST}"
        yield Severity.WARNING, f"For profile {call.target} {adjusting}"
