; Look up elements of one level of a texture in some of 8 lanes, and store four components as f64: `look_up.ll`.
define internal void @$name(ptr %plan, ptr %level, ptr %own, i8 %lanes.bits, ptr %found) #0 {
entry:
$fields
$level
  %is.linear.asked = icmp ne i64 %linear, 0
  %is.linear = and i1 %is.linear.asked, $interpolates
  %is.between = or i1 %is.linear, $gathers
  %is.normalized.asked = icmp ne i64 %normalized, 0
  %is.normalized.0 = or i1 %is.normalized.asked, $cube
  %is.normalized = and i1 %is.normalized.0, $floats
  %is.scaled = icmp ne i64 %scaled, 0
  %greatest.f = bitcast i64 %greatest to double
  %colours = inttoptr i64 %light to ptr
  %is.many = icmp ugt i64 %channels, 1
  %is.four = icmp ugt i64 %channels, 2
  %corners = select i1 %is.between, i32 $corners, i32 1
  %lanes = bitcast i8 %lanes.bits to <8 x i1>
$splats
$coordinates
  br label %around
around:
  %corner = phi i32 [ 0, %entry ], [ %corner.more, %of.channels ]
  %sum.0 = phi <8 x double> [ zeroinitializer, %entry ], [ %result.0, %of.channels ]
  %sum.1 = phi <8 x double> [ zeroinitializer, %entry ], [ %result.1, %of.channels ]
  %sum.2 = phi <8 x double> [ zeroinitializer, %entry ], [ %result.2, %of.channels ]
  %sum.3 = phi <8 x double> [ zeroinitializer, %entry ], [ %result.3, %of.channels ]
$corner
  %part = select i1 %is.linear, <8 x double> %part.whole, <8 x double> splat (double 1.000000e+00)
  %heavy = fcmp une <8 x double> %part, zeroinitializer
  %counts = and <8 x i1> %heavy, %lanes
  %within = xor <8 x i1> %outside, splat (i1 true)
  %seen = and <8 x i1> %counts, %within
  %seen.bits = bitcast <8 x i1> %seen to i8
  %at.texel.0 = inttoptr <8 x i64> %address to <8 x ptr>
  %red = call <8 x double> @ptxvm.texel(i64 %colour, i1 %is.scaled, double %greatest.f, ptr %colours, <8 x ptr> %at.texel.0, i8 %seen.bits)
  br i1 %is.many, label %of.two, label %of.channels
of.two:
  %at.texel.1 = getelementptr i8, <8 x ptr> %at.texel.0, i64 %bytes
  %second = call <8 x double> @ptxvm.texel(i64 %colour, i1 %is.scaled, double %greatest.f, ptr %colours, <8 x ptr> %at.texel.1, i8 %seen.bits)
  br i1 %is.four, label %of.four, label %of.channels
of.four:
  %at.texel.2 = getelementptr i8, <8 x ptr> %at.texel.1, i64 %bytes
  %third = call <8 x double> @ptxvm.texel(i64 %colour, i1 %is.scaled, double %greatest.f, ptr %colours, <8 x ptr> %at.texel.2, i8 %seen.bits)
  %at.texel.3 = getelementptr i8, <8 x ptr> %at.texel.2, i64 %bytes
  %fourth = call <8 x double> @ptxvm.texel(i64 %element, i1 %is.scaled, double %greatest.f, ptr %colours, <8 x ptr> %at.texel.3, i8 %seen.bits)
  br label %of.channels
of.channels:
  %green = phi <8 x double> [ zeroinitializer, %around ], [ %second, %of.two ], [ %second, %of.four ]
  %blue = phi <8 x double> [ zeroinitializer, %around ], [ zeroinitializer, %of.two ], [ %third, %of.four ]
  %alpha = phi <8 x double> [ splat (double 1.000000e+00), %around ], [ splat (double 1.000000e+00), %of.two ], [ %fourth, %of.four ]
$components
  %corner.more = add i32 %corner, 1
  %corner.all = icmp eq i32 %corner.more, %corners
  br i1 %corner.all, label %give, label %around
give:
$given
  ret void
}
