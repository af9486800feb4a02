"""Random kernels, made from the declarations as strategies of hypothesis."""
