; Clear so many bytes from the address of each of some lanes.
define internal void @ptxvm.forget.$width(<$width x i64> %addresses, i64 %size, i$width %lanes) noinline #0 {
entry:
  br label %head
head:
  %rest = phi i$width [ %lanes, %entry ], [ %fewer, %body ]
  %none = icmp eq i$width %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i$width @llvm.cttz.i$width(i$width %rest, i1 true)
  %address = extractelement <$width x i64> %addresses, i$width %lane
  %own = inttoptr i64 %address to ptr
  call void @llvm.memset.p0.i64(ptr %own, i8 0, i64 %size, i1 false)
  %others = sub i$width %rest, 1
  %fewer = and i$width %rest, %others
  br label %head
end:
  ret void
}
