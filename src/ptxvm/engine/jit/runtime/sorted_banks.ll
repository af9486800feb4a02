; Count the wavefronts of a batch of requests to shared memory, by the sorted keys of each pass of $lanes lanes: row k has the
; k-th key of each of $n requests.  Keys of which the highest bits agree, so that they differ by less than $bank, are in one
; bank or group of banks; a pass takes as many wavefronts as the most different keys in one.
define internal void @$name(ptr %sorted, ptr %row) noinline #0 {
entry:
  br label %pass
pass:
  %p = phi i64 [ 0, %entry ], [ %k.next, %passed ]
  %lanes = phi <$n x i32> [ zeroinitializer, %entry ], [ %lanes.next, %passed ]
  %units = phi <$n x i32> [ zeroinitializer, %entry ], [ %units.next, %passed ]
  %ideal = phi <$n x i32> [ zeroinitializer, %entry ], [ %ideal.next, %passed ]
  br label %key
key:
  %k = phi i64 [ %p, %pass ], [ %k.next, %key ]
  %before = phi <$n x i32> [ splat (i32 -1), %pass ], [ %own, %key ]
  %count = phi <$n x i32> [ %lanes, %pass ], [ %lanes.next, %key ]
  %here = phi <$n x i32> [ zeroinitializer, %pass ], [ %here.next, %key ]
  %most = phi <$n x i32> [ zeroinitializer, %pass ], [ %most.next, %key ]
  %at = getelementptr <$n x i32>, ptr %sorted, i64 %k
  %own = load <$n x i32>, ptr %at, align $align
  %active = icmp ne <$n x i32> %own, splat (i32 -1)
  %active.one = zext <$n x i1> %active to <$n x i32>
  %lanes.next = add <$n x i32> %count, %active.one
  %differ = xor <$n x i32> %own, %before
  %new = icmp ne <$n x i32> %differ, zeroinitializer
  %new.one = select <$n x i1> %new, <$n x i32> %active.one, <$n x i32> zeroinitializer
  %same.bank = icmp ult <$n x i32> %differ, splat (i32 $bank)
  %so.far = select <$n x i1> %same.bank, <$n x i32> %here, <$n x i32> zeroinitializer
  %here.next = add <$n x i32> %so.far, %new.one
  %most.next = call <$n x i32> @llvm.umax.v${n}i32(<$n x i32> %most, <$n x i32> %here.next)
  %k.next = add i64 %k, 1
  %in.pass = and i64 %k.next, $last
  %pass.over = icmp eq i64 %in.pass, 0
  br i1 %pass.over, label %passed, label %key
passed:
  %units.next = add <$n x i32> %units, %most.next
  %asked = icmp ne <$n x i32> %most.next, zeroinitializer
  %asked.one = zext <$n x i1> %asked to <$n x i32>
  %ideal.next = add <$n x i32> %ideal, %asked.one
  %over = icmp eq i64 %k.next, 32
  br i1 %over, label %end, label %pass
end:
  %some = icmp ne <$n x i32> %lanes.next, zeroinitializer
  %one = zext <$n x i1> %some to <$n x i32>
$sums
  ret void
}
