; Look up elements of a texture for the active lanes by a plan (`abi.texture_plan`); 0 where that is left to the host: lanes have
; textures or samplers of their own, or no plan of theirs is known.  The formulas are those of `machine/texture_sampling.py`.
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
  %texture.at = getelementptr i64, ptr %room, i32 %lane.first
  %texture.own = load i64, ptr %texture.at, align 8
  %samplers = getelementptr i8, ptr %room, i64 $sampler
  br i1 $own, label %found, label %sampler.find
sampler.find:
  %sampler.at = getelementptr i64, ptr %samplers, i32 %lane.first
  %sampler.given = load i64, ptr %sampler.at, align 8
  br label %found
found:
  %sampler.own = phi i64 [ 0, %find ], [ %sampler.given, %sampler.find ]
  %number = and i64 %texture.own, $last_plan
  %plan = getelementptr [$words x i64], ptr %plans, i64 %number
  %texture.known = load i64, ptr %plan, align 8
  %sampler.known.at = getelementptr i64, ptr %plan, i64 1
  %sampler.known = load i64, ptr %sampler.known.at, align 8
  %same.texture = icmp eq i64 %texture.known, %texture.own
  %same.sampler = icmp eq i64 %sampler.known, %sampler.own
  %same = and i1 %same.texture, %same.sampler
  br i1 %same, label %look, label %leave
look:
  %looked = phi i32 [ %active, %found ], [ %looked.less, %look.more ]
  %looked.lane = call i32 @llvm.cttz.i32(i32 %looked, i1 false)
  %theirs.at = getelementptr i64, ptr %room, i32 %looked.lane
  %theirs = load i64, ptr %theirs.at, align 8
  %like.texture = icmp eq i64 %theirs, %texture.own
  br i1 $own, label %look.on, label %look.sampler
look.sampler:
  %theirs.sampler.at = getelementptr i64, ptr %samplers, i32 %looked.lane
  %theirs.sampler = load i64, ptr %theirs.sampler.at, align 8
  %like.sampler = icmp eq i64 %theirs.sampler, %sampler.own
  br label %look.on
look.on:
  %like.0 = phi i1 [ true, %look ], [ %like.sampler, %look.sampler ]
  %like = and i1 %like.0, %like.texture
  br i1 %like, label %look.more, label %leave
look.more:
  %looked.one = sub i32 %looked, 1
  %looked.less = and i32 %looked, %looked.one
  %looked.all = icmp eq i32 %looked.less, 0
  br i1 %looked.all, label %known, label %look
known:
$fields
  %is.linear.asked = icmp ne i64 %linear, 0
  %is.linear = and i1 %is.linear.asked, $floats
  %is.normalized.asked = icmp ne i64 %normalized, 0
  %is.normalized = and i1 %is.normalized.asked, $floats
  %is.float = icmp ne i64 %float, 0
  %is.scaled = icmp ne i64 %scaled, 0
  %greatest.f = bitcast i64 %greatest to double
  %border.f.0 = bitcast i64 %border.0 to double
  %border.f.1 = bitcast i64 %border.1 to double
  %border.f.2 = bitcast i64 %border.2 to double
  %border.f.3 = bitcast i64 %border.3 to double
  %border.to.0 = insertelement <4 x double> poison, double %border.f.0, i32 0
  %border.to.1 = insertelement <4 x double> %border.to.0, double %border.f.1, i32 1
  %border.to.2 = insertelement <4 x double> %border.to.1, double %border.f.2, i32 2
  %border = insertelement <4 x double> %border.to.2, double %border.f.3, i32 3
  %is.many = icmp ugt i64 %channels, 1
  %is.four = icmp ugt i64 %channels, 2
  %modes.0 = or i64 %mode.0, %mode.1
  %modes = or i64 %modes.0, %mode.2
  %turns = icmp ugt i64 %modes, 1
  %unlike = and i1 %turns, $integers
  br i1 %unlike, label %leave, label %each
each:
  %left = phi i32 [ %active, %known ], [ %left.less, %lane.done ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 false)
$coordinates
  %corners.linear = select i1 %is.linear, i32 $corners, i32 1
  br label %around
around:
  %corner = phi i32 [ 0, %each ], [ %corner.more, %corner.done ]
  %sum = phi <4 x double> [ zeroinitializer, %each ], [ %sum.more, %corner.done ]
$corner
  %part = select i1 %is.linear, double %part.whole, double 1.000000e+00
  %weightless = fcmp oeq double %part, 0.000000e+00
  br i1 %weightless, label %corner.done, label %heavy
heavy:
  br i1 %outside, label %found.texel, label %of.image
of.image:
  %texel.at.0 = inttoptr i64 %address to ptr
  %texel.0 = call double @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, ptr %texel.at.0)
  br i1 %is.many, label %of.two, label %of.channels
of.two:
  %texel.at.1 = getelementptr i8, ptr %texel.at.0, i64 %bytes
  %texel.1 = call double @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, ptr %texel.at.1)
  br i1 %is.four, label %of.four, label %of.channels
of.four:
  %texel.at.2 = getelementptr i8, ptr %texel.at.1, i64 %bytes
  %texel.2 = call double @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, ptr %texel.at.2)
  %texel.at.3 = getelementptr i8, ptr %texel.at.2, i64 %bytes
  %texel.3 = call double @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, ptr %texel.at.3)
  br label %of.channels
of.channels:
  %green = phi double [ 0.000000e+00, %of.image ], [ %texel.1, %of.two ], [ %texel.1, %of.four ]
  %blue = phi double [ 0.000000e+00, %of.image ], [ 0.000000e+00, %of.two ], [ %texel.2, %of.four ]
  %alpha = phi double [ 1.000000e+00, %of.image ], [ 1.000000e+00, %of.two ], [ %texel.3, %of.four ]
  %to.0 = insertelement <4 x double> poison, double %texel.0, i32 0
  %to.1 = insertelement <4 x double> %to.0, double %green, i32 1
  %to.2 = insertelement <4 x double> %to.1, double %blue, i32 2
  %to.3 = insertelement <4 x double> %to.2, double %alpha, i32 3
  br label %found.texel
found.texel:
  %value = phi <4 x double> [ %border, %heavy ], [ %to.3, %of.channels ]
  %part.one = insertelement <4 x double> poison, double %part, i32 0
  %parts = shufflevector <4 x double> %part.one, <4 x double> poison, <4 x i32> zeroinitializer
  %weighted = fmul <4 x double> %parts, %value
  %added = fadd <4 x double> %sum, %weighted
  %result = select i1 %is.linear, <4 x double> %added, <4 x double> %value
  br label %corner.done
corner.done:
  %sum.more = phi <4 x double> [ %sum, %around ], [ %result, %found.texel ]
  %corner.more = add i32 %corner, 1
  %corner.all = icmp eq i32 %corner.more, %corners.linear
  br i1 %corner.all, label %give, label %around
give:
  br i1 %is.float, label %give.float, label %give.integer
give.float:
  %given.f32 = fptrunc <4 x double> %sum.more to <4 x float>
  %given.bits = bitcast <4 x float> %given.f32 to <4 x i32>
  br label %given
give.integer:
  %given.i64 = fptosi <4 x double> %sum.more to <4 x i64>
  %given.i32 = trunc <4 x i64> %given.i64 to <4 x i32>
  br label %given
given:
  %given.words = phi <4 x i32> [ %given.bits, %give.float ], [ %given.i32, %give.integer ]
  %own.0 = getelementptr i32, ptr %room, i32 %lane
  %own.1 = getelementptr i8, ptr %own.0, i64 $step
  %own.2 = getelementptr i8, ptr %own.1, i64 $step
  %own.3 = getelementptr i8, ptr %own.2, i64 $step
  %word.0 = extractelement <4 x i32> %given.words, i32 0
  %word.1 = extractelement <4 x i32> %given.words, i32 1
  %word.2 = extractelement <4 x i32> %given.words, i32 2
  %word.3 = extractelement <4 x i32> %given.words, i32 3
  store i32 %word.0, ptr %own.0, align 4
  store i32 %word.1, ptr %own.1, align 4
  store i32 %word.2, ptr %own.2, align 4
  store i32 %word.3, ptr %own.3, align 4
  br label %lane.done
lane.done:
  %left.one = sub i32 %left, 1
  %left.less = and i32 %left, %left.one
  %left.all = icmp eq i32 %left.less, 0
  br i1 %left.all, label %end, label %each
end:
  ret i32 1
}
