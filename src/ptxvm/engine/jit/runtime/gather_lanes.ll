; Gather elements of a type that the processor cannot gather, lane by lane; lanes outside %mask get zero.
define internal <32 x $llvm> @$name(<32 x ptr> %addresses, i32 %mask) noinline #0 {
entry:
  %buffer = alloca <32 x $llvm>, align 64
  %pointers = alloca <32 x ptr>, align 64
  store <32 x $llvm> zeroinitializer, ptr %buffer, align 64
  store <32 x ptr> %addresses, ptr %pointers, align 64
  br label %head
head:
  %rest = phi i32 [ %mask, %entry ], [ %fewer, %body ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %slot = getelementptr ptr, ptr %pointers, i32 %lane
  %pointer = load ptr, ptr %slot, align 8
  %element = getelementptr $llvm, ptr %buffer, i32 %lane
  %one = load $llvm, ptr %pointer, align $size
  store $llvm %one, ptr %element, align $align
  br label %head
end:
  %made = load <32 x $llvm>, ptr %buffer, align 64
  ret <32 x $llvm> %made
}
