; Count the first $n of the requests that are kept, of which the word at %kept says how many hold, and move the others up: there
; are %there requests, those that do not hold yet included.
define internal i64 @$name(ptr %q) noinline #0 {
entry:
  %keys = load ptr, ptr %q, align 8
  %row.at = getelementptr i64, ptr %q, i64 1
  %row = load ptr, ptr %row.at, align 8
  %kept.at = getelementptr i64, ptr %q, i64 2
  %kept = load ptr, ptr %kept.at, align 8
  %there.at = getelementptr i64, ptr %q, i64 3
  %there = load i64, ptr %there.at, align 8
  call void @$count(ptr %keys, ptr %row)
  %held = load i64, ptr %kept, align 8
  %left = sub i64 %held, $n
  store i64 %left, ptr %kept, align 8
  br label %head
head:
  %from = phi i64 [ $n, %entry ], [ %from.next, %move ]
  %more = icmp ult i64 %from, %there
  br i1 %more, label %move, label %end
move:
  %from.at = getelementptr <32 x i32>, ptr %keys, i64 %from
  %moved = load <32 x i32>, ptr %from.at, align 64
  %to = sub i64 %from, $n
  %to.at = getelementptr <32 x i32>, ptr %keys, i64 %to
  store <32 x i32> %moved, ptr %to.at, align 64
  %from.next = add i64 %from, 1
  br label %head
end:
  ret i64 0
}
