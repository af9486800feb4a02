; The index of the first lane mask that is not zero, from %from on; -1 where the $count masks have none.
; Masks beyond those, up to a multiple of 16, are zero.
define internal i32 @$name(ptr %masks, i32 %from) noinline #0 {
entry:
  %start = and i32 %from, -16
  %skipped = and i32 %from, 15
  %wanted.first = shl i32 65535, %skipped
  br label %head
head:
  %at = phi i32 [ %start, %entry ], [ %next, %body ]
  %wanted = phi i32 [ %wanted.first, %entry ], [ 65535, %body ]
  %beyond = icmp uge i32 %at, $count
  br i1 %beyond, label %none, label %body
body:
  %pointer = getelementptr i32, ptr %masks, i32 %at
  %some = load <16 x i32>, ptr %pointer, align 64
  %standing = icmp ne <16 x i32> %some, zeroinitializer
  %bits = bitcast <16 x i1> %standing to i16
  %bits.wide = zext i16 %bits to i32
  %found = and i32 %bits.wide, %wanted
  %nothing = icmp eq i32 %found, 0
  %next = add i32 %at, 16
  br i1 %nothing, label %head, label %end
end:
  %first = call i32 @llvm.cttz.i32(i32 %found, i1 true)
  %index = add i32 %at, %first
  ret i32 %index
none:
  ret i32 -1
}
