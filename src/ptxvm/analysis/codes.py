"""The codes of what is wrong with names (P02xx), with directives and declarations (P05xx), and between linked modules (P06xx).

The pages are what `ptxvm explain P0202` prints.
"""

from __future__ import annotations

from ptxvm.diagnostics import register

# ── P02xx: names (PTX 4.4, 5.4, 11.6) ───────────────────────────────────────────────────

UNDECLARED = register(
    "P0201",
    "unknown name",
    """
    A name stands for what was declared above it, in its block or in one around it (PTX 5.4.1).  Labels alone may be
    used before they are passed.

        mov.b32 %r1, %r2;      // wrong where .reg %r<2> declares %r0 and %r1
        call f;                // wrong where `.func f() {…}` follows: write `.func f();` above
    """,
)
DUPLICATE = register(
    "P0202",
    "declared twice",
    """
    In one block a name is declared once: registers, variables, parameters and labels share their names.  So it is at
    module level, but for declarations with `.extern`, and for functions that are declared and then defined (PTX
    11.6).

        .reg .b32 a<4>;
        .reg .b32 a2;          // wrong: a<4> declares a0, a1, a2 and a3
    """,
)
CONFLICTING = register(
    "P0203",
    "declarations that differ",
    """
    All declarations of a symbol agree: a variable in its type and dimensions (one may leave out the first, `a[]`), a
    function in the types, spaces and alignments of its parameters and results, in `.noreturn` and in its linkage.  A
    later declaration may leave out `.visible` or `.weak`; what was declared `.extern` is not defined in the same
    module, unless it is a variable, and then `.visible` or `.weak` (PTX 11.6.1).

        .func f(.param .b32 a);
        .func f(.param .u32 a) { ret; }      // wrong: .b32 and .u32 are two types
    """,
)
RESERVED = register(
    "P0204",
    "the name of a special register",
    """
    The special registers, such as `%tid` and `%laneid`, are declared before the module begins (PTX 10).  Within a
    function their names may be declared anew.
    """,
)
UNDEFINED = register(
    "P0205",
    "declared and not defined",
    """
    A function that a module declares without `.extern` is defined in it, or becomes an alias of one that is.  A
    function of another module is declared with `.extern` (PTX 11.6.1).

        .func f();                   // wrong where no `.func f() {…}` follows
        .extern .func f();           // right where another module defines f
    """,
)
NAMELESS = register(
    "P0206",
    "a parameter without a name",
    "The parameters of a .func have names; `_` stands for one in a .callprototype only (PTX 11.2.2, 11.3.3).",
)
NO_TARGET = register(
    "P0207",
    "not a target of branches or calls",
    "A .branchtargets list names labels of its function, a .calltargets list names functions (PTX 11.3.1, 11.3.2).",
)

# ── P050x: the head of a module (PTX 11.1) ──────────────────────────────────────────────

VERSION = register(
    "P0501",
    "no known .version",
    "A module begins with `.version` and one of the versions of PTX, 1.0 to 9.5 (PTX 11.1.1).",
    stops_ptxas=True,
)
TARGET = register(
    "P0502",
    "no known .target",
    """
    The second directive of a module is `.target` with an architecture that its version knows, then options.  A target
    whose name ends in `a` has features that no other has; one in `f` those of its family (PTX 11.1.2).
    """,
    stops_ptxas=True,
)
ADDRESS_SIZE = register("P0503", "a wrong address size", "Addresses have 32 or 64 bits (PTX 11.1.3).")
TARGET_OPTION = register(
    "P0504",
    "options of .target that do not fit",
    """
    A module has one texturing mode, `texmode_unified` or `texmode_independent`; `map_f64_to_f32` is for targets
    without f64, below sm_13; `debug` asks for debugging sections, which the module must have (PTX 11.1.2).
    """,
)
ALIAS = register(
    "P0505",
    "a wrong alias",
    """
    `.alias f, g;` makes `f`, a .func that is declared and not defined, another name of `g`, a .func of the same
    signature that the module defines, not .weak (PTX 11.2.3).
    """,
)
NEEDS_VERSION = register(
    "P0506", "the version lacks this", "A directive, type or form that came with a later version than `.version` names."
)
NEEDS_TARGET = register("P0507", "the target lacks this", "A directive, type or form that the `.target` does not have.")
GONE = register("P0508", "no longer part of PTX", "A directive or form that was withdrawn before the version of this module.")

OTHER_TARGET = register(
    "P0509",
    "not compiled for that target",
    """
    A module is compiled for its own `.target` or a later one.  One for `sm_90a` runs on that chip alone, one for `sm_100f`
    on chips of that family (PTX 11.1.2).
    """,
)

# ── P051x: variables (PTX 5.1 to 5.4) ───────────────────────────────────────────────────

WRONG_SPACE = register(
    "P0510",
    "a state space where it cannot stand",
    """
    Parameters of a kernel are in `.param`, those of a function in `.param` or `.reg`; at module level variables are
    in `.global`, `.const` or `.shared` (PTX 5.1, 7.1).
    """,
)
WRONG_TYPE = register(
    "P0511",
    "a type that its state space does not hold",
    """
    Predicates live in registers, one by one.  Opaque variables (.texref .samplerref .surfref) are in `.global` at
    module level, or parameters of kernels; .samplerref needs `texmode_independent`.  Registers are no arrays, and
    parameters no vectors (PTX 5.1.1, 5.1.6, 5.3).
    """,
)
BAD_ALIGNMENT = register(
    "P0512",
    "a wrong alignment",
    "An alignment is a power of two; for a .param variable of a function it is 128 bytes at most (PTX 5.4.5, 5.1.6.4).",
)
BAD_VECTOR = register(
    "P0513", "a wrong vector", "A vector has 2 or 4 elements of a fundamental type, 128 bits at most (PTX 5.4.2)."
)
INCOMPLETE = register(
    "P0514",
    "an array without a size",
    """
    The first dimension may be left open where an initialiser gives it, in an `.extern` declaration, or in the last
    input parameter of a function, which is then variadic (PTX 5.4.3, 7.2).
    """,
)
NO_INITIALISER = register(
    "P0515",
    "an initial value that cannot be",
    "Variables in .global and .const have initial values, but for those that are .extern or of .f16 (PTX 5.4.4).",
)
BAD_INITIALISER = register(
    "P0516",
    "an initialiser that does not fit its variable",
    """
    Integers initialise integers and bits, floating-point numbers .f32, .f64 and bits, addresses .u32 and .u64.  Each
    dimension has its braces and no more values than elements; a vector has as many as elements (PTX 5.4.4).

        .global .f32 a = 1;                          // wrong: 1.0
        .global .b32 m[2][2] = {1, 2, 3, 4};         // wrong: {{1, 2}, {3, 4}}
        .global .b64 p = a;                          // wrong: an address is .u64
    """,
    stops_ptxas=True,
)
BAD_CONSTANT = register(
    "P0517",
    "an expression without a value",
    """
    Constant expressions are of 64-bit integers or of f64, never of both; shifts, `&` `|` `^` `~`, `!` `&&` `||`, `?:`
    and casts take integers; nothing is divided by zero; a literal fits into 64 bits (PTX 4.5.4).
    """,
)
BAD_FIELD = register(
    "P0518",
    "an unknown field of a texture, sampler or surface",
    "An opaque variable is initialised by fields, such as `{width = 8, filter_mode = nearest}` (PTX 5.3).",
)
NO_ARRAY = register(
    "P0519",
    "an array where there is none, or none where there is one",
    """
    `a[1]` is the address of an element of an array; a register has no elements: the address behind one is `[%rd1+4]`.
    The elements of a vector operand are registers and constants (PTX 6.4.2, 6.4.3).
    """,
)
BAD_LINKAGE = register("P0520", "linkage that does not fit", "`.common` is for variables in .global (PTX 11.6.4).")
BAD_ATTRIBUTE = register(
    "P0521",
    "an attribute that does not fit",
    """
    `.managed` is for variables in .global.  `.unified` needs a module that is compiled apart and linked later, as
    `ptxas --compile-only` does (PTX 5.4.8).
    """,
)
CONSTANT_BANK = register("P0522", "too much constant memory", "The .const variables of a module have 64 KiB (PTX 5.1.3).")

# ── P052x: functions (PTX 5.1.6, 7.1, 11.2, 11.3) ───────────────────────────────────────

BAD_RESULT = register(
    "P0523", "results that cannot be", "A function returns one .param variable, or any number of registers (PTX 7.1)."
)
BAD_NORETURN = register("P0524", ".noreturn with results", "A function that does not return has no results (PTX 11.4.6).")
KERNELS_ONLY = register(
    "P0525",
    "only for parameters of kernels",
    "`.ptr`, and an alignment behind the type, are for parameters of a .entry (PTX 5.1.6.2).",
)
PARAMETER_SPACE = register(
    "P0526",
    "too many bytes of parameters",
    "A kernel has 4352 bytes of parameters, and 32764 from 8.1 and sm_70 on (PTX 5.1.6.1).",
)
BAD_PARAMETER_USE = register(
    "P0527",
    "loaded from where nothing was put",
    """
    ld.param takes the parameters of its function, or what a call returned in a .param variable of the body; a function
    does not read its own result (PTX 5.1.6.4, 7.1).
    """,
)

# ── P053x: tuning, pragmas and debugging (PTX 11.4, 11.5, 11.7, 12) ─────────────────────

NOT_POSITIVE = register("P0530", "a number out of range", "The bounds of a kernel are positive numbers below 2^32 (PTX 11.4).")
EXCLUSIVE = register(
    "P0531",
    "directives that do not go together",
    """
    `.maxntid` excludes `.reqntid`, `.reqnctapercluster` excludes `.maxclusterrank`, and `.blocksareclusters` needs
    `.reqntid` and `.reqnctapercluster` (PTX 11.4, 11.7, 11.8).
    """,
)
IGNORED = register(
    "P0532", "a directive without effect", "`.minnctapersm` says nothing without `.maxntid` or `.reqntid` (PTX 11.4.4)."
)
BAD_PRAGMA = register(
    "P0533",
    "a pragma that does not fit",
    """
    "used_bytes_mask", "enable_smem_spilling" and "frequency n" stand within a function, the second within a kernel; n
    is a positive number (PTX 12).
    """,
)
SHARED_SPACE = register(
    "P0534",
    "too much shared memory is declared",
    """
    The `.shared` variables that a kernel uses take 48 KB at most, on targets of one chip or family (`sm_90a`) 227 KB: for
    more, ptxas makes no code.  An array without a size, `.extern .shared .b8 a[];`, gets what the launch says.
    """,
)
BAD_FILE = register("P0540", "a wrong .file", "Each index is given to one file, at module level (PTX 11.5.3).")
BAD_LOCATION = register("P0541", "a wrong .loc", "The place that `inlined_at` names has a .loc of its own above (PTX 11.5.4).")
BAD_SECTION = register(
    "P0542",
    "wrong data of a section",
    "A section holds .b8, .b16, .b32 and .b64, labels and differences of labels in the latter two (PTX 11.5.2).",
)

# ── P06xx: between the modules of a link (PTX 11.6) ─────────────────────────────────────

MULTIPLE_DEFINITION = register(
    "P0601",
    "defined by two modules",
    """
    Of the modules that are linked one defines a `.visible` symbol; the others declare it `.extern`.  Any number of modules
    may define it `.weak`: the first of these counts where none is `.visible`.  A kernel is launched by its name, so two
    kernels have two names, `.visible` or not (PTX 11.6).
    """,
)
UNRESOLVED = register(
    "P0602",
    "declared .extern, and defined by no module",
    """
    A variable that a module declares `.extern`, and a function that its code names, is defined by another module of the
    link as `.visible`, `.weak` or `.common`: one without such a directive is private to its module.  Functions of the
    device (`vprintf`, `malloc`, those of the device runtime) and `.extern .shared` arrays without a size need no
    definition (PTX 11.6.1).
    """,
)
SIZES_DIFFER = register(
    "P0603",
    "variable of two sizes",
    """
    All modules of a link declare a variable with the same number of bytes, or without its first dimension.  Of `.common`
    declarations the largest counts, and a definition with an initial value may be larger than these (PTX 11.6).

        .extern .global .u32 x[2];        // in one module
        .visible .global .u32 x[3];       // wrong, in another; .u64 x[2] too
    """,
)
KINDS_DIFFER = register(
    "P0604",
    "name of two kinds",
    "In all modules of a link a name means a variable of one state space, or a function, or a kernel (PTX 11.6).",
)
PROTOTYPES_DIFFER = register(
    "P0605",
    "function of two prototypes",
    """
    Where modules are linked, the declaration of a function has the results and parameters of its definition: their number,
    the size of each, its dimensions, and whether it is a floating-point number.  `.b`, `.u` and `.s` are one to the linker,
    `.reg` and `.param` too, and alignments are not compared.  Kernels that are `.weak` have as many bytes of parameters.

        .extern .func f(.param .u32 a);           // in one module
        .visible .func f(.param .f32 a) {...}     // wrong, in another: .b32 or .s32 would do
    """,
)
MANAGED_DIFFERS = register(
    "P0606", "managed in one module only", "`.attribute(.managed)` stands at all declarations of a variable (PTX 5.4.8)."
)
COMMON_TOO_LARGE = register(
    "P0607",
    "a .common variable larger than its definition",
    """
    A definition with an initial value takes the place of `.common` ones of other modules: these are not larger, since
    their modules may access all of their bytes (PTX 11.6.4).
    """,
)
NO_COMMON_DEVICE = register(
    "P0608",
    "modules for no common device",
    """
    All modules of a link have addresses of one size, and one device runs them all: `sm_90a` goes with `sm_80`, and
    neither with `sm_100a` nor with `sm_100f`, whose features other devices lack (PTX 11.1.2, 11.1.3).
    """,
)
