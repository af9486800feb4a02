; Some lanes find the last phase of their mbarriers over: note the clock at which their warp first did.
define internal void @ptxvm.clocks.look(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets) #0 {
entry:
  %now.at = add i32 %warp, $now
  %now.pointer = getelementptr i32, ptr %clocks, i32 %now.at
  %now = load i32, ptr %now.pointer, align 4
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %on ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %row = call ptr @ptxvm.clocks.mbarrier(ptr %clocks, i32 %warp, i32 %offset)
  %looks = getelementptr i8, ptr %row, i64 $behind
  %own = getelementptr i32, ptr %looks, i32 %warp
  %old = load i32, ptr %own, align 4
  %is.first = icmp eq i32 %old, 0
  br i1 %is.first, label %note, label %on
note:
  store i32 %now, ptr %own, align 4
  br label %on
on:
  br label %head
end:
  ret void
}
