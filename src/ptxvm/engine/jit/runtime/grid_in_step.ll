; Run some CTAs: in step if the launch says so, else one after the other.
define internal i32 @$name(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) noinline #0 {
entry:
  %in_step.pointer = getelementptr i8, ptr %ctx, i64 $in_step
  %in_step = load i32, ptr %in_step.pointer, align 8
  %none = icmp eq i32 %in_step, 0
  br i1 %none, label %alone, label %together
alone:
  %r.alone = call i32 @$alone(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last)
  ret i32 %r.alone
together:
  %r.together = call i32 @$together(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last)
  ret i32 %r.together
}
