; Gather elements for the lanes in %mask: a few of them lane by lane, many by masked instructions; other lanes get zero.
; Lanes that have parted often access a few rows all the same, so neighbours are tested for one.
define internal <32 x $llvm> @$name($base<32 x $offset> %offsets, i32 %mask) noinline #0 {
entry:
  %buffer = alloca <32 x $llvm>, align 64
  %kept = alloca <32 x $offset>, align 64
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %nothing, label %some
nothing:
  ret <32 x $llvm> zeroinitializer
some:
  %count = call i32 @llvm.ctpop.i32(i32 %mask)
  %few = icmp ult i32 %count, $few
  br i1 %few, label %lanes, label %together
together:
  %one.mask = insertelement <32 x i32> poison, i32 %mask, i64 0
  %masks = shufflevector <32 x i32> %one.mask, <32 x i32> poison, <32 x i32> zeroinitializer
  %bits = and <32 x i32> %masks, $bits
  %active = icmp ne <32 x i32> %bits, zeroinitializer
$blocks
lanes:
  store <32 x $llvm> zeroinitializer, ptr %buffer, align 64
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
  %one = load $llvm, ptr %pointer, align $size
  store $llvm %one, ptr %element, align $size
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %end, label %body
end:
  %made = load <32 x $llvm>, ptr %buffer, align 64
  ret <32 x $llvm> %made
}
