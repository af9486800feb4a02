; Count the addresses that lanes of a batch of atomics compete for, by their sorted keys, and how many lanes want the most wanted
; one of each request: row k has the k-th key of each of $n requests.
define internal void @$name(ptr %sorted, ptr %row) noinline #0 {
entry:
  br label %key
key:
  %k = phi i64 [ 0, %entry ], [ %k.next, %key ]
  %before = phi <$n x i32> [ splat (i32 -1), %entry ], [ %own, %key ]
  %addresses = phi <$n x i32> [ zeroinitializer, %entry ], [ %addresses.next, %key ]
  %rivals = phi <$n x i32> [ zeroinitializer, %entry ], [ %rivals.next, %key ]
  %most = phi <$n x i32> [ zeroinitializer, %entry ], [ %most.next, %key ]
  %at = getelementptr <$n x i32>, ptr %sorted, i64 %k
  %own = load <$n x i32>, ptr %at, align $align
  %active = icmp ne <$n x i32> %own, splat (i32 -1)
  %active.one = zext <$n x i1> %active to <$n x i32>
  %new = icmp ne <$n x i32> %own, %before
  %new.one = select <$n x i1> %new, <$n x i32> %active.one, <$n x i32> zeroinitializer
  %addresses.next = add <$n x i32> %addresses, %new.one
  %so.far = select <$n x i1> %new, <$n x i32> zeroinitializer, <$n x i32> %rivals
  %rivals.next = add <$n x i32> %so.far, %active.one
  %most.next = call <$n x i32> @llvm.umax.v${n}i32(<$n x i32> %most, <$n x i32> %rivals.next)
  %k.next = add i64 %k, 1
  %over = icmp eq i64 %k.next, 32
  br i1 %over, label %end, label %key
end:
$sums
  ret void
}
