"""The algebra over the lanes of a vector: what an operation on affine, uniform and varying values becomes."""
