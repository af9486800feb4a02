; Find where the active lanes of a warp lie in the table of places: sets %places of each lane, and the lanes of each class.
;
; If one place holds all of them, it becomes the last place of the access.
define internal void @ptxvm.find_places(ptr %ctx, ptr %last, ptr %addresses, ptr %places, ptr %classes, i32 %mask) #2 {
entry:
  %a = load <32 x i64>, ptr %addresses, align 64
  %table.field = getelementptr i8, ptr %ctx, i64 $places
  %table = load ptr, ptr %table.field, align 8
  %count.field = getelementptr i8, ptr %ctx, i64 $place_count
  %count = load i64, ptr %count.field, align 8
  %low.a = trunc <32 x i64> %a to <32 x i32>
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n.next, %next ]
  %left = phi i32 [ %mask, %entry ], [ %left.next, %next ]
  %found = phi <32 x i32> [ zeroinitializer, %entry ], [ %found.next, %next ]
  %more = icmp ult i64 %n, %count
  %unfound = icmp ne i32 %left, 0
  %go = and i1 %more, %unfound
  br i1 %go, label %row, label %end
row:
  %start.at = getelementptr [4 x i64], ptr %table, i64 %n
  %start = load i64, ptr %start.at, align 8
  %length.at = getelementptr i8, ptr %start.at, i64 8
  %length = load i64, ptr %length.at, align 8
  %moved.at = getelementptr i8, ptr %start.at, i64 16
  %moved = load i64, ptr %moved.at, align 8
  %class.at = getelementptr i8, ptr %start.at, i64 24
  %class = load i64, ptr %class.at, align 8
  %start.one = insertelement <32 x i64> poison, i64 %start, i64 0
  %start.all = shufflevector <32 x i64> %start.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %length.one = insertelement <32 x i64> poison, i64 %length, i64 0
  %length.all = shufflevector <32 x i64> %length.one, <32 x i64> poison, <32 x i32> zeroinitializer
  %from = sub <32 x i64> %a, %start.all
  %inside = icmp ult <32 x i64> %from, %length.all
  %inside.bits = bitcast <32 x i1> %inside to i32
  %here = and i32 %inside.bits, %left
  %some = icmp ne i32 %here, 0
  br i1 %some, label %take, label %next
take:
  %moved.low = trunc i64 %moved to i32
  %moved.one = insertelement <32 x i32> poison, i32 %moved.low, i64 0
  %moved.all = shufflevector <32 x i32> %moved.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %place = add <32 x i32> %low.a, %moved.all
  %taken = select <32 x i1> %inside, <32 x i32> %place, <32 x i32> %found
  %class.pointer = getelementptr i32, ptr %classes, i64 %class
  %class.old = load i32, ptr %class.pointer, align 4
  %class.new = or i32 %class.old, %here
  store i32 %class.new, ptr %class.pointer, align 4
  %others = xor i32 %here, -1
  %left.after = and i32 %left, %others
  %whole = icmp eq i32 %here, %mask
  br i1 %whole, label %remember, label %next
remember:
  store i64 %start, ptr %last, align 8
  %last.length = getelementptr i8, ptr %last, i64 8
  store i64 %length, ptr %last.length, align 8
  %last.moved = getelementptr i8, ptr %last, i64 16
  store i64 %moved, ptr %last.moved, align 8
  %last.class = getelementptr i8, ptr %last, i64 24
  store i64 %class, ptr %last.class, align 8
  br label %next
next:
  %left.next = phi i32 [ %left, %row ], [ %left.after, %take ], [ %left.after, %remember ]
  %found.next = phi <32 x i32> [ %found, %row ], [ %taken, %take ], [ %taken, %remember ]
  %n.next = add i64 %n, 1
  br label %head
end:
  store <32 x i32> %found, ptr %places, align 64
  ret void
}
