"""What the JIT made of a kernel, for people."""
