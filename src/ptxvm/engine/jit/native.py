"""LLVM IR to code of this processor."""

from __future__ import annotations

import threading
from typing import Any

import llvmlite.binding as llvm

_lock = threading.Lock()
_ready: list[Any] = []


def _target() -> Any:
    """The machine that code is made for, set up once."""
    if not _ready:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _ready.append(llvm.Target.from_default_triple())
    return _ready[0].create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def optimised(text: str, level: int = 2) -> Any:
    """The module of a text, after LLVM's passes; and the machine that they are for."""
    machine = _target()
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = level > 1
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module, machine


class Native:
    """Code in memory."""

    def __init__(self, text: str, level: int = 2) -> None:
        with _lock:
            module, machine = optimised(text, level)
            self._engine = llvm.create_mcjit_compiler(module, machine)
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function is."""
        return int(self._engine.get_function_address(name))


def assembly(text: str, level: int = 2) -> str:
    """The code as the assembler writes it."""
    module, machine = optimised(text, level)
    return str(machine.emit_assembly(module))
