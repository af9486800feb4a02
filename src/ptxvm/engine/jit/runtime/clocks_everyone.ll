; Up to which clock of each warp all warps know it, in a row at %least.
define internal void @ptxvm.clocks.everyone(ptr %clocks, ptr %least) #0 {
entry:
  br label %body
body:
  %warp = phi i32 [ 0, %entry ], [ %next, %body ]
  %so.far = phi <32 x i32> [ splat (i32 -1), %entry ], [ %fewer, %body ]
  %words = mul i32 %warp, 32
  %word = add i32 %words, $known
  %pointer = getelementptr i32, ptr %clocks, i32 %word
  %row = load <32 x i32>, ptr %pointer, align 64
  %fewer = call <32 x i32> @llvm.umin.v32i32(<32 x i32> %so.far, <32 x i32> %row)
  %next = add i32 %warp, 1
  %over = icmp eq i32 %next, $warps
  br i1 %over, label %end, label %body
end:
  store <32 x i32> %fewer, ptr %least, align 64
  ret void
}
