"""State spaces: where a variable lies, and what an access reaches (PTX 5.1)."""

from __future__ import annotations

import enum


class Space(enum.StrEnum):
    """A state space or sub-space, by its word in PTX; below them those that have no word.

    `CODE` is where functions lie; `GENERIC` the space of addresses that name none; `PARAM_LOCAL` that of `.param` variables
    in a body, whose address is not taken; `TEXTURE` and `SURFACE` those of what textures and surfaces show.
    """

    CONST = "const"
    GLOBAL = "global"
    LOCAL = "local"
    PARAM = "param"
    PARAM_ENTRY = "param::entry"
    PARAM_FUNC = "param::func"
    REG = "reg"
    SHARED = "shared"
    SHARED_CLUSTER = "shared::cluster"
    SHARED_CTA = "shared::cta"
    SREG = "sreg"
    TEX = "tex"

    CODE = "function"
    GENERIC = "generic"
    PARAM_LOCAL = "param::local"
    TEXTURE = "texture"
    SURFACE = "surface"

    @property
    def window(self) -> Space:
        """The space without its sub-space."""
        return WINDOWS.get(self, self)


WINDOWS = {
    Space.PARAM_ENTRY: Space.PARAM, Space.PARAM_FUNC: Space.PARAM, Space.PARAM_LOCAL: Space.PARAM,
    Space.SHARED_CLUSTER: Space.SHARED, Space.SHARED_CTA: Space.SHARED,
}  # fmt: skip
