; Of which accesses, by their tags, does the table tell that threads of a warp know them?
define internal <$n x i1> @ptxvm.told.known.$n(ptr %ctx, <$n x i32> %tags, i32 %warp) #0 {
entry:
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
  %single = icmp ult <$n x i32> %low, splat (i32 $many)
  %weak = icmp ule <$n x i32> %low, splat (i32 $many)
  %table = getelementptr i8, ptr %told, i64 $table
  %times.wide = zext <$n x i32> %times to <$n x i64>
  %places = getelementptr i32, ptr %table, <$n x i64> %times.wide
  %words = call <$n x i32> @$gather(<$n x ptr> %places, i32 4, <$n x i1> %there, <$n x i32> zeroinitializer)
  %apart = xor <$n x i32> %words, %stamp.all
  %every = icmp eq <$n x i32> %apart, splat (i32 $every)
  %warps = lshr <$n x i32> %low, splat (i32 5)
  %of.warp = icmp eq <$n x i32> %apart, %warps
  %of.one = and <$n x i1> %of.warp, %single
  %of.any = and <$n x i1> %every, %weak
  %known.some = or <$n x i1> %of.one, %of.any
  %has.stamp = icmp ne i32 %stamp, 0
  %stamped.one = insertelement <$n x i1> poison, i1 %has.stamp, i64 0
  %stamped = shufflevector <$n x i1> %stamped.one, <$n x i1> poison, <$n x i32> zeroinitializer
  %known = and <$n x i1> %known.some, %stamped
  ret <$n x i1> %known
}
