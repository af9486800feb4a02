; All live warps wait: release the barrier if there is only one; several are a deadlock.
  %ayes.pointer = getelementptr i8, ptr %ctx, i64 $ayes
  %ayes = load i32, ptr %ayes.pointer, align 8
  %ayes.then = getelementptr i8, ptr %ctx, i64 $ayes_then
  store i32 %ayes, ptr %ayes.then, align 8
  store i32 0, ptr %ayes.pointer, align 8
  %voters.pointer = getelementptr i8, ptr %ctx, i64 $voters
  %voters = load i32, ptr %voters.pointer, align 8
  %voters.then = getelementptr i8, ptr %ctx, i64 $voters_then
  store i32 %voters, ptr %voters.then, align 8
  store i32 0, ptr %voters.pointer, align 8
  %met = load i32, ptr %barriers, align 8
  %kinds = call i32 @llvm.ctpop.i32(i32 %met)
  %several = icmp ugt i32 %kinds, 1
  %stuck = icmp eq i32 %met, $stuck
  %deadlocked = or i1 %several, %stuck
  br i1 %deadlocked, label %standstill, label %released
standstill:
  store i32 %x, ptr %ctaid.x.pointer, align 8
  call void %deadlock()
  br label %bad
released:
$opens
  %rounds.pointer = getelementptr i8, ptr %ctx, i64 $rounds
  %rounds = load i32, ptr %rounds.pointer, align 8
  %rounds.more = add i32 %rounds, $warps
  store i32 %rounds.more, ptr %rounds.pointer, align 8
  %rounds.look = icmp uge i32 %rounds.more, $look
  br i1 %rounds.look, label %look.round, label %again
look.round:
  store i32 0, ptr %rounds.pointer, align 8
  store i32 %x, ptr %ctaid.x.pointer, align 8
  %answer.round = call i32 %tick()
  %stop.round = icmp ne i32 %answer.round, 0
  br i1 %stop.round, label %bad, label %again
again:
  %more = icmp ne i32 %alive.next, 0
  br i1 %more, label %round, label %cta.done
