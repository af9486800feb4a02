"""Random kernels, made from the declarations by strategies."""
