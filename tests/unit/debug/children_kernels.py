"""Kernels that launch kernels, which race or do not (CUDA C++ programming guide, "CUDA Dynamic Parallelism")."""

from __future__ import annotations

HEAD = """
.version 6.4
.target sm_75
.address_size 64
.extern .func (.param .b64 buffer) cudaGetParameterBufferV2(
    .param .b64 kernel, .param .align 4 .b8 grid[12], .param .align 4 .b8 block[12], .param .b32 shared);
.extern .func (.param .b32 status) cudaLaunchDeviceV2(.param .b64 buffer, .param .b64 stream);
.extern .func (.param .b32 status) cudaDeviceSynchronize;
.extern .func (.param .b32 status) cudaStreamCreateWithFlags(.param .b64 place, .param .b32 flags);
.extern .func (.param .b32 status) cudaStreamDestroy(.param .b64 stream);
.extern .func (.param .b64 block) malloc(.param .b64 size);
.global .texref image;

// One CTA of a kernel with so many threads, into a stream.
.func launch(.param .b64 kernel, .param .b64 data, .param .b32 threads, .param .b64 stream) {
    .reg .b32 %r<3>; .reg .b64 %k, %d, %s, %b;
    .param .b64 name; .param .align 4 .b8 grid[12]; .param .align 4 .b8 block[12]; .param .b32 shared;
    .param .b64 buffer; .param .b64 into; .param .b32 status;
    ld.param.b64 %k, [kernel]; ld.param.b64 %d, [data]; ld.param.b32 %r1, [threads]; ld.param.b64 %s, [stream];
    st.param.b64 [name], %k;
    st.param.b32 [grid], 1; st.param.b32 [grid+4], 1; st.param.b32 [grid+8], 1;
    st.param.b32 [block], %r1; st.param.b32 [block+4], 1; st.param.b32 [block+8], 1;
    st.param.b32 [shared], 0;
    call (buffer), cudaGetParameterBufferV2, (name, grid, block, shared);
    ld.param.b64 %b, [buffer];
    st.u64 [%b], %d;
    st.param.b64 [into], %s;
    call (status), cudaLaunchDeviceV2, (buffer, into);
    ret;
}

.entry write(.param .u64 data) {
    .reg .b32 %r; .reg .b64 %d; .reg .pred %p;
    ld.param.u64 %d, [data];
    mov.u32 %r, %tid.x;
    setp.ne.u32 %p, %r, 0;
    @!%p st.global.u32 [%d], 1;
    ret;
}

.entry read(.param .u64 data) {
    .reg .b32 %r; .reg .b64 %d;
    ld.param.u64 %d, [data];
    ld.global.u32 %r, [%d];
    st.global.u32 [%d+64], 1;
    ret;
}

.entry look_up(.param .u64 data) {
    .reg .b32 %r<4>;
    tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [image, {0}];
    ret;
}

.entry update(.param .u64 data) {
    .reg .b64 %d;
    ld.param.u64 %d, [data];
    red.global.add.u32 [%d], 1;
    ret;
}

.entry launch_write(.param .u64 data) {
    .reg .b64 %k, %d;
    ld.param.u64 %d, [data];
    mov.u64 %k, write;
    call launch, (%k, %d, 1, 0);
    ret;
}

.entry launch_and_read(.param .u64 data) {
    .reg .b64 %k, %d; .reg .b32 %r;
    ld.param.u64 %d, [data];
    mov.u64 %k, write;
    call launch, (%k, %d, 1, 0);
    ld.global.u32 %r, [%d];
    ret;
}

// Every thread leaves its number, and reads that of its neighbour; the odd one waits, as it is asked.
.entry neighbours(.param .u64 wait) {
    .shared .u32 tile[96];
    .reg .b32 %r<5>; .reg .b64 %w; .reg .pred %p;
    ld.param.u64 %w, [wait];
    setp.ne.u64 %p, %w, 0;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.u32 %r2, %r2, %r3;
    st.shared.u32 [%r2], %r1;
    @%p bar.sync 0;
    xor.b32 %r2, %r2, 4;
    ld.shared.u32 %r4, [%r2];
    ret;
}

.entry half(.param .u64 data) {
    .reg .b32 %r; .reg .pred %p;
    mov.u32 %r, %tid.x;
    setp.lt.u32 %p, %r, 16;
    @%p bar.sync 0;
    ret;
}

.entry alone(.param .u64 data) {
    .reg .b32 %r; .reg .pred %p;
    mov.u32 %r, %tid.x;
    setp.lt.u32 %p, %r, 32;
    @%p barrier.sync 0;
    @!%p barrier.sync 1;
    ret;
}

.entry parent(.param .u64 data) {
    .reg .b32 %r<6>; .reg .b64 %d, %e, %write, %read, %update, %look, %k; .reg .pred %first, %second;
    ld.param.u64 %d, [data];
    mov.u64 %write, write; mov.u64 %read, read; mov.u64 %update, update;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    setp.eq.u32 %first, %r1, 0;
    setp.eq.u32 %second, %r1, 1;
"""
MAKE = """
    .local .align 8 .b64 place;
    .reg .b64 %place, %stream;
    mov.u64 %place, place;
    cvta.local.u64 %place, %place;
    call (%r5), cudaStreamCreateWithFlags, (%place, 1);
    ld.local.u64 %stream, [place];
"""


def launch(kernel: str, stream: int | str = 0, threads: int = 1, guard: str = "@%first ", data: str = "%d") -> str:
    """One CTA of a kernel with so many threads, into a stream."""
    return f"{guard}call launch, (%{kernel}, {data}, {threads}, {stream});\n"


SYNC = "@%first call (%r5), cudaDeviceSynchronize;\n"
WRITE, READ = "@%{} st.global.u32 [%d], 7;\n", "@%{} ld.global.u32 %r4, [%d];\n"
BARRIER = "bar.sync 0;\n"
LOOK = "@%first tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [image, {0}];\n"
RACES = {
    # A grid sees what the thread that launches it has done before, or knows; nothing else of the parent.
    "another thread writes": (WRITE.format("second") + launch("read"), "RAW"),
    "written after the launch": (launch("read") + WRITE.format("first"), "RAW"),
    "written after the launch and a barrier": (launch("read") + BARRIER + WRITE.format("second"), "RAW"),
    # What a grid has done is seen by the thread that has waited for it.
    "not waited for": (launch("write") + READ.format("first"), "WAR"),
    "another thread has waited": (launch("write") + SYNC + READ.format("second"), "RAW"),
    "waited before the launch": (SYNC + launch("write") + READ.format("first"), "WAR"),
    # Grids of different streams may run at once; so may those of fire-and-forget.
    "two streams": (launch("write", 0) + launch("read", "%stream"), "RAW"),
    "fire and forget": (launch("write", 4) + launch("read", 4), "RAW"),
    "a tail after a stream that reads": (launch("read", 0) + launch("write", "%stream") + launch("read", 3), "WAR"),
    # A grid has ended when those have that it launched, and not before.
    "a grandchild": ("mov.u64 %k, launch_and_read;\n" + launch("k"), "WAR"),
    "a grandchild in another stream": ("mov.u64 %k, launch_write;\n" + launch("k") + launch("read", "%stream"), "RAW"),
}
RACE_FREE = {
    "the launching thread writes": WRITE.format("first") + launch("read"),
    "another thread writes before a barrier": WRITE.format("second") + BARRIER + launch("read"),
    "both read": launch("read") + READ.format("second"),
    "waited for": launch("write") + SYNC + READ.format("first"),
    "waited for before a barrier": launch("write") + SYNC + BARRIER + READ.format("second"),
    "waited for, and written again": launch("write") + SYNC + WRITE.format("first") + launch("read"),
    "one stream": launch("write") + launch("read"),
    "one stream of two threads": launch("write") + launch("read", guard="@%second "),
    "another stream": launch("write", "%stream") + launch("read", "%stream"),
    "atomics of two streams": launch("update", 0) + launch("update", "%stream"),
    "a tail": launch("write", "%stream") + launch("read", 3),
    "a tail after the parent": launch("read", 3) + WRITE.format("second"),
    "two tails": launch("write", 3) + launch("read", 3),
    "a grandchild in one stream": "mov.u64 %k, launch_write;\n" + launch("k") + launch("read"),
    "a grandchild before a tail": "mov.u64 %k, launch_write;\n" + launch("k", "%stream") + launch("read", 3),
    "a grandchild that was waited for": "mov.u64 %k, launch_write;\n" + launch("k") + SYNC + READ.format("first"),
}

HEAP = "call (%e), malloc, (128);\n"
