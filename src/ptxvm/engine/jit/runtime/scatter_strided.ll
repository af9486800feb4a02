; Scatter elements in the order of the lanes in %mask, at multiples of a distance from the address of the first lane.
define internal void @$name(<32 x $llvm> %values, ptr %first, i64 %stride, i32 %mask) noinline #0 {
entry:
  %buffer = alloca <32 x $llvm>, align 64
  switch i32 %mask, label %lanes [ i32 0, label %end i32 -1, label %all ]
all:
  switch i64 %stride, label %apart [ i64 $size, label %row $cases ]
row:
  store <32 x $llvm> %values, ptr %first, align $size
  ret void
$stores
apart:
$store_each
  ret void
lanes:
  store <32 x $llvm> %values, ptr %buffer, align 64
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
  %one = load $llvm, ptr %element, align $size
  store $llvm %one, ptr %pointer, align $size
  %last = icmp eq i32 %fewer, 0
  br i1 %last, label %end, label %body
end:
  ret void
}
