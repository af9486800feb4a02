; Run some CTAs, one after the other.  $$cta_body runs the warps of a CTA and goes on at cta.done, or after a fault at bad.
;
; CTAs run in stretches: neighbours in a row, of which only `ctaid.x` is different.  What is written to memory for every CTA
; costs far more than what is computed for it, where kernels wait for memory: stores leave the processor in order.
define internal i32 @$name(ptr %ctx, ptr %sites, ptr %records, ptr %states, i64 %first, i64 %last) #2 {
entry:
  %shared.pointer = getelementptr i8, ptr %ctx, i64 $shared
  %shared = load ptr, ptr %shared.pointer, align 8
  %local.pointer = getelementptr i8, ptr %ctx, i64 $local
  %local = load ptr, ptr %local.pointer, align 8
  %gx.pointer = getelementptr i8, ptr %ctx, i64 $nctaid_x
  %gx = load i32, ptr %gx.pointer, align 8
  %gy.pointer = getelementptr i8, ptr %ctx, i64 $nctaid_y
  %gy = load i32, ptr %gy.pointer, align 8
  %row.pointer = getelementptr i8, ptr %ctx, i64 $row
  %ctaid.x.pointer = getelementptr i8, ptr %ctx, i64 $ctaid_x
  %barriers = getelementptr i8, ptr %ctx, i64 $barriers
  %tick.pointer = getelementptr i8, ptr %ctx, i64 $tick
  %tick = load ptr, ptr %tick.pointer, align 8
  %deadlock.pointer = getelementptr i8, ptr %ctx, i64 $deadlock
  %deadlock = load ptr, ptr %deadlock.pointer, align 8
  %records.pointer = getelementptr i8, ptr %ctx, i64 $records
  store ptr %records, ptr %records.pointer, align 8
  %states.pointer = getelementptr i8, ptr %ctx, i64 $states
  store ptr %states, ptr %states.pointer, align 8
$begins
  %gx.wide = zext i32 %gx to i64
  %gy.wide = zext i32 %gy to i64
  br label %stretch
stretch:
  %c = phi i64 [ %first, %entry ], [ %c.end, %onward ]
  %x.wide = urem i64 %c, %gx.wide
  %q = udiv i64 %c, %gx.wide
  %y.wide = urem i64 %q, %gy.wide
  %z.wide = udiv i64 %q, %gy.wide
  %x.first = trunc i64 %x.wide to i32
  %y = trunc i64 %y.wide to i32
  %z = trunc i64 %z.wide to i32
  %row = sub i64 %c, %x.wide
  store i64 %row, ptr %row.pointer, align 8
  %of.row = sub i64 %gx.wide, %x.wide
  %of.all = sub i64 %last, %c
  %since = and i64 %c, $ctas_less_1
  %of.time = sub i64 $ctas, %since
  %fewer = call i64 @llvm.umin.i64(i64 %of.row, i64 %of.all)
  %count = call i64 @llvm.umin.i64(i64 %fewer, i64 %of.time)
  %c.end = add i64 %c, %count
  %count.low = trunc i64 %count to i32
  %x.end = add i32 %x.first, %count.low
  br label %cta
cta:
  %x = phi i32 [ %x.first, %stretch ], [ %x.next, %cta.done ]
$clear
$cta_body
cta.done:
  %x.next = add i32 %x, 1
  %x.all = icmp eq i32 %x.next, %x.end
  br i1 %x.all, label %stretch.end, label %cta
stretch.end:
  %some = and i64 %c.end, $ctas_less_1
  %looks = icmp eq i64 %some, 0
  br i1 %looks, label %look, label %onward
look:
  store i32 %x, ptr %ctaid.x.pointer, align 8
  %answer = call i32 %tick()
  %stop = icmp ne i32 %answer, 0
  br i1 %stop, label %bad, label %onward
onward:
  %all = icmp eq i64 %c.end, %last
  br i1 %all, label %good, label %stretch
good:
  br label %end
bad:
  br label %end
end:
  %wrong.all = phi i32 [ 0, %good ], [ 1, %bad ]
$ends
  ret i32 %wrong.all
}
