; Write a sparse A with its zeros: the metadata of each chunk of a row say where its stored elements stand (PTX 9.7.16.10.8).
define internal void @$name(ptr %table, i64 %pieces, i64 %metadata, i64 %places, i64 %filled) #0 {
entry:
  %places.table = inttoptr i64 %places to ptr
  %whole = inttoptr i64 %filled to ptr
  br label %piece
piece:
  %n = phi i64 [ 0, %entry ], [ %n.more, %piece ]
  %at = getelementptr i64, ptr %table, i64 %n
  %place = load i64, ptr %at, align 8
  %from = inttoptr i64 %place to ptr
  %held = load <$count x i$stored>, ptr %from, align 4
  %first = mul i64 %n, $count
$chunks
  %n.more = add i64 %n, 1
  %n.over = icmp uge i64 %n.more, %pieces
  br i1 %n.over, label %entered, label %piece
entered:
  %m = phi i64 [ 0, %piece ], [ %m.more, %entered ]
  %m.offset = mul i64 %m, $piece
  %m.place = add i64 %filled, %m.offset
  %m.at = getelementptr i64, ptr %table, i64 %m
  store i64 %m.place, ptr %m.at, align 8
  %m.more = add i64 %m, 1
  %twice = shl i64 %pieces, 1
  %m.over = icmp uge i64 %m.more, %twice
  br i1 %m.over, label %done, label %entered
done:
  ret void
}
