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
  %known = call <$n x i1> @ptxvm.told.known.$n(ptr %ctx, <$n x i32> %tags, i32 %warp)
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
