  br label %warps
warps:
  %w = phi i32 [ 0, %cta ], [ %w.next, %warp.done ]
  %own = getelementptr i8, ptr %records, i64 0
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z, i32 0, ptr %sums)
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.done
warp.done:
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, $warps
  br i1 %w.all, label %cta.done, label %warps
