  call void @llvm.memset.p0.i64(ptr %states, i8 0, i64 $states_size, i1 false)
  br label %round
round:
  store i32 0, ptr %barriers, align 8
  br label %warps
warps:
  %w = phi i32 [ 0, %round ], [ %w.next, %warp.next ]
  %alive = phi i32 [ 0, %round ], [ %alive.next, %warp.next ]
  %state.pointer = getelementptr i32, ptr %states, i32 %w
  %state = load i32, ptr %state.pointer, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %warp.next, label %warp.run
warp.run:
  %w.wide = zext i32 %w to i64
  %offset = mul i64 %w.wide, $record_size
  %own = getelementptr i8, ptr %records, i64 %offset
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state, ptr %sums)
  store i32 %r, ptr %state.pointer, align 4
  %waits = icmp sge i32 %r, 0
  %waits.bit = zext i1 %waits to i32
  %alive.more = or i32 %alive, %waits.bit
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.next
warp.next:
  %alive.next = phi i32 [ %alive, %warps ], [ %alive.more, %warp.run ]
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, $warps
  br i1 %w.all, label %round.end, label %warps
round.end:
$release
