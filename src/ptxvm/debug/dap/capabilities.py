"""What the adapter can do, as it declares it."""

from __future__ import annotations

from ptxvm.debug.dap.ids import Json

FAULT, NAN, MEMORY, INIT, SYNC, RACE = "fault", "nan", "memory", "init", "sync", "race"
SUCH_AS = "such as %tid.x == 3"

CAPABILITIES: Json = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsEvaluateForHovers": True,
    "exceptionBreakpointFilters": [
        {"filter": FAULT, "label": "Faults", "default": True, "description": "Stop where the kernel has a fault"},
        {
            "filter": NAN, "label": "NaNs", "default": False, "supportsCondition": True,
            "description": "Stop where a register gets a NaN that had none", "conditionDescription": SUCH_AS,
        },
        *(
            {"filter": name, "label": label, "default": False, "supportsCondition": True, "description": text,
             "conditionDescription": SUCH_AS}
            for name, label, text in (
                (MEMORY, "Wild accesses", "Stop where an access leaves the variable or allocation that its address is of"),
                (INIT, "Uninitialised reads", "Stop where something is read that has no value"),
                (SYNC, "Barriers", "Stop where a barrier is misused"),
                (RACE, "Races", "Stop at a race"),
            )
        ),
    ],
    "supportsStepBack": True,
    "supportsSetVariable": True,
    "supportsSetExpression": True,
    "supportsRestartRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsExceptionFilterOptions": True,
    "supportsLoadedSourcesRequest": True,
    "supportsTerminateRequest": True,
    "supportTerminateDebuggee": True,
    "supportsDataBreakpoints": True,
    "supportsReadMemoryRequest": True,
    "supportsWriteMemoryRequest": True,
    "supportsDisassembleRequest": True,
    "supportsInstructionBreakpoints": True,
    "supportsSteppingGranularity": True,
    "supportsBreakpointLocationsRequest": True,
    "supportsCompletionsRequest": True,
    "supportsDelayedStackTraceLoading": True,
}  # fmt: skip
"""The capabilities of the protocol that the adapter has; it has none of the others."""

__all__ = ["CAPABILITIES", "FAULT"]
