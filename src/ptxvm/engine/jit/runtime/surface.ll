; Load or store bytes of a surface for the active lanes by a plan (`abi.surface_plan`); 0 where that is left to the host, before
; anything is done: lanes have surfaces of their own, no plan is known, or the access of a lane is a fault.
define internal i32 @$name(ptr %room, i32 %active, ptr %plans) noinline #0 {
entry:
  %places = alloca [$warp x i64], align 64
  %empty = icmp eq ptr %plans, null
  %none = icmp eq i32 %active, 0
  %no = or i1 %empty, %none
  br i1 %no, label %leave, label %find
leave:
  ret i32 0
find:
  %lane.first = call i32 @llvm.cttz.i32(i32 %active, i1 false)
  %surface.at = getelementptr i64, ptr %room, i32 %lane.first
  %surface = load i64, ptr %surface.at, align 8
  %number = and i64 %surface, $last_plan
  %plan = getelementptr [$words x i64], ptr %plans, i64 %number
  %surface.known = load i64, ptr %plan, align 8
  %same = icmp eq i64 %surface.known, %surface
  %named = icmp ne i64 %surface, 0 ; where there is no plan, the key is 0
  %planned = and i1 %same, %named
  br i1 %planned, label %known, label %leave
known:
$fields
  %may.write = icmp ne i64 %writable, 0
  %reads = xor i1 $stores, true
  %may = or i1 %may.write, %reads
  %last.x = sub i64 %row, $bytes
  %fits = icmp sge i64 %last.x, 0
  %good = and i1 %may, %fits
  %last.y = sub i64 %height, 1
  %last.z = sub i64 %slices, 1
  br i1 %good, label %look, label %leave
look:
  %left = phi i32 [ %active, %known ], [ %left.less, %look.more ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
  %theirs.at = getelementptr i64, ptr %room, i32 %lane
  %theirs = load i64, ptr %theirs.at, align 8
  %like = icmp eq i64 %theirs, %surface
$position
  %odd = srem i64 %x, $bytes
  %aligned = icmp eq i64 %odd, 0
  %x.most = call i64 @llvm.smin.i64(i64 %x, i64 %last.x)
  %x.in = call i64 @llvm.smax.i64(i64 %x.most, i64 0)
  %y.most = call i64 @llvm.smin.i64(i64 %y, i64 %last.y)
  %y.in = call i64 @llvm.smax.i64(i64 %y.most, i64 0)
  %z.most = call i64 @llvm.smin.i64(i64 %z, i64 %last.z)
  %z.in = call i64 @llvm.smax.i64(i64 %z.most, i64 0)
  %x.out = xor i64 %x, %x.in
  %y.out = xor i64 %y, %y.in
  %z.out = xor i64 %z, %z.in
  %xy.out = or i64 %x.out, %y.out
  %out = or i64 %xy.out, %z.out
  %outside = icmp ne i64 %out, 0
  %trapped = and i1 %outside, $traps
  %allowed.0 = xor i1 %trapped, true
  %allowed.1 = and i1 %allowed.0, %like
  %allowed = and i1 %allowed.1, %aligned
  %rows.before = mul i64 %z.in, %height
  %rows = add i64 %rows.before, %y.in
  %far = mul i64 %rows, %row
  %start = add i64 %base, %far
  %place.in = add i64 %start, %x.in
  %absent = and i1 %outside, $zeros
  %place = select i1 %absent, i64 0, i64 %place.in
  %place.at = getelementptr i64, ptr %places, i32 %lane
  store i64 %place, ptr %place.at, align 8
  br i1 %allowed, label %look.more, label %leave
look.more:
  %left.one = sub i32 %left, 1
  %left.less = and i32 %left, %left.one
  %looked.all = icmp eq i32 %left.less, 0
  br i1 %looked.all, label %each, label %look
each:
  %rest = phi i32 [ %active, %look.more ], [ %rest.less, %done ]
  %own = call i32 @llvm.cttz.i32(i32 %rest, i1 false)
  %own.at = getelementptr i64, ptr %places, i32 %own
  %own.place = load i64, ptr %own.at, align 8
  %nowhere = icmp eq i64 %own.place, 0
  br i1 %nowhere, label %nothing, label %move
nothing:
$nothing
  br label %done
move:
  %there = inttoptr i64 %own.place to ptr
$move
  br label %done
done:
  %rest.one = sub i32 %rest, 1
  %rest.less = and i32 %rest, %rest.one
  %all = icmp eq i32 %rest.less, 0
  br i1 %all, label %end, label %each
end:
  ret i32 1
}
