"""The parts of the interleaved grid function for clusters: the coordinates of CTAs, and CTAs that begin together."""

from __future__ import annotations

from math import prod

from ptxvm.engine.jit.node.context import KernelContext

LINEAR = """\
  %x = urem i32 %c32, %gx
  %q = udiv i32 %c32, %gx
  %y = urem i32 %q, %gy
  %z = udiv i32 %q, %gy"""
OVER = """\
over:
  store i64 -1, ptr %m, align 8
  %over.block = urem i64 %s, {ctas}
  %over.first = sub i64 %s, %over.block
  br label %over.look
over.look:
  %k = phi i64 [ 0, %over ], [ %k.next, %over.on ]
  %k.slot = add i64 %over.first, %k
  %k.offset = mul i64 %k.slot, {cta_size}
  %k.own = getelementptr i8, ptr %records, i64 %k.offset
  %k.m = getelementptr i8, ptr %k.own, i64 {records_size}
  %k.cta = load i64, ptr %k.m, align 8
  %k.over = icmp slt i64 %k.cta, 0
  br i1 %k.over, label %over.on, label %retire
over.on:
  %k.next = add i64 %k, 1
  %k.all = icmp eq i64 %k.next, {ctas}
  br i1 %k.all, label %replace, label %over.look"""


def parts(kernel: KernelContext) -> dict[str, str | int]:
    """The parts, by their names in `runtime/grid_interleaved.ll`."""
    cluster, ctas = kernel.cluster or (1, 1, 1), kernel.cluster_size
    sizes = {"ctas": ctas, "cta_size": kernel.cta_size, "records_size": kernel.warps * kernel.record_size}
    return {
        "open": "\n".join([*_begin(sizes, "open", "%next", "%s"), f"  %used.open = add i64 %used, {ctas}"]),
        "another": "\n".join(_begin(sizes, "another", "%next.run", "%over.first" if ctas > 1 else "%s")),
        "over": OVER.format(**sizes) if ctas > 1 else "",
        "ended": "over" if ctas > 1 else "replace",
        "others": "true" if ctas > 1 else "%busy.run",
        "coordinates": "\n".join(_coordinates(cluster)) if ctas > 1 else LINEAR,
        "window": "\n".join(_window(kernel)),
        "window_size": kernel.shared_together,
    }


def _begin(sizes: dict[str, int], name: str, cta: str, slot: str) -> list[str]:
    """Lines that begin the CTAs of a cluster in slots that follow each other."""
    lines = []
    for k in range(sizes["ctas"]):
        own = f"%{name}.{k}"
        lines += [
            f"  {own}.slot = add i64 {slot}, {k}",
            f"  {own}.cta = add i64 {cta}, {k}",
            f"  {own}.offset = mul i64 {own}.slot, {sizes['cta_size']}",
            f"  {own}.own = getelementptr i8, ptr %records, i64 {own}.offset",
            f"  {own}.m = getelementptr i8, ptr {own}.own, i64 {sizes['records_size']}",
            f"  call void @ptxvm.begin(ptr %ctx, ptr {own}.m, i64 {own}.cta, ptr %shared, ptr %local, i64 {own}.slot)",
        ]
    return [*lines, f"  %next.{name} = add i64 {cta}, {sizes['ctas']}"]


def _coordinates(cluster: tuple[int, int, int]) -> list[str]:
    """Lines for the coordinates of a CTA, numbered cluster by cluster (`machine.launch.cluster_order`)."""
    ctas = prod(cluster)
    lines = [f"  %index = udiv i32 %c32, {ctas}", f"  %rank = urem i32 %c32, {ctas}"]
    lines += [f"  %clusters.x = udiv i32 %gx, {cluster[0]}", f"  %clusters.y = udiv i32 %gy, {cluster[1]}"]
    lines += ["  %index.row = udiv i32 %index, %clusters.x", f"  %rank.row = udiv i32 %rank, {cluster[0]}"]
    lines += ["  %index.x = urem i32 %index, %clusters.x", f"  %rank.x = urem i32 %rank, {cluster[0]}"]
    lines += ["  %index.y = urem i32 %index.row, %clusters.y", f"  %rank.y = urem i32 %rank.row, {cluster[1]}"]
    lines += ["  %index.z = udiv i32 %index.row, %clusters.y", f"  %rank.z = udiv i32 %rank.row, {cluster[1]}"]
    for axis, size in zip("xyz", cluster, strict=True):
        lines += [f"  %first.{axis} = mul i32 %index.{axis}, {size}", f"  %{axis} = add i32 %first.{axis}, %rank.{axis}"]
    return lines


def _window(kernel: KernelContext) -> list[str]:
    """Lines for the start of the shared memory of a CTA, or of its cluster."""
    if kernel.cluster_size == 1:
        return ["  %window = ptrtoint ptr %shared.own to i64"]
    return [
        f"  %window.rank = urem i64 %s, {kernel.cluster_size}",
        f"  %window.before = mul i64 %window.rank, {kernel.shared_stride}",
        "  %window.own = ptrtoint ptr %shared.own to i64",
        "  %window = sub i64 %window.own, %window.before",
    ]
