; A component of an element as f64, of a type by its place in `ELEMENTS`; `scaled` as a part of the greatest, rounded to f32.
define internal double @ptxvm.texel(i64 %element, i1 %scaled, double %greatest, ptr %at) alwaysinline #0 {
entry:
  switch i64 %element, label %as.f32 [
    i64 0, label %as.u8
    i64 1, label %as.s8
    i64 2, label %as.u16
    i64 3, label %as.s16
    i64 4, label %as.u32
    i64 5, label %as.s32
  ]
as.u8:
  %u8 = load i8, ptr %at, align 1
  %u8.f = uitofp i8 %u8 to double
  br label %found
as.s8:
  %s8 = load i8, ptr %at, align 1
  %s8.f = sitofp i8 %s8 to double
  br label %found
as.u16:
  %u16 = load i16, ptr %at, align 1
  %u16.f = uitofp i16 %u16 to double
  br label %found
as.s16:
  %s16 = load i16, ptr %at, align 1
  %s16.f = sitofp i16 %s16 to double
  br label %found
as.u32:
  %u32 = load i32, ptr %at, align 1
  %u32.f = uitofp i32 %u32 to double
  br label %found
as.s32:
  %s32 = load i32, ptr %at, align 1
  %s32.f = sitofp i32 %s32 to double
  br label %found
as.f32:
  %f32 = load float, ptr %at, align 1
  %f32.f = fpext float %f32 to double
  br label %found
found:
  %value = phi double [ %u8.f, %as.u8 ], [ %s8.f, %as.s8 ], [ %u16.f, %as.u16 ], [ %s16.f, %as.s16 ], [ %u32.f, %as.u32 ], [ %s32.f, %as.s32 ], [ %f32.f, %as.f32 ]
  br i1 %scaled, label %scale, label %whole
whole:
  ret double %value
scale:
  %ratio = fdiv double %value, %greatest
  %low = fcmp olt double %ratio, -1.000000e+00
  %kept = select i1 %low, double -1.000000e+00, double %ratio
  %short = fptrunc double %kept to float
  %long = fpext float %short to double
  ret double %long
}
