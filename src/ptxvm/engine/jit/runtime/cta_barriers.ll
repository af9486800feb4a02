; The barriers of a CTA and of its cluster (PTX 9.7.13.1, 9.7.13.3).  %m is the record of the CTA, which `abi.cta_barriers` describes; $$warps and the like are offsets of its words.

; Open barrier %n if all expected threads have arrived; $$opens are the lines of instrumented code for that, $$meets those for the barrier of the cluster, $$ends those for lanes that end.  A whole warp counts as 32 threads, even if some lanes have ended.
define internal void @ptxvm.settle(ptr %m, i32 %n) #0 {
entry:
  %expected.at = add i32 %n, $expected
  %expected.pointer = getelementptr i32, ptr %m, i32 %expected.at
  %expected = load i32, ptr %expected.pointer, align 4
  %row = mul i32 %n, $warps
  %arrived.at = add i32 %row, $arrived
  %arrived = getelementptr i32, ptr %m, i32 %arrived.at
  %waiting.at = add i32 %row, $waiting
  %waiting = getelementptr i32, ptr %m, i32 %waiting.at
  %alive = getelementptr i32, ptr %m, i32 $alive
  %released = getelementptr i32, ptr %m, i32 $released
  %whole = icmp eq i32 %expected, -1
  br i1 %whole, label %search, label %count.all
search: ; for a warp that has not come to a barrier for all; as they come in their order, from the last one
  %q = phi i32 [ $warps, %entry ], [ %q.next, %search.on ]
  %q.next = add i32 %q, -1
  %q.here.pointer = getelementptr i32, ptr %arrived, i32 %q.next
  %q.here = load i32, ptr %q.here.pointer, align 4
  %q.alive.pointer = getelementptr i32, ptr %alive, i32 %q.next
  %q.living = load i32, ptr %q.alive.pointer, align 4
  %q.gone = xor i32 %q.living, -1
  %q.covered = or i32 %q.here, %q.gone
  %q.complete = icmp eq i32 %q.covered, -1
  br i1 %q.complete, label %search.on, label %end
search.on:
  %q.all = icmp eq i32 %q.next, 0
  br i1 %q.all, label %count.all, label %search
count.all:
  br label %count
count:
  %w = phi i32 [ 0, %count.all ], [ %w.next, %count ]
  %some = phi i32 [ 0, %count.all ], [ %some.next, %count ]
  %missing = phi i32 [ 0, %count.all ], [ %missing.next, %count ]
  %threads = phi i32 [ 0, %count.all ], [ %threads.next, %count ]
  %here.pointer = getelementptr i32, ptr %arrived, i32 %w
  %here = load i32, ptr %here.pointer, align 4
  %alive.pointer = getelementptr i32, ptr %alive, i32 %w
  %living = load i32, ptr %alive.pointer, align 4
  %gone = xor i32 %living, -1
  %covered = or i32 %here, %gone
  %rest = xor i32 %covered, -1
  %missing.next = or i32 %missing, %rest
  %some.next = or i32 %some, %here
  %each = call i32 @llvm.ctpop.i32(i32 %here)
  %freedle = icmp eq i32 %covered, -1
  %any = icmp ne i32 %here, 0
  %counts = and i1 %freedle, %any
  %lanes = select i1 %counts, i32 32, i32 %each
  %threads.next = add i32 %threads, %lanes
  %w.next = add i32 %w, 1
  %counted = icmp eq i32 %w.next, $warps
  br i1 %counted, label %judge, label %count
judge:
  %no.arrivals = icmp eq i32 %some.next, 0
  %for.all = icmp eq i32 %expected, -1
  %complete = icmp eq i32 %missing.next, 0
  %enough = icmp uge i32 %threads.next, %expected
  %opens = select i1 %for.all, i1 %complete, i1 %enough
  %never = xor i1 %opens, true
  %stays = or i1 %no.arrivals, %never
  br i1 %stays, label %end, label %open
open:
$opens
  store i32 -1, ptr %expected.pointer, align 4
  %ayes.at = add i32 %n, $ayes
  %ayes.pointer = getelementptr i32, ptr %m, i32 %ayes.at
  %ayes = load i32, ptr %ayes.pointer, align 4
  store i32 0, ptr %ayes.pointer, align 4
  %voters.at = add i32 %n, $voters
  %voters.pointer = getelementptr i32, ptr %m, i32 %voters.at
  %voters = load i32, ptr %voters.pointer, align 4
  store i32 0, ptr %voters.pointer, align 4
  br label %release
release:
  %v = phi i32 [ 0, %open ], [ %v.next, %released.one ]
  %come.pointer = getelementptr i32, ptr %arrived, i32 %v
  store i32 0, ptr %come.pointer, align 4
  %freed.pointer = getelementptr i32, ptr %waiting, i32 %v
  %freed = load i32, ptr %freed.pointer, align 4
  store i32 0, ptr %freed.pointer, align 4
  %freed.none = icmp eq i32 %freed, 0
  br i1 %freed.none, label %released.one, label %tell
tell:
  %go.pointer = getelementptr i32, ptr %released, i32 %v
  %go = load i32, ptr %go.pointer, align 4
  %go.more = or i32 %go, %freed
  store i32 %go.more, ptr %go.pointer, align 4
  %base = mul i32 %v, 32
  %pair = shl i32 %n, 1
  %offset = add i32 %base, %pair
  %outcome.at = add i32 %offset, $outcome
  %outcome = getelementptr i32, ptr %m, i32 %outcome.at
  store i32 %ayes, ptr %outcome, align 4
  %outcome.voters = getelementptr i32, ptr %outcome, i32 1
  store i32 %voters, ptr %outcome.voters, align 4
  br label %released.one
released.one:
  %v.next = add i32 %v, 1
  %all = icmp eq i32 %v.next, $warps
  br i1 %all, label %end, label %release
end:
  ret void
}

; Lanes of a warp arrive, each at its barrier; with %waits they wait there, and their votes are counted.
define internal void @ptxvm.arrive(ptr %m, i32 %warp, i32 %lanes, ptr %numbers, ptr %threads,
                                    i32 %ayes, i1 %waits) #0 {
entry:
  %everyone = load <32 x i32>, ptr %numbers, align 64
  %counted = icmp ne ptr %threads, null
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %rest.next, %settle ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %number.pointer = getelementptr i32, ptr %numbers, i32 %lane
  %n = load i32, ptr %number.pointer, align 4
  %n.one = insertelement <32 x i32> poison, i32 %n, i64 0
  %n.all = shufflevector <32 x i32> %n.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %alike = icmp eq <32 x i32> %everyone, %n.all
  %alike.bits = bitcast <32 x i1> %alike to i32
  %freed = and i32 %alike.bits, %rest
  %others = xor i32 %freed, -1
  %rest.next = and i32 %rest, %others
  %row = mul i32 %n, $warps
  %column = add i32 %row, %warp
  %arrived.at = add i32 %column, $arrived
  %arrived = getelementptr i32, ptr %m, i32 %arrived.at
  %came = load i32, ptr %arrived, align 4
  %came.more = or i32 %came, %freed
  store i32 %came.more, ptr %arrived, align 4
  br i1 %counted, label %expect, label %wait.or.not
expect:
  %threads.pointer = getelementptr i32, ptr %threads, i32 %lane
  %expected = load i32, ptr %threads.pointer, align 4
  %most = call i32 @llvm.umin.i32(i32 %expected, i32 2147483647)
  %expected.at = add i32 %n, $expected
  %expected.pointer = getelementptr i32, ptr %m, i32 %expected.at
  store i32 %most, ptr %expected.pointer, align 4
  br label %wait.or.not
wait.or.not:
  br i1 %waits, label %wait, label %settle
wait:
  %waiting.at = add i32 %column, $waiting
  %waiting = getelementptr i32, ptr %m, i32 %waiting.at
  %stay = load i32, ptr %waiting, align 4
  %stay.more = or i32 %stay, %freed
  store i32 %stay.more, ptr %waiting, align 4
  %voters.at = add i32 %n, $voters
  %voters.pointer = getelementptr i32, ptr %m, i32 %voters.at
  %voters = load i32, ptr %voters.pointer, align 4
  %count = call i32 @llvm.ctpop.i32(i32 %freed)
  %voters.more = add i32 %voters, %count
  store i32 %voters.more, ptr %voters.pointer, align 4
  %for = and i32 %ayes, %freed
  %for.count = call i32 @llvm.ctpop.i32(i32 %for)
  %ayes.at = add i32 %n, $ayes
  %ayes.pointer = getelementptr i32, ptr %m, i32 %ayes.at
  %ayes.old = load i32, ptr %ayes.pointer, align 4
  %ayes.more = add i32 %ayes.old, %for.count
  store i32 %ayes.more, ptr %ayes.pointer, align 4
  br label %settle
settle:
  call void @ptxvm.settle(ptr %m, i32 %n)
  br label %head
end:
  ret void
}

; Lanes of a warp have ended: open the barriers that waited for them.
define internal void @ptxvm.left(ptr %m, ptr %cluster, i32 %warp, i32 %lanes) #0 {
entry:
  %alive.at = add i32 %warp, $alive
  %alive = getelementptr i32, ptr %m, i32 %alive.at
  %living = load i32, ptr %alive, align 4
  %others = xor i32 %lanes, -1
  %left = and i32 %living, %others
  store i32 %left, ptr %alive, align 4
  br label %look
look:
  %n = phi i32 [ 0, %entry ], [ %n.next, %look ]
  call void @ptxvm.settle(ptr %m, i32 %n)
  %n.next = add i32 %n, 1
  %all = icmp eq i32 %n.next, 16
  br i1 %all, label %end, label %look
end:
$ends
  call void @ptxvm.warpgroup.settle(ptr %m, i32 %warp)
  call void @ptxvm.cluster.settle(ptr %cluster)
  ret void
}

; Release the lanes that wait for their warpgroup, that of warp %w, if all of its lanes do (PTX 9.7.15.7.3): none may have ended.
define internal void @ptxvm.warpgroup.settle(ptr %m, i32 %w) #0 {
entry:
  %first = and i32 %w, -$warps_of_group
  %end = add i32 %first, $warps_of_group
  %whole = icmp ule i32 %end, $warps
  br i1 %whole, label %look, label %stay
look:
  %n = phi i32 [ %first, %entry ], [ %n.next, %on ]
  %waiting.at = add i32 %n, $warpgroup_waiting
  %waiting.pointer = getelementptr i32, ptr %m, i32 %waiting.at
  %waiting = load i32, ptr %waiting.pointer, align 4
  %complete = icmp eq i32 %waiting, -1
  br i1 %complete, label %on, label %stay
on:
  %n.next = add i32 %n, 1
  %all = icmp eq i32 %n.next, %end
  br i1 %all, label %open, label %look
open:
  %v = phi i32 [ %first, %on ], [ %v.next, %open ]
  %v.waiting.at = add i32 %v, $warpgroup_waiting
  %v.waiting = getelementptr i32, ptr %m, i32 %v.waiting.at
  %v.freed = load i32, ptr %v.waiting, align 4
  store i32 0, ptr %v.waiting, align 4
  %v.released.at = add i32 %v, $released
  %v.released = getelementptr i32, ptr %m, i32 %v.released.at
  %v.go = load i32, ptr %v.released, align 4
  %v.more = or i32 %v.go, %v.freed
  store i32 %v.more, ptr %v.released, align 4
  %v.next = add i32 %v, 1
  %v.all = icmp eq i32 %v.next, %end
  br i1 %v.all, label %stay, label %open
stay:
  ret void
}

; Lanes of a warp wait for the other warps of the warpgroup.
define internal void @ptxvm.warpgroup.wait(ptr %m, i32 %warp, i32 %lanes) #0 {
entry:
  %waiting.at = add i32 %warp, $warpgroup_waiting
  %waiting.pointer = getelementptr i32, ptr %m, i32 %waiting.at
  %waiting = load i32, ptr %waiting.pointer, align 4
  %waiting.more = or i32 %waiting, %lanes
  store i32 %waiting.more, ptr %waiting.pointer, align 4
  call void @ptxvm.warpgroup.settle(ptr %m, i32 %warp)
  ret void
}

; Open the barrier of the cluster, whose first CTA has the record %first, if all live threads have arrived (PTX 9.7.13.3).
define internal void @ptxvm.cluster.settle(ptr %first) #0 {
entry:
  br label %look
look:
  %n = phi i32 [ 0, %entry ], [ %n.next, %on ]
  %some = phi i32 [ 0, %entry ], [ %some.next, %on ]
  %c = udiv i32 %n, $warps
  %w = urem i32 %n, $warps
  %m.offset = mul i32 %c, $cta_size
  %m = getelementptr i8, ptr %first, i32 %m.offset
  %arrived.at = add i32 %w, $cluster_arrived
  %arrived.pointer = getelementptr i32, ptr %m, i32 %arrived.at
  %arrived = load i32, ptr %arrived.pointer, align 4
  %alive.at = add i32 %w, $alive
  %alive.pointer = getelementptr i32, ptr %m, i32 %alive.at
  %alive = load i32, ptr %alive.pointer, align 4
  %gone = xor i32 %alive, -1
  %covered = or i32 %arrived, %gone
  %complete = icmp eq i32 %covered, -1
  br i1 %complete, label %on, label %end
on:
  %some.next = or i32 %some, %arrived
  %n.next = add i32 %n, 1
  %all = icmp eq i32 %n.next, $cluster_warps
  br i1 %all, label %judge, label %look
judge:
  %none = icmp eq i32 %some.next, 0
  br i1 %none, label %end, label %opens
opens:
$meets
  br label %open
open:
  %v = phi i32 [ 0, %opens ], [ %v.next, %open ]
  %v.c = udiv i32 %v, $warps
  %v.w = urem i32 %v, $warps
  %v.offset = mul i32 %v.c, $cta_size
  %v.m = getelementptr i8, ptr %first, i32 %v.offset
  %v.arrived.at = add i32 %v.w, $cluster_arrived
  %v.arrived = getelementptr i32, ptr %v.m, i32 %v.arrived.at
  store i32 0, ptr %v.arrived, align 4
  %v.waiting.at = add i32 %v.w, $cluster_waiting
  %v.waiting = getelementptr i32, ptr %v.m, i32 %v.waiting.at
  %v.freed = load i32, ptr %v.waiting, align 4
  store i32 0, ptr %v.waiting, align 4
  %v.released.at = add i32 %v.w, $released
  %v.released = getelementptr i32, ptr %v.m, i32 %v.released.at
  %v.go = load i32, ptr %v.released, align 4
  %v.more = or i32 %v.go, %v.freed
  store i32 %v.more, ptr %v.released, align 4
  %v.next = add i32 %v, 1
  %v.all = icmp eq i32 %v.next, $cluster_warps
  br i1 %v.all, label %end, label %open
end:
  ret void
}

; Lanes of a warp arrive at the barrier of the cluster.
define internal void @ptxvm.cluster.arrive(ptr %m, ptr %first, i32 %warp, i32 %lanes) #0 {
entry:
  %arrived.at = add i32 %warp, $cluster_arrived
  %arrived = getelementptr i32, ptr %m, i32 %arrived.at
  %came = load i32, ptr %arrived, align 4
  %came.more = or i32 %came, %lanes
  store i32 %came.more, ptr %arrived, align 4
  call void @ptxvm.cluster.settle(ptr %first)
  ret void
}

; Lanes of a warp wait for the threads of the cluster; those whose barrier is complete go on at once.
define internal void @ptxvm.cluster.wait(ptr %m, i32 %warp, i32 %lanes) #0 {
entry:
  %arrived.at = add i32 %warp, $cluster_arrived
  %arrived.pointer = getelementptr i32, ptr %m, i32 %arrived.at
  %arrived = load i32, ptr %arrived.pointer, align 4
  %stay = and i32 %arrived, %lanes
  %waiting.at = add i32 %warp, $cluster_waiting
  %waiting.pointer = getelementptr i32, ptr %m, i32 %waiting.at
  %waiting = load i32, ptr %waiting.pointer, align 4
  %waiting.more = or i32 %waiting, %stay
  store i32 %waiting.more, ptr %waiting.pointer, align 4
  %over = xor i32 %arrived, -1
  %go = and i32 %lanes, %over
  %released.at = add i32 %warp, $released
  %released.pointer = getelementptr i32, ptr %m, i32 %released.at
  %released = load i32, ptr %released.pointer, align 4
  %released.more = or i32 %released, %go
  store i32 %released.more, ptr %released.pointer, align 4
  ret void
}
