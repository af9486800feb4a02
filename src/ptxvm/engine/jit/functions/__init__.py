"""The functions around nodes: the warp function, which suspends and resumes, and the grid functions."""
