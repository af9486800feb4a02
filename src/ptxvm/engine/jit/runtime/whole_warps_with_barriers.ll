  call void @llvm.memset.p0.i64(ptr %states, i8 0, i64 $states_size, i1 false)
  br label %round
round:
  store i32 0, ptr %barriers, align 8
  br label %warps
warps:
  %w = phi i32 [ 0, %round ], [ %w, %left ], [ %w.next, %next ]
  %alive = phi i32 [ 0, %round ], [ %alive, %left ], [ %alive.next, %next ]
  %state.pointer = getelementptr i32, ptr %states, i32 %w
  %state = load i32, ptr %state.pointer, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %next, label %alive.still
alive.still:
  %w.wide = zext i32 %w to i64
  %offset = mul i64 %w.wide, $record_size
  %own = getelementptr i8, ptr %records, i64 %offset
  %fresh = icmp eq i32 %state, 0
  %whole = icmp ule i32 %w, $last_group
  %begins = and i1 %fresh, %whole
  %goes.on = icmp uge i32 %state, $straight
  %straight = or i1 %begins, %goes.on
  br i1 %straight, label %run, label %one, !prof !1
run:
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state, ptr %sums)
  switch i32 %r, label %run.done [ i32 -2, label %bad i32 $left, label %left ], !prof !3
left:
  store <$abreast x i32> splat (i32 $parted), ptr %state.pointer, align 4
  br label %warps
run.done:
  %one.of = insertelement <$abreast x i32> poison, i32 %r, i64 0
  %each.of = shufflevector <$abreast x i32> %one.of, <$abreast x i32> poison, <$abreast x i32> zeroinitializer
  store <$abreast x i32> %each.of, ptr %state.pointer, align 4
  br label %ran
one:
  store i32 %x, ptr %ctaid.x.pointer, align 8
  %masked.pointer = getelementptr i8, ptr %ctx, i64 $masked
  %masked = load ptr, ptr %masked.pointer, align 8
  %one.r = call i32 %masked(ptr %ctx, ptr %sites, ptr %own, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state)
  store i32 %one.r, ptr %state.pointer, align 4
  %wrong = icmp eq i32 %one.r, -2
  br i1 %wrong, label %bad, label %ran
ran:
  %answer.r = phi i32 [ %r, %run.done ], [ %one.r, %one ]
  %step = phi i32 [ $abreast, %run.done ], [ 1, %one ]
  %waits = icmp sge i32 %answer.r, 0
  %waits.bit = zext i1 %waits to i32
  %alive.more = or i32 %alive, %waits.bit
  br label %next
next:
  %by = phi i32 [ 1, %warps ], [ %step, %ran ]
  %alive.next = phi i32 [ %alive, %warps ], [ %alive.more, %ran ]
  %w.next = add i32 %w, %by
  %w.all = icmp uge i32 %w.next, $warps
  br i1 %w.all, label %round.end, label %warps
round.end:
$release
