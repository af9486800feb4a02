; Which lanes have an address in a window of some spaces?  The launch record has a table of all windows: how many there are, then
; the start, the size and the space of each.
define internal i32 @ptxvm.in_windows(ptr %ctx, ptr %addresses, i64 %spaces) noinline #0 {
entry:
  %a = load <32 x i64>, ptr %addresses, align 8
  %table.pointer = getelementptr i8, ptr %ctx, i64 $windows
  %table = load ptr, ptr %table.pointer, align 8
  %count = load i64, ptr %table, align 8
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %found = phi i32 [ 0, %entry ], [ %found.next, %next ]
  %some = icmp ult i64 %n, %count
  br i1 %some, label %row, label %end
row:
  %n.words = mul i64 %n, 3
  %start.at = add i64 %n.words, 1
  %start.pointer = getelementptr i64, ptr %table, i64 %start.at
  %start = load i64, ptr %start.pointer, align 8
  %size.pointer = getelementptr i64, ptr %start.pointer, i64 1
  %size = load i64, ptr %size.pointer, align 8
  %space.pointer = getelementptr i64, ptr %start.pointer, i64 2
  %space = load i64, ptr %space.pointer, align 8
  %asked.bits = and i64 %space, %spaces
  %asked = icmp ne i64 %asked.bits, 0
  br i1 %asked, label %test, label %next
test:
  %start.one.lane = insertelement <32 x i64> poison, i64 %start, i64 0
  %start.all = shufflevector <32 x i64> %start.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %size.one.lane = insertelement <32 x i64> poison, i64 %size, i64 0
  %size.all = shufflevector <32 x i64> %size.one.lane, <32 x i64> poison, <32 x i32> zeroinitializer
  %from = sub <32 x i64> %a, %start.all
  %inside = icmp ult <32 x i64> %from, %size.all
  %bits = bitcast <32 x i1> %inside to i32
  %found.test = or i32 %found, %bits
  br label %next
next:
  %found.next = phi i32 [ %found, %row ], [ %found.test, %test ]
  %n.next = add i64 %n, 1
  br label %head
end:
  ret i32 %found
}
