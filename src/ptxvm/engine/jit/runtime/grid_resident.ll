; Let a CTA begin in one of the slots.
define internal void @ptxvm.begin(ptr %ctx, ptr %m, i64 %cta, ptr %shared, ptr %local, i64 %slot) #0 {
entry:
  call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 $header_size, i1 false)
  store i64 %cta, ptr %m, align 8
$clear
  ret void
}

; Run some CTAs, one after the other.  $$fields are the addresses of fields of the launch's record.
;
; A CTA runs until all of its warps have ended.  A warp that stays in a spin loop yields: it waits for what another writes.
; When all warps of a CTA have yielded, or wait at a barrier for those, the next CTA runs, in a slot of its own.
; A CTA that comes from barrier to barrier may wait as well: after $$passes passes over its warps, others run; in instrumented
; code once it has told others something, for they shall learn no more than what they wait for.
; After a fault the CTAs before that of the fault run to their end, if they do not wait for each other; of instrumented code,
; which the exact checker runs again, none does.
define internal i32 @$name(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) noinline #0 {
entry:
$fields
  %barriers = getelementptr i8, ptr %ctx, i64 $barriers
  %turns.pointer = getelementptr i8, ptr %ctx, i64 $turns
  store ptr %records, ptr %records.pointer, align 8
  %shared = load ptr, ptr %shared.pointer, align 8
  %local = load ptr, ptr %local.pointer, align 8
  %resident = load i64, ptr %resident.pointer, align 8
  %tick = load ptr, ptr %tick.pointer, align 8
  %deadlock = load ptr, ptr %deadlock.pointer, align 8
  %gx = load i32, ptr %nctaid.x.pointer, align 8
  %gy = load i32, ptr %nctaid.y.pointer, align 8
$begins
  %until.pointer = alloca i64, align 8
  store i64 %last, ptr %until.pointer, align 8
  br label %cycle
cycle:
  %next.cycle = phi i64 [ %first, %entry ], [ %next, %judge ]
  %used.cycle = phi i64 [ 0, %entry ], [ %used, %judge ]
  br label %slot
slot:
  %s = phi i64 [ 0, %cycle ], [ %s.next, %slot.end ]
  %next = phi i64 [ %next.cycle, %cycle ], [ %next.after, %slot.end ]
  %used = phi i64 [ %used.cycle, %cycle ], [ %used.after, %slot.end ]
  %busy = phi i1 [ false, %cycle ], [ %busy.after, %slot.end ]
  %s.offset = mul i64 %s, $cta_size
  %own = getelementptr i8, ptr %records, i64 %s.offset
  %m = getelementptr i8, ptr %own, i64 $records_size
  %m.opened = getelementptr i8, ptr %m, i64 $opened
  %m.states = getelementptr i8, ptr %m, i64 $states
  %new = icmp eq i64 %s, %used
  br i1 %new, label %unused, label %usual
unused:
  %room = icmp slt i64 %s, %resident
  %until.open = load i64, ptr %until.pointer, align 8
  %more.ctas = icmp slt i64 %next, %until.open
  %opens = and i1 %room, %more.ctas
  br i1 %opens, label %open, label %judge
usual:
  %there = load i64, ptr %m, align 8
  %until.visit = load i64, ptr %until.pointer, align 8
  %empty = icmp uge i64 %there, %until.visit
  br i1 %empty, label %slot.end, label %visit
open:
  call void @ptxvm.begin(ptr %ctx, ptr %m, i64 %next, ptr %shared, ptr %local, i64 %s)
  %next.open = add i64 %next, 1
  %used.open = add i64 %used, 1
  store i64 %used.open, ptr %resident.pointer, align 8
  br label %visit
visit:
  %next.visit = phi i64 [ %next, %usual ], [ %next.open, %open ], [ %next.another, %another ]
  %used.visit = phi i64 [ %used, %usual ], [ %used.open, %open ], [ %used.visit, %another ]
  %cta = load i64, ptr %m, align 8
  %shared.offset = mul i64 %s, $shared_stride
  %shared.own = getelementptr i8, ptr %shared, i64 %shared.offset
  store ptr %shared.own, ptr %shared.pointer, align 8
  %rows = load ptr, ptr %rows.pointer, align 8
  %window = ptrtoint ptr %shared.own to i64
  %window.end = add i64 %window, $shared_size
  %rows.end = getelementptr i64, ptr %rows, i64 1
  %rows.origin = getelementptr i64, ptr %rows, i64 2
  store i64 %window, ptr %rows, align 8
  store i64 %window.end, ptr %rows.end, align 8
  store i64 %window, ptr %rows.origin, align 8
  %local.offset = mul i64 %s, $local_stride
  %local.own = getelementptr i8, ptr %local, i64 %local.offset
  store ptr %local.own, ptr %local.pointer, align 8
  store i64 %s, ptr %slot.pointer, align 8
  %c32 = trunc i64 %cta to i32
  %x = urem i32 %c32, %gx
  %q = udiv i32 %c32, %gx
  %y = urem i32 %q, %gy
  %z = udiv i32 %q, %gy
  %x.wide = zext i32 %x to i64
  %row = sub i64 %cta, %x.wide
  store i64 %row, ptr %row.pointer, align 8
  store i64 %x.wide, ptr %ctaid.x.pointer, align 8
$restore
  %opened = load i32, ptr %m.opened, align 4
  br label %pass
round:
  store i32 0, ptr %barriers, align 8
  br label %counted
on:
  br label %counted
counted:
  %reopened = phi i32 [ 1, %round ], [ 0, %on ]
  %pass.next = add i32 %pass.number, 1
$patience
  br i1 %patient, label %pass, label %leave.on
pass:
  %pass.number = phi i32 [ 0, %visit ], [ %pass.next, %counted ]
  %open.now = phi i32 [ %opened, %visit ], [ %reopened, %counted ]
  %goes.on = icmp ne i32 %open.now, 0
  br label %warps
warps:
  %w = phi i32 [ 0, %pass ], [ %w, %left ], [ %w.next, %next.warp ]
  %alive = phi i32 [ 0, %pass ], [ %alive, %left ], [ %alive.next, %next.warp ]
  %yields = phi i32 [ 0, %pass ], [ %yields, %left ], [ %yields.next, %next.warp ]
  %came = phi i1 [ false, %pass ], [ %came, %left ], [ %came.next, %next.warp ]
  %state.pointer = getelementptr i32, ptr %m.states, i32 %w
  %state = load i32, ptr %state.pointer, align 4
  %ended = icmp slt i32 %state, 0
  br i1 %ended, label %next.warp, label %living
living:
  %fresh = icmp eq i32 %state, 0
  %flags = and i32 %state, $ready
  %flagged = icmp ne i32 %flags, 0
  %ready.now = or i1 %fresh, %flagged
  %runs = or i1 %ready.now, %goes.on
  br i1 %runs, label %run, label %next.warp
run:
  %w.wide = zext i32 %w to i64
  %w.offset = mul i64 %w.wide, $record_size
  %record = getelementptr i8, ptr %own, i64 %w.offset
  %whole = icmp sle i32 %w, $last_group
  %begins = and i1 %fresh, %whole
  %resumes = icmp uge i32 %state, $straight
  %goes.straight = or i1 %begins, %resumes
  br i1 %goes.straight, label %group, label %one
group:
  %group.r = call i32 @warp(ptr %ctx, ptr %sites, ptr %record, i32 %w, i32 %x, i32 %y, i32 %z, i32 %state, ptr %sums)
  %parted = icmp eq i32 %group.r, $left
  br i1 %parted, label %left, label %group.done
left:
  store <$abreast x i32> splat (i32 $parted), ptr %state.pointer, align 4
  br label %warps
group.done:
  %one.of = insertelement <$abreast x i32> poison, i32 %group.r, i64 0
  %each.of = shufflevector <$abreast x i32> %one.of, <$abreast x i32> poison, <$abreast x i32> zeroinitializer
  store <$abreast x i32> %each.of, ptr %state.pointer, align 4
  br label %ran
one:
$enter
  store i32 %one.r, ptr %state.pointer, align 4
  br label %ran
ran:
  %r = phi i32 [ %group.r, %group.done ], [ %one.r, %one ]
  %step = phi i32 [ $abreast, %group.done ], [ 1, %one ]
  %lives = icmp sge i32 %r, 0
  %lives.bit = zext i1 %lives to i32
  %r.flag = and i32 %r, $runnable
  %yields.flag = select i1 %lives, i32 %r.flag, i32 0
  %moved = icmp eq i32 %yields.flag, 0
  %wrong = icmp eq i32 %r, -2
  br i1 %wrong, label %bad, label %next.warp
next.warp:
  %by = phi i32 [ 1, %warps ], [ 1, %living ], [ %step, %ran ]
  %alive.one = phi i32 [ 0, %warps ], [ 1, %living ], [ %lives.bit, %ran ]
  %yields.one = phi i32 [ 0, %warps ], [ 0, %living ], [ %yields.flag, %ran ]
  %came.one = phi i1 [ false, %warps ], [ false, %living ], [ %moved, %ran ]
  %alive.next = or i32 %alive, %alive.one
  %yields.next = or i32 %yields, %yields.one
  %came.next = or i1 %came, %came.one
  %w.next = add i32 %w, %by
  %w.all = icmp uge i32 %w.next, $warps
  br i1 %w.all, label %pass.end, label %warps
pass.end:
  %some.yield = icmp ne i32 %yields.next, 0
  br i1 %some.yield, label %yielded, label %all.wait
yielded:
  %turns = load i32, ptr %turns.pointer, align 8
  %turns.more = add i32 %turns, $warps
  store i32 %turns.more, ptr %turns.pointer, align 8
  %looks = icmp uge i32 %turns.more, $look
  br i1 %looks, label %ask, label %asked
ask:
  store i32 0, ptr %turns.pointer, align 8
  %answer = call i32 %tick()
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %halt, label %asked
asked:
  br i1 %came.next, label %on, label %leave.on
all.wait:
$release
leave.on:
  %opened.kept = phi i32 [ %reopened, %counted ], [ 0, %asked ]
  store i32 %opened.kept, ptr %m.opened, align 4
$keep
  br label %slot.end
cta.done:
  %until.another = load i64, ptr %until.pointer, align 8
  %another.there = icmp slt i64 %next.visit, %until.another
  br i1 %another.there, label %another, label %retire
another:
  call void @ptxvm.begin(ptr %ctx, ptr %m, i64 %next.visit, ptr %shared, ptr %local, i64 %s)
  %next.another = add i64 %next.visit, 1
  br label %visit
retire:
  store i64 -1, ptr %m, align 8
  br label %slot.end
slot.end:
  %next.after = phi i64 [ %next, %usual ], [ %next.visit, %leave.on ], [ %next.visit, %retire ]
  %used.after = phi i64 [ %used, %usual ], [ %used.visit, %leave.on ], [ %used.visit, %retire ]
  %busy.after = phi i1 [ %busy, %usual ], [ true, %leave.on ], [ %busy, %retire ]
  %s.next = add i64 %s, 1
  br label %slot
judge:
  br i1 %busy, label %cycle, label %good
bad:
  store i64 $until_fault, ptr %until.pointer, align 8
  br label %$on_fault
halt:
  store i64 -1, ptr %until.pointer, align 8
  br label %good
good:
  %until.end = load i64, ptr %until.pointer, align 8
  %faulted = icmp slt i64 %until.end, %last
  %failed = zext i1 %faulted to i32
  store ptr %shared, ptr %shared.pointer, align 8
  store ptr %local, ptr %local.pointer, align 8
$ends
  ret i32 %failed
}
