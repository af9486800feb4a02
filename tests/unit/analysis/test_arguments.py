"""What fits a parameter of a function: verdicts and words of ptxas 13.5."""

import pytest

HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"
TYPE = "Type of argument does not match formal parameter 'i'"
ALIGNMENT = "Alignment of argument does not match formal parameter 'i'"
SPACE = "Inconsistent state space for parameter 't'"

# A row for each parameter, a column for each register: `+` fits, `T` has another type, `A` another alignment too.
REGISTERS = [
    ".v2 .u32",
    ".v2 .f32",
    ".v4 .u32",
    ".v2 .u16",
    ".v4 .u8",
    ".v2 .b64",
    ".u32",
    ".b32",
    ".f32",
    ".u64",
    ".f64",
    ".f16x2",
]
FITTING = {
    ".reg .v2 .u32 i": "+ + A A A A A A A + + A",
    ".reg .v2 .f32 i": "+ + A A A A A A A + + A",
    ".reg .v4 .u32 i": "A A + A A + A A A A A A",
    ".reg .v2 .u16 i": "A A A + + A + + + A A +",
    ".reg .v4 .u8 i":  "A A A + + A + + + A A +",
    ".reg .v2 .b64 i": "A A + A A + A A A A A A",
    ".reg .u32 i":     "A A A + + A + + T A A +",
    ".reg .f32 i":     "A A A + + A T + + A A +",
    ".reg .u64 i":     "+ + A A A A A A A + T A",
    ".reg .f16x2 i":   "A A A + + A + + + A A +",
    ".param .b32 i":   "A A A + + A + + + A A +",
    ".param .f32 i":   "A A A + + A T + + A A +",
    ".param .b64 i":   "+ + A A A A A A A + + A",
}  # fmt: skip
WORDS = {"+": [], "T": [TYPE], "A": [TYPE, ALIGNMENT]}


@pytest.mark.parametrize("formal", FITTING)
def test_registers(ptxas_words, formal):
    for register, fits in zip(REGISTERS, FITTING[formal].split(), strict=True):
        text = f".func f({formal}) {{ ret; }} .visible .entry k() {{ .reg {register} t; call f, (t); ret; }}"
        assert ptxas_words(HEAD + text) == WORDS[fits], register


PARAMETERS = {
    (".b32 i", ".f32 t"): [],
    (".f32 i", ".u32 t"): [TYPE],
    (".b32 i", ".align 8 .b32 t"): [ALIGNMENT],
    (".b32 i", ".align 1 .b32 t"): [],
    (".b32 i", ".b64 t"): [TYPE, ALIGNMENT],
    (".b32 i[2]", ".align 4 .b8 t[8]"): [],
    (".align 4 .b8 i[4]", ".b32 t[1]"): [],
    (".align 8 .b8 i[8]", ".b32 t[2]"): [ALIGNMENT],
    (".align 8 .b8 i[8]", ".b64 t"): [TYPE],
    (".align 4 .b8 i[16]", ".b32 t[2][2]"): [TYPE],
    (".b16 i[2]", ".b32 t[2]"): [TYPE, ALIGNMENT],
    (".u32 i[]", ".b32 t[3]"): [],
    (".u32 i[]", ".f32 t[3]"): [TYPE],
    (".b8 i[]", ".b32 t[3]"): [ALIGNMENT],
}


@pytest.mark.parametrize(("formal", "actual"), PARAMETERS)
def test_variables(ptxas_words, formal, actual):
    text = f".func f(.param {formal}) {{ ret; }} .visible .entry k() {{ .param {actual}; call f, (t); ret; }}"
    assert ptxas_words(HEAD + text) == PARAMETERS[formal, actual]


OTHERS = {
    (".reg .v2 .u32 i", "1"): [],
    (".reg .v2 .u32 i", "1.0"): [],
    (".reg .v4 .u32 i", "1"): [TYPE],
    (".reg .f16x2 i", "1"): [TYPE],
    (".reg .f32 i", "1"): [TYPE],
    (".reg .f32 i", "1.0"): [],
    (".reg .u32 i", "1.0"): [TYPE],
    (".param .b8 i[8]", "1"): [TYPE],
    (".param .b32 i", "_"): ["Illegal argument for formal parameter 'i'"],
    (".reg .b32 i", "%laneid"): ["Call argument '%laneid' has illegal state space"],
    (".reg .b32 i", "%tid"): ["Call argument '%tid' has illegal state space"],
    (".param .b32 i", "local"): ["Call argument 'local' has illegal state space"],
    (".param .b32 i", "own"): ["Formal parameter 'own' declared in .param space cannot be used as argument to call"],
}


@pytest.mark.parametrize(("formal", "actual"), OTHERS)
def test_what_is_no_argument(ptxas_words, formal, actual):
    body = f".local .b32 local; call f, ({actual}); ret;"
    text = f".func f({formal}) {{ ret; }} .visible .entry k(.param .b32 own) {{ {body} }}"
    assert ptxas_words(HEAD + text) == OTHERS[formal, actual]


def test_arrays_are_no_registers(ptxas_words):
    text = ".func f(.param .align 8 .b8 i[8]) { ret; } .visible .entry k() { .reg .b64 t; call f, (t); ret; }"
    assert ptxas_words(HEAD + text) == [SPACE, TYPE]
    text = ".func (.reg .b64 i) f() { ret; } .visible .entry k() { .param .align 8 .b8 t[8]; call (t), f; ret; }"
    assert ptxas_words(HEAD + text) == [SPACE, TYPE]


def test_the_message_names_both_types(errors):
    text = ".func f(.reg .v2 .u32 i) { ret; } .visible .entry k() { .reg .u32 t; call f, (t); ret; }"
    assert errors(HEAD + text) == [("P2007", "t"), ("P2007", "t")]
