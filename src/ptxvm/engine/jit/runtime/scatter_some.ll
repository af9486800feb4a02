; Scatter elements in the order of the lanes in %mask, on a processor without such an instruction.
define internal void @$name(<32 x $llvm> %values, $base<32 x $offset> %offsets, i32 %mask) noinline #0 {
entry:
  %buffer = alloca <32 x $llvm>, align 64
  %kept = alloca <32 x $offset>, align 64
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %end, label %lanes
lanes:
  store <32 x $llvm> %values, ptr %buffer, align 64
  store <32 x $offset> %offsets, ptr %kept, align 64
  br label %body
body:
  %rest = phi i32 [ %mask, %lanes ], [ %fewer, %body ]
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %slot = getelementptr $offset, ptr %kept, i32 %lane
  %distance = load $offset, ptr %slot, align 4
  %pointer = $pointer
  %element = getelementptr $llvm, ptr %buffer, i32 %lane
  %one = load $llvm, ptr %element, align $size
  store $llvm %one, ptr %pointer, align $size
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %end, label %body
end:
  ret void
}
