"""Campaigns: many launches, spread over processes and machines.

`ptxvm.campaign(...)` runs one: the room can be called, since it has the name of what it does.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxvm.campaign.session import Campaign


class Room(ModuleType):
    """This module, which is called like the function `ptxvm.campaign.session.campaign`."""

    def __call__(self, *what: Any, **options: Any) -> Campaign:  # noqa: ANN401 - those of the function, which verifies them
        """Run a campaign; see `ptxvm.campaign.session.campaign`."""
        from ptxvm.campaign.session import campaign  # noqa: PLC0415 - importing the package loads nothing

        return campaign(*what, **options)


campaign = sys.modules[__name__]
campaign.__class__ = Room

__all__ = ["campaign"]
