; Begin a CTA in a slot; $$watch are the lines of instrumented code for that, $$settle those of deferred code: what is under way
; of the CTAs before ends.
define internal void @ptxvm.begin(ptr %ctx, ptr %m, i64 %cta, ptr %shared, ptr %local, i64 %slot) #0 {
entry:
  call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 $cta_barriers_size, i1 false)
  store i64 %cta, ptr %m, align 8
  %expected = getelementptr i32, ptr %m, i32 $expected
  store <16 x i32> splat (i32 -1), ptr %expected, align 4
$settle
$clear
$watch
  br label %warps
warps:
  %w = phi i32 [ 0, %entry ], [ %w.next, %warps ]
  %at = add i32 %w, $alive
  %pointer = getelementptr i32, ptr %m, i32 %at
  %is.last = icmp eq i32 %w, $last_warp
  %lanes = select i1 %is.last, i32 $last_lanes, i32 -1
  store i32 %lanes, ptr %pointer, align 4
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, $warps
  br i1 %all, label %end, label %warps
end:
  ret void
}

; Run some CTAs; at most %resident of them are resident at once.  $$fields are the addresses of fields of the launch's record;
; $$fence fences stores past the caches.
;
; A CTA runs until all of its warps have ended, or until every warp that can run has yielded: then it waits for writes of
; another CTA, and the next slot runs.  So CTAs become resident only as earlier ones wait.  A CTA whose warps advance from
; barrier to barrier may wait for another CTA as well: after $$passes passes over its warps the next slot runs.  $$stall asks
; instrumented code if they wait for too long.
;
; The CTAs of a cluster begin together, in slots that follow each other: $$open and $$another are the lines for that, $$over
; asks if all of them have ended, where $$ended leads; $$others says that some of them begin in slots of which this round has
; run the CTAs before.  $$coordinates are those of the CTA, $$window is the shared memory that
; its generic addresses reach.
define internal i32 @ptxvm.ctas(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) noinline #0 {
entry:
$fields
  store ptr %records, ptr %records.pointer, align 8
  %shared = load ptr, ptr %shared.pointer, align 8
  %local = load ptr, ptr %local.pointer, align 8
  %saved = load ptr, ptr %saved.pointer, align 8
  %resident = load i64, ptr %resident.pointer, align 8
  %tick = load ptr, ptr %tick.pointer, align 8
  %deadlock = load ptr, ptr %deadlock.pointer, align 8
  %gx = load i32, ptr %nctaid.x.pointer, align 8
  %gy = load i32, ptr %nctaid.y.pointer, align 8
  br label %round
round:
  %next.round = phi i64 [ %first, %entry ], [ %next, %still ]
  %used.round = phi i64 [ 0, %entry ], [ %used, %still ]
  %since.tick.round = phi i64 [ 0, %entry ], [ %since.tick, %still ]
  br label %slot
slot:
  %s = phi i64 [ 0, %round ], [ %s.next, %slot.end ]
  %next = phi i64 [ %next.round, %round ], [ %next.after, %slot.end ]
  %used = phi i64 [ %used.round, %round ], [ %used.after, %slot.end ]
  %since.tick = phi i64 [ %since.tick.round, %round ], [ %since.tick.after, %slot.end ]
  %progress = phi i1 [ false, %round ], [ %progress.after, %slot.end ]
  %busy = phi i1 [ false, %round ], [ %busy.after, %slot.end ]
  %s.offset = mul i64 %s, $cta_size
  %own = getelementptr i8, ptr %records, i64 %s.offset
  %m = getelementptr i8, ptr %own, i64 $records_size
  %more = icmp slt i64 %next, %last
  %new = icmp eq i64 %s, %used
  br i1 %new, label %unused, label %usual
unused:
  %room = icmp slt i64 %s, %resident
  %opens = and i1 %room, %more
  br i1 %opens, label %open, label %judge
usual:
  %cta.here = load i64, ptr %m, align 8
  %empty = icmp slt i64 %cta.here, 0
  br i1 %empty, label %slot.end, label %run
open:
$open
  br label %run
run:
  %next.run = phi i64 [ %next, %usual ], [ %next.open, %open ], [ %next.run, %again ], [ %next.another, %another ]
  %used.run = phi i64 [ %used, %usual ], [ %used.open, %open ], [ %used.run, %again ], [ %used.run, %another ]
  %since.tick.run = phi i64 [ %since.tick, %usual ], [ %since.tick, %open ], [ %since.tick.reset, %again ], [ %since.tick.reset, %another ]
  %pass = phi i64 [ 0, %usual ], [ 0, %open ], [ %pass.next, %again ], [ 0, %another ]
  %progress.run = phi i1 [ %progress, %usual ], [ true, %open ], [ %progress.cta, %again ], [ true, %another ]
  %busy.run = phi i1 [ %busy, %usual ], [ %busy, %open ], [ %busy.run, %again ], [ $others, %another ]
  %cta = load i64, ptr %m, align 8
  %shared.offset = mul i64 %s, $shared_stride
  %shared.own = getelementptr i8, ptr %shared, i64 %shared.offset
  store ptr %shared.own, ptr %shared.pointer, align 8
  %rows = load ptr, ptr %rows.pointer, align 8
$window
  %window.end = add i64 %window, $window_size
  %rows.end = getelementptr i64, ptr %rows, i64 1
  %rows.origin = getelementptr i64, ptr %rows, i64 2
  store i64 %window, ptr %rows, align 8
  store i64 %window.end, ptr %rows.end, align 8
  store i64 %window, ptr %rows.origin, align 8
  %local.offset = mul i64 %s, $local_stride
  %local.own = getelementptr i8, ptr %local, i64 %local.offset
  store ptr %local.own, ptr %local.pointer, align 8
  %saved.offset = mul i64 %s, $saved_stride
  %saved.own = getelementptr i8, ptr %saved, i64 %saved.offset
  store ptr %saved.own, ptr %saved.pointer, align 8
  store ptr %m, ptr %cta_barriers.pointer, align 8
  store i64 %s, ptr %slot.pointer, align 8
  %c32 = trunc i64 %cta to i32
$coordinates
  %x.wide = zext i32 %x to i64
  %row = sub i64 %cta, %x.wide
  store i64 %row, ptr %row.pointer, align 8
  store i64 %x.wide, ptr %ctaid.x.pointer, align 8
  br label %warp
warp:
  %w = phi i32 [ 0, %run ], [ %w.next, %warp.end ]
  %alive = phi i1 [ false, %run ], [ %alive.after, %warp.end ]
  %moved = phi i1 [ false, %run ], [ %moved.after, %warp.end ]
  %advances = phi i1 [ false, %run ], [ %advances.after, %warp.end ]
  %state.at = add i32 %w, $state
  %state.pointer = getelementptr i32, ptr %m, i32 %state.at
  %state = load i32, ptr %state.pointer, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %warp.end, label %pending
pending:
  %fresh = icmp eq i32 %state, 0
  %flag = and i32 %state, $runnable
  %flagged = icmp ne i32 %flag, 0
  %released.at = add i32 %w, $released
  %released.pointer = getelementptr i32, ptr %m, i32 %released.at
  %released = load i32, ptr %released.pointer, align 4
  %is.released = icmp ne i32 %released, 0
  %ready = or i1 %fresh, %flagged
  %runs = or i1 %ready, %is.released
  br i1 %runs, label %go, label %warp.end
go:
  %w.wide = zext i32 %w to i64
  %w.offset = mul i64 %w.wide, $record_size
  %record = getelementptr i8, ptr %own, i64 %w.offset
  %r = call i32 @warp(ptr %ctx, ptr %sites, ptr %record, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state)
  store i32 %r, ptr %state.pointer, align 4
  %lives = icmp sge i32 %r, 0
  %r.flag = and i32 %r, $runnable
  %r.yields = icmp ne i32 %r.flag, 0
  %yields.alive = and i1 %lives, %r.yields
  %no.yield = xor i1 %yields.alive, true
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %warp.end
warp.end:
  %alive.now = phi i1 [ false, %warp ], [ true, %pending ], [ %lives, %go ]
  %moved.now = phi i1 [ false, %warp ], [ false, %pending ], [ true, %go ]
  %advances.now = phi i1 [ false, %warp ], [ false, %pending ], [ %no.yield, %go ]
  %alive.after = or i1 %alive, %alive.now
  %moved.after = or i1 %moved, %moved.now
  %advances.after = or i1 %advances, %advances.now
  %w.next = add i32 %w, 1
  %w.all = icmp eq i32 %w.next, $warps
  br i1 %w.all, label %cta.end, label %warp
cta.end:
  %progress.cta = or i1 %progress.run, %moved.after
  %since.tick.more = add i64 %since.tick.run, 1
  %ticks = icmp uge i64 %since.tick.more, $passes_per_tick
  br i1 %ticks, label %ask, label %ticked
ask:
  %answer = call i32 %tick()
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %bad, label %ticked
ticked:
  %since.tick.reset = phi i64 [ %since.tick.more, %cta.end ], [ 0, %ask ]
  br i1 %alive.after, label %goes.on, label %$ended
goes.on:
$stall
lives.on:
  %pass.next = add i64 %pass, 1
  %may.stay = icmp ult i64 %pass.next, $passes
  %stays = and i1 %may.stay, %advances.after
  br i1 %stays, label %again, label %slot.end
again:
  br label %run
$over
replace:
  %another.there = icmp slt i64 %next.run, %last
  br i1 %another.there, label %another, label %retire
another:
$another
  br label %run
retire:
  store i64 -1, ptr %m, align 8
  br label %slot.end
slot.end:
  %next.after = phi i64 [ %next, %usual ], [ %next.run, %lives.on ], [ %next.run, %retire ]
  %used.after = phi i64 [ %used, %usual ], [ %used.run, %lives.on ], [ %used.run, %retire ]
  %since.tick.after = phi i64 [ %since.tick, %usual ], [ %since.tick.reset, %lives.on ], [ %since.tick.reset, %retire ]
  %progress.after = phi i1 [ %progress, %usual ], [ %progress.cta, %lives.on ], [ true, %retire ]
  %busy.after = phi i1 [ %busy, %usual ], [ true, %lives.on ], [ %busy.run, %retire ]
  %s.next = add i64 %s, 1
  br label %slot
judge:
  br i1 %busy, label %still, label %good
still:
  br i1 %progress, label %round, label %stuck
stuck:
  store i64 %used, ptr %resident.pointer, align 8
  call void %deadlock()
  br label %bad
good:
  br label %end
bad:
  br label %end
end:
  %failed = phi i32 [ 0, %good ], [ 1, %bad ]
  store ptr %shared, ptr %shared.pointer, align 8
  store ptr %local, ptr %local.pointer, align 8
  store ptr %saved, ptr %saved.pointer, align 8
$fence
  ret i32 %failed
}
