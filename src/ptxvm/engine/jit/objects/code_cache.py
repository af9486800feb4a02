"""The code cache of an image: finds the code of kernels in the disk cache, or compiles and stores it."""

from __future__ import annotations

import functools
import os
import time
from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ptxvm.algebra.float_environment import DefaultEnvironment
from ptxvm.analysis.collector import NoCollection
from ptxvm.engine.jit.abi.metadata import Facts, HostCallSite
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.objects import disk_cache, log
from ptxvm.engine.jit.objects.cache_entry import packed, unpacked
from ptxvm.engine.jit.objects.loader import FlatCode, Loaded, NotFlatError
from ptxvm.engine.jit.objects.recent_translations import RECENT, Remembered
from ptxvm.engine.jit.objects.version import Version
from ptxvm.machine import settings
from ptxvm.machine.image import Image

if TYPE_CHECKING:
    from ptxvm.engine.jit.objects.codegen import LinkedObject
    from ptxvm.engine.jit.translate.checked_kernel import CheckedKernel
    from ptxvm.engine.jit.translate.translation import Translation

LONG = 60.0  # seconds for which code that is compiled in the background is waited for
MOMENT = 0.1  # seconds after which a wait looks for what the handlers of signals have to do
ABOVE = {"campaign", "cli", "debug", "driver", "libcudart", "lsp", "playground", "reference", "report", "triton_backend"}
"""The rooms that use engines, but for libcuda, which keeps native code of its own: no code of kernels depends on them."""

UNRELATED = ABOVE | {"__pycache__", "checkers", "interp", "model"}  # folders that compiled code does not depend on


class CodeCache:
    """Finds or compiles the versions of kernels."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.store = disk_cache.from_environment()
        self._translations: dict[Specialisation, Remembered] = {}
        self._checked: dict[Specialisation, CheckedKernel] = {}
        self._lock = allocate_lock()

    def get(self, wanted: Specialisation, kind: VersionKind, tier: Tier, *, background: bool = False) -> Version:
        """Code of a tier, or of a better one that is cached; launches go on beside a compilation in the `background`."""
        found = self._from_disk(wanted, kind, tier)
        if found is None and self.store is not None and not wanted.checks:
            patience = LONG if background else disk_cache.PATIENCE
            with self.store.claimed(f"{self.key(wanted, kind)}.{int(tier)}", patience) as was_claimed:
                found = self._from_disk(wanted, kind, tier) if was_claimed else None
                return found or self._compile(wanted, kind, tier, background=background)
        return found or self._compile(wanted, kind, tier, background=background)

    def holds(self, wanted: Specialisation) -> bool:
        """Has the disk cache the best code of a kernel?"""
        return self._kept(wanted, VersionKind.FIRST, Tier.BEST) is not None

    def translation(self, wanted: Specialisation) -> Translation:
        """The translation of a kernel; the latest ones are remembered."""
        with NoCollection():  # it takes longer to import than ready code to load
            from ptxvm.engine.jit.translate.translation import Translation  # noqa: PLC0415

        with self._lock:
            if wanted not in self._translations:
                self._translations[wanted] = Remembered(functools.partial(Translation, self.image, wanted))
        return RECENT.get(self._translations[wanted])

    def checked(self, wanted: Specialisation) -> CheckedKernel:
        """The facts of instrumented code that checks need."""
        return self._checked.get(wanted) or self._note(wanted, self.translation(wanted))

    def _note(self, wanted: Specialisation, translation: Translation) -> CheckedKernel:
        from ptxvm.engine.jit.translate.checked_kernel import CheckedKernel  # noqa: PLC0415 - few launches are checked

        made = CheckedKernel.of(translation.versions.kernel)
        made.know_doubts(self._checked.get(wanted))
        self._checked[wanted] = made
        return made

    def host_calls(self, wanted: Specialisation, kinds: Iterable[VersionKind]) -> Sequence[HostCallSite]:
        """The host calls of some versions of a kernel, in order, found by translating it again."""
        translation = self.translation(wanted)
        for kind in kinds:
            translation.text(kind)
        return translation.facts.host_calls

    def _kept(self, wanted: Specialisation, kind: VersionKind, tier: Tier) -> tuple[Facts, FlatCode, int] | None:
        """The entry of the disk cache for a version, if its code is of a tier or a better one."""
        if self.store is None or wanted.checks or (data := self.store.get(self.key(wanted, kind))) is None:
            return None
        found = unpacked(data)
        return found if found is not None and found[2] >= tier else None

    def _from_disk(self, wanted: Specialisation, kind: VersionKind, tier: Tier) -> Version | None:
        if (found := self._kept(wanted, kind, tier)) is None:
            return None
        facts, code, made = found
        loaded = Loaded(code)
        return Version(facts, loaded, loaded.address(kind.entry), made, 0.0)

    def _compile(self, wanted: Specialisation, kind: VersionKind, tier: Tier, *, background: bool) -> Version:
        began = time.perf_counter()
        translation = self.translation(wanted)
        text, facts = translation.text(kind)
        RECENT.measure(self._translations[wanted], text)
        if wanted.checks:
            self._note(wanted, translation)
        if tier is Tier.SKETCH and translation.loops:
            tier = Tier.QUICK
        from ptxvm.engine.jit.ir import libraries  # noqa: PLC0415 - code that is ready needs none ...
        from ptxvm.engine.jit.objects.shared_functions import set_apart  # noqa: PLC0415 - ... of these

        text = set_apart(text, tier)
        data = object_code(text, tier, background=background)
        took = time.perf_counter() - began
        log.debug("%s, %s for %s: compiled in %.3f s", facts.name, kind, wanted.block, took)
        linked, code = link(data, kind.entry, facts.name, libraries.needed(text), tier, self.store)
        if code is not None and self.store is not None and not wanted.checks:
            self.store.put(self.key(wanted, kind), packed(facts, code, tier))
        return Version(facts, linked, linked.address(kind.entry), tier, took)

    # ── keys ────────────────────────────────────────────────────────────────────────────

    def key(self, wanted: Specialisation, kind: VersionKind) -> str:
        """The key of a disk cache entry: a digest of all that the code depends on."""
        function, *form = wanted._replace(checks=frozenset())  # instrumented code is not cached
        number, unit = self.image.number_of(function), self.image.shared_unit
        parts = self._sources, number, *form, unit, kind, cpu.identity(), ourselves()
        return Digest().add(repr(parts)).text

    @functools.cached_property
    def _sources(self) -> str:
        """The modules of the image, and the targets that they were loaded for."""
        digest = Digest()
        for program in self.image.programs:
            digest.add(f"{program.target} {len(program.source.text)}\n")
            digest.add(program.source.text)
            if "multimem" in program.source.text:
                digest.add(f"{settings.devices()}")  # the most memories that an address stands for
        return digest.text


def object_code(text: str, tier: Tier, *, background: bool) -> bytes:
    """The object file of a module, compiled in a process of its own where that takes long."""
    from ptxvm.engine.jit.objects import compiler_process  # noqa: PLC0415 - code that is ready needs no compiler

    made = None
    if compiler_process.is_long(text, tier):
        made = compiler_process.object_code(text, tier, background=background)
    return made if made is not None else _beside_signals(text, tier)


def _beside_signals(text: str, tier: Tier) -> bytes:
    """The object file of a module, compiled by a thread that runs no handlers of signals.

    LLVM crashes where an exception of a handler leaves a module half made.  Here it interrupts the wait alone.
    """
    from threading import Thread  # noqa: PLC0415

    from ptxvm.engine.jit.objects import codegen  # noqa: PLC0415

    made: list[bytes] = []
    errors: list[BaseException] = []

    def work() -> None:
        with DefaultEnvironment():
            try:
                made.append(codegen.object_code(text, tier))
            except BaseException as error:  # noqa: BLE001 - it is raised where the code is waited for
                errors.append(error)

    thread = Thread(target=work, name="ptxvm compiles")
    thread.start()
    while thread.is_alive():  # a signal that another thread receives does not end the wait of this one
        thread.join(MOMENT)
    for error in errors:
        raise error
    return made[0]


def link(
    data: bytes,
    entry: str,
    name: str,
    needed: Sequence[str] = (),
    tier: Tier = Tier.BEST,
    store: disk_cache.DiskCache | None = None,
) -> tuple[Loaded | LinkedObject, FlatCode | None]:
    """The code of an object file, in memory, and in the form that is kept on disk; None where it has none.

    The libraries that are `needed` are joined to it; a cache may keep them.
    """
    from ptxvm.engine.jit.objects import library_code  # noqa: PLC0415 - code that is ready needs none
    from ptxvm.engine.jit.objects.elf import flatten  # noqa: PLC0415 - ... of these

    compiled = functools.partial(object_code, background=False)
    try:
        code = flatten(data)
        parts = {each: library_code.code_of(each, tier, compiled, ourselves(), store) for each in needed}
        code = library_code.joined(code, parts) if parts else code
    except NotFlatError as reason:  # on processors that the linker does not know
        from ptxvm.engine.jit.objects.codegen import LinkedObject  # noqa: PLC0415

        log.debug("%s is not cached: %s", name, reason)
        return LinkedObject([data, *[library_code.object_of(each, tier, compiled) for each in needed]], [entry]), None
    return Loaded(code), code


@functools.cache
def ourselves() -> str:
    """A digest of the sources of ptxvm and llvmlite: an edited source makes another key."""
    found = [source for folder in package_folders() for source in sources(folder)]
    llvmlite = find_spec("llvmlite")
    if llvmlite is not None and llvmlite.origin is not None:
        found += sources(os.path.realpath(Path(llvmlite.origin).parent / "binding"))
    return Digest().add(repr(sorted(found))).text


def package_folders() -> list[str]:
    """The folders of the package, without links: `ptxvm exec` makes one to it, under another name each time."""
    package = find_spec("ptxvm")
    return [os.path.realpath(each) for each in package.submodule_search_locations or ()] if package is not None else []


def sources(folder: str) -> Iterator[tuple[str, int, int]]:
    """The sources below a folder (Python, LLVM assembly) and its libraries: name, time of the last change, size."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".so", ".ll")):
                info = entry.stat()
                yield entry.path, info.st_mtime_ns, info.st_size
            elif entry.name not in UNRELATED and entry.is_dir():
                yield from sources(entry.path)
