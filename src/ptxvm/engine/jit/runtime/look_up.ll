; Look up elements of a texture for the active lanes, 8 at a time, by a plan (`abi.texture_plan`); 0 where that is left to the host:
; lanes have textures or samplers of their own, or no plan of theirs is known.  The formulas are those of
; `machine/texture_sampling.py`.
define internal i32 @$name(ptr %room, i32 %active, ptr %plans) noinline #0 {
entry:
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
  %texture.known = load i64, ptr %plan, align 8
  %sampler.known.at = getelementptr i64, ptr %plan, i64 1
  %sampler.known = load i64, ptr %sampler.known.at, align 8
  %same.texture = icmp eq i64 %texture.known, %texture.own
  %same.sampler = icmp eq i64 %sampler.known, %sampler.own
  %same = and i1 %same.texture, %same.sampler
  %named = icmp ne i64 %texture.own, 0 ; where there is no plan, the key is 0
  %planned = and i1 %same, %named
  %known.to.all = and i1 %planned, %like
  br i1 %known.to.all, label %known, label %leave
known:
$fields
  %is.linear.asked = icmp ne i64 %linear, 0
  %is.linear = and i1 %is.linear.asked, $floats
  %is.normalized.asked = icmp ne i64 %normalized, 0
  %is.normalized = and i1 %is.normalized.asked, $floats
  %is.float = icmp ne i64 %float, 0
  %is.scaled = icmp ne i64 %scaled, 0
  %greatest.f = bitcast i64 %greatest to double
  %is.many = icmp ugt i64 %channels, 1
  %is.four = icmp ugt i64 %channels, 2
  %corners = select i1 %is.linear, i32 $corners, i32 1
  %modes.0 = or i64 %mode.0, %mode.1
  %modes = or i64 %modes.0, %mode.2
  %turns = icmp ugt i64 %modes, 1
  %unlike = and i1 %turns, $integers
$splats
  br i1 %unlike, label %leave, label %each
each:
  %chunk = phi i32 [ 0, %known ], [ %chunk.more, %done ]
  %chunk.first = mul i32 %chunk, 8
  %chunk.active = lshr i32 %active, %chunk.first
  %lanes.bits = trunc i32 %chunk.active to i8
  %lanes.none = icmp eq i8 %lanes.bits, 0
  br i1 %lanes.none, label %done, label %some
some:
  %lanes = bitcast i8 %lanes.bits to <8 x i1>
  %own = getelementptr i32, ptr %room, i32 %chunk.first
$coordinates
  br label %around
around:
  %corner = phi i32 [ 0, %some ], [ %corner.more, %corner.done ]
  %sum.0 = phi <8 x double> [ zeroinitializer, %some ], [ %result.0, %corner.done ]
  %sum.1 = phi <8 x double> [ zeroinitializer, %some ], [ %result.1, %corner.done ]
  %sum.2 = phi <8 x double> [ zeroinitializer, %some ], [ %result.2, %corner.done ]
  %sum.3 = phi <8 x double> [ zeroinitializer, %some ], [ %result.3, %corner.done ]
$corner
  %part = select i1 %is.linear, <8 x double> %part.whole, <8 x double> splat (double 1.000000e+00)
  %heavy = fcmp une <8 x double> %part, zeroinitializer
  %counts = and <8 x i1> %heavy, %lanes
  %within = xor <8 x i1> %outside, splat (i1 true)
  %seen = and <8 x i1> %counts, %within
  %seen.bits = bitcast <8 x i1> %seen to i8
  %at.texel.0 = inttoptr <8 x i64> %address to <8 x ptr>
  %red = call <8 x double> @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, <8 x ptr> %at.texel.0, i8 %seen.bits)
  br i1 %is.many, label %of.two, label %of.channels
of.two:
  %at.texel.1 = getelementptr i8, <8 x ptr> %at.texel.0, i64 %bytes
  %second = call <8 x double> @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, <8 x ptr> %at.texel.1, i8 %seen.bits)
  br i1 %is.four, label %of.four, label %of.channels
of.four:
  %at.texel.2 = getelementptr i8, <8 x ptr> %at.texel.1, i64 %bytes
  %third = call <8 x double> @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, <8 x ptr> %at.texel.2, i8 %seen.bits)
  %at.texel.3 = getelementptr i8, <8 x ptr> %at.texel.2, i64 %bytes
  %fourth = call <8 x double> @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, <8 x ptr> %at.texel.3, i8 %seen.bits)
  br label %of.channels
of.channels:
  %green = phi <8 x double> [ zeroinitializer, %around ], [ %second, %of.two ], [ %second, %of.four ]
  %blue = phi <8 x double> [ zeroinitializer, %around ], [ zeroinitializer, %of.two ], [ %third, %of.four ]
  %alpha = phi <8 x double> [ splat (double 1.000000e+00), %around ], [ splat (double 1.000000e+00), %of.two ], [ %fourth, %of.four ]
$components
  br label %corner.done
corner.done:
  %corner.more = add i32 %corner, 1
  %corner.all = icmp eq i32 %corner.more, %corners
  br i1 %corner.all, label %give, label %around
give:
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
