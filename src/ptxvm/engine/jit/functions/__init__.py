"""The functions around nodes: of a warp, which can stop and go on, and of the grid, which runs CTAs."""
