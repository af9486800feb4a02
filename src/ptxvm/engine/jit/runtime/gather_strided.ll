; Gather elements for the lanes in %mask, at multiples of a distance from the address of the first lane; other lanes get zero.
define internal <32 x $llvm> @$name(ptr %first, i64 %stride, i32 %mask) noinline #0 {
entry:
  %buffer = alloca <32 x $llvm>, align 64
  switch i32 %mask, label %some [ i32 0, label %nothing i32 -1, label %all ]
nothing:
  ret <32 x $llvm> zeroinitializer
all:
  switch i64 %stride, label %$apart [ i64 $size, label %row $cases ]
row:
  %contiguous = load <32 x $llvm>, ptr %first, align $size
  ret <32 x $llvm> %contiguous
$loads
apart:
$load_each
some:
  %first.ones = icmp ult i32 %mask, $first_ones
  br i1 %first.ones, label %first.lanes, label %others
first.lanes:
  %first.mask = trunc i32 %mask to i8
  %first.active = bitcast i8 %first.mask to <8 x i1>
  %one.step = insertelement <8 x i64> poison, i64 %stride, i64 0
  %steps = shufflevector <8 x i64> %one.step, <8 x i64> poison, <8 x i32> zeroinitializer
  %first.distances = mul <8 x i64> %steps, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>
  %first.addresses = getelementptr i8, ptr %first, <8 x i64> %first.distances
  %first.gathered = call <8 x $llvm> @llvm.masked.gather.v8$short.v8p0(<8 x ptr> %first.addresses, i32 $size, <8 x i1> %first.active, <8 x $llvm> zeroinitializer)
  %first.all = shufflevector <8 x $llvm> %first.gathered, <8 x $llvm> zeroinitializer, <32 x i32> $widened
  ret <32 x $llvm> %first.all
others:
  %count = call i32 @llvm.ctpop.i32(i32 %mask)
  %few = icmp ult i32 %count, $few
  br i1 %few, label %lanes, label %together
together:
  %one.mask = insertelement <32 x i32> poison, i32 %mask, i64 0
  %masks = shufflevector <32 x i32> %one.mask, <32 x i32> poison, <32 x i32> zeroinitializer
  %bits = and <32 x i32> %masks, $bits
  %active = icmp ne <32 x i32> %bits, zeroinitializer
  %moved = add i64 %stride, $far
  %near = icmp ult i64 %moved, $farther
  br i1 %near, label %narrow, label %wide
narrow:
  %low = trunc i64 %stride to i32
  %one.low = insertelement <32 x i32> poison, i32 %low, i64 0
  %lows = shufflevector <32 x i32> %one.low, <32 x i32> poison, <32 x i32> zeroinitializer
  %short.distances = mul <32 x i32> %lows, $numbers
  %in.half = icmp ult i32 %mask, $half_ones
  br i1 %in.half, label %half, label %whole
half:
  %half.mask = trunc i32 %mask to i16
  %half.active = bitcast i16 %half.mask to <16 x i1>
  %half.distances = shufflevector <32 x i32> %short.distances, <32 x i32> poison, <16 x i32> $half_numbers
  %half.addresses = getelementptr i8, ptr %first, <16 x i32> %half.distances
  %half.gathered = call <16 x $llvm> @llvm.masked.gather.v16$short.v16p0(<16 x ptr> %half.addresses, i32 $size, <16 x i1> %half.active, <16 x $llvm> zeroinitializer)
  %half.all = shufflevector <16 x $llvm> %half.gathered, <16 x $llvm> zeroinitializer, <32 x i32> $half_widened
  ret <32 x $llvm> %half.all
whole:
  %near.addresses = getelementptr i8, ptr %first, <32 x i32> %short.distances
  %near.gathered = call <32 x $llvm> @llvm.masked.gather.v32$short.v32p0(<32 x ptr> %near.addresses, i32 $size, <32 x i1> %active, <32 x $llvm> zeroinitializer)
  ret <32 x $llvm> %near.gathered
wide:
  %one.stride = insertelement <32 x i64> poison, i64 %stride, i64 0
  %strides = shufflevector <32 x i64> %one.stride, <32 x i64> poison, <32 x i32> zeroinitializer
  %distances = mul <32 x i64> %strides, $lanes
  %addresses = getelementptr i8, ptr %first, <32 x i64> %distances
  %gathered = call <32 x $llvm> @llvm.masked.gather.v32$short.v32p0(<32 x ptr> %addresses, i32 $size, <32 x i1> %active, <32 x $llvm> zeroinitializer)
  ret <32 x $llvm> %gathered
lanes:
  store <32 x $llvm> zeroinitializer, ptr %buffer, align 64
  br label %body
body:
  %rest = phi i32 [ %mask, %lanes ], [ %fewer, %body ]
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %lane.wide = zext i32 %lane to i64
  %distance = mul i64 %lane.wide, %stride
  %pointer = getelementptr i8, ptr %first, i64 %distance
  %element = getelementptr $llvm, ptr %buffer, i64 %lane.wide
  %one = load $llvm, ptr %pointer, align $size
  store $llvm %one, ptr %element, align $size
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %end, label %body
end:
  %made = load <32 x $llvm>, ptr %buffer, align 64
  ret <32 x $llvm> %made
}
