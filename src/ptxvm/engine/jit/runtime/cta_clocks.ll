; The clocks of the warps of a CTA (`memory.cta_clocks` has the layout of their table): the words 2 and 3 of the CTA's barrier
; record %m are its address, and the word 4 is the rank of the CTA in its cluster.

; A CTA begins in a slot, which is its rank: before the first one no warp knows anything of the others, and all clocks are later
; than those of the CTAs before.
define internal void @ptxvm.clocks.begin(ptr %ctx, ptr %m, ptr %shared, i64 %slot) #0 {
entry:
  %clocks.pointer = getelementptr i8, ptr %ctx, i64 $clocks_place
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %own.pointer = getelementptr i32, ptr %m, i32 2
  store ptr %clocks, ptr %own.pointer, align 8
  %rank = trunc i64 %slot to i32
  %rank.pointer = getelementptr i32, ptr %m, i32 4
  store i32 %rank, ptr %rank.pointer, align 8
  %is.first = icmp eq i64 %slot, 0
  br i1 %is.first, label %fresh, label %end
fresh:
  %ended = getelementptr i32, ptr %clocks, i32 3
  store i32 0, ptr %ended, align 4
  %suspicion = getelementptr i8, ptr %ctx, i64 $suspicion_place
  store ptr %suspicion, ptr %clocks, align 8
  %now.pointer = getelementptr i32, ptr %clocks, i32 $now
  %used = load <32 x i32>, ptr %now.pointer, align 64
  %last = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %used)
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch_place
  %old = load i32, ptr %epoch.pointer, align 8
  %most = call i32 @llvm.umax.i32(i32 %last, i32 %old)
  store i32 %most, ptr %epoch.pointer, align 8
  call void @ptxvm.epoch(ptr %ctx, i1 true, ptr %shared, i64 $cells)
  %first = load i32, ptr %epoch.pointer, align 8
  %first.one = insertelement <32 x i32> poison, i32 %first, i64 0
  %first.all = shufflevector <32 x i32> %first.one, <32 x i32> poison, <32 x i32> zeroinitializer
  store <32 x i32> %first.all, ptr %now.pointer, align 64
  %before = sub <32 x i32> %first.all, splat (i32 $epoch_step)
  br label %rows
rows:
  %w = phi i32 [ 0, %fresh ], [ %w.next, %rows ]
  %row.first = mul i32 %w, 32
  %row.at = add i32 %row.first, $known
  %row = getelementptr i32, ptr %clocks, i32 %row.at
  store <32 x i32> %before, ptr %row, align 64
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, 32
  br i1 %all, label %barriers, label %rows
barriers:
  %n = phi i32 [ 0, %rows ], [ %n.next, %barriers ]
  %barrier.first = mul i32 %n, 32
  %barrier.at = add i32 %barrier.first, $remote
  %barrier = getelementptr i32, ptr %clocks, i32 %barrier.at
  store <32 x i32> zeroinitializer, ptr %barrier, align 64
  %n.next = add i32 %n, 1
  %done = icmp eq i32 %n.next, $rows
  br i1 %done, label %end, label %barriers
end:
  ret void
}

; Lanes of a warp arrive at a barrier, and add what they know to it.  True where that is suspicious: where they are not all lanes
; of the warp, at one barrier and with one count; where the warp comes twice; where the counts of two warps differ; where the warp
; does not know that the last phase is over, for then another schedule may let it come in that one.
define internal i1 @ptxvm.clocks.arrive(ptr %m, i32 %warp, i32 %lanes, ptr %numbers, ptr %threads) #0 {
entry:
  %no.lanes = icmp eq i32 %lanes, 0
  br i1 %no.lanes, label %fine, label %some.lanes
some.lanes:
  %is.last = icmp eq i32 %warp, $last_warp
  %whole = select i1 %is.last, i32 $last_lanes, i32 -1
  %partly = icmp ne i32 %lanes, %whole
  %n = load i32, ptr %numbers, align 64
  %apart.numbers = call i1 @ptxvm.clocks.apart(ptr %numbers, i32 %whole)
  %wrong.lanes = or i1 %partly, %apart.numbers
  br i1 %wrong.lanes, label %suspicious, label %alone
alone:
  %row.first = mul i32 %n, $warps
  %arrived.at = add i32 %row.first, $arrived
  %arrived = getelementptr i32, ptr %m, i32 %arrived.at
  %mine.pointer = getelementptr i32, ptr %arrived, i32 %warp
  %mine = load i32, ptr %mine.pointer, align 4
  %twice = icmp ne i32 %mine, 0
  br i1 %twice, label %suspicious, label %others
others:
  %w = phi i32 [ 0, %alone ], [ %w.next, %others ]
  %some = phi i32 [ 0, %alone ], [ %some.next, %others ]
  %here.pointer = getelementptr i32, ptr %arrived, i32 %w
  %here = load i32, ptr %here.pointer, align 4
  %some.next = or i32 %some, %here
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, $warps
  br i1 %all, label %counted, label %others
counted:
  %begins = icmp eq i32 %some.next, 0
  %expected.at = add i32 %n, $expected
  %expected.pointer = getelementptr i32, ptr %m, i32 %expected.at
  %expected = load i32, ptr %expected.pointer, align 4
  %for.all = icmp eq i32 %expected, -1
  %before = select i1 %for.all, i32 $capacity, i32 %expected
  %no.count = icmp eq ptr %threads, null
  br i1 %no.count, label %compare, label %count
count:
  %given = load i32, ptr %threads, align 64
  %apart.counts = call i1 @ptxvm.clocks.apart(ptr %threads, i32 %whole)
  %odd.bits = and i32 %given, 31
  %odd = icmp ne i32 %odd.bits, 0
  %less = sub i32 %given, 1
  %beyond = icmp uge i32 %less, $capacity
  %wrong.count = or i1 %odd, %beyond
  %wrong.counts = or i1 %wrong.count, %apart.counts
  br i1 %wrong.counts, label %suspicious, label %compare
compare:
  %wanted = phi i32 [ $capacity, %counted ], [ %given, %count ]
  %differs = icmp ne i32 %wanted, %before
  %again = xor i1 %begins, true
  %miscounted = and i1 %differs, %again
  br i1 %miscounted, label %suspicious, label %add
add:
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %rank.pointer = getelementptr i32, ptr %m, i32 4
  %rank = load i32, ptr %rank.pointer, align 8
  %before.warp = mul i32 %rank, $warps
  %own.warp = add i32 %before.warp, %warp
  %own.first = mul i32 %own.warp, 32
  %own.at = add i32 %own.first, $known
  %own = getelementptr i32, ptr %clocks, i32 %own.at
  %known = load <32 x i32>, ptr %own, align 64
  %now.at = add i32 %own.warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %known.now = insertelement <32 x i32> %known, i32 %now, i32 %own.warp
  %before.barrier = mul i32 %rank, 16
  %own.barrier = add i32 %before.barrier, %n
  %barrier.first = mul i32 %own.barrier, 32
  %phase.at = add i32 %barrier.first, $of_phases
  %phase = getelementptr i32, ptr %clocks, i32 %phase.at
  %over = load <32 x i32>, ptr %phase, align 64
  %early = icmp ugt <32 x i32> %over, %known.now
  %early.bits = bitcast <32 x i1> %early to i32
  %in.turn = icmp eq i32 %early.bits, 0
  br i1 %in.turn, label %join, label %suspicious
join:
  %waited = getelementptr i8, ptr %clocks, i64 8
  store i32 0, ptr %waited, align 8
  %barrier.at = add i32 %barrier.first, $of_barriers
  %barrier = getelementptr i32, ptr %clocks, i32 %barrier.at
  %old = load <32 x i32>, ptr %barrier, align 64
  %new = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %old, <32 x i32> %known.now)
  store <32 x i32> %new, ptr %barrier, align 64
  %next = add i32 %now, $epoch_step
  store i32 %next, ptr %now.pointer, align 4
  %full = icmp ugt i32 %next, $last_epoch
  ret i1 %full
fine:
  ret i1 false
suspicious:
  ret i1 true
}

; Do the values of some lanes differ?
define internal i1 @ptxvm.clocks.apart(ptr %pointer, i32 %lanes) #0 {
entry:
  %values = load <32 x i32>, ptr %pointer, align 64
  %first = shufflevector <32 x i32> %values, <32 x i32> poison, <32 x i32> zeroinitializer
  %other = icmp ne <32 x i32> %values, %first
  %others = bitcast <32 x i1> %other to i32
  %meant = and i32 %others, %lanes
  %apart = icmp ne i32 %meant, 0
  ret i1 %apart
}

; A barrier opens, before its warps are released: those that wait learn what all know that have arrived, and all that the waiting
; ones have done.  It is suspicious where a barrier for all threads opens without those that have ended.
define internal void @ptxvm.clocks.open(ptr %m, i32 %n, i32 %expected) #0 {
entry:
  %no.count = icmp eq i32 %expected, -1
  %counts.all = icmp eq i32 %expected, $capacity
  %for.all = or i1 %no.count, %counts.all
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %row.first = mul i32 %n, $warps
  %arrived.at = add i32 %row.first, $arrived
  %arrived = getelementptr i32, ptr %m, i32 %arrived.at
  %waiting.at = add i32 %row.first, $waiting
  %waiting = getelementptr i32, ptr %m, i32 %waiting.at
  %rank.pointer = getelementptr i32, ptr %m, i32 4
  %rank = load i32, ptr %rank.pointer, align 8
  %before.warp = mul i32 %rank, $warps
  %nows.at = add i32 %before.warp, $now
  %nows = getelementptr i32, ptr %clocks, i32 %nows.at
  %before.barrier = mul i32 %rank, 16
  %own.barrier = add i32 %before.barrier, %n
  %barrier.first = mul i32 %own.barrier, 32
  %barrier.at = add i32 %barrier.first, $of_barriers
  %barrier = getelementptr i32, ptr %clocks, i32 %barrier.at
  br label %look
look:
  %w = phi i32 [ 0, %entry ], [ %w.next, %look ]
  %top = phi i32 [ 0, %entry ], [ %top.next, %look ]
  %threads = phi i32 [ 0, %entry ], [ %threads.next, %look ]
  %here.pointer = getelementptr i32, ptr %arrived, i32 %w
  %here = load i32, ptr %here.pointer, align 4
  %here.count = call i32 @llvm.ctpop.i32(i32 %here)
  %threads.next = add i32 %threads, %here.count
  %stays.pointer = getelementptr i32, ptr %waiting, i32 %w
  %stays = load i32, ptr %stays.pointer, align 4
  %waits = icmp ne i32 %stays, 0
  %now.pointer = getelementptr i32, ptr %nows, i32 %w
  %now = load i32, ptr %now.pointer, align 4
  %counts = select i1 %waits, i32 %now, i32 0
  %top.next = call i32 @llvm.umax.i32(i32 %top, i32 %counts)
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, $warps
  br i1 %all, label %looked, label %look
looked:
  %missing = icmp ne i32 %threads.next, $threads
  %some.ended = and i1 %missing, %for.all
  %wrong = and i1 %some.ended, $sync
  br i1 %wrong, label %suspicious, label %raise
suspicious:
  %suspicion = load ptr, ptr %clocks, align 8
  store i32 1, ptr %suspicion, align 8
  br label %raise
raise:
  %r = phi i32 [ 0, %looked ], [ 0, %suspicious ], [ %r.next, %raise.on ]
  %r.stays.pointer = getelementptr i32, ptr %waiting, i32 %r
  %r.stays = load i32, ptr %r.stays.pointer, align 4
  %r.waits = icmp ne i32 %r.stays, 0
  br i1 %r.waits, label %raise.one, label %raise.on
raise.one:
  %r.own = add i32 %before.warp, %r
  %r.pointer = getelementptr i32, ptr %barrier, i32 %r.own
  store i32 %top.next, ptr %r.pointer, align 4
  br label %raise.on
raise.on:
  %r.next = add i32 %r, 1
  %r.all = icmp eq i32 %r.next, $warps
  br i1 %r.all, label %raised, label %raise
raised:
  %known = load <32 x i32>, ptr %barrier, align 64
  store <32 x i32> zeroinitializer, ptr %barrier, align 64
  %phase.at = add i32 %barrier.first, $of_phases
  %phase = getelementptr i32, ptr %clocks, i32 %phase.at
  store <32 x i32> %known, ptr %phase, align 64
  %latest = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %known)
  %next = add i32 %latest, $epoch_step
  br label %learn
learn:
  %v = phi i32 [ 0, %raised ], [ %v.next, %learn.on ]
  %v.stays.pointer = getelementptr i32, ptr %waiting, i32 %v
  %v.stays = load i32, ptr %v.stays.pointer, align 4
  %v.waits = icmp ne i32 %v.stays, 0
  br i1 %v.waits, label %learn.one, label %learn.on
learn.one:
  %v.own = add i32 %before.warp, %v
  %v.first = mul i32 %v.own, 32
  %v.at = add i32 %v.first, $known
  %v.row = getelementptr i32, ptr %clocks, i32 %v.at
  %v.old = load <32 x i32>, ptr %v.row, align 64
  %v.new = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %v.old, <32 x i32> %known)
  store <32 x i32> %v.new, ptr %v.row, align 64
  %v.now = getelementptr i32, ptr %nows, i32 %v
  store i32 %next, ptr %v.now, align 4
  br label %learn.on
learn.on:
  %v.next = add i32 %v, 1
  %v.all = icmp eq i32 %v.next, $warps
  br i1 %v.all, label %end, label %learn
end:
  ret void
}

; All warps that can run have run: true, and suspicious, where none of them has got on for long.
define internal i1 @ptxvm.clocks.pass(ptr %m) #0 {
entry:
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %pointer = getelementptr i8, ptr %clocks, i64 8
  %count = load i32, ptr %pointer, align 8
  %more = add i32 %count, 1
  store i32 %more, ptr %pointer, align 8
  %long = icmp ugt i32 %more, $most_stalled
  br i1 %long, label %suspicious, label %end
suspicious:
  %suspicion = load ptr, ptr %clocks, align 8
  store i32 1, ptr %suspicion, align 8
  br label %end
end:
  ret i1 %long
}

; Mbarriers begin at the offsets of some lanes.  Here and below %warp is the number of the warp among those of the cluster.
define internal void @ptxvm.clocks.made(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets) #0 {
entry:
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %body ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %own = call ptr @ptxvm.clocks.mbarrier(ptr %clocks, i32 %warp, i32 %offset)
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 $mbarrier_bytes, i1 false)
  br label %head
end:
  ret void
}

; The rows of the mbarrier at an offset of the shared memory of the CTA of a warp.
define internal ptr @ptxvm.clocks.mbarrier(ptr %clocks, i32 %warp, i32 %offset) #0 {
entry:
  %of.cta = lshr i32 %offset, 3
  %rank = udiv i32 %warp, $warps
  %before = mul i32 %rank, $mbarriers
  %number = add i32 %before, %of.cta
  %first = mul i32 %number, $mbarrier_words
  %at = add i32 %first, $of_mbarriers
  %pointer = getelementptr i32, ptr %clocks, i32 %at
  ret ptr %pointer
}

; Some lanes have updated mbarriers, one after the other: %before has the words that they found.  Where a lane ends the phase,
; what is known through the mbarrier is what the arrivals of this phase know; behind %copies, that these have ended.  True where a warp
; arrives so or as a whole, and the phase ends before its last lane: the lanes behind belong to the next one.
define internal i1 @ptxvm.clocks.signal(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, <32 x i64> %before, i1 %arrives, i1 %copies, ptr %shared) #0 {
entry:
  %of.cta = urem i32 %warp, $warps
  %is.last = icmp eq i32 %of.cta, $last_warp
  %all.lanes = select i1 %is.last, i32 $last_lanes, i32 -1
  %first.offset = shufflevector <32 x i32> %offsets, <32 x i32> poison, <32 x i32> zeroinitializer
  %other = icmp ne <32 x i32> %offsets, %first.offset
  %other.bits = bitcast <32 x i1> %other to i32
  %other.lanes = and i32 %other.bits, %all.lanes
  %one.pointer = icmp eq i32 %other.lanes, 0
  %all.here = icmp eq i32 %lanes, %all.lanes
  %whole.warp = and i1 %one.pointer, %all.here
  %whole = and i1 %whole.warp, %arrives
  %own.first = mul i32 %warp, 32
  %own.at = add i32 %own.first, $known
  %own = getelementptr i32, ptr %clocks, i32 %own.at
  %known = load <32 x i32>, ptr %own, align 64
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %known.now = insertelement <32 x i32> %known, i32 %now, i32 %warp
  %known.some = select i1 %whole, <32 x i32> %known.now, <32 x i32> %known
  %known.given = select i1 %arrives, <32 x i32> %known.some, <32 x i32> zeroinitializer
  %agent = add i32 %warp, $agents
  %copied = insertelement <32 x i32> zeroinitializer, i32 %now, i32 %agent
  %gives = select i1 %copies, <32 x i32> %copied, <32 x i32> %known.given
  %steps = or i1 %whole, %copies
  %step = select i1 %steps, i32 $epoch_step, i32 0
  %next = add i32 %now, %step
  store i32 %next, ptr %now.pointer, align 4
  %full = icmp ugt i32 %next, $last_epoch
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %on ]
  %wrong = phi i1 [ %full, %entry ], [ %wrong.on, %on ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %old = extractelement <32 x i64> %before, i32 %lane
  %offset.one = insertelement <32 x i32> poison, i32 %offset, i64 0
  %offset.all = shufflevector <32 x i32> %offset.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %alike = icmp eq <32 x i32> %offsets, %offset.all
  %alike.bits = bitcast <32 x i1> %alike to i32
  %behind = and i32 %alike.bits, %fewer
  %is.end = icmp eq i32 %behind, 0
  br i1 %is.end, label %final, label %later
final:
  %offset.wide = zext i32 %offset to i64
  %word.pointer = getelementptr i8, ptr %shared, i64 %offset.wide
  %word = load i64, ptr %word.pointer, align 8
  br label %found
later:
  %following = call i32 @llvm.cttz.i32(i32 %behind, i1 true)
  %seen = extractelement <32 x i64> %before, i32 %following
  br label %found
found:
  %new = phi i64 [ %word, %final ], [ %seen, %later ]
  %changed = xor i64 %old, %new
  %turned = icmp slt i64 %changed, 0
  %row = call ptr @ptxvm.clocks.mbarrier(ptr %clocks, i32 %warp, i32 %offset)
  %held = load <32 x i32>, ptr %row, align 64
  %more = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %held, <32 x i32> %gives)
  %early = xor i1 %is.end, true
  %early.turn = and i1 %early, %turned
  %early.whole = and i1 %early.turn, %steps
  %wrong.next = or i1 %wrong, %early.whole
  br i1 %turned, label %turn, label %stay
turn:
  %last = getelementptr i8, ptr %row, i64 128
  store <32 x i32> %more, ptr %last, align 64
  store <32 x i32> zeroinitializer, ptr %row, align 64
$judge
  %wrong.turn = or i1 %wrong.next, %late
  br label %on
stay:
  store <32 x i32> %more, ptr %row, align 64
  br label %on
on:
  %wrong.on = phi i1 [ %wrong.turn, %turn ], [ %wrong.next, %stay ]
  br label %head
end:
  %waited = getelementptr i8, ptr %clocks, i64 8
  store i32 0, ptr %waited, align 8
  ret i1 %wrong
}

; Some lanes have found a phase over: the warp learns what its arrivals knew, if these are all its lanes.  $$look are the lines that
; note when it first looked.
define internal void @ptxvm.clocks.over(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, i32 %over, i1 %acquires) #0 {
entry:
  %found = and i32 %lanes, %over
  %none = icmp eq i32 %found, 0
  br i1 %none, label %end, label %some
some:
  %waited = getelementptr i8, ptr %clocks, i64 8
  store i32 0, ptr %waited, align 8
$look
  %of.cta = urem i32 %warp, $warps
  %is.last = icmp eq i32 %of.cta, $last_warp
  %all.lanes = select i1 %is.last, i32 $last_lanes, i32 -1
  %first.offset = shufflevector <32 x i32> %offsets, <32 x i32> poison, <32 x i32> zeroinitializer
  %other = icmp ne <32 x i32> %offsets, %first.offset
  %other.bits = bitcast <32 x i1> %other to i32
  %other.lanes = and i32 %other.bits, %all.lanes
  %one.pointer = icmp eq i32 %other.lanes, 0
  %all.here = icmp eq i32 %found, %all.lanes
  %whole = and i1 %one.pointer, %all.here
  %learns = and i1 %whole, %acquires
  br i1 %learns, label %learn, label %end
learn:
  %offset = extractelement <32 x i32> %offsets, i64 0
  %row = call ptr @ptxvm.clocks.mbarrier(ptr %clocks, i32 %warp, i32 %offset)
  %last = getelementptr i8, ptr %row, i64 128
  %known = load <32 x i32>, ptr %last, align 64
  %own.first = mul i32 %warp, 32
  %own.at = add i32 %own.first, $known
  %own = getelementptr i32, ptr %clocks, i32 %own.at
  %old = load <32 x i32>, ptr %own, align 64
  %new = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %old, <32 x i32> %known)
  store <32 x i32> %new, ptr %own, align 64
  %latest = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %known)
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %after = add i32 %latest, $epoch_step
  %next = call i32 @llvm.umax.i32(i32 %now, i32 %after)
  store i32 %next, ptr %now.pointer, align 4
  br label %end
end:
  ret void
}

; Lanes meet at a barrier of their warp: if they are all its lanes, and every one names all, each knows what all have done.
define internal void @ptxvm.clocks.warp(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %members) #0 {
entry:
  %of.cta = urem i32 %warp, $warps
  %is.last = icmp eq i32 %of.cta, $last_warp
  %all.lanes = select i1 %is.last, i32 $last_lanes, i32 -1
  %all.here = icmp eq i32 %lanes, %all.lanes
  %all.one = insertelement <32 x i32> poison, i32 %all.lanes, i64 0
  %all.every = shufflevector <32 x i32> %all.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %named = and <32 x i32> %members, %all.every
  %misses = icmp ne <32 x i32> %named, %all.every
  %misses.bits = bitcast <32 x i1> %misses to i32
  %misses.lanes = and i32 %misses.bits, %all.lanes
  %all.named = icmp eq i32 %misses.lanes, 0
  %meets = and i1 %all.here, %all.named
  br i1 %meets, label %know, label %end
know:
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %own.first = mul i32 %warp, 32
  %own.at = add i32 %own.first, $known
  %own.all = add i32 %own.at, %warp
  %own = getelementptr i32, ptr %clocks, i32 %own.all
  store i32 %now, ptr %own, align 4
  %next = add i32 %now, $epoch_step
  store i32 %next, ptr %now.pointer, align 4
  br label %end
end:
  ret void
}
