; A component of elements as f64, in some of 8 lanes, of a type by its place in `ELEMENTS`; `scaled` as a part of the greatest
; integer, rounded to f32.  Colours have their light in a table.
define internal <8 x double> @ptxvm.texel(i64 %element, i1 %scaled, double %greatest, ptr %light, <8 x ptr> %at, i8 %lanes) noinline #0 {
entry:
  %some = bitcast i8 %lanes to <8 x i1>
  switch i64 %element, label %as.f32 [
    i64 0, label %as.u8
    i64 1, label %as.s8
    i64 2, label %as.u16
    i64 3, label %as.s16
    i64 4, label %as.u32
    i64 5, label %as.s32
    i64 7, label %as.f16
    i64 8, label %as.light
  ]
as.u8:
  %u8 = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i8> zeroinitializer)
  %u8.f = uitofp <8 x i8> %u8 to <8 x double>
  br label %found
as.s8:
  %s8 = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i8> zeroinitializer)
  %s8.f = sitofp <8 x i8> %s8 to <8 x double>
  br label %found
as.u16:
  %u16 = call <8 x i16> @llvm.masked.gather.v8i16.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i16> zeroinitializer)
  %u16.f = uitofp <8 x i16> %u16 to <8 x double>
  br label %found
as.s16:
  %s16 = call <8 x i16> @llvm.masked.gather.v8i16.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i16> zeroinitializer)
  %s16.f = sitofp <8 x i16> %s16 to <8 x double>
  br label %found
as.u32:
  %u32 = call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i32> zeroinitializer)
  %u32.f = uitofp <8 x i32> %u32 to <8 x double>
  br label %found
as.s32:
  %s32 = call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i32> zeroinitializer)
  %s32.f = sitofp <8 x i32> %s32 to <8 x double>
  br label %found
as.f32:
  %f32 = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x float> zeroinitializer)
  %f32.f = fpext <8 x float> %f32 to <8 x double>
  br label %found
as.f16:
  %f16.bits = call <8 x i16> @llvm.masked.gather.v8i16.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i16> zeroinitializer)
  %f16 = bitcast <8 x i16> %f16.bits to <8 x half>
  %f16.wide = fpext <8 x half> %f16 to <8 x float>
  %f16.f = fpext <8 x float> %f16.wide to <8 x double>
  br label %found
as.light:
  %colour = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %some, <8 x i8> zeroinitializer)
  %number = zext <8 x i8> %colour to <8 x i64>
  %light.at = getelementptr float, ptr %light, <8 x i64> %number
  %light.f = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %light.at, i32 4, <8 x i1> %some, <8 x float> zeroinitializer)
  %light.wide = fpext <8 x float> %light.f to <8 x double>
  ret <8 x double> %light.wide
found:
  %value = phi <8 x double> [ %u8.f, %as.u8 ], [ %s8.f, %as.s8 ], [ %u16.f, %as.u16 ], [ %s16.f, %as.s16 ], [ %u32.f, %as.u32 ], [ %s32.f, %as.s32 ], [ %f32.f, %as.f32 ], [ %f16.f, %as.f16 ]
  br i1 %scaled, label %scale, label %whole
whole:
  ret <8 x double> %value
scale:
  %one = insertelement <8 x double> poison, double %greatest, i32 0
  %all = shufflevector <8 x double> %one, <8 x double> poison, <8 x i32> zeroinitializer
  %ratio = fdiv <8 x double> %value, %all
  %low = fcmp olt <8 x double> %ratio, splat (double -1.000000e+00)
  %kept = select <8 x i1> %low, <8 x double> splat (double -1.000000e+00), <8 x double> %ratio
  %short = fptrunc <8 x double> %kept to <8 x float>
  %long = fpext <8 x float> %short to <8 x double>
  ret <8 x double> %long
}
