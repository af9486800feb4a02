; The mbarriers of the CTAs of a cluster under the check `sync` (`memory.mbarrier_checks` has the layout of their table).  %warp is
; the number of a warp among those of the cluster; a function that returns i1 says if something is suspicious.

; A CTA begins: it has no mbarriers.
define internal void @ptxvm.mbarriers.begin(ptr %clocks, i32 %rank) #0 {
entry:
  %hull.first = mul i32 %rank, 2
  %hull.at = add i32 %hull.first, $hulls
  %hull = getelementptr i32, ptr %clocks, i32 %hull.at
  store i64 $nowhere, ptr %hull, align 4
  %flags.first = mul i32 %rank, $flag_words
  %flags.at = add i32 %flags.first, $flags
  %flags = getelementptr i32, ptr %clocks, i32 %flags.at
  call void @llvm.memset.p0.i64(ptr %flags, i8 0, i64 $flag_bytes, i1 false)
  ret void
}

; The first byte at which an access of a size may touch an mbarrier of the CTA of a warp, and in the upper half at how many bytes.
define internal i64 @ptxvm.mbarriers.hull(ptr %clocks, i32 %warp, i32 %size) alwaysinline #0 {
entry:
  %rank = udiv i32 %warp, $warps
  %hull.first = mul i32 %rank, 2
  %hull.at = add i32 %hull.first, $hulls
  %hull = getelementptr i32, ptr %clocks, i32 %hull.at
  %first = load i32, ptr %hull, align 4
  %span.pointer = getelementptr i32, ptr %hull, i32 1
  %span = load i32, ptr %span.pointer, align 4
  %before = sub i32 %size, 1
  %least = call i32 @llvm.usub.sat.i32(i32 %first, i32 %before)
  %more = sub i32 %first, %least
  %extent = add i32 %span, %more
  %low = zext i32 %least to i64
  %wide = zext i32 %extent to i64
  %high = shl i64 %wide, 32
  %both = or i64 %low, %high
  ret i64 %both
}

; Where the flags of the mbarrier at an offset are.
define internal ptr @ptxvm.mbarriers.flags(ptr %clocks, i32 %warp, i32 %offset) alwaysinline #0 {
entry:
  %rank = udiv i32 %warp, $warps
  %first = mul i32 %rank, $flag_words
  %at = add i32 %first, $flags
  %own = getelementptr i32, ptr %clocks, i32 %at
  %number = lshr i32 %offset, 3
  %pointer = getelementptr i8, ptr %own, i32 %number
  ret ptr %pointer
}

; The runs of the states that the mbarrier at an offset has returned in the phase of a state, behind their number.
define internal ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 %state) alwaysinline #0 {
entry:
  %rank = udiv i32 %warp, $warps
  %before = mul i32 %rank, $mbarriers
  %own = lshr i32 %offset, 3
  %number = add i32 %before, %own
  %record.first = mul i32 %number, $record
  %phase = lshr i64 %state, 63
  %parity = trunc i64 %phase to i32
  %phase.first = mul i32 %parity, $of_phase
  %first = add i32 %record.first, %phase.first
  %at = add i32 %first, $records
  %pointer = getelementptr i32, ptr %clocks, i32 %at
  ret ptr %pointer
}

; Do accesses of some lanes touch an mbarrier?  Their bytes are in shared memory.
define internal i1 @ptxvm.mbarriers.touched(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, i32 %size) noinline #0 {
entry:
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %next ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %good, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %end = add i32 %offset, %size
  br label %look
look:
  %here = phi i32 [ %offset, %body ], [ %onward, %free ]
  %flags.pointer = call ptr @ptxvm.mbarriers.flags(ptr %clocks, i32 %warp, i32 %here)
  %flags = load i8, ptr %flags.pointer, align 1
  %held = icmp ne i8 %flags, 0
  br i1 %held, label %wrong, label %free
free:
  %start = and i32 %here, -$bytes
  %onward = add i32 %start, $bytes
  %more = icmp ult i32 %onward, %end
  br i1 %more, label %look, label %next
next:
  br label %head
wrong:
  ret i1 true
good:
  ret i1 false
}

; Some lanes initialise mbarriers (%begins), or invalidate them.
define internal i1 @ptxvm.mbarriers.made(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, <32 x i64> %states, i1 %begins) noinline #0 {
entry:
  %rank = udiv i32 %warp, $warps
  %hull.first = mul i32 %rank, 2
  %hull.at = add i32 %hull.first, $hulls
  %hull = getelementptr i32, ptr %clocks, i32 %hull.at
  %span.pointer = getelementptr i32, ptr %hull, i32 1
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %free ], [ %fewer, %make ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %good, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %flags.pointer = call ptr @ptxvm.mbarriers.flags(ptr %clocks, i32 %warp, i32 %offset)
  %flags = load i8, ptr %flags.pointer, align 1
  %held = icmp ne i8 %flags, 0
  %unlike = xor i1 %held, %begins
  br i1 %unlike, label %change, label %wrong
change:
  br i1 %begins, label %begin, label %free
free:
  store i8 0, ptr %flags.pointer, align 1
  br label %head
begin:
  %state = extractelement <32 x i64> %states, i32 %lane
  %awaited = lshr i64 %state, $pending
  %count = and i64 %awaited, $count
  %countless = icmp eq i64 %count, 0
  br i1 %countless, label %wrong, label %make
make:
  store i8 $held, ptr %flags.pointer, align 1
  %even = call ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 0)
  store i32 0, ptr %even, align 8
  %odd = call ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 -1)
  store i32 0, ptr %odd, align 8
  %first = load i32, ptr %hull, align 4
  %span = load i32, ptr %span.pointer, align 4
  %last = add i32 %first, %span
  %own.end = add i32 %offset, $bytes
  %is.empty = icmp eq i32 %span, 0
  %old.end = select i1 %is.empty, i32 0, i32 %last
  %least = call i32 @llvm.umin.i32(i32 %first, i32 %offset)
  %end = call i32 @llvm.umax.i32(i32 %old.end, i32 %own.end)
  %wider = sub i32 %end, %least
  store i32 %least, ptr %hull, align 4
  store i32 %wider, ptr %span.pointer, align 4
  br label %head
wrong:
  ret i1 true
good:
  ret i1 false
}

; The transactions of a state, below 0 if more have completed than are expected.
define internal i64 @ptxvm.mbarriers.transactions(i64 %state) alwaysinline #0 {
entry:
  %high = shl i64 %state, $above_transactions
  %value = ashr i64 %high, $beside_transactions
  ret i64 %value
}

; Some lanes have updated mbarriers, one after the other.  %counted: they arrive; %apart: beside their threads, to which
; they return no state; %may.end: they may end a phase.
define internal i1 @ptxvm.mbarriers.updated(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, <32 x i64> %before, <32 x i64> %after, i1 %counted, i1 %apart, i1 %may.end) noinline #0 {
entry:
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %on ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %good, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %old = extractelement <32 x i64> %before, i32 %lane
  %new = extractelement <32 x i64> %after, i32 %lane
  %flags.pointer = call ptr @ptxvm.mbarriers.flags(ptr %clocks, i32 %warp, i32 %offset)
  %flags = load i8, ptr %flags.pointer, align 1
  %absent = icmp eq i8 %flags, 0
  %changed = xor i64 %old, %new
  %turned = icmp slt i64 %changed, 0
  %old.transactions = call i64 @ptxvm.mbarriers.transactions(i64 %old)
  %new.transactions = call i64 @ptxvm.mbarriers.transactions(i64 %new)
  %change = sub i64 %new.transactions, %old.transactions
  %distance = call i64 @llvm.abs.i64(i64 %change, i1 false)
  %leap = icmp ugt i64 %distance, $most
  %height = call i64 @llvm.abs.i64(i64 %new.transactions, i1 false)
  %beyond = icmp ugt i64 %height, $count
  %too.many = or i1 %leap, %beyond
  %wrong.here = or i1 %absent, %too.many
  br i1 %wrong.here, label %wrong, label %fits
fits:
  br i1 %counted, label %arrives, label %turn
arrives:
  %old.pending = lshr i64 %old, $pending
  %old.count = and i64 %old.pending, $count
  %new.pending = lshr i64 %new, $pending
  %new.count = and i64 %new.pending, $count
  %grows = icmp ugt i64 %new.count, %old.count
  %stays = xor i1 %turned, true
  %uncalled = and i1 %grows, %stays
  %nothing = icmp eq i64 %changed, 0
  %must.stay = xor i1 %may.end, true
  %ends = and i1 %turned, %must.stay
  %unseen = icmp eq i8 %flags, $unseen
  %own = xor i1 %apart, true
  %early = and i1 %unseen, %own
  %w.1 = or i1 %uncalled, %nothing
  %w.2 = or i1 %ends, %early
  %w.3 = or i1 %w.1, %w.2
  br i1 %w.3, label %wrong, label %returns
returns:
  br i1 %apart, label %turn, label %give
give:
  %runs = call ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 %old)
  %used = load i32, ptr %runs, align 8
  %words = mul i32 %used, 4
  %last.pointer = getelementptr i32, ptr %runs, i32 %words
  %some = icmp ne i32 %used, 0
  br i1 %some, label %extend, label %fresh
extend:
  %last = load i64, ptr %last.pointer, align 8
  %step = sub i64 %last, %old
  %is.next = icmp eq i64 %step, $one
  br i1 %is.next, label %longer, label %fresh
longer:
  store i64 %old, ptr %last.pointer, align 8
  br label %turn
fresh:
  %full = icmp uge i32 %used, $runs
  br i1 %full, label %wrong, label %open
open:
  %more = add i32 %used, 1
  store i32 %more, ptr %runs, align 8
  %first.pointer = getelementptr i32, ptr %last.pointer, i32 2
  store i64 %old, ptr %first.pointer, align 8
  %end.pointer = getelementptr i32, ptr %last.pointer, i32 4
  store i64 %old, ptr %end.pointer, align 8
  br label %turn
turn:
  br i1 %turned, label %over, label %on
over:
  store i8 $unseen, ptr %flags.pointer, align 1
  %next.runs = call ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 %new)
  store i32 0, ptr %next.runs, align 8
  br label %on
on:
  br label %head
wrong:
  ret i1 true
good:
  ret i1 false
}

; Some lanes test if a phase is over, which it is for those in %over; if %stated, that in which an arrival returned a state.
define internal i1 @ptxvm.mbarriers.tested(ptr %clocks, i32 %warp, i32 %lanes, <32 x i32> %offsets, i32 %over, <32 x i64> %states, i1 %stated) noinline #0 {
entry:
  br label %head
head:
  %rest = phi i32 [ %lanes, %entry ], [ %fewer, %asked ], [ %fewer, %inside ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %good, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %less = add i32 %rest, -1
  %fewer = and i32 %rest, %less
  %offset = extractelement <32 x i32> %offsets, i32 %lane
  %flags.pointer = call ptr @ptxvm.mbarriers.flags(ptr %clocks, i32 %warp, i32 %offset)
  %flags = load i8, ptr %flags.pointer, align 1
  %absent = icmp eq i8 %flags, 0
  br i1 %absent, label %wrong, label %there
there:
  %over.here = lshr i32 %over, %lane
  %is.over = trunc i32 %over.here to i1
  %left = select i1 %is.over, i8 $held, i8 %flags
  store i8 %left, ptr %flags.pointer, align 1
  br label %asked
asked:
  br i1 %stated, label %search, label %head
search:
  %state = extractelement <32 x i64> %states, i32 %lane
  %runs = call ptr @ptxvm.mbarriers.runs(ptr %clocks, i32 %warp, i32 %offset, i64 %state)
  %used = load i32, ptr %runs, align 8
  br label %run
run:
  %n = phi i32 [ 0, %search ], [ %n.next, %outside ]
  %all = icmp eq i32 %n, %used
  br i1 %all, label %wrong, label %compare
compare:
  %words = mul i32 %n, 4
  %first.at = add i32 %words, 2
  %first.pointer = getelementptr i32, ptr %runs, i32 %first.at
  %first = load i64, ptr %first.pointer, align 8
  %last.at = add i32 %words, 4
  %last.pointer = getelementptr i32, ptr %runs, i32 %last.at
  %last = load i64, ptr %last.pointer, align 8
  %distance = sub i64 %first, %state
  %extent = sub i64 %first, %last
  %within = icmp ule i64 %distance, %extent
  %part = and i64 %distance, $below_one
  %whole = icmp eq i64 %part, 0
  %given = and i1 %within, %whole
  br i1 %given, label %inside, label %outside
inside:
  br label %head
outside:
  %n.next = add i32 %n, 1
  br label %run
wrong:
  ret i1 true
good:
  ret i1 false
}
