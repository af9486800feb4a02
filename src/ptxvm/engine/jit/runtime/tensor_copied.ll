; Copy pieces with other sign bits; the table then has the copies.
define internal void @ptxvm.tensor.flipped(ptr %table, i64 %pieces, i64 %copy, i64 %flip) #0 {
entry:
  %flip.one = insertelement <2 x i64> poison, i64 %flip, i64 0
  %signs = shufflevector <2 x i64> %flip.one, <2 x i64> poison, <2 x i32> zeroinitializer
  br label %piece
piece:
  %n = phi i64 [ 0, %entry ], [ %n.more, %piece ]
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %from = inttoptr i64 %place to ptr
  %held = load <2 x i64>, ptr %from, align 4
  %made = xor <2 x i64> %held, %signs
  %offset = mul i64 %n, $piece
  %target = add i64 %copy, %offset
  %to = inttoptr i64 %target to ptr
  store <2 x i64> %made, ptr %to, align 16
  store i64 %target, ptr %at, align 8
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %pieces
  br i1 %n.over, label %done, label %piece
done:
  ret void
}

; Copy rows of cells to memory that keeps them, or back.
define internal void @ptxvm.tensor.rows(ptr %table, i64 %count, i64 %bytes, i64 %kept, i1 %back) #0 {
entry:
  br label %row
row:
  %n = phi i64 [ 0, %entry ], [ %n.more, %row ]
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %cells = inttoptr i64 %place to ptr
  %offset = mul i64 %n, %bytes
  %own = add i64 %kept, %offset
  %memory = inttoptr i64 %own to ptr
  %to = select i1 %back, ptr %cells, ptr %memory
  %from = select i1 %back, ptr %memory, ptr %cells
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %count
  br i1 %n.over, label %done, label %row
done:
  ret void
}

; Copy back the rows of cells whose lanes are masked.
define internal void @ptxvm.tensor.masked(ptr %table, i64 %count, i64 %bytes, i64 %kept, ptr %lanes, ptr %masks) #0 {
entry:
  br label %row
row:
  %n = phi i64 [ 0, %entry ], [ %n.more, %next ]
  %lane.at = getelementptr i32, ptr %lanes, i64 %n
  %lane = load i32, ptr %lane.at, align 4
  %word.of = lshr i32 %lane, 5
  %word.at = getelementptr i32, ptr %masks, i32 %word.of
  %word = load i32, ptr %word.at, align 4
  %bit.of = and i32 %lane, 31
  %down = lshr i32 %word, %bit.of
  %bit = trunc i32 %down to i1
  br i1 %bit, label %back, label %next
back:
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %cells = inttoptr i64 %place to ptr
  %offset = mul i64 %n, %bytes
  %own = add i64 %kept, %offset
  %memory = inttoptr i64 %own to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr %cells, ptr %memory, i64 %bytes, i1 false)
  br label %next
next:
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %count
  br i1 %n.over, label %done, label %row
done:
  ret void
}

; Multiply rows of f32 by 2 to the power of minus `scale`.
define internal void @ptxvm.tensor.scaled(ptr %table, i64 %count, i64 %bytes, i32 %scale) #0 {
entry:
  %exponent = sub i32 127, %scale
  %bits = shl i32 %exponent, 23
  %factor = bitcast i32 %bits to float
  %factor.one = insertelement <8 x float> poison, float %factor, i64 0
  %factors = shufflevector <8 x float> %factor.one, <8 x float> poison, <8 x i32> zeroinitializer
  br label %row
row:
  %n = phi i64 [ 0, %entry ], [ %n.more, %next ]
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  br label %part
part:
  %i = phi i64 [ 0, %row ], [ %i.more, %part ]
  %own = add i64 %place, %i
  %cells = inttoptr i64 %own to ptr
  %old = load <8 x float>, ptr %cells, align 4
  %new = fmul <8 x float> %old, %factors
  store <8 x float> %new, ptr %cells, align 4
  %i.more = add i64 %i, 32
  %i.over = icmp uge i64 %i.more, %bytes
  br i1 %i.over, label %next, label %part
next:
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %count
  br i1 %n.over, label %done, label %row
done:
  ret void
}
