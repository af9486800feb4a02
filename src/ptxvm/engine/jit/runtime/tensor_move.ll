; Load cells of tensor memory into the registers of a warp, or store them; 0 where that is left to the host.
define internal i32 @$name(ptr %room, i32 %warp, ptr %ctx, i32 %ctaid.x) noinline #0 {
entry:
  %own = call ptr @ptxvm.tensor.cells(ptr %ctx, i32 %ctaid.x)
  %unknown = icmp eq ptr %own, null
  br i1 %unknown, label %leave, label %look
leave:
  ret i32 0
look:
  %addresses.wide = load <32 x i64>, ptr %room, align 64
  %addresses = trunc <32 x i64> %addresses.wide to <32 x i32>
  %address = extractelement <32 x i32> %addresses, i64 0
  %one = insertelement <32 x i32> poison, i32 %address, i64 0
  %all = shufflevector <32 x i32> %one, <32 x i32> poison, <32 x i32> zeroinitializer
  %differ = icmp ne <32 x i32> %addresses, %all
  %differ.bits = bitcast <32 x i1> %differ to i32
  %same = icmp eq i32 %differ.bits, 0
  %lane = lshr i32 %address, 16
  %column = and i32 %address, 65535
  %quarter = and i32 %warp, 3
  %mine = shl i32 %quarter, 5
  %from.mine = sub i32 %lane, %mine
  %away = and i32 %from.mine, $other_lanes
  %reached = icmp eq i32 %away, 0
  %there = call i1 @ptxvm.tensor.allocated(ptr %own, i32 %column, i32 $width)
  %good.0 = and i1 %same, %reached
  %good = and i1 %good.0, %there
  br i1 %good, label %begin, label %leave
begin:
  %cells.at = getelementptr i8, ptr %own, i64 8
  %cells = load ptr, ptr %cells.at, align 8
  %down = shl i32 %lane, 9
  %first = add i32 %down, %column
  %start = getelementptr i32, ptr %cells, i32 %first
  br label %register
register:
  %n = phi i32 [ 0, %begin ], [ %n.more, %register.done ]
  %n.lanes = shl i32 %n, 5
  %offsets = getelementptr i32, ptr @$table, i32 %n.lanes
  %place = mul i32 %n, $step
  %words.0 = getelementptr i8, ptr %room, i32 %place
  %words = getelementptr i8, ptr %words.0, i32 $behind
  br label %cell
cell:
  %t = phi i32 [ 0, %register ], [ %t.more, %cell ]
  %offset.at = getelementptr i32, ptr %offsets, i32 %t
  %offset = load i32, ptr %offset.at, align 4
  %cell.at = getelementptr i32, ptr %start, i32 %offset
  %word.at = getelementptr i32, ptr %words, i32 %t
  %word = load i32, ptr $source, align 4
  store i32 %word, ptr $target, align 4
  %t.more = add i32 %t, 1
  %t.over = icmp eq i32 %t.more, 32
  br i1 %t.over, label %register.done, label %cell
register.done:
  %n.more = add i32 %n, 1
  %n.over = icmp eq i32 %n.more, $registers
  br i1 %n.over, label %end, label %register
end:
  ret i32 1
}
