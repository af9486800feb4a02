"""The linker of the driver: PTX modules in, one image out."""

from __future__ import annotations

import ctypes
from dataclasses import field

from ptxvm import api
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.code_images import linked_image, texts_of
from ptxvm.driver.programs import loaded, result_of_ptx
from ptxvm.driver.registers import limited
from ptxvm.driver.results import BuildError, DriverError, Result

CUBIN, PTX, FATBINARY, OBJECT, LIBRARY, NVVM = range(6)  # CUjitInputType


@dataclass(eq=False)
class Linker:
    """The linked modules in order, and the image."""

    texts: list[bytes] = field(default_factory=list)
    modules: list[api.Module] = field(default_factory=list)
    image: bytes = b""
    most_registers: int = 0  # of a thread; 0 for no limit
    options: dict[int, int] = field(default_factory=dict)  # of a client: see `ptxvm.libcuda`
    buffer: ctypes.Array[ctypes.c_char] | None = None  # the image, as a client reads it

    def add(self, kind: int, data: bytes, name: str = "") -> None:
        """Add an image; DriverError where it has no PTX.

        The archive of the device runtime (`cudadevrt`) adds nothing: the machine has its functions.
        """
        if kind == LIBRARY:
            if "cudadevrt" not in name:
                raise BuildError(Result.NO_BINARY_FOR_GPU, f"{name or 'a library'} has machine code and no PTX")
            return
        if kind not in (CUBIN, PTX, FATBINARY):
            raise DriverError(Result.NOT_SUPPORTED, f"{name or 'an input'} is neither PTX nor a fatbin with PTX")
        for text in texts_of(data):
            self.modules.append(self._loaded(text, name))
            self.texts.append(text)

    def _loaded(self, text: bytes, name: str) -> api.Module:
        """The module of a text; DriverError for wrong PTX, with its diagnostics."""
        try:
            return loaded(text, self.texts)
        except InvalidPTX as wrong:
            raise DriverError(result_of_ptx(wrong), f"{name}: {wrong}" if name else str(wrong)) from wrong

    def complete(self) -> bytes:
        """The image, which lives as long as the linker; DriverError where the modules do not fit each other."""
        try:
            if self.modules:
                api.link(self.modules)
        except InvalidPTX as wrong:
            raise DriverError(Result.INVALID_PTX, str(wrong)) from wrong
        if self.most_registers:
            kernels = [[each for program in module.programs for each in program.functions.values() if each.entry]
                       for module in self.modules]  # fmt: skip
            limit = self.most_registers
            self.texts = [type(each[0])(limited(*each, limit)) for each in zip(self.texts, kernels, strict=True)]
        self.image = linked_image(self.texts)
        return self.image


__all__ = ["Linker"]
