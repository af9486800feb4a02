; Note what happens (`memory/told_order.py`); returns whether there is no room.
define internal i1 @ptxvm.told.note(ptr %ctx, i64 %address, i32 %thread, i32 %what) #0 {
entry:
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %count = load i64, ptr %told, align 8
  %full = icmp uge i64 %count, $most
  br i1 %full, label %end, label %room
room:
  %more = add i64 %count, 1
  store i64 %more, ptr %told, align 8
  %distance = mul i64 %count, $note
  %notes = getelementptr i8, ptr %told, i64 $header
  %note = getelementptr i8, ptr %notes, i64 %distance
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch
  %now = load i32, ptr %epoch.pointer, align 8
  store i64 %address, ptr %note, align 8
  %time.pointer = getelementptr i8, ptr %note, i64 8
  store i32 %now, ptr %time.pointer, align 4
  %thread.pointer = getelementptr i8, ptr %note, i64 12
  store i32 %thread, ptr %thread.pointer, align 4
  %what.pointer = getelementptr i8, ptr %note, i64 16
  store i32 %what, ptr %what.pointer, align 4
  %met.pointer = getelementptr i8, ptr %ctx, i64 $met
  %met = load i32, ptr %met.pointer, align 8
  %met.note = getelementptr i8, ptr %note, i64 20
  store i32 %met, ptr %met.note, align 4
  br label %end
end:
  ret i1 %full
}

; Note that a CTA begins, or that its threads meet, if they have noted something since they met last.
define internal i1 @ptxvm.told.met(ptr %ctx, i1 %begins) #0 {
entry:
  br i1 %begins, label %begin, label %look
begin:
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %stamps = getelementptr i8, ptr %told, i64 $stamps
  store <32 x i32> zeroinitializer, ptr %stamps, align 4
  %none = call i1 @ptxvm.told.note(ptr %ctx, i64 0, i32 0, i32 $cta)
  ret i1 %none
look:
  %own.pointer = getelementptr i8, ptr %ctx, i64 $told
  %own = load ptr, ptr %own.pointer, align 8
  %count = load i64, ptr %own, align 8
  %before = sub i64 %count, 1
  %distance = mul i64 %before, $note
  %notes = getelementptr i8, ptr %own, i64 $header
  %last = getelementptr i8, ptr %notes, i64 %distance
  %what.pointer = getelementptr i8, ptr %last, i64 16
  %what = load i32, ptr %what.pointer, align 4
  %quiet = icmp ule i32 %what, $barrier
  br i1 %quiet, label %end, label %note
note:
  %full = call i1 @ptxvm.told.note(ptr %ctx, i64 0, i32 0, i32 $barrier)
  ret i1 %full
end:
  ret i1 false
}

; Note a fence of some lanes, or that they meet; the accesses that follow have a later time.
define internal i1 @ptxvm.told.step(ptr %ctx, i32 %lanes, i32 %warp, i32 %what) #0 {
entry:
  %mask = zext i32 %lanes to i64
  %full = call i1 @ptxvm.told.note(ptr %ctx, i64 %mask, i32 %warp, i32 %what)
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch
  %old = load i32, ptr %epoch.pointer, align 8
  %new = add i32 %old, $step
  store i32 %new, ptr %epoch.pointer, align 8
  %late = icmp ugt i32 %new, $last
  %wrong = or i1 %full, %late
  ret i1 %wrong
}

; Are the last notes those of these very loads?  Then nothing that is noted has happened since, and they observe the same again.
define internal i1 @ptxvm.told.again(ptr %ctx, <32 x i64> %addresses, i32 %lanes, i32 %warp, i32 %what) #0 {
entry:
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %count = load i64, ptr %told, align 8
  %lanes.count = call i32 @llvm.ctpop.i32(i32 %lanes)
  %own = zext i32 %lanes.count to i64
  %few = icmp ult i64 %count, %own
  br i1 %few, label %other, label %begin
begin:
  %before = sub i64 %count, %own
  %first = mul i32 %warp, 32
  br label %body
body:
  %rest = phi i32 [ %lanes, %begin ], [ %fewer, %same ]
  %n = phi i64 [ %before, %begin ], [ %n.next, %same ]
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %distance = mul i64 %n, $note
  %notes = getelementptr i8, ptr %told, i64 $header
  %note = getelementptr i8, ptr %notes, i64 %distance
  %address.there = load i64, ptr %note, align 8
  %thread.pointer = getelementptr i8, ptr %note, i64 12
  %thread.there = load i32, ptr %thread.pointer, align 4
  %what.pointer = getelementptr i8, ptr %note, i64 16
  %what.there = load i32, ptr %what.pointer, align 4
  %address = extractelement <32 x i64> %addresses, i32 %lane
  %thread = add i32 %first, %lane
  %address.same = icmp eq i64 %address.there, %address
  %thread.same = icmp eq i32 %thread.there, %thread
  %what.same = icmp eq i32 %what.there, %what
  %one.same = and i1 %address.same, %thread.same
  %all.same = and i1 %one.same, %what.same
  br i1 %all.same, label %same, label %other
same:
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %n.next = add i64 %n, 1
  %over = icmp eq i32 %fewer, 0
  br i1 %over, label %again, label %body
again:
  ret i1 true
other:
  ret i1 false
}

; Note a strong access of some lanes; behind a release the accesses have a later time.
define internal i1 @ptxvm.told.accessed(ptr %ctx, <32 x i64> %addresses, i32 %lanes, i32 %warp, i32 %what) #0 {
entry:
  %first = mul i32 %warp, 32
  %none = icmp eq i32 %lanes, 0
  br i1 %none, label %end, label %look
look:
  %does = and i32 %what, $reads_or_writes
  %loads = icmp eq i32 %does, $reads
  br i1 %loads, label %compare, label %begin
compare:
  %again = call i1 @ptxvm.told.again(ptr %ctx, <32 x i64> %addresses, i32 %lanes, i32 %warp, i32 %what)
  br i1 %again, label %end, label %begin
begin:
  %written = and i32 %what, $writes
  %tells.pointer = getelementptr i8, ptr %ctx, i64 $tells
  %tells = load i32, ptr %tells.pointer, align 8
  %tells.now = or i32 %tells, %written
  store i32 %tells.now, ptr %tells.pointer, align 8
  br label %body
body:
  %rest = phi i32 [ %lanes, %begin ], [ %fewer, %body ]
  %so.far = phi i1 [ false, %begin ], [ %wrong, %body ]
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %address = extractelement <32 x i64> %addresses, i32 %lane
  %thread = add i32 %first, %lane
  %full = call i1 @ptxvm.told.note(ptr %ctx, i64 %address, i32 %thread, i32 %what)
  %wrong = or i1 %so.far, %full
  %over = icmp eq i32 %fewer, 0
  br i1 %over, label %end, label %body
end:
  %found = phi i1 [ false, %entry ], [ false, %compare ], [ %wrong, %body ]
  %released = and i32 %what, $releases
  %is.release = icmp ne i32 %released, 0
  br i1 %is.release, label %advance, label %done
advance:
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch
  %old = load i32, ptr %epoch.pointer, align 8
  %new = add i32 %old, $step
  store i32 %new, ptr %epoch.pointer, align 8
  %late = icmp ugt i32 %new, $last
  br label %done
done:
  %no.time = phi i1 [ false, %end ], [ %late, %advance ]
  %answer = or i1 %found, %no.time
  ret i1 %answer
}

; A CTA runs in a slot, after others if it has %kept when its threads met: all that it does now is later than what those have done.
define internal void @ptxvm.told.resume(ptr %ctx, ptr %kept, i64 %slot) #0 {
entry:
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch
  %then = load i32, ptr %kept, align 4
  %begins = icmp eq i32 %then, 0
  br i1 %begins, label %runs, label %again
again:
  %met.pointer = getelementptr i8, ptr %ctx, i64 $met
  store i32 %then, ptr %met.pointer, align 8
  %old = load i32, ptr %epoch.pointer, align 8
  %new = add i32 %old, $step
  store i32 %new, ptr %epoch.pointer, align 8
  %cta.pointer = getelementptr i8, ptr %ctx, i64 $cta_epoch
  store i32 %new, ptr %cta.pointer, align 8
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %stamps = getelementptr i8, ptr %told, i64 $stamps
  store <32 x i32> zeroinitializer, ptr %stamps, align 4
  %late = icmp ugt i32 %new, $last
  br label %runs
runs:
  %no.time = phi i1 [ false, %entry ], [ %late, %again ]
  %tells.pointer = getelementptr i8, ptr %ctx, i64 $tells
  store i32 0, ptr %tells.pointer, align 8
  %full = call i1 @ptxvm.told.note(ptr %ctx, i64 %slot, i32 0, i32 $resumes)
  %wrong = or i1 %full, %no.time
  br i1 %wrong, label %suspicious, label %end
suspicious:
  %suspicion.pointer = getelementptr i8, ptr %ctx, i64 $suspicion
  store i32 1, ptr %suspicion.pointer, align 8
  br label %end
end:
  ret void
}
