; Look up elements of a texture for the active lanes, 8 at a time, by a plan (`abi.texture_plan`); 0 where that is left to the host:
; lanes have textures or samplers of their own, or no plan of theirs is known.  The formulas are those of
; `machine/texture_sampling.py`.
define internal i32 @$name(ptr %room, i32 %active, ptr %plans) noinline #0 {
entry:
  %found = alloca [4 x <8 x double>], align 64
  %empty = icmp eq ptr %plans, null
  %none = icmp eq i32 %active, 0
  %no = or i1 %empty, %none
  br i1 %no, label %leave, label %find
leave:
  ret i32 0
find:
  %lane.first = call i32 @llvm.cttz.i32(i32 %active, i1 false)
  %textures = load <32 x i64>, ptr %room, align 64
  %texture.own = extractelement <32 x i64> %textures, i32 %lane.first
  %texture.one = insertelement <32 x i64> poison, i64 %texture.own, i32 0
  %texture.all = shufflevector <32 x i64> %texture.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %textures.differ = icmp ne <32 x i64> %textures, %texture.all
  %textures.bits = bitcast <32 x i1> %textures.differ to i32
$sampler
  %differ = or i32 %textures.bits, %samplers.bits
  %others = and i32 %differ, %active
  %like = icmp eq i32 %others, 0
  %number = and i64 %texture.own, $last_plan
  %plan = getelementptr [$words x i64], ptr %plans, i64 %number
$fields
  %same.texture = icmp eq i64 %texture, %texture.own
  %same.sampler = icmp eq i64 %sampler, %sampler.own
  %same = and i1 %same.texture, %same.sampler
  %named = icmp ne i64 %texture.own, 0 ; where there is no plan, the key is 0
  %planned = and i1 %same, %named
  %known.to.all = and i1 %planned, %like
  br i1 %known.to.all, label %known, label %leave
known:
  %modes.0 = or i64 %mode.0, %mode.1
  %modes = or i64 %modes.0, %mode.2
  %turns = icmp ugt i64 %modes, 1
  %unlike = and i1 %turns, $integers
  %two = icmp slt i64 %first, 0
  %mixed = and i1 %two, $one_level
  %other = or i1 %unlike, %mixed
  %is.float.asked = icmp ne i64 %float, 0
  %is.float = or i1 %is.float.asked, $compares
  %levels.first = inttoptr i64 %levels to ptr
  %level.first = select i1 $one_level, i64 %first, i64 0
  %level = getelementptr [$level_words x i64], ptr %levels.first, i64 %level.first
  br i1 %other, label %leave, label %each
each:
  %chunk = phi i32 [ 0, %known ], [ %chunk.more, %done ]
  %chunk.first = mul i32 %chunk, 8
  %chunk.active = lshr i32 %active, %chunk.first
  %lanes.bits = trunc i32 %chunk.active to i8
  %lanes.none = icmp eq i8 %lanes.bits, 0
  br i1 %lanes.none, label %done, label %some
some:
  %own = getelementptr i32, ptr %room, i32 %chunk.first
  call void @$sampled(ptr %plan, ptr %level, ptr %own, i8 %lanes.bits, ptr %found)
$results
  br i1 %is.float, label %give.floats, label %give.integers
give.floats:
$as_floats
  br label %done
give.integers:
$as_integers
  br label %done
done:
  %chunk.more = add i32 %chunk, 1
  %all = icmp eq i32 %chunk.more, 4
  br i1 %all, label %end, label %each
end:
  ret i32 1
}
