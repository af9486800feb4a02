"""What kernels ask the device runtime: attributes of the device, how many there are, versions, and words for errors, as PTX.

The answers are tables of the module that asks; those about the device are of its model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from ptxvm.driver import runtime_errors
from ptxvm.driver.models import Model

RUNTIME_VERSION = 13000
FOUR_BYTES = 1  # cudaSharedMemBankSizeFourByte

HEAD = """\
.version 6.4
.target sm_70
.address_size 64

{tables}

// cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
// An unknown attribute is cudaErrorInvalidValue (1), an unknown device cudaErrorInvalidDevice (101).
.visible .func (.param .b32 error) __cudaCDP2DeviceGetAttribute(.param .b64 out, .param .b32 attribute, .param .b32 device)
{{
    .reg .pred %wrong;
    .reg .b32 %attribute, %device, %value, %error;
    .reg .b64 %out, %at;
    ld.param.b64 %out, [out];
    ld.param.b32 %attribute, [attribute];
    ld.param.b32 %device, [device];
    mov.u32 %error, 101;
    setp.ge.u32 %wrong, %device, {devices};
    @%wrong bra end;
    mov.u32 %error, 1;
    setp.ge.u32 %wrong, %attribute, {count};
    @%wrong bra end;
    mov.u64 %at, device_attributes;
    mad.wide.u32 %at, %attribute, 4, %at;
    ld.global.u32 %value, [%at];
    st.u32 [%out], %value;
    mov.u32 %error, 0;
end:
    st.param.b32 [error], %error;
    ret;
}}
"""

NUMBER = """
.visible .func (.param .b32 error) __cudaCDP2{name}(.param .b64 out)
{{
    .reg .b64 %out;
    ld.param.b64 %out, [out];
    st.u32 [%out], {value};
    st.param.b32 [error], 0;
    ret;
}}
"""

TEXT = """
.visible .func (.param .b64 text) __cudaCDP2{name}(.param .b32 error)
{{
    .reg .pred %found;
    .reg .b32 %error, %n, %code, %offset;
    .reg .b64 %at, %text;
    ld.param.b32 %error, [error];
    mov.u32 %n, 0;
    mov.u64 %at, error_codes;
next:
    setp.eq.u32 %found, %n, {count};  // the last text is that of an unknown code
    @%found bra end;
    ld.global.u32 %code, [%at];
    setp.eq.u32 %found, %code, %error;
    @%found bra end;
    add.u32 %n, %n, 1;
    add.u64 %at, %at, 4;
    bra next;
end:
    mov.u64 %at, {table}_offsets;
    mad.wide.u32 %at, %n, 4, %at;
    ld.global.u32 %offset, [%at];
    cvt.u64.u32 %at, %offset;
    mov.u64 %text, {table};
    cvta.global.u64 %text, %text;
    add.u64 %text, %text, %at;
    st.param.b64 [text], %text;
    ret;
}}
"""


@cache
def questions(model: Model, devices: int) -> bytes:
    """The functions for devices of a model, by their names since CUDA 12."""
    attributes = {int(number): value for number, value in model.attributes().items()}
    values, codes = [attributes.get(number, 0) for number in range(max(attributes) + 1)], list(runtime_errors.names())
    tables = [table("device_attributes", "b32", values), table("error_codes", "b32", codes)]
    for name, text_of in (("names_of_errors", runtime_errors.name), ("texts_of_errors", runtime_errors.description)):
        tables += texts(name, [*codes, -1], text_of)
    parts = [HEAD.format(tables="\n".join(tables), devices=devices, count=len(values))]
    parts += [NUMBER.format(name=name, value=value) for name, value in (
        ("GetDeviceCount", devices), ("RuntimeGetVersion", RUNTIME_VERSION),
        ("DeviceGetCacheConfig", 0), ("DeviceGetSharedMemConfig", FOUR_BYTES),
    )]  # fmt: skip
    parts += [TEXT.format(name=name, table=table, count=len(codes)) for name, table in (
        ("GetErrorName", "names_of_errors"), ("GetErrorString", "texts_of_errors"),
    )]  # fmt: skip
    return "".join(parts).encode()


def table(name: str, type: str, values: Iterable[int]) -> str:
    """A table of numbers."""
    numbers = list(values)
    return f".global .align 8 .{type} {name}[{len(numbers)}] = {{{', '.join(map(str, numbers))}}};"


def texts(name: str, codes: Iterable[int], text_of: Callable[[int], str]) -> list[str]:
    """The tables of the texts of codes, each ended by a null byte, and of their offsets."""
    found = [text_of(code).encode() + b"\0" for code in codes]
    offsets = [sum(map(len, found[:n])) for n in range(len(found))]
    return [table(name, "b8", b"".join(found)), table(f"{name}_offsets", "b32", offsets)]


__all__ = ["RUNTIME_VERSION", "questions"]
