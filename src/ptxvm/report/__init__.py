"""Reports: one page, in HTML, of what a launch did, with its source, its counters and pictures."""
