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

; Note a strong access of some lanes; behind a release the accesses have a later time.
define internal i1 @ptxvm.told.accessed(ptr %ctx, <32 x i64> %addresses, i32 %lanes, i32 %warp, i32 %what) #0 {
entry:
  %first = mul i32 %warp, 32
  %none = icmp eq i32 %lanes, 0
  br i1 %none, label %end, label %body
body:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %body ]
  %so.far = phi i1 [ false, %entry ], [ %wrong, %body ]
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
  %found = phi i1 [ false, %entry ], [ %wrong, %body ]
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
