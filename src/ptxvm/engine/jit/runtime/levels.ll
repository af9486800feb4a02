; Look up elements at a level of detail of each of 8 lanes, the nearest one or between two: `look_up.ll`.  `%level` is level 0.
define internal void @$name(ptr %plan, ptr %level, ptr %own, i8 %lanes.bits, ptr %found) #0 {
entry:
  %read = alloca [4 x <8 x double>], align 64
$fields
$splats
  %lanes = bitcast i8 %lanes.bits to <8 x i1>
  %is.float.asked = icmp ne i64 %float, 0
  %is.float = or i1 %is.float.asked, $compares
  %is.blended.asked = icmp ne i64 %blended, 0
  %is.blended.0 = and i1 %is.blended.asked, %is.float
  %is.blended = and i1 %is.blended.0, $floats
  %last.f.s = sitofp <8 x i64> %last.s to <8 x double>
$lod
  %lod.biased = fadd <8 x double> %lod.given, %bias.f.s
  %lod.low = fcmp olt <8 x double> %lod.biased, %least.f.s
  %lod.not.low = select <8 x i1> %lod.low, <8 x double> %least.f.s, <8 x double> %lod.biased
  %lod.high = fcmp ogt <8 x double> %lod.not.low, %most.f.s
  %lod.in.range = select <8 x i1> %lod.high, <8 x double> %most.f.s, <8 x double> %lod.not.low
  %lod.negative = fcmp olt <8 x double> %lod.in.range, zeroinitializer
  %lod.positive = select <8 x i1> %lod.negative, <8 x double> zeroinitializer, <8 x double> %lod.in.range
  %lod.beyond = fcmp ogt <8 x double> %lod.positive, %last.f.s
  %lod = select <8 x i1> %lod.beyond, <8 x double> %last.f.s, <8 x double> %lod.positive
  %near.0 = fadd <8 x double> %lod, splat (double 5.000000e-01)
  %near = call <8 x double> @llvm.floor.v8f64(<8 x double> %near.0)
  %fine = fmul <8 x double> %lod, splat (double 2.560000e+02)
  %round = fadd <8 x double> %fine, splat (double 5.000000e-01)
  %fixed = call <8 x double> @llvm.floor.v8f64(<8 x double> %round)
  %parts = fmul <8 x double> %fixed, splat (double 3.906250e-03)
  %lower = call <8 x double> @llvm.floor.v8f64(<8 x double> %parts)
  %rest = fsub <8 x double> %parts, %lower
  %low.f = select i1 %is.blended, <8 x double> %lower, <8 x double> %near
  %weight = select i1 %is.blended, <8 x double> %rest, <8 x double> zeroinitializer
  %other = fsub <8 x double> splat (double 1.000000e+00), %weight
  %two = fcmp une <8 x double> %weight, zeroinitializer
  %low = fptosi <8 x double> %low.f to <8 x i64>
  %coarse = add <8 x i64> %low, splat (i64 1)
  %begin = select <8 x i1> %two, <8 x double> splat (double -0.000000e+00), <8 x double> zeroinitializer ; what one level gives has no -0
  br label %each
each:
  %n = phi i64 [ 0, %entry ], [ %n.more, %next ]
  %total.0 = phi <8 x double> [ %begin, %entry ], [ %so.far.0, %next ]
  %total.1 = phi <8 x double> [ %begin, %entry ], [ %so.far.1, %next ]
  %total.2 = phi <8 x double> [ %begin, %entry ], [ %so.far.2, %next ]
  %total.3 = phi <8 x double> [ %begin, %entry ], [ %so.far.3, %next ]
  %n.one = insertelement <8 x i64> poison, i64 %n, i32 0
  %n.s = shufflevector <8 x i64> %n.one, <8 x i64> poison, <8 x i32> zeroinitializer
  %is.low = icmp eq <8 x i64> %low, %n.s
  %is.behind = icmp eq <8 x i64> %coarse, %n.s
  %is.coarse = and <8 x i1> %is.behind, %two
  %is.either = or <8 x i1> %is.low, %is.coarse
  %mine = and <8 x i1> %is.either, %lanes
  %mine.bits = bitcast <8 x i1> %mine to i8
  %nobody = icmp eq i8 %mine.bits, 0
  br i1 %nobody, label %next, label %some
some:
  %level.own = getelementptr [$level_words x i64], ptr %level, i64 %n
  call void @$sampled(ptr %plan, ptr %level.own, ptr %own, i8 %mine.bits, ptr %read)
  %share = select <8 x i1> %is.low, <8 x double> %other, <8 x double> %weight
$sums
  br label %next
next:
  %so.far.0 = phi <8 x double> [ %total.0, %each ], [ %new.0, %some ]
  %so.far.1 = phi <8 x double> [ %total.1, %each ], [ %new.1, %some ]
  %so.far.2 = phi <8 x double> [ %total.2, %each ], [ %new.2, %some ]
  %so.far.3 = phi <8 x double> [ %total.3, %each ], [ %new.3, %some ]
  %n.more = add i64 %n, 1
  %all = icmp ugt i64 %n.more, %last
  br i1 %all, label %give, label %each
give:
$given
  ret void
}
