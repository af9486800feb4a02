; Of accesses by their tags, which are not ordered before those of threads of a warp?  %found are those that barriers leave open,
; %mine the tags of the threads, %cells the addresses of the tags.  The host says what fences and strong accesses tell.
define internal <$n x i8> @ptxvm.told.ask.$n(ptr %ctx, <$n x i32> %tags, <$n x i32> %mine, <$n x i64> %cells, <$n x i8> %found, i32 %warp) noinline #0 {
entry:
  %tags.room = alloca [$n x i32], align 64
  %mine.room = alloca [$n x i32], align 64
  %cells.room = alloca [$n x i64], align 64
  %found.room = alloca [$n x i8], align 64
  store <$n x i8> %found, ptr %found.room, align 64
  %some = call i8 @llvm.vector.reduce.or.v${n}i8(<$n x i8> %found)
  %none = icmp eq i8 %some, 0
  br i1 %none, label %end, label %look
look:
  %told.pointer = getelementptr i8, ptr %ctx, i64 $told
  %told = load ptr, ptr %told.pointer, align 8
  %grid.pointer = getelementptr i8, ptr %ctx, i64 $grid
  %grid = load i32, ptr %grid.pointer, align 8
  %number = and i32 %warp, 31
  %stamps = getelementptr i8, ptr %told, i64 $header
  %stamp.pointer = getelementptr i32, ptr %stamps, i32 %number
  %stamp = load i32, ptr %stamp.pointer, align 4
  %grid.one = insertelement <$n x i32> poison, i32 %grid, i64 0
  %grid.all = shufflevector <$n x i32> %grid.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %stamp.one = insertelement <$n x i32> poison, i32 %stamp, i64 0
  %stamp.all = shufflevector <$n x i32> %stamp.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %since = sub <$n x i32> %tags, %grid.all
  %times = lshr <$n x i32> %since, splat (i32 $shift)
  %there = icmp ult <$n x i32> %times, splat (i32 $times)
  %low = and <$n x i32> %tags, splat (i32 2047)
  %single = icmp ult <$n x i32> %low, splat (i32 1024)
  %table = getelementptr i8, ptr %told, i64 $table
  %times.wide = zext <$n x i32> %times to <$n x i64>
  %places = getelementptr i32, ptr %table, <$n x i64> %times.wide
  %words = call <$n x i32> @$gather(<$n x ptr> %places, i32 4, <$n x i1> %there, <$n x i32> zeroinitializer)
  %apart = xor <$n x i32> %words, %stamp.all
  %every = icmp eq <$n x i32> %apart, splat (i32 $every)
  %warps = lshr <$n x i32> %low, splat (i32 5)
  %of.warp = icmp eq <$n x i32> %apart, %warps
  %of.one = and <$n x i1> %of.warp, %single
  %of.any = and <$n x i1> %every, %single
  %known.some = or <$n x i1> %of.one, %of.any
  %has.stamp = icmp ne i32 %stamp, 0
  %stamped.one = insertelement <$n x i1> poison, i1 %has.stamp, i64 0
  %stamped = shufflevector <$n x i1> %stamped.one, <$n x i1> poison, <$n x i32> zeroinitializer
  %known = and <$n x i1> %known.some, %stamped
  %known.bytes = sext <$n x i1> %known to <$n x i8>
  %unknown = xor <$n x i8> %known.bytes, splat (i8 -1)
  %rest = and <$n x i8> %found, %unknown
  store <$n x i8> %rest, ptr %found.room, align 64
  %rest.some = call i8 @llvm.vector.reduce.or.v${n}i8(<$n x i8> %rest)
  %done = icmp eq i8 %rest.some, 0
  br i1 %done, label %end, label %ask
ask:
  store <$n x i32> %tags, ptr %tags.room, align 64
  store <$n x i32> %mine, ptr %mine.room, align 64
  store <$n x i64> %cells, ptr %cells.room, align 64
  %ask.pointer = getelementptr i8, ptr %ctx, i64 $ask
  %host = load ptr, ptr %ask.pointer, align 8
  call void %host(ptr %tags.room, ptr %mine.room, ptr %cells.room, ptr %found.room, i32 $n, i32 %warp)
  br label %end
end:
  %left = load <$n x i8>, ptr %found.room, align 64
  ret <$n x i8> %left
}
