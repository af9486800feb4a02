"""What the adapter can do, as it declares it."""

from __future__ import annotations

from ptxvm.debug.dap.ids import Json

FAULT, NAN, RACE, SYNC = "fault", "nan", "race", "sync"

CAPABILITIES: Json = {
    "supportsConfigurationDoneRequest": True,
    "supportsFunctionBreakpoints": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "exceptionBreakpointFilters": [
        {"filter": FAULT, "label": "Faults", "default": True, "description": "Stop where the kernel has a fault"},
        {
            "filter": NAN, "label": "NaNs", "default": False, "supportsCondition": True,
            "description": "Stop where a register gets a NaN that had none", "conditionDescription": "such as %tid.x == 3",
        },
        {"filter": RACE, "label": "Races", "default": False, "description": "Stop at a race"},
        {"filter": SYNC, "label": "Barriers", "default": False, "description": "Stop where a barrier is misused"},
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
