"""Copies by the tensor memory accelerator: boxes of tensors in every layout, in, out and with a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from . import Case, Map, Words, numbers, random

BOX, TENSOR = 8192, 16384  # bytes of shared memory and of the tensor's array
SIZES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)  # of an element, by CUtensorMapDataType
LOADS, STORES, SLICES = 900, 500, 240


# What all kernels take.
PARAMETERS = ", ".join(
    [".param .u64 out, .param .u64 tensor, .param .align 64 .b8 map[128]", *(f".param .u32 c{n}" for n in range(5)),
     ".param .u32 offsets, .param .u32 bytes"]
)  # fmt: skip


def loads(rank: int, mode: str) -> str:
    """A kernel that fills shared memory with 0xCD, fetches a box, and stores all of it and whether the barrier saw the end."""
    names = ", ".join(f"%c{n}" for n in range(rank))
    given = " ".join(f"ld.param.u32 %c{n}, [c{n}];" for n in range(rank))
    offsets = ", {" + ", ".join(f"%o{n}" for n in range(rank - 2)) + "}" if mode == "im2col" else ""
    shifts = " ".join(f"shr.u32 %t, %w, {8 * n}; and.b32 %t, %t, 255; cvt.u16.u32 %o{n}, %t;" for n in range(max(rank - 2, 0)))
    copy = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return f"""
.visible .entry load_{mode}_{rank}({PARAMETERS})
{{
.reg .b64 %out, %map, %state; .reg .b32 %t, %i, %s, %bar, %w, %c<5>, %done; .reg .b16 %o<5>; .reg .pred %p, %q;
.shared .align 1024 .b8 box[{BOX}]; .shared .align 8 .b64 bar;
ld.param.u64 %out, [out]; mov.b64 %map, map; cvta.param.u64 %map, %map; {given}
mov.u32 %i, %tid.x; mov.u32 %s, box; mov.u32 %bar, bar; mad.lo.u32 %s, %i, 4, %s; mov.u32 %w, 0;
F: st.shared.u32 [%s], 0xCDCDCDCD; add.u32 %s, %s, 512; add.u32 %w, %w, 512; setp.lt.u32 %p, %w, {BOX}; @%p bra F;
fence.proxy.async;
setp.ne.u32 %q, %i, 0;
@!%q mbarrier.init.shared.b64 [%bar], 1;
@!%q fence.mbarrier_init.release.cluster;
fence.proxy.async;
bar.sync 0;
ld.param.u32 %w, [offsets]; {shifts}
ld.param.u32 %w, [bytes]; mov.u32 %s, box;
@%q bra W;
mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], %w;
{copy} [%s], [%map, {{{names}}}], [%bar]{offsets};
W: mov.u32 %w, 0; mov.u32 %done, 0;
T: mbarrier.test_wait.parity.shared.b64 %p, [%bar], 0;
selp.u32 %done, 1, 0, %p; @%p bra D;
add.u32 %w, %w, 1; setp.lt.u32 %p, %w, 10000; @%p bra T;
D: nanosleep.u32 20000; nanosleep.u32 20000;
bar.sync 0;
@!%q st.global.u32 [%out], %done;
mad.lo.u32 %s, %i, 4, %s; mad.wide.u32 %out, %i, 4, %out; mov.u32 %w, 0;
S: ld.shared.u32 %t, [%s]; st.global.u32 [%out+16], %t; add.u64 %out, %out, 512;
add.u32 %s, %s, 512; add.u32 %w, %w, 512; setp.lt.u32 %p, %w, {BOX}; @%p bra S;
ret;
}}
"""


REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def stores(rank: int, mode: str, reduction: str) -> str:
    """A kernel that copies the first array to shared memory, and that to a box of the tensor."""
    names = ", ".join(f"%c{n}" for n in range(rank))
    given = " ".join(f"ld.param.u32 %c{n}, [c{n}];" for n in range(rank))
    kind = (
        f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduction}"
        if reduction
        else f"cp.async.bulk.tensor.{rank}d.global.shared::cta"
    )
    return f"""
.visible .entry store_{reduction}_{mode}_{rank}({PARAMETERS})
{{
.reg .b64 %out, %map; .reg .b32 %t, %i, %s, %w, %c<5>; .reg .pred %p, %q;
.shared .align 1024 .b8 box[{BOX}];
ld.param.u64 %out, [out]; mov.b64 %map, map; cvta.param.u64 %map, %map; {given}
mov.u32 %i, %tid.x; mov.u32 %s, box; mad.lo.u32 %s, %i, 4, %s; mad.wide.u32 %out, %i, 4, %out; mov.u32 %w, 0;
F: ld.global.u32 %t, [%out+16]; st.shared.u32 [%s], %t; add.u64 %out, %out, 512;
add.u32 %s, %s, 512; add.u32 %w, %w, 512; setp.lt.u32 %p, %w, {BOX}; @%p bra F;
fence.proxy.async;
bar.sync 0;
setp.ne.u32 %q, %i, 0; @%q bra E;
mov.u32 %s, box;
{kind}.{mode}.bulk_group [%map, {{{names}}}], [%s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
E: ret;
}}
"""


HEAD = "\n.version 8.3\n.target sm_90a\n.address_size 64\n"
FETCH = HEAD + "".join([*(loads(n, "tile") for n in range(1, 6)), *(loads(n, "im2col") for n in (3, 4, 5))])
STORE = HEAD + "".join(
    [
        *(stores(n, "tile", "") for n in range(1, 6)), *(stores(n, "im2col_no_offs", "") for n in (3, 4, 5)),
        *(stores(n, "tile", each) for n in (1, 3) for each in REDUCTIONS),
    ]
)  # fmt: skip


def tensor(rng: np.random.Generator, type: int, rank: int, grain: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides that stay in the array."""
    size = SIZES[type]
    while True:
        sizes = [int(rng.integers(1, 80 if rank == 1 else 40)), *(int(rng.integers(1, 10)) for _ in range(rank - 1))]
        pitch, strides = sizes[0] * size, []
        for each in sizes[1:]:
            pitch = -(-pitch // grain) * grain + grain * int(rng.integers(0, 3) == 0)
            strides.append(pitch)
            pitch *= each
        if pitch <= TENSOR:
            return tuple(sizes), tuple(strides)


def tiled(rng: np.random.Generator) -> tuple[Map, int]:
    """A map of boxes, and how many bytes of shared memory a box has."""
    while True:
        rank, type = int(rng.integers(1, 6)), int(rng.integers(0, 13))
        interleave = int(rng.choice([0, 0, 0, 1, 2])) if rank > 2 else 0
        swizzle = 1 if interleave == 2 else 0 if interleave else int(rng.integers(0, 4))
        size = SIZES[type]
        sizes, strides = tensor(rng, type, rank, 32 if interleave == 2 else 16)
        span = (256, 32, 64, 128)[swizzle]
        inner = 16 * int(rng.integers(1, span // 16 + 1)) // size
        if interleave:
            inner = (16, 32)[interleave - 1] // size
        box = (inner, *(int(rng.integers(1, 9)) for _ in range(rank - 1)))
        steps = tuple(int(rng.choice([1, 1, 1, 2, 3])) for _ in range(rank))
        if interleave or rng.integers(0, 2):
            steps = (1,) * rank
        count = int(np.prod([-(-each // step) for each, step in zip(box, steps, strict=True)]))
        if count * size <= BOX and inner <= 256:
            fill = int(rng.integers(0, 2)) if type in range(6, 13) else 0
            return Map(1, type, sizes, strides, steps, box=box, interleave=interleave, swizzle=swizzle, fill=fill), count * size


def columns(rng: np.random.Generator) -> tuple[Map, int]:
    """A map of columns of images."""
    while True:
        rank, type = int(rng.integers(3, 6)), int(rng.integers(0, 13))
        swizzle = int(rng.integers(0, 4))
        size = SIZES[type]
        sizes, strides = tensor(rng, type, rank, 16)
        span = (256, 32, 64, 128)[swizzle]
        channels = 16 * int(rng.integers(1, span // 16 + 1)) // size
        pixels = int(rng.integers(1, 65))
        corners = [tuple(int(rng.integers(-2, 3)) for _ in range(rank - 2)) for _ in range(2)]
        spread = [each + high - low for each, low, high in zip(sizes[1:-1], *corners, strict=True)]
        steps = tuple(int(rng.choice([1, 1, 2])) for _ in range(rank)) if rng.integers(0, 2) else (1,) * rank
        steps = (1, *steps[1:-1], 1)
        if channels * pixels * size <= BOX and min(spread) > 0 and channels <= 256:
            fill = int(rng.integers(0, 2)) if type in range(6, 13) else 0
            shape = {"lower": corners[0], "upper": corners[1], "channels": channels, "pixels": pixels}
            return Map(1, type, sizes, strides, steps, swizzle=swizzle, fill=fill, **shape), channels * pixels * size  # type: ignore[arg-type]


def at(rng: np.random.Generator, map: Map) -> list[np.uint32]:
    """Coordinates about the tensor."""
    rank = len(map.sizes)
    found = [int(rng.integers(-6, size + 4)) if rng.integers(0, 2) else 0 for size in map.sizes]
    if map.box and SIZES[map.type] * found[0] % 16:
        rng.integers(0, 2)  # not used, but the records follow this number
    if not map.box:
        for n in range(1, rank - 1):
            low = map.lower[n - 1]
            found[n] = int(rng.integers(low, map.sizes[n] + map.upper[n - 1]))
        found[rank - 1] = int(rng.integers(0, map.sizes[-1]))
        found[0] = found[0] if rng.integers(0, 3) == 0 else 0
    return [np.int32(each).view(np.uint32) for each in [*found, 0, 0, 0, 0][:5]]


def content(rng: np.random.Generator, type: int) -> np.ndarray:
    """The tensor: floats with NaN and subnormals, or whole numbers."""
    name = {6: "f16", 7: "f32", 8: "f64", 9: "bf16", 10: "f32", 11: "f32", 12: "f32"}.get(type)
    bits = 8 * SIZES[type]
    count = TENSOR * 8 // bits
    values = numbers.elements(rng, name or "f64", rng.choice(numbers.MODES), count)
    return (values & np.uint64((1 << bits) - 1)).astype(f"u{bits // 8}").view(np.uint8)


def fetches() -> Iterator[Case]:
    """Boxes and columns that come."""
    for n in range(LOADS):
        name = f"fetch {n}"
        rng = random(name)
        map, bytes = tiled(rng) if n % 3 else columns(rng)
        rank = len(map.sizes)
        kernel = f"load_{'tile' if map.box else 'im2col'}_{rank}"
        offsets = np.uint32(rng.integers(0, 3) | rng.integers(0, 3) << 8 | rng.integers(0, 3) << 16)
        out = np.zeros(16 + BOX, np.uint8)
        yield Case(name, FETCH, kernel, (128,), (out, content(rng, map.type), map, *at(rng, map), offsets, np.uint32(bytes)))


def slices() -> Iterator[Case]:
    """Boxes of interleaved tensors whose elements are their numbers."""
    for n in range(SLICES):
        name = f"slice {n}"
        rng = random(name)
        width = 1 + n % 2
        pixel, grain = 8 * width, 16 * width  # elements and bytes of a slice
        rank = int(rng.integers(3, 6))
        first = pixel * int(rng.integers(1, 4)) + (int(rng.integers(0, pixel)) if rng.integers(0, 2) else 0)
        sizes = (first, *(int(rng.integers(2, 7)) for _ in range(rank - 1)))
        strides = [grain]
        for size in sizes[1:]:
            strides.append(strides[-1] * size + grain * int(rng.integers(0, 2)) * (n % 3 == 0))
        chosen = strides[: rank - 1] if rng.integers(0, 2) else strides[1:rank] if len(strides) >= rank else strides[: rank - 1]
        inner = pixel if rng.integers(0, 2) else int(rng.integers(1, 2 * pixel + 1))
        box = (inner, *(int(rng.integers(1, 5)) for _ in range(rank - 1)))
        map = Map(1, 1, sizes, tuple(chosen), (1,) * rank, box=box, interleave=width, swizzle=width - 1)
        where = [int(rng.integers(0, 3)) for _ in range(rank)]
        given = [np.uint32(each) for each in [*where, 0, 0, 0, 0][:5]]
        content = np.arange(TENSOR, dtype=np.uint16).view(np.uint8)[: 4 * TENSOR]
        bytes = np.uint32(grain * int(np.prod(box[1:])))
        yield Case(
            name, FETCH, f"load_tile_{rank}", (128,), (np.zeros(16 + BOX, np.uint8), content, map, *given, np.uint32(0), bytes)
        )


def reduced(rng: np.random.Generator, type: int) -> str:
    """A reduction that there is for a type."""
    wide = {
        2: "add min max inc dec and or xor",
        3: "add min max and or xor",
        4: "add min max and or xor",
        5: "add min max and or xor",
    }
    floats = {6: "add min max", 9: "add min max", 7: "add", 8: "add", 10: "add"}
    known = (wide | floats).get(type)
    return str(rng.choice(known.split())) if known else ""


def writes() -> Iterator[Case]:
    """Boxes and columns that go, some with a reduction."""
    for n in range(STORES):
        name = f"write {n}"
        rng = random(name)
        map, bytes = tiled(rng) if n % 4 else columns(rng)
        rank, mode = len(map.sizes), "tile" if map.box else "im2col_no_offs"
        how = reduced(rng, map.type) if map.box and rank in (1, 3) else ""
        source = np.concatenate([np.zeros(16, np.uint8), content(rng, map.type)[:BOX]])
        given: tuple[Words | np.generic | Map, ...] = (
            source,
            content(rng, map.type),
            map,
            *at(rng, map),
            np.uint32(0),
            np.uint32(bytes),
        )
        yield Case(name, STORE, f"store_{how}_{mode}_{rank}", (128,), given, kept=(1,))


FIELDS = "type sizes strides steps interleave swizzle fill box lower upper channels pixels".split()
ODD = [*range(6), 7, 8, 9, 15, 16, 24, 31, 32, 48, 64, 127, 128, 255, 256, 257, 1024, 1025, 1 << 32, 1 << 40]
ODD_CORNERS = [-32769, -32768, -129, -128, -17, -16, -8, 0, 7, 8, 15, 16, 127, 128, 32767, 32768]
MODULI = {"type": 16, "swizzle": 8, "interleave": 3, "fill": 2}


def maps(count: int = 4000) -> list[Map]:
    """Arguments of the encoder, right ones and wrong ones."""
    rng, found = random("maps"), list[Map]()
    source = (tiled(rng)[0] if rng.integers(0, 3) else columns(rng)[0] for _ in iter(int, 1))
    for map in islice(source, count):
        changed = dict(vars(map))
        for _ in range(int(rng.integers(0, 3))):
            spoil(rng, changed)
        found.append(Map(**changed))
    return found


def spoil(rng: np.random.Generator, arguments: dict[str, Any]) -> None:
    """Change one of them to an odd number."""
    field = str(rng.choice(FIELDS))
    value, odd = arguments[field], int(rng.choice(ODD))
    if isinstance(value, tuple) and value:
        at = int(rng.integers(0, len(value)))
        if field in ("lower", "upper"):
            odd = int(rng.choice(ODD_CORNERS))
        if field in ("box", "steps"):
            odd %= 1 << 32
        arguments[field] = (*value[:at], odd, *value[at + 1 :])
    elif not isinstance(value, tuple) and (value or field not in ("channels", "pixels")):
        arguments[field] = odd % MODULI.get(field, 2048)
