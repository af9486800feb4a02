"""The commands of the debugger: cuda-gdb's words, over a session.  A command takes a line of text and gives lines of text."""
