"""The machine that every engine runs on: memory, the image of a program, launches, the functions of the device."""
