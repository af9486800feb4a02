"""The debugger: breakpoints, steps forwards and backwards, and all state of a running grid.  It has no input and no output."""
