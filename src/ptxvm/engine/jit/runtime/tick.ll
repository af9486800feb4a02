; Check the clock: replaces the pointer to the launch record by the answer, 0 to go on.
define internal void @ptxvm.tick(ptr %question) noinline cold #0 {
  %ctx = load ptr, ptr %question, align 8
  %pointer = getelementptr i8, ptr %ctx, i64 $tick
  %tick = load ptr, ptr %pointer, align 8
  %answer = call i32 %tick()
  store i32 %answer, ptr %question, align 8
  ret void
}
