"""The reference: what a code, an instruction or an opcode means, read from the declarations.

Everything here is data and text for whoever shows it: the command line today, an editor tomorrow.
"""
