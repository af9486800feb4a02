"""States of a suspended warp: the warp function returns one, and takes it to resume.

A state below MASKED is the number of the node at which a whole warp waits.  The other constants are flags that are added
to such a number, or say that another version of the kernel takes over (deoptimisation).
"""

ENDED, FAULTED = -1, -2  # results of the warp function that are no states
LEFT = -3  # the straight version leaves its warps to the masked one

MASKED = 1 << 16  # some lanes of the warp wait at the node
RUNNABLE = 1 << 17  # the warp can continue ...
GENERAL = 1 << 18  # ... and its record says at which node each lane is
PARTED = 1 << 19  # a warp that comes from the straight version
SHAPELESS = 1 << 20  # added to the states of the shapeless version
RESUME = 1 << 21  # a warp that comes from the masked version
STRAIGHT = 1 << 22  # added to the states of the straight version

STUCK = 1 << 31  # a bit beside those of barriers: lanes wait for lanes of their own warp

PARAMETERS = "ptr %ctx, ptr %sites, ptr noalias %record, i32 %warp, i32 %ctaid.x, i32 %ctaid.y, i32 %ctaid.z"
ARGUMENTS = PARAMETERS.replace(" noalias", "")
