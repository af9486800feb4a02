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
