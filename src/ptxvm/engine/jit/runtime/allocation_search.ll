; Search the table of known allocations for the addresses of a warp; call the host for lanes that are in none.
;
; %mask has the active lanes; a warp without any says nothing of the site.  If one allocation holds all of them, it becomes the
; last allocation of the access site.  A generic address, or one of a parameter of a function, may also be in the thread's own
; local memory.
define internal i32 @ptxvm.search_allocations(ptr %ctx, ptr %sites, i32 %site, ptr %addresses, i32 %mask, i32 %warp, i64 %size, i64 %span, i64 %need) #2 {
entry:
  %idle = icmp eq i32 %mask, 0
  br i1 %idle, label %fine, label %begin
begin:
  %a = load <32 x i64>, ptr %addresses, align 8
  %rows.pointer = getelementptr i8, ptr %ctx, i64 $rows
  %rows = load ptr, ptr %rows.pointer, align 8
  %count.pointer = getelementptr i8, ptr %ctx, i64 $row_count
  %count = load i64, ptr %count.pointer, align 8
  %low.bits = sub i64 %size, 1
  %low.one.lane = insertelement <32 x i64> poison, i64 %low.bits, i64 0
  %low = shufflevector <32 x i64> %low.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  br label %head
head:
  %r = phi i64 [ 0, %begin ], [ %r.next, %next ]
  %left = phi i32 [ %mask, %begin ], [ %left.next, %next ]
  %some = icmp ult i64 %r, %count
  br i1 %some, label %row, label %local
row:
  %start.pointer = getelementptr [4 x i64], ptr %rows, i64 %r
  %start = load i64, ptr %start.pointer, align 8
  %end.pointer = getelementptr i8, ptr %start.pointer, i64 8
  %end = load i64, ptr %end.pointer, align 8
  %origin.pointer = getelementptr i8, ptr %start.pointer, i64 16
  %origin = load i64, ptr %origin.pointer, align 8
  %flags.pointer = getelementptr i8, ptr %start.pointer, i64 24
  %flags = load i64, ptr %flags.pointer, align 8
  %has = and i64 %flags, %need
  %reached = icmp eq i64 %has, %need
  %room = sub i64 %end, %start
  %large = icmp uge i64 %room, %size
  %usable = and i1 %reached, %large
  br i1 %usable, label %test, label %next
test:
  %last = sub i64 %room, %size
  %start.all.one.lane = insertelement <32 x i64> poison, i64 %start, i64 0
  %start.all = shufflevector <32 x i64> %start.all.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %last.all.one.lane = insertelement <32 x i64> poison, i64 %last, i64 0
  %last.all = shufflevector <32 x i64> %last.all.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %origin.all.one.lane = insertelement <32 x i64> poison, i64 %origin, i64 0
  %origin.all = shufflevector <32 x i64> %origin.all.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %from = sub <32 x i64> %a, %start.all
  %inside = icmp ule <32 x i64> %from, %last.all
  %distance = sub <32 x i64> %a, %origin.all
  %odd = and <32 x i64> %distance, %low
  %aligned = icmp eq <32 x i64> %odd, zeroinitializer
  %good = and <32 x i1> %inside, %aligned
  %bits = bitcast <32 x i1> %good to i32
  %bad = xor i32 %bits, -1
  %others = and i32 %mask, %bad
  %fewer = and i32 %left, %bad
  %whole = icmp eq i32 %others, 0
  br i1 %whole, label %remember, label %fewer.test
remember:
  %small = icmp ule i64 %size, 16
  %alignment = select i1 %small, i64 %size, i64 16
  %mask.low = sub i64 0, %alignment
  %up.part = add i64 %start, %alignment
  %up = sub i64 %up.part, 1
  %first = and i64 %up, %mask.low
  %rest = sub i64 %end, %first
  %fits = icmp sge i64 %rest, %size
  %same = icmp eq i64 %first, %start
  %simple = or i1 %small, %same
  %keeps = and i1 %fits, %simple
  br i1 %keeps, label %write, label %fine
write:
  %log = call i64 @llvm.cttz.i64(i64 %size, i1 true)
  %room.one = sub i64 %rest, %size
  %steps.one = lshr i64 %room.one, %log
  %bound.one = add i64 %steps.one, 1
  %room.all = sub i64 %room.one, %span
  %steps.all = lshr i64 %room.all, %log
  %bound.some = add i64 %steps.all, 1
  %spans = icmp uge i64 %room.one, %span
  %bound.all = select i1 %spans, i64 %bound.some, i64 0
  %site.wide = zext i32 %site to i64
  %own = getelementptr [4 x i64], ptr %sites, i64 %site.wide
  store i64 %first, ptr %own, align 8
  %own.all = getelementptr i8, ptr %own, i64 8
  store i64 %bound.all, ptr %own.all, align 8
  %own.one = getelementptr i8, ptr %own, i64 16
  store i64 %bound.one, ptr %own.one, align 8$remember_tags
  br label %fine
fewer.test:
  %none = icmp eq i32 %fewer, 0
  br i1 %none, label %fine, label %next
next:
  %left.next = phi i32 [ %left, %row ], [ %fewer, %fewer.test ]
  %r.next = add i64 %r, 1
  br label %head
local:
  %local.pointer = getelementptr i8, ptr %ctx, i64 $local
  %local.start = load i64, ptr %local.pointer, align 8
  %any = icmp ne i64 %local.start, 0
  %generic = and i64 %need, $generic_or_param
  %asks = icmp ne i64 %generic, 0
  %stack.room = icmp ule i64 %size, $stack_size
  %may.0 = and i1 %any, %asks
  %may = and i1 %may.0, %stack.room
  br i1 %may, label %mine, label %ask
mine:
  %warp.wide = zext i32 %warp to i64
  %warp.offset = mul i64 %warp.wide, $warp_stride
  %warp.start = add i64 %local.start, %warp.offset
  %warp.all.one.lane = insertelement <32 x i64> poison, i64 %warp.start, i64 0
  %warp.all = shufflevector <32 x i64> %warp.all.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %lane.offset = mul <32 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11, i64 12, i64 13, i64 14, i64 15, i64 16, i64 17, i64 18, i64 19, i64 20, i64 21, i64 22, i64 23, i64 24, i64 25, i64 26, i64 27, i64 28, i64 29, i64 30, i64 31>, splat (i64 $local_stride)
  %lane.start = add <32 x i64> %warp.all, %lane.offset
  %deep = sub <32 x i64> %a, %lane.start
  %deepest = sub i64 $stack_size, %size
  %deepest.all.one.lane = insertelement <32 x i64> poison, i64 %deepest, i64 0
  %deepest.all = shufflevector <32 x i64> %deepest.all.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %in.stack = icmp ule <32 x i64> %deep, %deepest.all
  %odd.stack = and <32 x i64> %deep, %low
  %even.stack = icmp eq <32 x i64> %odd.stack, zeroinitializer
  %good.stack = and <32 x i1> %in.stack, %even.stack
  %bits.stack = bitcast <32 x i1> %good.stack to i32
  %bad.stack = xor i32 %bits.stack, -1
  %left.stack = and i32 %left, %bad.stack
  %stack.all = icmp eq i32 %left.stack, 0
  br i1 %stack.all, label %fine, label %ask
ask:
  %check.pointer = getelementptr i8, ptr %ctx, i64 $check
  %check = load ptr, ptr %check.pointer, align 8
  %answer = call i32 %check(i32 %site, ptr %addresses, i32 %left, i32 %warp)
  ret i32 %answer
fine:
  ret i32 0
}
