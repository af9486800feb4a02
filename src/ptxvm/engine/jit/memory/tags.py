"""The layout of a tag, which shadow memory has for the last write and the last reads of a cell.

Epochs go on from launch to launch.  So tags below that of the grid mean nothing: earlier launches have left them.
"""

EPOCH = 1 << 11  # the step of a tag from epoch to epoch
MANY = 1 << 10  # in place of a thread: several threads
STRONG = MANY + 1  # in place of a thread: a strong access; the logarithm of its size is added, and ...
WITHIN_CTA = 8  # ... this, if it is strong for threads of the CTA alone: to a wider one it is another kind
OF_WARP = 16  # added to that, with 32 times the number of a warp: it alone has used the cell, in ways that not all know
ALONE = 32  # added to that in a tag of reads: the tag of the write is of the only thread with such accesses
CROWD = EPOCH - 1  # in place of a thread: those of several CTAs have read; where these wait for each other, a number says which
NEVER = 0x01010101  # the tag of bytes without a value, whose four bytes are alike; 0 is that of bytes with one from before
BEFORE = (NEVER // EPOCH + 1) * EPOCH  # the epoch before all of a grid; of all earlier CTAs, when epochs have been renumbered
FIRST = BEFORE + EPOCH  # the first epoch of a CTA; tags from that of the grid up to it are of other CTAs
LAST = (1 << 32) - 4 * EPOCH  # the tag from which on epochs are renumbered
EVER = (1 << 32) - 1  # the tag of reads that precede nothing of their CTA: later than all clocks, and of all warps
PENDING = (1 << 32) - EPOCH | MANY  # that of a copy under way, to which its thread is added: later than all clocks
UNTAGGED = 0  # in place of the displacement of tags, for an access site whose memory has none
