; Release collectives: of the lanes %present at one mnemonic, those whose live members are all present.  Members must give the
; same mask, unless all lanes are %stuck.  The masks of released lanes are reduced to live members.
define internal i32 @ptxvm.meet(ptr %masks, i32 %present, i32 %alive, i1 %stuck) noinline #0 {
entry:
  %members = load <32 x i32>, ptr %masks, align 64
  %alive.one = insertelement <32 x i32> poison, i32 %alive, i64 0
  %alive.all = shufflevector <32 x i32> %alive.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %wanted = and <32 x i32> %members, %alive.all
  br label %head
head:
  %rest = phi i32 [ %present, %entry ], [ %fewer, %body ]
  %ready = phi i32 [ 0, %entry ], [ %more, %body ]
  %none = icmp eq i32 %rest, 0
  br i1 %none, label %end, label %body
body:
  %lane = call i32 @llvm.cttz.i32(i32 %rest, i1 true)
  %mask = extractelement <32 x i32> %wanted, i32 %lane
  %mask.one = insertelement <32 x i32> poison, i32 %mask, i64 0
  %mask.all = shufflevector <32 x i32> %mask.one, <32 x i32> poison, <32 x i32> zeroinitializer
  %alike = icmp eq <32 x i32> %wanted, %mask.all
  %alike.bits = bitcast <32 x i1> %alike to i32
  %same = and i32 %alike.bits, %present
  %partners = select i1 %stuck, i32 %present, i32 %same
  %absent = xor i32 %partners, -1
  %missing = and i32 %mask, %absent
  %met = icmp eq i32 %missing, 0
  %go = select i1 %met, i32 %same, i32 0
  %more = or i32 %ready, %go
  %others = xor i32 %same, -1
  %fewer = and i32 %rest, %others
  br label %head
end:
  %lanes = bitcast i32 %ready to <32 x i1>
  %kept = select <32 x i1> %lanes, <32 x i32> %wanted, <32 x i32> %members
  store <32 x i32> %kept, ptr %masks, align 64
  ret i32 %ready
}
