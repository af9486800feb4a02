"""From a kernel to the text of its versions: the fixed point over shapes, the choice of a width."""
