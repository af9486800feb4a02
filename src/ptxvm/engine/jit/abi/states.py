"""States of a suspended warp, which its function returns and takes, and the parameters of that function.

Below MASKED a state is the number of the node at which a whole warp waits.  The other constants are flags beside that
number, or stand for a hand-over between versions of a kernel.
"""

ENDED, FAULTED = -1, -2  # answers of a warp's function that are no states
LEFT = -3  # the straight version hands its warps over to the masked one

MASKED = 1 << 16  # only some lanes wait at the node
RUNNABLE = 1 << 17  # the warp can go on ...
GENERAL = 1 << 18  # ... and its lanes may stand anywhere, as its record says
PARTED = 1 << 19  # a warp that comes from the straight version
SHAPELESS = 1 << 20  # added to the states of the version without shapes
RESUME = 1 << 21  # a warp that comes from the masked version
STRAIGHT = 1 << 22  # added to the states of the straight version

STUCK = 1 << 31  # among the barriers of a warp: lanes wait for lanes of their own warp

PARAMETERS = "ptr %ctx, ptr %sites, ptr noalias %record, i32 %warp, i32 %ctaid.x, i32 %ctaid.y, i32 %ctaid.z"
ARGUMENTS = PARAMETERS.replace(" noalias", "")
