; Calls of the driver that need no Python: those that clients make thousands of times.
;
; A function answers where all that it needs is there and right.  In every other case, errors included, it goes on to the
; Python function of the same name, whose address @state has.  So this file says nothing of what is wrong.
;
; The words of @state are in `native.py`, those of records in `driver/cells.py`, those of the stack of a thread in
; `records.py`: its depth, its room, and the handles of contexts from the lowest on.

@state = external global [128 x i64]

declare ptr @pthread_getspecific(i32)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)

; ── memory of the client ────────────────────────────────────────────────────────────────

; Has Python seen a page, and, where %bit is 0, that it may be written?  The table is that of `driver/client_memory.py`.
define internal i1 @seen(i64 %page, i64 %bit) alwaysinline {
  %table.at = getelementptr i64, ptr @state, i64 10
  %table = load ptr, ptr %table.at
  %index = and i64 %page, 1023
  %at = getelementptr i64, ptr %table, i64 %index
  %entry = load i64, ptr %at
  %either = or i64 %entry, %bit
  %double = shl i64 %page, 1
  %wanted = or i64 %double, 1
  %found = icmp eq i64 %either, %wanted
  ret i1 %found
}

; Points a pointer to bytes, 4096 at most, in pages that Python has seen?  A page with number 0 never is.
define internal i1 @points(i64 %address, i64 %size, i64 %bit) alwaysinline {
  %beyond = add i64 %address, %size
  %end = sub i64 %beyond, 1
  %first = lshr i64 %address, 12
  %last = lshr i64 %end, 12
  %one = call i1 @seen(i64 %first, i64 %bit)
  %other = call i1 @seen(i64 %last, i64 %bit)
  %both = and i1 %one, %other
  %small = icmp ule i64 %size, 4096
  %known = and i1 %both, %small
  %some = icmp ne i64 %first, 0
  %points = and i1 %known, %some
  ret i1 %points
}

; May a result of so many bytes be written?
define internal i1 @takes(ptr %out, i64 %size) alwaysinline {
  %address = ptrtoint ptr %out to i64
  %points = call i1 @points(i64 %address, i64 %size, i64 0)
  ret i1 %points
}

; Copies the arguments of a launch, which %pointers point to, into one block: %places has the offset and the size of each.
; 0 where a pointer may point nowhere: then Python looks at each.
define i32 @gather(i64 %pointers, ptr %places, i64 %count, ptr %block) {
begin:
  %some = icmp ne i64 %count, 0
  br i1 %some, label %again, label %end
again:
  %n = phi i64 [ 0, %begin ], [ %next, %copy ]
  %back = mul i64 %n, 8
  %pointer.address = add i64 %pointers, %back
  %listed = call i1 @points(i64 %pointer.address, i64 8, i64 1)
  br i1 %listed, label %look, label %unknown
look:
  %pointer.at = inttoptr i64 %pointer.address to ptr
  %address = load i64, ptr %pointer.at, align 1
  %place = getelementptr [2 x i64], ptr %places, i64 %n
  %offset = load i64, ptr %place
  %size.at = getelementptr i64, ptr %place, i64 1
  %size = load i64, ptr %size.at
  %there = call i1 @points(i64 %address, i64 %size, i64 1)
  br i1 %there, label %copy, label %unknown
copy:
  %pointer = inttoptr i64 %address to ptr
  %to = getelementptr i8, ptr %block, i64 %offset
  %copied = call ptr @memcpy(ptr %to, ptr %pointer, i64 %size)
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %again, label %end
end:
  ret i32 1
unknown:
  ret i32 0
}

; ── what is there ───────────────────────────────────────────────────────────────────────

; The stack of contexts of the thread; null before the driver was initialised, or where the thread has none yet.
define internal ptr @stack() alwaysinline {
  %initialised = load i64, ptr @state
  %ready = icmp ne i64 %initialised, 0
  br i1 %ready, label %look, label %none
look:
  %key.at = getelementptr i64, ptr @state, i64 1
  %key = load i32, ptr %key.at
  %found = call ptr @pthread_getspecific(i32 %key)
  ret ptr %found
none:
  ret ptr null
}

; The record of a handle, if it is one of a kind; else null.
define internal ptr @record(i64 %handle, i64 %kind) alwaysinline {
  %start.at = getelementptr i64, ptr @state, i64 2
  %start = load i64, ptr %start.at
  %size.at = getelementptr i64, ptr @state, i64 3
  %size = load i64, ptr %size.at
  %offset = sub i64 %handle, %start
  %inside = icmp ult i64 %offset, %size
  %low = and i64 %offset, 31
  %first = icmp eq i64 %low, 0
  %is = and i1 %inside, %first
  br i1 %is, label %look, label %none
look:
  %found = inttoptr i64 %handle to ptr
  %its = load i64, ptr %found
  %same = icmp eq i64 %its, %kind
  br i1 %same, label %some, label %none
some:
  ret ptr %found
none:
  ret ptr null
}

; The handle of the current context; 0 where there is none.
define internal i64 @handle(ptr %stack) alwaysinline {
  %depth = load i64, ptr %stack
  %empty = icmp eq i64 %depth, 0
  br i1 %empty, label %none, label %some
some:
  %word = add i64 %depth, 1
  %at = getelementptr i64, ptr %stack, i64 %word
  %handle = load i64, ptr %at
  ret i64 %handle
none:
  ret i64 0
}

; The record of the current context, in which no kernel has failed; else null.
define internal ptr @context() alwaysinline {
  %stack = call ptr @stack()
  %there = icmp ne ptr %stack, null
  br i1 %there, label %look, label %none
look:
  %handle = call i64 @handle(ptr %stack)
  %found = call ptr @record(i64 %handle, i64 1)
  %is = icmp ne ptr %found, null
  br i1 %is, label %check, label %none
check:
  %failure.at = getelementptr i64, ptr %found, i64 1
  %failure = load i64, ptr %failure.at
  %well = icmp eq i64 %failure, 0
  br i1 %well, label %some, label %none
some:
  ret ptr %found
none:
  ret ptr null
}

; May the thread ask for what belongs to no context?  So it is when the driver was initialised, unless a kernel has failed in
; the current context.
define internal i1 @well() alwaysinline {
  %initialised = load i64, ptr @state
  %ready = icmp ne i64 %initialised, 0
  br i1 %ready, label %look, label %no
look:
  %stack = call ptr @stack()
  %there = icmp ne ptr %stack, null
  br i1 %there, label %ask, label %yes
ask:
  %handle = call i64 @handle(ptr %stack)
  %some = icmp ne i64 %handle, 0
  br i1 %some, label %check, label %yes
check:
  %context = call ptr @context()
  %is = icmp ne ptr %context, null
  ret i1 %is
yes:
  ret i1 true
no:
  ret i1 false
}

; The record of a stream by its handle, or of the default stream of the current context, if that has not failed; else null.
define internal ptr @stream(i64 %handle) alwaysinline {
  %context = call ptr @context()
  %there = icmp ne ptr %context, null
  br i1 %there, label %look, label %none
look:
  %default.at = getelementptr i64, ptr %context, i64 3
  %default = load i64, ptr %default.at
  %is.default = icmp ult i64 %handle, 2
  %wanted = select i1 %is.default, i64 %default, i64 %handle
  %found = call ptr @record(i64 %wanted, i64 2)
  ret ptr %found
none:
  ret ptr null
}

; The address of a Python function by its place among the words.
define internal ptr @python(i64 %place) alwaysinline {
  %at = getelementptr i64, ptr @state, i64 %place
  %function = load ptr, ptr %at
  ret ptr %function
}

; ── contexts ────────────────────────────────────────────────────────────────────────────

define i32 @cuCtxGetCurrent(ptr %out) {
  %stack = call ptr @stack()
  %ready = icmp ne ptr %stack, null
  %wanted = call i1 @takes(ptr %out, i64 8)
  %quick = and i1 %ready, %wanted
  br i1 %quick, label %here, label %python
here:
  %handle = call i64 @handle(ptr %stack)
  store i64 %handle, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 16)
  %result = tail call i32 %function(ptr %out)
  ret i32 %result
}

define i32 @cuCtxSetCurrent(i64 %handle) {
  %stack = call ptr @stack()
  %ready = icmp ne ptr %stack, null
  br i1 %ready, label %look, label %python
look:
  %depth = load i64, ptr %stack
  %empty = icmp eq i64 %depth, 0
  %less = sub i64 %depth, 1
  %below = select i1 %empty, i64 0, i64 %less
  %null = icmp eq i64 %handle, 0
  br i1 %null, label %away, label %find
away:
  store i64 %below, ptr %stack
  ret i32 0
find:
  %context = call ptr @record(i64 %handle, i64 1)
  %is = icmp ne ptr %context, null
  br i1 %is, label %put, label %python
put:
  %word = add i64 %below, 2
  %at = getelementptr i64, ptr %stack, i64 %word
  store i64 %handle, ptr %at
  %now = add i64 %below, 1
  store i64 %now, ptr %stack
  ret i32 0
python:
  %function = call ptr @python(i64 17)
  %result = tail call i32 %function(i64 %handle)
  ret i32 %result
}

define i32 @cuCtxPushCurrent(i64 %handle) {
  %stack = call ptr @stack()
  %ready = icmp ne ptr %stack, null
  br i1 %ready, label %look, label %python
look:
  %depth = load i64, ptr %stack
  %room.at = getelementptr i64, ptr %stack, i64 1
  %room = load i64, ptr %room.at
  %fits = icmp ult i64 %depth, %room
  %context = call ptr @record(i64 %handle, i64 1)
  %is = icmp ne ptr %context, null
  %quick = and i1 %fits, %is
  br i1 %quick, label %put, label %python
put:
  %word = add i64 %depth, 2
  %at = getelementptr i64, ptr %stack, i64 %word
  store i64 %handle, ptr %at
  %now = add i64 %depth, 1
  store i64 %now, ptr %stack
  ret i32 0
python:
  %function = call ptr @python(i64 18)
  %result = tail call i32 %function(i64 %handle)
  ret i32 %result
}

define i32 @cuCtxPopCurrent(ptr %out) {
  %stack = call ptr @stack()
  %ready = icmp ne ptr %stack, null
  br i1 %ready, label %look, label %python
look:
  %depth = load i64, ptr %stack
  %some = icmp ne i64 %depth, 0
  %wanted = icmp ne ptr %out, null
  %takes = call i1 @takes(ptr %out, i64 8)
  %unwanted = xor i1 %wanted, true
  %may = or i1 %takes, %unwanted
  %quick = and i1 %some, %may
  br i1 %quick, label %take, label %python
take:
  %handle = call i64 @handle(ptr %stack)
  %now = sub i64 %depth, 1
  store i64 %now, ptr %stack
  br i1 %wanted, label %give, label %done
give:
  store i64 %handle, ptr %out
  br label %done
done:
  ret i32 0
python:
  %function = call ptr @python(i64 19)
  %result = tail call i32 %function(ptr %out)
  ret i32 %result
}

define i32 @cuCtxGetDevice(ptr %out) {
  %context = call ptr @context()
  %is = icmp ne ptr %context, null
  %wanted = call i1 @takes(ptr %out, i64 4)
  %quick = and i1 %is, %wanted
  br i1 %quick, label %here, label %python
here:
  %at = getelementptr i64, ptr %context, i64 2
  %ordinal = load i32, ptr %at
  store i32 %ordinal, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 20)
  %result = tail call i32 %function(ptr %out)
  ret i32 %result
}

define i32 @cuCtxGetDevice_v2(ptr %out, i64 %handle) {
  %null = icmp eq i64 %handle, 0
  %current = call ptr @context()
  %is = icmp ne ptr %current, null
  %wanted = call i1 @takes(ptr %out, i64 4)
  %asks = and i1 %null, %wanted
  %quick = and i1 %asks, %is
  br i1 %quick, label %here, label %python
here:
  %at = getelementptr i64, ptr %current, i64 2
  %ordinal = load i32, ptr %at
  store i32 %ordinal, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 21)
  %result = tail call i32 %function(ptr %out, i64 %handle)
  ret i32 %result
}

; ── streams and events ──────────────────────────────────────────────────────────────────

define i32 @cuStreamQuery(i64 %handle) {
  %stream = call ptr @stream(i64 %handle)
  %is = icmp ne ptr %stream, null
  br i1 %is, label %look, label %python
look:
  %busy.at = getelementptr i64, ptr %stream, i64 1
  %busy = load atomic i64, ptr %busy.at acquire, align 8
  %captured.at = getelementptr i64, ptr %stream, i64 2
  %captured = load i64, ptr %captured.at
  %either = or i64 %busy, %captured
  %context.at = getelementptr i64, ptr %stream, i64 3
  %context = load i64, ptr %context.at
  %its = call ptr @record(i64 %context, i64 1)
  %known = icmp ne ptr %its, null
  %idle = icmp eq i64 %either, 0
  %quick = and i1 %idle, %known
  br i1 %quick, label %check, label %python
check:
  %failure.at = getelementptr i64, ptr %its, i64 1
  %failure = load i64, ptr %failure.at
  %well = icmp eq i64 %failure, 0
  br i1 %well, label %done, label %python
done:
  ret i32 0
python:
  %function = call ptr @python(i64 22)
  %result = tail call i32 %function(i64 %handle)
  ret i32 %result
}

define i32 @cuStreamIsCapturing(i64 %handle, ptr %out) {
  %stream = call ptr @stream(i64 %handle)
  %is = icmp ne ptr %stream, null
  %wanted = call i1 @takes(ptr %out, i64 4)
  %asks = and i1 %is, %wanted
  br i1 %asks, label %look, label %python
look:
  %captured.at = getelementptr i64, ptr %stream, i64 2
  %captured = load i64, ptr %captured.at
  %free = icmp eq i64 %captured, 0
  br i1 %free, label %here, label %python
here:
  store i32 0, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 23)
  %result = tail call i32 %function(i64 %handle, ptr %out)
  ret i32 %result
}

define i32 @cuEventQuery(i64 %handle) {
  %context = call ptr @context()
  %event = call ptr @record(i64 %handle, i64 3)
  %there = icmp ne ptr %context, null
  %is = icmp ne ptr %event, null
  %asks = and i1 %there, %is
  br i1 %asks, label %look, label %python
look:
  %pending.at = getelementptr i64, ptr %event, i64 1
  %pending = load atomic i64, ptr %pending.at acquire, align 8
  %happened = icmp eq i64 %pending, 0
  br i1 %happened, label %done, label %python
done:
  ret i32 0
python:
  %function = call ptr @python(i64 24)
  %result = tail call i32 %function(i64 %handle)
  ret i32 %result
}

; ── pointers, devices, errors ───────────────────────────────────────────────────────────

; The address of the device (3) is the pointer itself.
define i32 @cuPointerGetAttribute(ptr %out, i32 %number, i64 %address) {
  %context = call ptr @context()
  %is = icmp ne ptr %context, null
  %wanted = call i1 @takes(ptr %out, i64 8)
  %address.asked = icmp eq i32 %number, 3
  %both = and i1 %is, %wanted
  %quick = and i1 %both, %address.asked
  br i1 %quick, label %here, label %python
here:
  store i64 %address, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 25)
  %result = tail call i32 %function(ptr %out, i32 %number, i64 %address)
  ret i32 %result
}

; A table has a row of values for each device; its smallest number stands for what is no attribute.
define i32 @cuDeviceGetAttribute(ptr %out, i32 %number, i32 %ordinal) {
  %is = call i1 @well()
  %wanted = call i1 @takes(ptr %out, i64 4)
  %both = and i1 %is, %wanted
  br i1 %both, label %look, label %python
look:
  %table.at = getelementptr i64, ptr @state, i64 4
  %table = load ptr, ptr %table.at
  %columns.at = getelementptr i64, ptr @state, i64 5
  %columns = load i32, ptr %columns.at
  %devices.at = getelementptr i64, ptr @state, i64 6
  %devices = load i32, ptr %devices.at
  %known = icmp ult i32 %number, %columns
  %there = icmp ult i32 %ordinal, %devices
  %inside = and i1 %known, %there
  br i1 %inside, label %read, label %python
read:
  %row = mul i32 %ordinal, %columns
  %place = add i32 %row, %number
  %at = getelementptr i32, ptr %table, i32 %place
  %value = load i32, ptr %at
  %none = icmp eq i32 %value, -2147483648
  br i1 %none, label %python, label %here
here:
  store i32 %value, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 26)
  %result = tail call i32 %function(ptr %out, i32 %number, i32 %ordinal)
  ret i32 %result
}

define i32 @cuDeviceGet(ptr %out, i32 %ordinal) {
  %is = call i1 @well()
  %wanted = call i1 @takes(ptr %out, i64 4)
  %both = and i1 %is, %wanted
  %devices.at = getelementptr i64, ptr @state, i64 6
  %devices = load i32, ptr %devices.at
  %there = icmp ult i32 %ordinal, %devices
  %quick = and i1 %both, %there
  br i1 %quick, label %here, label %python
here:
  store i32 %ordinal, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 27)
  %result = tail call i32 %function(ptr %out, i32 %ordinal)
  ret i32 %result
}

; The text of a table by the code of a result; 0 where there is none.
define internal i64 @text(i32 %code, i64 %word) alwaysinline {
  %count.at = getelementptr i64, ptr @state, i64 9
  %count = load i32, ptr %count.at
  %known = icmp ult i32 %code, %count
  br i1 %known, label %read, label %none
read:
  %table.at = getelementptr i64, ptr @state, i64 %word
  %table = load ptr, ptr %table.at
  %at = getelementptr i64, ptr %table, i32 %code
  %text = load i64, ptr %at
  ret i64 %text
none:
  ret i64 0
}

define i32 @cuGetErrorString(i32 %code, ptr %out) {
  %text = call i64 @text(i32 %code, i64 7)
  %some = icmp ne i64 %text, 0
  %wanted = call i1 @takes(ptr %out, i64 8)
  %quick = and i1 %some, %wanted
  br i1 %quick, label %here, label %python
here:
  store i64 %text, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 28)
  %result = tail call i32 %function(i32 %code, ptr %out)
  ret i32 %result
}

define i32 @cuGetErrorName(i32 %code, ptr %out) {
  %text = call i64 @text(i32 %code, i64 8)
  %some = icmp ne i64 %text, 0
  %wanted = call i1 @takes(ptr %out, i64 8)
  %quick = and i1 %some, %wanted
  br i1 %quick, label %here, label %python
here:
  store i64 %text, ptr %out
  ret i32 0
python:
  %function = call ptr @python(i64 29)
  %result = tail call i32 %function(i32 %code, ptr %out)
  ret i32 %result
}

; ── functions that clean up ─────────────────────────────────────────────────────────────

; The Python function of a word, with the exception of the thread put aside: destructors of an extension module call these
; functions while one is on its way, and no Python may run then.  `native.py` has a function of its own for each of them.
define internal i32 @undisturbed(i64 %place, i64 %a, i64 %b, i64 %c) noinline {
  %type = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  %held = call i32 @PyGILState_Ensure()
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
  %function = call ptr @python(i64 %place)
  %result = call i32 %function(i64 %a, i64 %b, i64 %c)
  %its.type = load ptr, ptr %type
  %its.value = load ptr, ptr %value
  %its.traceback = load ptr, ptr %traceback
  call void @PyErr_Restore(ptr %its.type, ptr %its.value, ptr %its.traceback)
  call void @PyGILState_Release(i32 %held)
  ret i32 %result
}
