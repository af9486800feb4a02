"""The JIT compiler: kernels become LLVM IR, in which a warp of 32 lanes is a vector.

The rooms stand in layers (`pyproject.toml` has their contract).  Their words, in the order in which code is made:

- A *node* is a piece of a kernel without branches inside; its *frame* is the function that it belongs to, which is inlined at
  a call, or stands once for several calls.  Of the nodes at which lanes of a warp stand, the one of the lowest *rank* runs
  first, so that diverged lanes reconverge (`cfg`).
- A value is *uniform* (a scalar), *affine* (a scalar and constant vectors with scalar factors) or *varying* (a vector of all
  lanes).  A register has the join of the shapes of its values; nodes are written again until no shape changes
  (`ir.lane_values`, `node.register_shapes`, `translate.fixed_point`).
- A node is written for whole warps (`full`, at the label `F3`), and for the lanes of a mask (`M3`).
- A *version* is one translation of a kernel.  The *straight* version has whole warps only, one or several abreast; its width
  is the number of their lanes.  Where lanes part outside of closed regions, a *side exit* leads to the *masked* version, and
  where an affine value wraps, to the *shapeless* one, whose registers are uniform or varying (deoptimisation).  A *general*
  version has a lane scheduler, so that lanes may wait at any node.  A *scalar* version runs one thread after the other
  (`translate.versions`).
- A warp that waits returns its *state* to the grid function, and spills its registers to a *record* (`functions`).
- An *access site* remembers the allocation of its last access, for a quick bounds check; the *slow path* searches all
  allocations (`memory`).
- A *host call* leaves compiled code for Python (`abi.host`); the *launch record* (`%ctx`) is what both share.
"""
