"""Instructions that are checked and not executed: a module with one loads, and a kernel with one is not run."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA

HEAD = ".version 9.3\n.target sm_100a\n.address_size 64\n"
SUBMIT = "fabric.submit;"
FUNCTION = f".func f ()\n{{\n  {SUBMIT}\n  ret;\n}}\n"


@pytest.fixture(params=["interp", "jit", "auto"])
def engine(request):
    return request.param


def test_the_module_is_valid():
    assert ptxvm.check(f"{HEAD}.entry k ()\n{{\n  {SUBMIT}\n  ret;\n}}\n") == []


def test_a_kernel_with_one_is_not_run(engine):
    module = ptxvm.load(f"{HEAD}.entry k ()\n{{\n  {SUBMIT}\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported) as refused:
        module.kernel().launch(engine=engine)
    assert str(refused.value) == "'fabric.submit' is not supported yet (<k>:6)"


def test_nor_is_one_with_it_behind_a_branch(engine):
    """Whether it would be reached is not asked."""
    module = ptxvm.load(f"{HEAD}.entry k ()\n{{\n  bra L;\n  {SUBMIT}\nL:\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported):
        module.kernel().launch(engine=engine)


def test_nor_is_one_that_calls_it(engine):
    module = ptxvm.load(f"{HEAD}{FUNCTION}.entry k ()\n{{\n  call f;\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported, match=r"submit.*:6"):
        module.kernel().launch(engine=engine)


def test_other_kernels_of_the_module_run(engine):
    module = ptxvm.load(f"{HEAD}{FUNCTION}.entry k ()\n{{\n  ret;\n}}\n")
    assert module.kernel().launch(engine=engine).thread_instructions == 1


@pytest.mark.parametrize("check", ["race", "memory"])
def test_checks_do_not_run_it_either(check):
    module = ptxvm.load(f"{HEAD}.entry k ()\n{{\n  {SUBMIT}\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported):
        module.kernel().launch(check=check)


def test_nothing_is_compiled_of_it():
    module = ptxvm.load(f"{HEAD}.entry k ()\n{{\n  {SUBMIT}\n  ret;\n}}\n")
    with pytest.raises(ptxvm.Unsupported):
        module.kernel().dump("llvm")


def test_a_declaration_without_a_meaning_uses_nothing_of_the_machine():
    """Its parameters are operands alone, each with a place in every syntax line or in some."""
    load_catalog()
    checked = [each for each in ISA.instructions if not each.executes]
    assert len(checked) > 20
    for each in checked:
        assert not each.effects, each.name
        named = {name for form in each.forms for operand in form.operands for name in operand.names}
        assert set(each.sources) <= named, each.name
