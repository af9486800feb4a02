; Of tags of last writes, which mean writes that are not ordered before those of threads of a warp?  %row has the clocks up to
; which the warp knows the others, %mine the tags of the threads.  A tag of a strong write may be of any warp, unless it says of which.
define internal <$n x i1> @ptxvm.clocks.writes.$n(<$n x i32> %tags, <$n x i32> %mine, ptr %row) #1 {
entry:
  %all = load <32 x i32>, ptr %row, align 64
  %there = or <32 x i32> %all, $absent
  %least = call i32 @llvm.vector.reduce.umin.v32i32(<32 x i32> %there)
  %least.one = insertelement <$n x i32> poison, i32 %least, i64 0
  %least.all = shufflevector <$n x i32> %least.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %moved = lshr <$n x i32> %tags, splat (i32 5)
  %warps = and <$n x i32> %moved, splat (i32 31)
  %pointers = getelementptr i32, ptr %row, <$n x i32> %warps
  %known = call <$n x i32> @$gather(<$n x ptr> %pointers, i32 4, <$n x i1> splat (i1 true), <$n x i32> poison)
  %mark = and <$n x i32> %tags, splat (i32 1024)
  %kind = and <$n x i32> %tags, splat (i32 ${strong_of_warp})
  %strong = icmp eq <$n x i32> %kind, splat (i32 1024)
  %limits = select <$n x i1> %strong, <$n x i32> %least.all, <$n x i32> %known
  %epochs = and <$n x i32> %tags, splat (i32 -2048)
  %later = icmp ugt <$n x i32> %epochs, %limits
  %apart = xor <$n x i32> %tags, %mine
  %apart.low = and <$n x i32> %apart, splat (i32 2047)
  %apart.mark = or <$n x i32> %apart.low, %mark
  %others = icmp ne <$n x i32> %apart.mark, zeroinitializer
  %found = and <$n x i1> %later, %others
  ret <$n x i1> %found
}
