; What is known of the tensor memory of the CTA that runs (`abi.tensor_record`); null where nothing is, or it uses pairs of CTAs.
define internal ptr @ptxvm.tensor.cells(ptr %ctx, i32 %ctaid.x) #0 {
entry:
  %slot.at = getelementptr i8, ptr %ctx, i64 $slot
  %slot = load i64, ptr %slot.at, align 8
  %row.at = getelementptr i8, ptr %ctx, i64 $row
  %row = load i64, ptr %row.at, align 8
  %table.at = getelementptr i8, ptr %ctx, i64 $tensor_cells
  %table = load ptr, ptr %table.at, align 8
  %empty = icmp eq ptr %table, null
  br i1 %empty, label %none, label %look
none:
  ret ptr null
look:
  %x = zext i32 %ctaid.x to i64
  %cta = add i64 %row, %x
  %key = add i64 %cta, 1
  %own = getelementptr [$words x i64], ptr %table, i64 %slot
  %there = load i64, ptr %own, align 8
  %same = icmp eq i64 %key, %there
  %ctas.at = getelementptr i8, ptr %own, i64 16
  %ctas = load i64, ptr %ctas.at, align 8
  %one = icmp eq i64 %ctas, 1
  %good = and i1 %same, %one
  %found = select i1 %good, ptr %own, ptr null
  ret ptr %found
}

; Are some columns all in one allocation?
define internal i1 @ptxvm.tensor.allocated(ptr %own, i32 %first, i32 %count) #0 {
entry:
  %end = add i32 %first, %count
  %within = icmp ule i32 %end, 512
  %low = icmp ult i32 %first, 512
  %there = and i1 %within, %low
  br i1 %there, label %look, label %none
none:
  ret i1 false
look:
  %owners = getelementptr i8, ptr %own, i64 24
  %last = sub i32 %end, 1
  %unit.0 = lshr i32 %first, 5
  %unit.1 = lshr i32 %last, 5
  %owner.0.at = getelementptr i8, ptr %owners, i32 %unit.0
  %owner.0 = load i8, ptr %owner.0.at, align 1
  %owner.1.at = getelementptr i8, ptr %owners, i32 %unit.1
  %owner.1 = load i8, ptr %owner.1.at, align 1
  %some = icmp ne i8 %owner.0, 0
  %one = icmp eq i8 %owner.0, %owner.1
  %good = and i1 %some, %one
  ret i1 %good
}
