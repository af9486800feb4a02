; Do all active lanes (%here) that name each other give the same mask?
define internal i1 @ptxvm.agree(<32 x i32> %masks, i32 %here) noinline #0 {
entry:
  br label %head
head:
  %rest = phi i32 [ %here, %entry ], [ %fewer, %body ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %mask = extractelement <32 x i32> %masks, i32 %lane
  %mask.one = insertelement <32 x i32> poison, i32 %mask, i64 0
  %mask.all = shufflevector <32 x i32> %mask.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %alike = icmp ne <32 x i32> %masks, %mask.all
  %other = bitcast <32 x i1> %alike to i32
  %fewer = and i32 %rest, %other
  %named = and i32 %mask, %here
  %wrong = and i32 %named, %other
  %agree = icmp eq i32 %wrong, 0
  br i1 %agree, label %head, label %end
end:
  %all = phi i1 [ true, %head ], [ false, %body ]
  ret i1 %all
}
