  br label %warps
warps:
  %w.first = phi i32 [ 0, %cta ], [ %w.next, %next ]
  %whole = icmp ule i32 %w.first, $last_group
  br i1 %whole, label %run, label %each, !prof !1
run:
  %w.abreast = add i32 %w.first, $abreast
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %records, i32 %w.first, i32 %x, i32 %y, i32 %z, i32 0, ptr %sums)
  switch i32 %r, label %next [ i32 -2, label %bad i32 $left, label %each ], !prof !3
each:
  %state = phi i32 [ 0, %warps ], [ $parted, %run ]
  %last.one = phi i32 [ 0, %warps ], [ $abreast_less_1, %run ]
  br label %one
one:
  %n = phi i32 [ 0, %each ], [ %n.next, %one.done ]
  %w = add i32 %w.first, %n
  %n.wide = zext i32 %n to i64
  %offset = mul i64 %n.wide, $record_size
  %own = getelementptr i8, ptr %records, i64 %offset
  store i32 %x, ptr %ctaid.x.pointer, align 8
  %masked.pointer = getelementptr i8, ptr %ctx, i64 $masked
  %masked = load ptr, ptr %masked.pointer, align 8
  %one.r = call i32 %masked(ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state)
  %wrong = icmp eq i32 %one.r, -2
  br i1 %wrong, label %bad, label %one.done
one.done:
  %n.next = add i32 %n, 1
  %w.apart = add i32 %w.first, %n.next
  %n.all = icmp eq i32 %n, %last.one
  br i1 %n.all, label %next, label %one
next:
  %w.next = phi i32 [ %w.abreast, %run ], [ %w.apart, %one.done ]
  %w.all = icmp uge i32 %w.next, $warps
  br i1 %w.all, label %cta.done, label %warps
