; The new tags of reads: those of the threads, where their warp knows the earlier reads; else these and the warp, as %many has it.
define internal <$n x i32> @ptxvm.clocks.readers.$n(<$n x i32> %tags, <$n x i32> %mine, ptr %row, i32 %many) #1 {
entry:
  %unknown = call <$n x i1> @ptxvm.clocks.reads.$n(<$n x i32> %tags, <$n x i32> %mine, ptr %row)
  %many.one = insertelement <$n x i32> poison, i32 %many, i64 0
  %many.all = shufflevector <$n x i32> %many.one, <$n x i32> poison, <$n x i32> zeroinitializer
  %mark = and <$n x i32> %tags, splat (i32 1024)
  %several = icmp ne <$n x i32> %mark, zeroinitializer
  %groups = and <$n x i32> %tags, splat (i32 1023)
  %group = lshr <$n x i32> %groups, splat (i32 $log)
  %bit = shl <$n x i32> splat (i32 1), %group
  %bits = select <$n x i1> %several, <$n x i32> %groups, <$n x i32> %bit
  %own = and <$n x i32> %many.all, splat (i32 2047)
  %low = or <$n x i32> %bits, %own
  %later = icmp ugt <$n x i32> %tags, %many.all
  %last = select <$n x i1> %later, <$n x i32> %tags, <$n x i32> %many.all
  %epoch = and <$n x i32> %last, splat (i32 -2048)
  %merged = or <$n x i32> %epoch, %low
  %made = select <$n x i1> %unknown, <$n x i32> %merged, <$n x i32> %mine
  ret <$n x i32> %made
}
