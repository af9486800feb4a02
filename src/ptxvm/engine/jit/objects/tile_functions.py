"""Functions that multiply tiles of matrices: compiled when a product first needs one, kept on disk, shared by all kernels."""

from __future__ import annotations

from _thread import allocate_lock

from ptxvm.analysis.collector import NoCollection
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.abi.tile_product import CALL, TileFunction, TileProduct
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.objects.code_cache import link, object_code, ourselves
from ptxvm.engine.jit.objects.disk_cache import from_environment
from ptxvm.engine.jit.objects.library_code import keep, kept
from ptxvm.engine.jit.objects.loader import Loaded

NAME = "ptxvm.tiles"
_LOCK = allocate_lock()
_FOUND: dict[tuple[TileProduct, str], tuple[TileFunction, object] | None] = {}  # with the code, which it keeps in memory


def tile_function(tile: TileProduct) -> TileFunction | None:
    """The function of a product; None where there is none."""
    key = tile, repr(cpu.identity())
    with _LOCK:
        if key not in _FOUND:
            _FOUND[key] = _from_disk(tile) or _compiled(tile)
        found = _FOUND[key]
    return None if found is None else found[0]


def _key(tile: TileProduct) -> str:
    return Digest().add(repr(("tiles", tile, cpu.identity(), ourselves()))).text


def _from_disk(tile: TileProduct) -> tuple[TileFunction, object] | None:
    code = kept(_key(tile), from_environment())
    if code is None:
        return None
    loaded = Loaded(code)
    return CALL(loaded.address(NAME)), loaded


def _compiled(tile: TileProduct) -> tuple[TileFunction, object] | None:
    """Compile the function, and keep it on disk."""
    with NoCollection():
        from ptxvm.engine.jit.ir.builder import Unit  # noqa: PLC0415 - code that is ready needs none ...
        from ptxvm.engine.jit.ir.module_text import module_text  # noqa: PLC0415 - ... of these
        from ptxvm.engine.jit.values import mma_tiles  # noqa: PLC0415
    unit = Unit()
    if mma_tiles.written(unit, tile) is None:
        return None
    linked, code = link(object_code(module_text(unit), Tier.BEST, background=False), NAME, NAME)
    if code is not None:
        keep(_key(tile), code, from_environment())
    return CALL(linked.address(NAME)), linked
