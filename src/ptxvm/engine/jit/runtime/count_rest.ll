; Count the requests that are kept, fewer than $n or as many, as a batch of which the others have no active lane.
define internal void @$name(ptr %keys, ptr %row, i64 %kept) noinline #0 {
entry:
  br label %head
head:
  %at = phi i64 [ %kept, %entry ], [ %next, %body ]
  %more = icmp ult i64 %at, $n
  br i1 %more, label %body, label %end
body:
  %request = getelementptr <32 x i32>, ptr %keys, i64 %at
  store <32 x i32> splat (i32 -1), ptr %request, align 64
  %next = add i64 %at, 1
  br label %head
end:
  call void @$count(ptr %keys, ptr %row)
  ret void
}
