; Clear what some lanes of a warp have in so many rows.
define internal void @ptxvm.forget.rows(i64 %first, i64 %rows, i32 %lanes) noinline #0 {
entry:
  %start = inttoptr i64 %first to ptr
  %mask = bitcast i32 %lanes to <32 x i1>
  br label %body
body:
  %n = phi i64 [ 0, %entry ], [ %next, %body ]
  %row = getelementptr <32 x i$bits>, ptr %start, i64 %n
  %old = load <32 x i$bits>, ptr %row, align 1
  %new = select <32 x i1> %mask, <32 x i$bits> zeroinitializer, <32 x i$bits> %old
  store <32 x i$bits> %new, ptr %row, align 1
  %next = add i64 %n, 1
  %all = icmp eq i64 %next, %rows
  br i1 %all, label %end, label %body
end:
  ret void
}
