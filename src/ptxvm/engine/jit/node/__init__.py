"""One node under construction: the kernel's context, registers and their shapes, operands, active lanes."""
