; The same of tags of reads, which may be of several groups of warps: $$groups asks for each, $$some are those that are unknown.
define internal <$n x i1> @ptxvm.clocks.reads.$n(<$n x i32> %tags, <$n x i32> %mine, ptr %row) #1 {
entry:
  %all = load <32 x i32>, ptr %row, align 64
  %moved = lshr <$n x i32> %tags, splat (i32 5)
  %warps = and <$n x i32> %moved, splat (i32 31)
  %pointers = getelementptr i32, ptr %row, <$n x i32> %warps
  %known = call <$n x i32> @$gather(<$n x ptr> %pointers, i32 4, <$n x i1> splat (i1 true), <$n x i32> poison)
  %epochs = and <$n x i32> %tags, splat (i32 -2048)
  %later = icmp ugt <$n x i32> %epochs, %known
  %apart = xor <$n x i32> %tags, %mine
  %apart.low = and <$n x i32> %apart, splat (i32 2047)
  %others = icmp ne <$n x i32> %apart.low, zeroinitializer
  %single = and <$n x i1> %later, %others
$groups
  %mark = and <$n x i32> %tags, splat (i32 1024)
  %several = icmp ne <$n x i32> %mark, zeroinitializer
  %found = select <$n x i1> %several, <$n x i1> $some, <$n x i1> %single
  ret <$n x i1> %found
}
