
; The clocks of the warps of a cluster: its barrier, and the ends of its CTAs (PTX 9.7.13.3, 5.1.7).

; Lanes of a warp arrive at the barrier of the cluster; where that %releases, they add what they know to it.  True where that is
; suspicious: where they are not all lanes of the warp, or where the warp has not waited since its last arrival.
define internal i1 @ptxvm.clocks.cluster.arrive(ptr %m, i32 %warp, i32 %lanes, i1 %releases) #0 {
entry:
  %no.lanes = icmp eq i32 %lanes, 0
  br i1 %no.lanes, label %fine, label %some.lanes
some.lanes:
  %is.last = icmp eq i32 %warp, $last_warp
  %whole = select i1 %is.last, i32 $last_lanes, i32 -1
  %partly = icmp ne i32 %lanes, %whole
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %own.warp = call i32 @ptxvm.clocks.cluster.warp(ptr %m, i32 %warp)
  %must.at = add i32 %own.warp, $must_wait
  %must.pointer = getelementptr i32, ptr %clocks, i32 %must.at
  %must = load i32, ptr %must.pointer, align 4
  %again = icmp ne i32 %must, 0
  %wrong = or i1 %partly, %again
  br i1 %wrong, label %suspicious, label %join
join:
  store i32 1, ptr %must.pointer, align 4
  %waited = getelementptr i8, ptr %clocks, i64 8
  store i32 0, ptr %waited, align 8
  %own.first = mul i32 %own.warp, 32
  %own.at = add i32 %own.first, $known
  %own = getelementptr i32, ptr %clocks, i32 %own.at
  %known = load <32 x i32>, ptr %own, align 64
  %barrier = getelementptr i32, ptr %clocks, i32 $of_cluster
  %old = load <32 x i32>, ptr %barrier, align 64
  %latest = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %old)
  %now.at = add i32 %own.warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now.before = load i32, ptr %now.pointer, align 4
  %now = call i32 @llvm.umax.i32(i32 %now.before, i32 %latest)
  %known.now = insertelement <32 x i32> %known, i32 %now, i32 %own.warp
  %gives = select i1 %releases, <32 x i32> %known.now, <32 x i32> zeroinitializer
  %new = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %old, <32 x i32> %gives)
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

; The number of a warp of a CTA among those of the cluster.
define internal i32 @ptxvm.clocks.cluster.warp(ptr %m, i32 %warp) #0 {
entry:
  %rank.pointer = getelementptr i32, ptr %m, i32 4
  %rank = load i32, ptr %rank.pointer, align 8
  %before = mul i32 %rank, $warps
  %found = add i32 %before, %warp
  ret i32 %found
}

; The barrier of the cluster opens, whose first CTA has the record %first, before its warps are released: those that wait learn
; what all know that have arrived, and have done nothing since.
define internal void @ptxvm.clocks.cluster.open(ptr %first) #0 {
entry:
  %clocks.pointer = getelementptr i32, ptr %first, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %barrier = getelementptr i32, ptr %clocks, i32 $of_cluster
  %phase = getelementptr i32, ptr %clocks, i32 $of_cluster_phase
  %known = load <32 x i32>, ptr %barrier, align 64
  store <32 x i32> zeroinitializer, ptr %barrier, align 64
  store <32 x i32> %known, ptr %phase, align 64
  br label %look
look:
  %v = phi i32 [ 0, %entry ], [ %v.next, %on ]
  %c = udiv i32 %v, $warps
  %w = urem i32 %v, $warps
  %m.offset = mul i32 %c, $cta_size
  %m = getelementptr i8, ptr %first, i32 %m.offset
  %waiting.at = add i32 %w, $cluster_waiting
  %waiting.pointer = getelementptr i32, ptr %m, i32 %waiting.at
  %waiting = load i32, ptr %waiting.pointer, align 4
  %waits = icmp ne i32 %waiting, 0
  br i1 %waits, label %learn, label %on
learn:
  call void @ptxvm.clocks.cluster.learn(ptr %clocks, i32 %v)
  br label %on
on:
  %v.next = add i32 %v, 1
  %all = icmp eq i32 %v.next, $together
  br i1 %all, label %end, label %look
end:
  ret void
}

; A warp of the cluster learns what all knew that arrived at its barrier, and its clock comes after theirs.
define internal void @ptxvm.clocks.cluster.learn(ptr %clocks, i32 %warp) #0 {
entry:
  %phase = getelementptr i32, ptr %clocks, i32 $of_cluster_phase
  %known = load <32 x i32>, ptr %phase, align 64
  %own.first = mul i32 %warp, 32
  %own.at = add i32 %own.first, $known
  %own = getelementptr i32, ptr %clocks, i32 %own.at
  %old = load <32 x i32>, ptr %own, align 64
  %new = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %old, <32 x i32> %known)
  store <32 x i32> %new, ptr %own, align 64
  %latest = call i32 @llvm.vector.reduce.umax.v32i32(<32 x i32> %known)
  %after = add i32 %latest, $epoch_step
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %next = call i32 @llvm.umax.i32(i32 %now, i32 %after)
  store i32 %next, ptr %now.pointer, align 4
  ret void
}

; Lanes of a warp wait at the barrier of the cluster.  True where that is suspicious: where they are not all lanes of the warp, or
; where the warp has not arrived since it waited last.
define internal i1 @ptxvm.clocks.cluster.wait(ptr %m, i32 %warp, i32 %lanes) #0 {
entry:
  %no.lanes = icmp eq i32 %lanes, 0
  br i1 %no.lanes, label %fine, label %some.lanes
some.lanes:
  %is.last = icmp eq i32 %warp, $last_warp
  %whole = select i1 %is.last, i32 $last_lanes, i32 -1
  %partly = icmp ne i32 %lanes, %whole
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %own.warp = call i32 @ptxvm.clocks.cluster.warp(ptr %m, i32 %warp)
  %must.at = add i32 %own.warp, $must_wait
  %must.pointer = getelementptr i32, ptr %clocks, i32 %must.at
  %must = load i32, ptr %must.pointer, align 4
  %early = icmp eq i32 %must, 0
  %wrong = or i1 %partly, %early
  br i1 %wrong, label %suspicious, label %take
take:
  store i32 0, ptr %must.pointer, align 4
  %arrived.at = add i32 %warp, $cluster_arrived
  %arrived.pointer = getelementptr i32, ptr %m, i32 %arrived.at
  %arrived = load i32, ptr %arrived.pointer, align 4
  %over = icmp eq i32 %arrived, 0
  br i1 %over, label %learn, label %fine
learn:
  call void @ptxvm.clocks.cluster.learn(ptr %clocks, i32 %own.warp)
  br label %fine
fine:
  ret i1 false
suspicious:
  ret i1 true
}

; Some lanes of a CTA have ended.  With its last lane its shared memory ends: it is suspicious where no thread of the CTA knows
; the last access that a warp of another CTA has made in the memory of others.
define internal void @ptxvm.clocks.cluster.left(ptr %m) #0 {
entry:
  br label %look
look:
  %w = phi i32 [ 0, %entry ], [ %w.next, %look ]
  %lanes = phi i32 [ 0, %entry ], [ %lanes.next, %look ]
  %alive.at = add i32 %w, $alive
  %alive.pointer = getelementptr i32, ptr %m, i32 %alive.at
  %alive = load i32, ptr %alive.pointer, align 4
  %lanes.next = or i32 %lanes, %alive
  %w.next = add i32 %w, 1
  %all = icmp eq i32 %w.next, $warps
  br i1 %all, label %looked, label %look
looked:
  %over = icmp eq i32 %lanes.next, 0
  %asks = and i1 %over, $race
  br i1 %asks, label %ended, label %end
ended:
  %clocks.pointer = getelementptr i32, ptr %m, i32 2
  %clocks = load ptr, ptr %clocks.pointer, align 8
  %flag = getelementptr i32, ptr %clocks, i32 3
  store i32 1, ptr %flag, align 4
  %first = call i32 @ptxvm.clocks.cluster.warp(ptr %m, i32 0)
  br label %join
join:
  %v = phi i32 [ 0, %ended ], [ %v.next, %join ]
  %known = phi <32 x i32> [ zeroinitializer, %ended ], [ %known.next, %join ]
  %own = add i32 %first, %v
  %own.first = mul i32 %own, 32
  %own.at = add i32 %own.first, $known
  %own.pointer = getelementptr i32, ptr %clocks, i32 %own.at
  %own.known = load <32 x i32>, ptr %own.pointer, align 64
  %known.other = call <32 x i32> @llvm.umax.v32i32(<32 x i32> %known, <32 x i32> %own.known)
  %known.next = insertelement <32 x i32> %known.other, i32 -1, i32 %own
  %v.next = add i32 %v, 1
  %joined = icmp eq i32 %v.next, $warps
  br i1 %joined, label %compare, label %join
compare:
  %remote.pointer = getelementptr i32, ptr %clocks, i32 $remote
  %remote = load <32 x i32>, ptr %remote.pointer, align 64
  %later = icmp ugt <32 x i32> %remote, %known.next
  %later.bits = bitcast <32 x i1> %later to i32
  %fine = icmp eq i32 %later.bits, 0
  br i1 %fine, label %end, label %suspicious
suspicious:
  %suspicion = load ptr, ptr %clocks, align 8
  store i32 1, ptr %suspicion, align 8
  br label %end
end:
  ret void
}

; A warp accesses the shared memory of another CTA.  True where that is suspicious: where a CTA of the cluster has ended.
define internal i1 @ptxvm.clocks.cluster.reach(ptr %clocks, i32 %warp) #0 {
entry:
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  %remote.at = add i32 %warp, $remote
  %remote.pointer = getelementptr i32, ptr %clocks, i32 %remote.at
  store i32 %now, ptr %remote.pointer, align 4
  %flag = getelementptr i32, ptr %clocks, i32 3
  %ended = load i32, ptr %flag, align 4
  %wrong = icmp ne i32 %ended, 0
  ret i1 %wrong
}
