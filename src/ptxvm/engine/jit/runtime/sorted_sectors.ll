; Count the sectors, lines and different elements of a batch of requests to global memory, by their sorted keys: row k has the
; k-th key of each of $n requests.  Keys of which the bits from that of a sector on agree are in one sector.
define internal void @$name(ptr %sorted, ptr %row) noinline #0 {
entry:
  %first = load <$n x i32>, ptr %sorted, align 64
  %some = icmp ne <$n x i32> %first, splat (i32 -1)
  %one = zext <$n x i1> %some to <$n x i32>
  br label %key
key:
  %k = phi i64 [ 1, %entry ], [ %k.next, %key ]
  %before = phi <$n x i32> [ %first, %entry ], [ %own, %key ]
  %lanes = phi <$n x i32> [ %one, %entry ], [ %lanes.next, %key ]
  %elements = phi <$n x i32> [ %one, %entry ], [ %elements.next, %key ]
  %sectors = phi <$n x i32> [ %one, %entry ], [ %sectors.next, %key ]
  %lines = phi <$n x i32> [ %one, %entry ], [ %lines.next, %key ]
  %at = getelementptr <$n x i32>, ptr %sorted, i64 %k
  %own = load <$n x i32>, ptr %at, align 64
  %active = icmp ne <$n x i32> %own, splat (i32 -1)
  %active.one = zext <$n x i1> %active to <$n x i32>
  %lanes.next = add <$n x i32> %lanes, %active.one
  %differ = xor <$n x i32> %own, %before
  %new.element = icmp ne <$n x i32> %differ, zeroinitializer
  %new.sector = icmp uge <$n x i32> %differ, splat (i32 $sector)
  %new.line = icmp uge <$n x i32> %differ, splat (i32 $line)
  %element.one = select <$n x i1> %new.element, <$n x i32> %active.one, <$n x i32> zeroinitializer
  %sector.one = select <$n x i1> %new.sector, <$n x i32> %active.one, <$n x i32> zeroinitializer
  %line.one = select <$n x i1> %new.line, <$n x i32> %active.one, <$n x i32> zeroinitializer
  %elements.next = add <$n x i32> %elements, %element.one
  %sectors.next = add <$n x i32> %sectors, %sector.one
  %lines.next = add <$n x i32> %lines, %line.one
  %k.next = add i64 %k, 1
  %over = icmp eq i64 %k.next, 32
  br i1 %over, label %end, label %key
end:
  %bytes = shl <$n x i32> %elements.next, splat (i32 $log)
  %filled = add <$n x i32> %bytes, splat (i32 31)
  %ideal = lshr <$n x i32> %filled, splat (i32 5)
$sums
  ret void
}
