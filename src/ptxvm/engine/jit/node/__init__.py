"""One node under construction: the kernel's context, register shapes, operands, active lanes, spill layout."""
