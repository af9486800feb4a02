  br label %threads
threads:
  %t = phi i32 [ 0, %cta ], [ %t.next, %thread.done ]
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %records, i32 %t, i32 %x, i32 %y, i32 %z, i32 0, ptr %sums)
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %thread.done
thread.done:
  %t.next = add i32 %t, 1
  %t.all = icmp eq i32 %t.next, $threads
  br i1 %t.all, label %cta.done, label %threads
