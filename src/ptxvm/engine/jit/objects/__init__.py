"""From text to machine code in memory, and to a file of it on disk that a later process finds."""
