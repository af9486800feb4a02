"""The variables and functions of the modules, and what they hold."""

from __future__ import annotations

import re

MEMORY = ".global .align 16 .b8 cell[32];\n.shared .align 16 .b8 scratch[32];\n"
BYTES = [(37 * n + 129) & 0xFF for n in range(32)]
TABLE = f".global .align 16 .b8 table[32] = {{ {', '.join(map(str, BYTES))} }};\n"
ALIKE = 0x2121_2121
FLAT = f".global .align 32 .b32 flat[64] = {{ {', '.join([hex(ALIKE)] * 64)} }};\n"
FUNCTIONS_OF_CALLS = """.func put(.reg .u32 x) { st.global.u32 [cell], x; ret.uni; }
.func seven_in_cell() { st.global.u32 [cell], 7; ret.uni; }
.func (.reg .u32 r) seven() { mov.u32 r, 7; ret.uni; }
.func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret.uni; }
"""


def declarations(said: str) -> str:
    """The variables and functions that kernels name."""
    calls = re.search(r"\b(put|seven|seven_in_cell|twice)\b", said)
    needed = [(MEMORY, calls or re.search(r"\b(cell|scratch)\b", said)), (TABLE, "table" in said), (FLAT, "flat" in said)]
    return "".join(text for text, wanted in needed if wanted) + (FUNCTIONS_OF_CALLS if calls else "")
