"""Directives and linkage in words, each with the section of the manual that describes it."""

from __future__ import annotations

DIRECTIVES = {
    f".{word.strip()}": (section.strip(), said.strip())
    for word, section, said in (
        line.split("|")
        for line in """
        version             | 11.1.1  | the version of PTX in which the module is written; it opens the module
        target              | 11.1.2  | the chip that the module is for, and options such as `debug`
        address_size        | 11.1.3  | the bits of an address in the module: 32 or 64
        entry               | 11.2.1  | a kernel: the host launches it on a grid of threads
        func                | 11.2.2  | a function of the device, which kernels and functions call
        alias               | 11.2.3  | another name for a function that the module defines
        branchtargets       | 11.3.1  | the labels to which a `brx.idx` may go, in the order of its index
        calltargets         | 11.3.2  | the functions that an indirect call may reach
        callprototype       | 11.3.3  | the results and parameters of the functions that an indirect call may reach
        maxnreg             | 11.4.1  | the most registers that a thread may take
        maxntid             | 11.4.2  | the most threads of a CTA, by dimension
        reqntid             | 11.4.3  | the threads of a CTA, by dimension: a launch must have exactly these
        minnctapersm        | 11.4.4  | how many CTAs are to fit on a multiprocessor at once, at least
        maxnctapersm        | 11.4.5  | the same; the old spelling of `.minnctapersm`
        noreturn            | 11.4.6  | the function does not return to its caller
        pragma              | 11.4.7  | a message to the compiler, which may ignore it
        abi_preserve        | 11.4.8  | how many data registers the function keeps for its caller
        abi_preserve_control| 11.4.9  | how many control registers the function keeps for its caller
        language            | 11.4    | the languages that the code comes from, as numbers of the compiler; no manual tells them
        file                | 11.5.3  | a source file and the number by which `.loc` names it
        loc                 | 11.5.4  | the line and column of the source from which the code below was compiled
        loc_intermediate    | 11.5    | the same in the code that a compiler made of the source on the way to PTX
        nv_intermediate_source_section | 11.5 | that code, in files of its own
        section             | 11.5.2  | the data of a debugging section
        extern              | 11.6.1  | another module defines the name
        visible             | 11.6.2  | other modules, and the host, know the name
        weak                | 11.6.3  | other modules know the name, and may define it as well: the linker takes one definition
        common              | 11.6.4  | other modules may declare the variable too: the linker makes them one
        reqnctapercluster   | 11.7.1  | the CTAs of a cluster, by dimension: a launch must have exactly these
        explicitcluster     | 11.7.2  | the launch says how large clusters are
        maxclusterrank      | 11.7.3  | the most CTAs of a cluster
        blocksareclusters   | 11.8.1  | the grid of the launch counts clusters, not CTAs
        reg                 | 5.1.1   | registers: each thread has its own; no address reaches them
        sreg                | 5.1.2   | special registers, which the machine sets
        const               | 5.1.3   | constant memory: the host writes it, kernels read it
        global              | 5.1.4   | global memory: all threads of all grids share it
        local               | 5.1.5   | local memory: each thread has its own
        param               | 5.1.6   | parameters of kernels and functions, and what calls pass and return
        shared              | 5.1.7   | shared memory: the threads of a CTA share it
        tex                 | 5.1.8   | textures, as PTX declared them before version 1.5
        align               | 5.4.5   | the address of the variable is a multiple of this many bytes
        ptr                 | 5.1.6.3 | the kernel parameter points into this state space, with this alignment
        attribute           | 5.4.8   | attributes of the variable or function
        managed             | 5.4.8   | host and devices share the variable, which the driver moves between them
        unified             | 5.4.8   | the variable or function has the same address on host and devices
        v2                  | 5.4.2   | vectors of 2 elements
        v4                  | 5.4.2   | vectors of 4 elements
        texref              | 5.3     | a texture; its contents cannot be seen
        samplerref          | 5.3     | a sampler of textures; its contents cannot be seen
        surfref             | 5.3     | a surface; its contents cannot be seen
        """.strip().splitlines()
    )
}
"""Each directive, with its dot: the section, and what it says."""
