; Report a suspicion if only some threads of the CTA have arrived, or at barriers with different reductions.
define internal void @ptxvm.epoch(ptr %ctx, i1 %cta, ptr %shared, i64 %cells) noinline #0 {
entry:
  %arrived.pointer = getelementptr i8, ptr %ctx, i64 $arrived
  %suspicion.pointer = getelementptr i8, ptr %ctx, i64 $suspicion
  %arrived = load i64, ptr %arrived.pointer, align 8
  store i64 0, ptr %arrived.pointer, align 8
$whole
  %none = icmp eq i64 %arrived, 0
  %agree.some = or i1 %all, %none
  %agree = or i1 %agree.some, %cta
  br i1 %agree, label %end, label %partly
partly:
  store i32 1, ptr %suspicion.pointer, align 8
  br label %end
end:
  ret void
}
