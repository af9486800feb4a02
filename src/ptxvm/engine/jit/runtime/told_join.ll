; The new tags of reads, those of the threads of a warp where these come after the earlier ones: so where the table tells it, or
; where they are not %found.  A word for each tag tells what becomes of it when this CTA joins now.  What another thread of the CTA has read since all met is
; read by several, if nothing has been noted since then.  Else the host is asked.
define internal <$n x i32> @ptxvm.told.join.$n(ptr %ctx, <$n x i32> %tags, <$n x i32> %mine, <$n x i8> %found, i32 %warp) noinline #0 {
entry:
  %tags.room = alloca [$n x i32], align 64
  %mine.room = alloca [$n x i32], align 64
  %made.room = alloca [$n x i32], align 64
  %found.room = alloca [$n x i8], align 64
  store <$n x i32> %mine, ptr %made.room, align 64
  %some = call i8 @llvm.vector.reduce.or.v${n}i8(<$n x i8> %found)
  %none = icmp eq i8 %some, 0
  br i1 %none, label %end, label %look
look:
  %asked = icmp ne <$n x i8> %found, zeroinitializer
  %known = call <$n x i1> @ptxvm.told.known.$n(ptr %ctx, <$n x i32> %tags, i32 %warp)
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %grid.pointer = getelementptr i8, ptr %ctx, i64 $grid
  %grid = load i32, ptr %grid.pointer, align 8
  %grid.one = insertelement <$n x i32> poison, i32 %grid, i64 0
  %grid.all = shufflevector <$n x i32> %grid.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %since = sub <$n x i32> %tags, %grid.all
  %numbers = lshr <$n x i32> %since, splat (i32 $shift)
  %low = and <$n x i32> %tags, splat (i32 $crowd)
  %crowd = icmp eq <$n x i32> %low, splat (i32 $crowd)
  %behind = add <$n x i32> %numbers, splat (i32 $most)
  %words.number = select <$n x i1> %crowd, <$n x i32> %numbers, <$n x i32> %behind
  %there = icmp ult <$n x i32> %words.number, splat (i32 $joined)
  %unknown = xor <$n x i1> %known, splat (i1 true)
  %wanted = and <$n x i1> %unknown, %asked
  %joins = and <$n x i1> %there, %wanted
  %words = getelementptr i8, ptr %told, i64 $readers
  %numbers.wide = zext <$n x i32> %words.number to <$n x i64>
  %places = getelementptr i64, ptr %words, <$n x i64> %numbers.wide
  %joined = call <$n x i64> @$gather(<$n x ptr> %places, i32 8, <$n x i1> %joins, <$n x i64> zeroinitializer)
  %when.wide = lshr <$n x i64> %joined, splat (i64 32)
  %when = trunc <$n x i64> %when.wide to <$n x i32>
  %new.tag = trunc <$n x i64> %joined to <$n x i32>
  %is.known = icmp eq <$n x i32> %new.tag, zeroinitializer
  %new = select <$n x i1> %is.known, <$n x i32> %mine, <$n x i32> %new.tag
  %epoch.pointer = getelementptr i8, ptr %ctx, i64 $epoch
  %now = load i32, ptr %epoch.pointer, align 8
  %now.one = insertelement <$n x i32> poison, i32 %now, i64 0
  %now.all = shufflevector <$n x i32> %now.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %is.now = icmp eq <$n x i32> %when, %now.all
  %valid = and <$n x i1> %is.now, %joins
  %count = load i64, ptr %told, align 8
  %before = sub i64 %count, 1
  %distance = mul i64 %before, $note
  %notes = getelementptr i8, ptr %told, i64 $first
  %last = getelementptr i8, ptr %notes, i64 %distance
  %what.pointer = getelementptr i8, ptr %last, i64 16
  %what = load i32, ptr %what.pointer, align 4
  %quiet = icmp ule i32 %what, $barrier
  %met.pointer = getelementptr i8, ptr %ctx, i64 $met
  %met = load i32, ptr %met.pointer, align 8
  %cta.pointer = getelementptr i8, ptr %ctx, i64 $cta
  %cta = load i32, ptr %cta.pointer, align 8
  %least = call i32 @llvm.umax.i32(i32 %met, i32 %cta)
  %from = select i1 %quiet, i32 %least, i32 -1
  %from.one = insertelement <$n x i32> poison, i32 %from, i64 0
  %from.all = shufflevector <$n x i32> %from.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %recent = icmp uge <$n x i32> %tags, %from.all
  %single = icmp ult <$n x i32> %low, splat (i32 $many)
  %of.cta = and <$n x i1> %recent, %single
  %several = and <$n x i1> %of.cta, %wanted
  %now.many = or <$n x i32> %now.all, splat (i32 $many)
  %made.some = select <$n x i1> %valid, <$n x i32> %new, <$n x i32> %mine
  %made = select <$n x i1> %several, <$n x i32> %now.many, <$n x i32> %made.some
  store <$n x i32> %made, ptr %made.room, align 64
  %answered.some = or <$n x i1> %known, %valid
  %answered = or <$n x i1> %answered.some, %several
  %open = xor <$n x i1> %answered, splat (i1 true)
  %rest = and <$n x i1> %open, %asked
  %rest.bytes = sext <$n x i1> %rest to <$n x i8>
  store <$n x i8> %rest.bytes, ptr %found.room, align 64
  %rest.some = call i8 @llvm.vector.reduce.or.v${n}i8(<$n x i8> %rest.bytes)
  %done = icmp eq i8 %rest.some, 0
  br i1 %done, label %end, label %ask
ask:
  store <$n x i32> %tags, ptr %tags.room, align 64
  store <$n x i32> %mine, ptr %mine.room, align 64
  %ask.pointer = getelementptr i8, ptr %ctx, i64 $ask
  %host = load ptr, ptr %ask.pointer, align 8
  %asks = or i32 %warp, $joins
  call void %host(ptr %tags.room, ptr %mine.room, ptr %made.room, ptr %found.room, i32 $n, i32 %asks)
  br label %end
end:
  %left = load <$n x i32>, ptr %made.room, align 64
  ret <$n x i32> %left
}
