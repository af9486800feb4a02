; The log of the asynchronous copies of a warp: %log is its header (the number of the first entry, that of the next one, and from
; byte 64 on the groups that each lane has made), %all its entries, a ring of $$entries.  An entry has pointers to the tags, and
; from byte 256 on the groups, the lanes that have not waited, and how many cells each lane has.

; Some lanes have started copies to cells.  True where the log is full.
define internal i1 @$name.start(ptr %log, ptr %all, i32 %lanes, <32 x ptr> %cells, i32 %count) #0 {
entry:
  %first = load i32, ptr %log, align 64
  %next.pointer = getelementptr i8, ptr %log, i64 4
  %next = load i32, ptr %next.pointer, align 4
  %used = sub i32 %next, %first
  %full = icmp uge i32 %used, $entries
  br i1 %full, label %end, label %add
add:
  %turn = urem i32 %next, $entries
  %at = mul i32 %turn, $entry
  %pointer = getelementptr i8, ptr %all, i32 %at
  store <32 x ptr> %cells, ptr %pointer, align 64
  %groups.pointer = getelementptr i8, ptr %log, i64 64
  %groups = load <32 x i32>, ptr %groups.pointer, align 64
  %own = getelementptr i8, ptr %pointer, i64 256
  store <32 x i32> %groups, ptr %own, align 64
  %lanes.pointer = getelementptr i8, ptr %pointer, i64 384
  store i32 %lanes, ptr %lanes.pointer, align 4
  %count.pointer = getelementptr i8, ptr %pointer, i64 388
  store i32 %count, ptr %count.pointer, align 4
  %more = add i32 %next, 1
  store i32 %more, ptr %next.pointer, align 4
  br label %end
end:
  ret i1 %full
}

; Some lanes make a group of the copies that they have started.
define internal void @$name.commit(ptr %log, i32 %lanes) #0 {
entry:
  %pointer = getelementptr i8, ptr %log, i64 64
  %groups = load <32 x i32>, ptr %pointer, align 64
  %some = bitcast i32 %lanes to <32 x i1>
  %one = zext <32 x i1> %some to <32 x i32>
  %more = add <32 x i32> %groups, %one
  store <32 x i32> %more, ptr %pointer, align 64
  ret void
}

; Some lanes wait for all but their %left latest groups: where a cell has still the tag of %before, it gets that of %after.
define internal void @$name.wait(ptr %log, ptr %all, i32 %lanes, i32 %left, <32 x i32> %before, <32 x i32> %after) #0 {
entry:
  %groups.pointer = getelementptr i8, ptr %log, i64 64
  %groups = load <32 x i32>, ptr %groups.pointer, align 64
  %left.one = insertelement <32 x i32> poison, i32 %left, i64 0
  %left.all = shufflevector <32 x i32> %left.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %over = sub <32 x i32> %groups, %left.all
  %some = bitcast i32 %lanes to <32 x i1>
  %start = load i32, ptr %log, align 64
  %next.pointer = getelementptr i8, ptr %log, i64 4
  %next = load i32, ptr %next.pointer, align 4
  br label %head
head:
  %n = phi i32 [ %start, %entry ], [ %n.next, %on ]
  %first = phi i32 [ %start, %entry ], [ %first.next, %on ]
  %all.seen = icmp eq i32 %n, %next
  br i1 %all.seen, label %end, label %look
look:
  %turn = urem i32 %n, $entries
  %at = mul i32 %turn, $entry
  %pointer = getelementptr i8, ptr %all, i32 %at
  %lanes.pointer = getelementptr i8, ptr %pointer, i64 384
  %there = load i32, ptr %lanes.pointer, align 4
  %own.pointer = getelementptr i8, ptr %pointer, i64 256
  %own = load <32 x i32>, ptr %own.pointer, align 64
  %older = icmp slt <32 x i32> %own, %over
  %older.some = and <32 x i1> %older, %some
  %older.bits = bitcast <32 x i1> %older.some to i32
  %done = and i32 %older.bits, %there
  %rest = xor i32 %there, %done
  store i32 %rest, ptr %lanes.pointer, align 4
  %none = icmp eq i32 %done, 0
  br i1 %none, label %on, label %settle
settle:
  %cells = load <32 x ptr>, ptr %pointer, align 64
  %count.pointer = getelementptr i8, ptr %pointer, i64 388
  %count = load i32, ptr %count.pointer, align 4
  %due = bitcast i32 %done to <32 x i1>
  br label %cell
cell:
  %c = phi i32 [ 0, %settle ], [ %c.next, %cell ]
  %each = getelementptr i32, <32 x ptr> %cells, i32 %c
  %tags = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %each, i32 4, <32 x i1> %due, <32 x i32> zeroinitializer)
  %still = icmp eq <32 x i32> %tags, %before
  %still.due = and <32 x i1> %still, %due
  call void @llvm.masked.scatter.v32i32.v32p0(<32 x i32> %after, <32 x ptr> %each, i32 4, <32 x i1> %still.due)
  %c.next = add i32 %c, 1
  %cells.done = icmp eq i32 %c.next, %count
  br i1 %cells.done, label %on, label %cell
on:
  %n.next = add i32 %n, 1
  %left.behind = icmp eq i32 %rest, 0
  %at.front = icmp eq i32 %n, %first
  %drops = and i1 %left.behind, %at.front
  %first.next = select i1 %drops, i32 %n.next, i32 %first
  br label %head
end:
  store i32 %first, ptr %log, align 64
  ret void
}
