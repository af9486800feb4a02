"""What goes wrong while a kernel runs: the kinds of faults and of findings, which stand where a module's errors have codes.

`ptxvm explain race` prints these pages, and SARIF has them as rules.
"""

from __future__ import annotations

from ptxvm.diagnostics.code import DiagnosticCode

_PAGES = (
    ("race", "data race", "memory-consistency-model", """
        Two accesses of different threads touch the same bytes, one of them writes, and nothing orders them (PTX 8.7.1).
        A barrier, a release and an acquire that see each other, or atomic operations of a wide enough scope help.
        """),
    ("race-of-equal-values", "data race of writes that store the same value", "memory-consistency-model", """
        Threads write the same value to the same bytes and nothing orders them.  Whichever comes last, the bytes are the
        same, but the memory model calls it a race (PTX 8.7.1).  `--allow race-of-equal-values`, or a comment
        `// ptxvm: allow race-of-equal-values` at the end of the line, says that it is meant.
        """),
    ("uninitialised-read", "read of what has no value", "state-spaces", """
        The thread reads bytes, or cells of tensor memory, that nothing has written, or an undefined value is observed: that
        of a register to which the thread has given no value, or one that is computed from it.  Computing alone is no
        mistake: a branch, a guard of an effect, an address, a store to device memory or another thread observes the value.
        """),
    ("barrier-divergence", "lanes apart at a barrier", "parallel-synchronization-and-communication-instructions", """
        Lanes of a warp stand at different places when a barrier or a collective needs them together.
        """),
    ("barrier-count", "barriers that disagree on their threads", "parallel-synchronization-and-communication-instructions", """
        Threads come to one barrier and expect different numbers of threads there (PTX 9.7.13.1).
        """),
    ("ended-before-barrier", "threads that end before a barrier", "parallel-synchronization-and-communication-instructions", """
        A barrier for all threads of the CTA opens although some have ended without coming to it.  The hardware does not wait
        for them; the manual does not promise that (PTX 9.7.13.1).
        """),
    ("invalid-mask", "mask that does not fit the lanes", "parallel-synchronization-and-communication-instructions", """
        The mask of a collective names lanes that do not come, or not the lane that gives it.
        """),
    ("undefined-lane", "value of a lane that takes no part", "data-movement-and-conversion-instructions", """
        A lane reads by `shfl` what a lane gave that is not in the mask, has ended, or is none of the CTA: the value is not
        defined (PTX 9.7.9.6).  That is a warning: code which does not use the value may mean it.
        """),
    ("invalid-barrier", "misused barrier", "parallel-synchronization-and-communication-instructions", """
        The number of a barrier, or of its threads, is none that the instruction takes, or a reduction meets another one, or no
        reduction, at one barrier (PTX 9.7.13.1).  Or a thread arrives at the barrier of its cluster, or waits there, twice
        without the other between (PTX 9.7.13.3).
        """),
    ("ended-cta", "access to a CTA that may have ended", "state-spaces", """
        A thread accesses the shared memory of another CTA of its cluster, and nothing orders that before the end of that CTA,
        whose memory is then another's.  A barrier of the cluster at the end of the kernel does.  Or a bulk copy or a product of
        the CTA itself may still use its shared memory when its last thread ends: no thread has waited for it.
        """),
    ("invalid-mbarrier", "misused mbarrier", "parallel-synchronization-and-communication-instructions", """
        An mbarrier is used before it is initialised, after it is invalidated, with more arrivals than it expects, or asked with
        a state of another mbarrier or of a phase long over.
        """),
    ("no-mbarrier", "no mbarrier at this address", "parallel-synchronization-and-communication-instructions", """
        The bytes at the address have not been initialised as an mbarrier by `mbarrier.init`.
        """),
    ("invalid-tensor-map", "no tensor map for this copy", "data-movement-and-conversion-instructions", """
        The address of a tensor copy has no tensor map, or one of another mode or with another number of dimensions than the
        instruction.  `ptxvm.TensorMap` and the driver encode tensor maps.
        """),
    ("missed-phase", "phase of an mbarrier that may be missed", "parallel-synchronization-and-communication-instructions", """
        A thread waits for a phase, and the next one may end before it looks: no arrival of the next phase comes after its test.
        A test by parity then finds that parity under way again, and waits for one phase more (PTX 9.7.13.15.16).  The checks
        `race` and `sync` find it together.
        """),
    ("unordered-invalidation", "mbarrier invalidated behind a collective alone",
        "parallel-synchronization-and-communication-instructions", """
        `mbarrier.inval` comes after an arrival of another lane, and what stands between is a collective of the warp, such as
        `match.sync` or `shfl.sync`.  It waits until the other lanes have executed it, and so their arrivals before it, but the
        manual gives no collective other than `bar.warp.sync` an effect on the order of memory operations (PTX 9.7.13.2,
        8.9.4).  That is a warning: the hardware has carried the arrivals out by then, and libcu++'s `cuda::pipeline` ends so.
        """),
    ("leak", "memory that is never freed", "state-spaces", """
        A block of the heap is live when the grid has ended, and nothing points to it.
        """),
    ("out-of-bounds", "access out of bounds", "state-spaces", """
        The access leaves the allocation, or the variable, that its address belongs to.
        """),
    ("peer-access", "access to the memory of another device", "state-spaces", """
        The address is in the memory of another device, and the device that runs the kernel has no peer access to it.
        `Device.enable_peer_access`, or the driver's `cuCtxEnablePeerAccess`, gives it.
        """),
    ("null-pointer", "access through a null pointer", "state-spaces", """
        The address is 0, or so small that it comes from a null pointer and an offset.
        """),
    ("surface-out-of-bounds", "surface access out of bounds", "surface-instructions", """
        The coordinates are outside of the surface, and `.trap` asks for a fault there.
        """),
    ("misaligned", "misaligned address", "instruction-operands", """
        The address of an access is a multiple of its size (PTX 6.4.1).
        """),
    ("read-only", "write to read-only memory", "state-spaces", """
        Constants and the parameters of a kernel are not written (PTX 5.1).
        """),
    ("wrong-space", "address in another state space", "state-spaces", """
        The address does not belong to the state space that the instruction names (PTX 5.1).
        """),
    ("freed-in-use", "memory freed while a launch may use it", "memory-consistency-model", """
        The host frees memory of the device that a launch on a stream uses, and has not waited for the stream.  `cudaFree` waits
        for the device; `cudaFreeAsync`, and allocators that give the memory to others at once, do not.
        """),
    ("use-after-free", "access to memory that was freed", "state-spaces", """
        The block of memory was freed before the access.
        """),
    ("double-free", "memory freed twice", "state-spaces", """
        A block of the heap is freed once.
        """),
    ("invalid-free", "free of what is no block", "state-spaces", """
        `free` takes an address that `malloc` has returned, or null.
        """),
    ("trap", "trap", "miscellaneous-instructions", """
        The kernel executed `trap`, which ends the grid (PTX 9.7.19).
        """),
    ("assertion", "failed assertion", "miscellaneous-instructions", """
        An assertion of the kernel does not hold; the message names it.
        """),
    ("deadlock", "deadlock", "parallel-synchronization-and-communication-instructions", """
        Every thread waits for others, and none can go on; the message says where they wait.
        """),
    ("stack-overflow", "stack overflow", "state-spaces", """
        The calls of a thread, or its `alloca`, need more local memory than it has.
        """),
    ("out-of-memory", "no memory left", "state-spaces", """
        The memory that the launch needs cannot be had.
        """),
    ("step-budget", "more instructions than the launch may execute", "programming-model", """
        The threads of the grid have executed more instructions, all together, than `--steps` allows.
        """),
    ("timeout", "longer than the launch may take", "programming-model", """
        The grid had not ended when its time was up; `--timeout` sets how many seconds it may take.
        """),
    ("invalid-branch", "branch that goes nowhere", "control-flow-instructions", """
        The index of a `brx.idx` is beyond its list of targets (PTX 9.7.12.4).
        """),
    ("invalid-call", "call that goes nowhere", "control-flow-instructions", """
        The pointer of an indirect call is no function that its list or prototype admits (PTX 9.7.12.5).
        """),
    ("invalid-handle", "no texture, sampler or surface", "texture-instructions", """
        The value is no handle of a texture, sampler or surface that is bound.
        """),
    ("unbound", "texture, sampler or surface that is not bound", "texture-instructions", """
        The variable stands for nothing yet: `module.bind(name, ...)` binds it.
        """),
    ("invalid-launch", "launch that cannot be", "programming-model", """
        A kernel launches a grid whose shape, parameters or stream cannot be.
        """),
    ("invalid-descriptor", "descriptor that describes no matrix", "instruction-set", """
        The descriptor of a matrix in shared memory, or of an instruction, has a field that cannot be, or differs between the
        lanes of a warp (PTX 9.7.15.5.1.2.2, 9.7.16.4).
        """),
    ("register-in-use", "register of asynchronous work under way", "asynchronous-warpgroup-level-matrix-instructions", """
        An instruction uses a register of the accumulator of `wgmma`, or writes one of matrix A, and `wgmma.wait_group` has not
        waited for that product: it may read and write the register at any time (PTX 9.7.15.7.3).  Or it writes a result of
        `tcgen05.ld` before `tcgen05.wait::ld`, and the load may end after it.
        """),
    ("missing-fence", "product without a fence before it", "asynchronous-warpgroup-level-matrix-instructions", """
        `wgmma.mma_async` reads registers that were written since the last `wgmma.fence`, or there was none: the product may not
        see what was written (PTX 9.7.15.7.1).
        """),
    ("tensor-memory", "misused tensor memory", "tcgen05-instructions", """
        Tensor memory is used that is not allocated, or was given back, by a warp that does not reach its lanes, or it is not
        given back when the CTA ends (PTX 9.7.16.1, 9.7.16.7, 9.7.16.8.1).
        """),
    ("incomplete-warp", "warp with lanes missing", "instruction-set", """
        The instruction needs all lanes of the warp, and some have ended or are not in the block.
        """),
)  # fmt: skip

KINDS: dict[str, DiagnosticCode] = {kind: DiagnosticCode.of(kind, title, text, anchor) for kind, title, anchor, text in _PAGES}
"""The kinds by name."""
