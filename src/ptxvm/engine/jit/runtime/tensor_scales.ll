; Collect the scales of blocks: each is a byte of a cell.  A table has for each how far behind the cells at `from` it is, and how
; far behind `to` it goes.
define internal void @ptxvm.tensor.scales(i64 %table, i64 %count, i64 %from, i64 %to) #0 {
entry:
  %pairs = inttoptr i64 %table to ptr
  %cells = inttoptr i64 %from to ptr
  %target = inttoptr i64 %to to ptr
  br label %scale
scale:
  %n = phi i64 [ 0, %entry ], [ %n.more, %scale ]
  %source.at = getelementptr [2 x i32], ptr %pairs, i64 %n
  %source = load i32, ptr %source.at, align 4
  %goal.at = getelementptr [2 x i32], ptr %pairs, i64 %n, i64 1
  %goal = load i32, ptr %goal.at, align 4
  %byte.at = getelementptr i8, ptr %cells, i32 %source
  %byte = load i8, ptr %byte.at, align 1
  %place = getelementptr i8, ptr %target, i32 %goal
  store i8 %byte, ptr %place, align 1
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %count
  br i1 %n.over, label %done, label %scale
done:
  ret void
}

; Multiply small floats by the scales of their rows, of two pieces each: they become bf16, four pieces, which the table then has.
; What becomes zero is a NaN, so that the function leaves the product.  Each row has the least exponent that its scale tells.
define internal void @ptxvm.tensor.widened(
  ptr %table, i64 %pieces, i64 %scales, i64 %values, i64 %factors, i64 %exponents, i64 %least, i64 %wide
) #0 {
entry:
  %scales.of = inttoptr i64 %scales to ptr
  %values.of = inttoptr i64 %values to ptr
  %factors.of = inttoptr i64 %factors to ptr
  %exponents.of = inttoptr i64 %exponents to ptr
  %least.of = inttoptr i64 %least to ptr
  %wide.of = inttoptr i64 %wide to ptr
  br label %piece
piece:
  %n = phi i64 [ 0, %entry ], [ %n.more, %piece ]
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %from = inttoptr i64 %place to ptr
  %row = lshr i64 %n, 1
  %scale.at = getelementptr i8, ptr %scales.of, i64 %row
  %scale = load i8, ptr %scale.at, align 1
  %scale.wide = zext i8 %scale to i64
  %exponent.at = getelementptr i16, ptr %exponents.of, i64 %scale.wide
  %exponent = load i16, ptr %exponent.at, align 2
  %least.at = getelementptr i16, ptr %least.of, i64 %row
  store i16 %exponent, ptr %least.at, align 2
  %factor.at = getelementptr float, ptr %factors.of, i64 %scale.wide
  %factor = load float, ptr %factor.at, align 4
  %factor.one = insertelement <16 x float> poison, float %factor, i64 0
  %factor.all = shufflevector <16 x float> %factor.one, <16 x float> poison, <16 x i32> zeroinitializer
  %held = load <16 x i8>, ptr %from, align 4
  %index = zext <16 x i8> %held to <16 x i64>
  %places = getelementptr float, ptr %values.of, <16 x i64> %index
  %number = call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> %places, i32 4, <16 x i1> splat (i1 true), <16 x float> poison)
  %product = fmul <16 x float> %number, %factor.all
  %bits = bitcast <16 x float> %product to <16 x i32>
  %upper = lshr <16 x i32> %bits, splat (i32 16)
  %short = trunc <16 x i32> %upper to <16 x i16>
  %size = and <16 x i16> %short, splat (i16 32767)
  %none = icmp eq <16 x i16> %size, zeroinitializer
  %some = fcmp une <16 x float> %number, zeroinitializer
  %lost = and <16 x i1> %none, %some
  %made = select <16 x i1> %lost, <16 x i16> splat (i16 $nan), <16 x i16> %short
  %offset = shl i64 %n, 5
  %to = getelementptr i8, ptr %wide.of, i64 %offset
  store <16 x i16> %made, ptr %to, align 16
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %pieces
  br i1 %n.over, label %entered, label %piece
entered:
  %m = phi i64 [ 0, %piece ], [ %m.more, %entered ]
  %m.offset = shl i64 %m, 4
  %m.place = add i64 %wide, %m.offset
  %m.at = getelementptr i64, ptr %table, i64 %m
  store i64 %m.place, ptr %m.at, align 8
  %m.more = add i64 %m, 1
  %twice = shl i64 %pieces, 1
  %m.over = icmp uge i64 %m.more, %twice
  br i1 %m.over, label %done, label %entered
done:
  ret void
}
