"""The engines: what runs a kernel.  They share nothing but the declared ISA and the machine."""
