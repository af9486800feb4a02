; Let a CTA begin in one of the slots.
define internal void @ptxvm.begin(ptr %m, i64 %cta, ptr %shared, ptr %local, i64 %slot) #0 {
entry:
  call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 $cta_barriers_size, i1 false)
  store i64 %cta, ptr %m, align 8
  %expected = getelementptr i32, ptr %m, i32 $expected
  store <16 x i32> splat (i32 -1), ptr %expected, align 4
$clear
  br label %warps
warps:
  %w = phi i32 [ 0, %entry ], [ %w.next, %warps ]
  %at = add i32 %w, $alive
  %place = getelementptr i32, ptr %m, i32 %at
  %is.last = icmp eq i32 %w, $last_warp
  %lanes = select i1 %is.last, i32 $last_lanes, i32 -1
  store i32 %lanes, ptr %place, align 4
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, $warps
  br i1 %all, label %end, label %warps
end:
  ret void
}

; Run some CTAs, as many side by side as the launch says; a CTA that has ended makes room for another one.
; $$fields are the addresses of fields of the launch's record; $$fence fences stores past the caches.
define internal i32 @ptxvm.ctas(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) noinline #0 {
entry:
$fields
  store ptr %records, ptr %records.place, align 8
  %shared = load ptr, ptr %shared.place, align 8
  %local = load ptr, ptr %local.place, align 8
  %saved = load ptr, ptr %saved.place, align 8
  %resident = load i64, ptr %resident.place, align 8
  %tick = load ptr, ptr %tick.place, align 8
  %deadlock = load ptr, ptr %deadlock.place, align 8
  %gx = load i32, ptr %nctaid.x.place, align 8
  %gy = load i32, ptr %nctaid.y.place, align 8
  br label %fill
fill:
  %f = phi i64 [ 0, %entry ], [ %f.next, %fill.one ]
  %f.cta = add i64 %first, %f
  %f.offset = mul i64 %f, $cta_size
  %f.records = getelementptr i8, ptr %records, i64 %f.offset
  %f.cta_barriers = getelementptr i8, ptr %f.records, i64 $records_size
  %f.there = icmp slt i64 %f.cta, %last
  br i1 %f.there, label %fill.cta, label %fill.none
fill.cta:
  call void @ptxvm.begin(ptr %f.cta_barriers, i64 %f.cta, ptr %shared, ptr %local, i64 %f)
  br label %fill.one
fill.none:
  store i64 -1, ptr %f.cta_barriers, align 8
  br label %fill.one
fill.one:
  %f.next = add i64 %f, 1
  %f.all = icmp eq i64 %f.next, %resident
  br i1 %f.all, label %begin, label %fill
begin:
  %next.first = add i64 %first, %resident
  br label %round
round:
  %next = phi i64 [ %next.first, %begin ], [ %next.after, %round.end ]
  %turn = phi i64 [ 0, %begin ], [ %turn.next, %round.end ]
  br label %slot
slot:
  %s = phi i64 [ 0, %round ], [ %s.next, %slot.end ]
  %next.now = phi i64 [ %next, %round ], [ %next.after, %slot.end ]
  %progress = phi i1 [ false, %round ], [ %progress.after, %slot.end ]
  %busy = phi i1 [ false, %round ], [ %busy.after, %slot.end ]
  %s.offset = mul i64 %s, $cta_size
  %own = getelementptr i8, ptr %records, i64 %s.offset
  %m = getelementptr i8, ptr %own, i64 $records_size
  %cta = load i64, ptr %m, align 8
  %empty = icmp slt i64 %cta, 0
  br i1 %empty, label %slot.end, label %run
run:
  %shared.offset = mul i64 %s, $shared_stride
  %shared.own = getelementptr i8, ptr %shared, i64 %shared.offset
  store ptr %shared.own, ptr %shared.place, align 8
  %rows = load ptr, ptr %rows.place, align 8
  %window = ptrtoint ptr %shared.own to i64
  %window.end = add i64 %window, $shared_size
  %rows.end = getelementptr i64, ptr %rows, i64 1
  %rows.origin = getelementptr i64, ptr %rows, i64 2
  store i64 %window, ptr %rows, align 8
  store i64 %window.end, ptr %rows.end, align 8
  store i64 %window, ptr %rows.origin, align 8
  %local.offset = mul i64 %s, $local_stride
  %local.own = getelementptr i8, ptr %local, i64 %local.offset
  store ptr %local.own, ptr %local.place, align 8
  %saved.offset = mul i64 %s, $saved_stride
  %saved.own = getelementptr i8, ptr %saved, i64 %saved.offset
  store ptr %saved.own, ptr %saved.place, align 8
  store ptr %m, ptr %cta_barriers.place, align 8
  store i64 %s, ptr %slot.place, align 8
  %c32 = trunc i64 %cta to i32
  %x = urem i32 %c32, %gx
  %q = udiv i32 %c32, %gx
  %y = urem i32 %q, %gy
  %z = udiv i32 %q, %gy
  %x.wide = zext i32 %x to i64
  %row = sub i64 %cta, %x.wide
  store i64 %row, ptr %row.place, align 8
  store i64 %x.wide, ptr %ctaid.x.place, align 8
  br label %warp
warp:
  %w = phi i32 [ 0, %run ], [ %w.next, %warp.end ]
  %alive = phi i1 [ false, %run ], [ %alive.after, %warp.end ]
  %moved = phi i1 [ false, %run ], [ %moved.after, %warp.end ]
  %state.at = add i32 %w, $state
  %state.place = getelementptr i32, ptr %m, i32 %state.at
  %state = load i32, ptr %state.place, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %warp.end, label %look
look:
  %fresh = icmp eq i32 %state, 0
  %flag = and i32 %state, $runnable
  %flagged = icmp ne i32 %flag, 0
  %released.at = add i32 %w, $released
  %released.place = getelementptr i32, ptr %m, i32 %released.at
  %released = load i32, ptr %released.place, align 4
  %woken = icmp ne i32 %released, 0
  %ready = or i1 %fresh, %flagged
  %goes = or i1 %ready, %woken
  br i1 %goes, label %go, label %warp.end
go:
  %w.wide = zext i32 %w to i64
  %w.offset = mul i64 %w.wide, $record_size
  %record = getelementptr i8, ptr %own, i64 %w.offset
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %record, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state)
  store i32 %r, ptr %state.place, align 4
  %lives = icmp sge i32 %r, 0
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.end
warp.end:
  %alive.now = phi i1 [ false, %warp ], [ true, %look ], [ %lives, %go ]
  %moved.now = phi i1 [ false, %warp ], [ false, %look ], [ true, %go ]
  %alive.after = or i1 %alive, %alive.now
  %moved.after = or i1 %moved, %moved.now
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, $warps
  br i1 %w.all, label %cta.end, label %warp
cta.end:
  br i1 %alive.after, label %slot.end, label %replace
replace:
  %more = icmp slt i64 %next.now, %last
  br i1 %more, label %another, label %retire
another:
  call void @ptxvm.begin(ptr %m, i64 %next.now, ptr %shared, ptr %local, i64 %s)
  %next.more = add i64 %next.now, 1
  br label %slot.end
retire:
  store i64 -1, ptr %m, align 8
  br label %slot.end
slot.end:
  %next.after = phi i64 [ %next.now, %slot ], [ %next.now, %cta.end ], [ %next.more, %another ], [ %next.now, %retire ]
  %progress.now = phi i1 [ false, %slot ], [ %moved.after, %cta.end ], [ true, %another ], [ true, %retire ]
  %busy.now = phi i1 [ false, %slot ], [ true, %cta.end ], [ true, %another ], [ false, %retire ]
  %progress.after = or i1 %progress, %progress.now
  %busy.after = or i1 %busy, %busy.now
  %s.next = add i64 %s, 1
  %s.all = icmp eq i64 %s.next, %resident
  br i1 %s.all, label %judge, label %slot
judge:
  br i1 %busy.after, label %still, label %good
still:
  br i1 %progress.after, label %round.end.look, label %stuck
stuck:
  call void %deadlock()
  br label %bad
round.end.look:
  %turn.more = add i64 %turn, %resident
  %looks = icmp uge i64 %turn.more, $turns
  br i1 %looks, label %ask, label %round.end
ask:
  %answer = call i32 %tick()
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %bad, label %round.end
round.end:
  %turn.next = phi i64 [ %turn.more, %round.end.look ], [ 0, %ask ]
  br label %round
good:
  br label %end
bad:
  br label %end
end:
  %failed = phi i32 [ 0, %good ], [ 1, %bad ]
  store ptr %shared, ptr %shared.place, align 8
  store ptr %local, ptr %local.place, align 8
  store ptr %saved, ptr %saved.place, align 8
$fence
  ret i32 %failed
}
