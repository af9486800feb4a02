; Compare and exchange words of one size: is each what was expected, and has the desired value now?
define void @compare_exchange(ptr %addresses, ptr %expected, ptr %desired, ptr %done, i64 %count) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %end, label %each
each:
  %n = phi i64 [ 0, %entry ], [ %next, %each ]
  %address.at = getelementptr ptr, ptr %addresses, i64 %n
  %address = load ptr, ptr %address.at, align 8
  %expected.at = getelementptr $type, ptr %expected, i64 %n
  %old = load $type, ptr %expected.at, align 1
  %desired.at = getelementptr $type, ptr %desired, i64 %n
  %new = load $type, ptr %desired.at, align 1
  %found = cmpxchg ptr %address, $type %old, $type %new seq_cst seq_cst
  %same = extractvalue { $type, i1 } %found, 1
  %byte = zext i1 %same to i8
  %done.at = getelementptr i8, ptr %done, i64 %n
  store i8 %byte, ptr %done.at, align 1
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %end
end:
  ret void
}
