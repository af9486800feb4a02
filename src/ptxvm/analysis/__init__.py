"""From a tree to a program: names bound, instructions recognised and checked, control flow known."""
