; Clear the first bytes of the stack of each thread of a CTA.
define internal void @ptxvm.clear_stacks(ptr %local, i64 %used) noinline #0 {
entry:
  br label %thread
thread:
  %t = phi i64 [ 0, %entry ], [ %t.next, %thread ]
  %at = mul i64 %t, $stride
  %own = getelementptr i8, ptr %local, i64 %at
  call void @llvm.memset.p0.i64(ptr align 256 %own, i8 0, i64 %used, i1 false)
  %t.next = add i64 %t, 1
  %all = icmp eq i64 %t.next, $threads
  br i1 %all, label %end, label %thread
end:
  ret void
}
