; Multiply by a plan (`abi.tensor_record`), for one active lane; 0 where that is left to the host: no plan of these descriptors is
; known, a matrix is not where it can be, or the function leaves the product.
define internal i32 @$name(ptr %room, i32 %active, ptr %ctx, i32 %ctaid.x, ptr %shared) noinline #0 {
entry:
  %a.table = alloca [$most_pieces x i64], align 64
  %b.table = alloca [$most_pieces x i64], align 64
  %d.table = alloca [128 x i64], align 64
  %masks = alloca [4 x i32], align 16
  %rest = sub i32 %active, 1
  %others = and i32 %active, %rest
  %several = icmp ne i32 %others, 0
  br i1 %several, label %leave, label %one
leave:
  ret i32 0
one:
  %lane = call i32 @llvm.cttz.i32(i32 %active, i1 false)
$operands
  %own = call ptr @ptxvm.tensor.cells(ptr %ctx, i32 %ctaid.x)
  %unknown = icmp eq ptr %own, null
  %cannot = or i1 %unknown, %halves.scaled
  br i1 %cannot, label %leave, label %search
search:
  %plans.at = getelementptr i8, ptr %ctx, i64 $tensor_products
  %plans = load ptr, ptr %plans.at, align 8
  %empty = icmp eq ptr %plans, null
  %idesc.wide = zext i32 %idesc to i64
  %key = or i64 %idesc.wide, $kind
  %a.rest = and i64 %a.named, -16384
  %b.rest = and i64 %b, -16384
  br i1 %empty, label %leave, label %try
try:
  %n = phi i64 [ 0, %search ], [ %n.more, %next ]
  %plan = getelementptr [$words x i64], ptr %plans, i64 %n
  %there.key = load i64, ptr %plan, align 8
  %there.a.at = getelementptr i64, ptr %plan, i64 1
  %there.a = load i64, ptr %there.a.at, align 8
  %there.b.at = getelementptr i64, ptr %plan, i64 2
  %there.b = load i64, ptr %there.b.at, align 8
  %same.key = icmp eq i64 %key, %there.key
  %same.a = icmp eq i64 %a.rest, %there.a
  %same.b = icmp eq i64 %b.rest, %there.b
  %same.0 = and i1 %same.key, %same.a
  %same = and i1 %same.0, %same.b
  br i1 %same, label %place, label %next
next:
  %n.more = add i64 %n, 1
  %n.over = icmp eq i64 %n.more, $plans
  br i1 %n.over, label %leave, label %try
place:
$fields
  %cells.at = getelementptr i8, ptr %own, i64 8
  %cells = load i64, ptr %cells.at, align 8
  %shared.address = ptrtoint ptr %shared to i64
  %d.lane = lshr i32 %d, 16
  %d.column = and i32 %d, 65535
  %d.first = icmp eq i32 %d.lane, 0
  %columns.short = trunc i64 %columns.8 to i32
  %width = shl i32 %columns.short, 3
  %d.there = call i1 @ptxvm.tensor.allocated(ptr %own, i32 %d.column, i32 %width)
  %d.good = and i1 %d.first, %d.there
$reach
  %all.good = and i1 %d.good, %good
  br i1 %all.good, label %rows, label %leave
rows:
  %height.all = mul i64 %height, %parts
  %d.column.wide = zext i32 %d.column to i64
  %d.column.bytes = shl i64 %d.column.wide, 2
  %d.start = add i64 %cells, %d.column.bytes
  %lanes.table = inttoptr i64 %lanes to ptr
  br label %row
row:
  %r = phi i64 [ 0, %rows ], [ %r.more, %row ]
  %r.lane.at = getelementptr i32, ptr %lanes.table, i64 %r
  %r.lanes = load <16 x i32>, ptr %r.lane.at, align 4
  %r.wide = zext <16 x i32> %r.lanes to <16 x i64>
  %r.down = shl <16 x i64> %r.wide, splat (i64 11)
  %r.one = insertelement <16 x i64> poison, i64 %d.start, i64 0
  %r.start = shufflevector <16 x i64> %r.one, <16 x i64> poison, <16 x i32> zeroinitializer
  %r.address = add <16 x i64> %r.down, %r.start
  %r.to = getelementptr i64, ptr %d.table, i64 %r
  store <16 x i64> %r.address, ptr %r.to, align 64
  %r.more = add i64 %r, 16
  %r.over = icmp uge i64 %r.more, %height.all
  br i1 %r.over, label %of.b, label %row
of.b:
$of_b
all.of.b:
  %row.columns = zext i32 %width to i64
  %row.bytes = shl i64 %row.columns, 2
  %several.parts = icmp ugt i64 %parts, 1
  %changed.rows = or i1 %masked, %scaled
  %keeps = or i1 %several.parts, %changed.rows
  br i1 %keeps, label %keep, label %whole.b
keep:
  call void @ptxvm.tensor.rows(ptr %d.table, i64 %height.all, i64 %row.bytes, i64 %kept, i1 false)
  br i1 %scaled, label %scale.d, label %whole.b
scale.d:
  call void @ptxvm.tensor.scaled(ptr %d.table, i64 %height.all, i64 %row.bytes, i32 %scale)
  br label %whole.b
whole.b:
$scales
each.part:
  %p = phi i64 [ 0, %whole.b ], [ %p.more, %multiplied ]
  %p.row = mul i64 %p, %height
  br label %of.a
of.a:
$of_a
fill:
$fill
multiply:
  %p.piece = mul i64 %p, %part
  %b.of.part = getelementptr i64, ptr %b.table, i64 %p.piece
  %d.of.part = getelementptr i64, ptr %d.table, i64 %p.row
  %function.pointer = inttoptr i64 %function to ptr
  %out.pointer = inttoptr i64 %out to ptr
  %least.pointer = inttoptr i64 %least to ptr
  %tiles.down = trunc i64 %rows.16 to i32
  %counts = zext i8 %enable to i32
  %done = call i32 %function.pointer(ptr %a.table, ptr %b.of.part, ptr %d.of.part, ptr %out.pointer, ptr %least.pointer, i32 %tiles.down, i32 %columns.short, i32 %counts)
  %refused = icmp eq i32 %done, 0
  br i1 %refused, label %undo, label %multiplied
multiplied:
  %p.more = add i64 %p, 1
  %p.over = icmp uge i64 %p.more, %parts
  br i1 %p.over, label %whole, label %each.part
whole:
  br i1 %masked, label %unmasked, label %good.all
unmasked:
  call void @ptxvm.tensor.masked(ptr %d.table, i64 %height.all, i64 %row.bytes, i64 %kept, ptr %lanes.table, ptr %masks)
  br label %good.all
good.all:
  ret i32 1
undo:
  br i1 %keeps, label %back, label %leave
back:
  call void @ptxvm.tensor.rows(ptr %d.table, i64 %height.all, i64 %row.bytes, i64 %kept, i1 true)
  ret i32 0
}
