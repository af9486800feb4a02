; Copy a box of a tensor to or from shared memory by a plan (`abi.copy_plan`), for one active lane; 0 where that is left to the host:
; no plan of this tensor map is known, or the box is not whole in the tensor, or what is written cannot be.  The size of the box goes
; to the place of the first operand.
define internal i32 @$name(ptr %room, i32 %active, ptr %plans, ptr %shared) noinline #0 {
entry:
  %rest = sub i32 %active, 1
  %others = and i32 %active, %rest
  %several = icmp ne i32 %others, 0
  %empty = icmp eq ptr %plans, null
  %no = or i1 %several, %empty
  br i1 %no, label %leave, label %one
leave:
  ret i32 0
one:
  %lane = call i32 @llvm.cttz.i32(i32 %active, i1 false)
  %own = getelementptr i64, ptr %room, i32 %lane
  %a = load i64, ptr %own, align 8
  %map.at = getelementptr i8, ptr %own, i32 $step
  %map = load i64, ptr %map.at, align 8
  %number.all = lshr i64 %map, 6
  %number = and i64 %number.all, $last_plan
  %plan = getelementptr [$words x i64], ptr %plans, i64 %number
  %key = load i64, ptr %plan, align 8
  %like = icmp eq i64 %key, %map
  %named = icmp ne i64 %map, 0 ; where there is no plan, the key is 0
  %known = and i1 %like, %named
  br i1 %known, label %look, label %leave
look:
  %there = inttoptr i64 %map to ptr
  %now = load <16 x i64>, ptr %there, align 8
  %then.at = getelementptr i64, ptr %plan, i64 $contents
  %then = load <16 x i64>, ptr %then.at, align 8
  %differ = icmp ne <16 x i64> %now, %then
  %differ.bits = bitcast <16 x i1> %differ to i16
  %same = icmp eq i16 %differ.bits, 0
  br i1 %same, label %place, label %leave
place:
$fields
  %may.write = icmp ne i64 %writable, 0
$coordinates
  %first = mul i64 %c.0, %element
  %odd.first = and i64 %first, 15
  %odd.a = and i64 %a, 127
  %odd = or i64 %odd.first, %odd.a
  %aligned = icmp eq i64 %odd, 0
  %fits.0 = icmp ule i64 %size, $shared_size
  %most.a = sub i64 $shared_size, %size
  %fits.1 = icmp ule i64 %a, %most.a
  %fits = and i1 %fits.0, %fits.1
  %good.0 = and i1 %aligned, %fits
  %good.1 = and i1 %good.0, %inside
  %good = and i1 %good.1, $may
  br i1 %good, label %begin, label %leave
begin:
  %source.0 = add i64 %base, %first
  %source = add i64 %source.0, %far
  %row.offsets = inttoptr i64 %offsets to ptr
  br label %row
row:
  %r = phi i64 [ 0, %begin ], [ %r.more, %row.done ]
  %line = phi i64 [ %a, %begin ], [ %line.more, %row.done ]
  %offset.at = getelementptr i64, ptr %row.offsets, i64 %r
  %offset = load i64, ptr %offset.at, align 8
  %from.0 = add i64 %source, %offset
  %from = inttoptr i64 %from.0 to ptr
  br label %piece
piece:
  %p = phi i64 [ 0, %row ], [ %p.more, %piece ]
  %piece.at = getelementptr i8, ptr %from, i64 %p
  %to.0 = add i64 %line, %p
  %lines = lshr i64 %to.0, 7
  %turn.0 = and i64 %lines, %mask.0
  %moved.0 = shl i64 %turn.0, %by.0
  %turn.1 = and i64 %lines, %mask.1
  %moved.1 = shl i64 %turn.1, %by.1
  %to.1 = xor i64 %to.0, %moved.0
  %to.2 = xor i64 %to.1, %moved.1
  %to = getelementptr i8, ptr %shared, i64 %to.2
  %bytes = load <4 x i32>, ptr $from, align 4
  store <4 x i32> %bytes, ptr $into, align 4
  %p.more = add i64 %p, 16
  %p.over = icmp uge i64 %p.more, %row.size
  br i1 %p.over, label %row.done, label %piece
row.done:
  %line.more = add i64 %line, %pitch
  %r.more = add i64 %r, 1
  %r.over = icmp uge i64 %r.more, %rows
  br i1 %r.over, label %end, label %row
end:
  store i64 %amount, ptr %own, align 8
  ret i32 1
}
