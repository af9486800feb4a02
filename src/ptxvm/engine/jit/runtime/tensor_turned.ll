; Copy the pieces of an MN-major matrix, which hold elements along M or N, to a K-major one, whose pieces then stand in the table.
define internal void @$name(ptr %table, i64 %pieces, i64 %units, i64 %copy) #0 {
entry:
  %base = inttoptr i64 %copy to ptr
  br label %piece
piece:
  %n = phi i64 [ 0, %entry ], [ %n.more, %piece ]
  %k = udiv i64 %n, %units
  %u = urem i64 %n, %units
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %from = inttoptr i64 %place to ptr
  %held = load <$count x i$bits>, ptr %from, align 16
  %across = mul i64 %u, $rows
  %along = mul i64 %k, $size
  %offset = add i64 %across, %along
  %to = getelementptr i8, ptr %base, i64 %offset
$elements
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %pieces
  br i1 %n.over, label %entered, label %piece
entered:
  %m = phi i64 [ 0, %piece ], [ %m.more, %entered ]
  %m.offset = mul i64 %m, $piece
  %m.place = add i64 %copy, %m.offset
  %m.at = getelementptr i64, ptr %table, i64 %m
  store i64 %m.place, ptr %m.at, align 8
  %m.more = add i64 %m, 1
  %m.over = icmp uge i64 %m.more, %pieces
  br i1 %m.over, label %done, label %entered
done:
  ret void
}
