; Begin an epoch of the shadow memory if all threads of the CTA have arrived at barriers with one reduction; report a
; suspicion if only some have.
define internal void @ptxvm.epoch(ptr %ctx, i1 %cta, ptr %shared, i64 %cells) noinline #0 {
entry:
$fields
  %arrived = load i64, ptr %arrived.pointer, align 8
  store i64 0, ptr %arrived.pointer, align 8
$whole
  %none = icmp eq i64 %arrived, 0
  %next = or i1 %all, %cta
  br i1 %next, label %begin, label %wait
wait:
  br i1 %none, label %end, label %partly
partly:
  $partly
  br label %end
begin:
  %old = load i32, ptr %epoch.pointer, align 8
  %new = add i32 %old, $epoch_step
  store i32 %new, ptr %epoch.pointer, align 8
  %full = icmp ugt i32 %new, $last_epoch
  br i1 %full, label %renumber, label %numbered
renumber:
  %function = load ptr, ptr %renumber.pointer, align 8
  call void %function()
  br label %numbered
numbered:
$told
  br i1 %cta, label %fresh, label %end
fresh:
  %now = load i32, ptr %epoch.pointer, align 8
  store i32 %now, ptr %cta_epoch.pointer, align 8
  %start = ptrtoint ptr %shared to i64
  %turned = shl i64 %start, $shift
  %moved = load i64, ptr %shadow.pointer, align 8
  %wrote = add i64 %turned, %moved
  %wrote.pointer = inttoptr i64 %wrote to ptr
  %distance = load i64, ptr %reads.pointer, align 8
  %read.pointer = getelementptr i8, ptr %wrote.pointer, i64 %distance
  call void @llvm.memset.p0.i64(ptr %wrote.pointer, i8 $never, i64 %cells, i1 false)
  call void @llvm.memset.p0.i64(ptr %read.pointer, i8 0, i64 %cells, i1 false)
  br label %end
end:
  ret void
}
