# ptxvm's commands.  `make run` and `make test` need Python 3.11 or later, make and a C library; they set up the rest.

VENV := .venv
BIN := $(VENV)/bin

# The first Python on the path that is new enough; `make PYTHON=...` names another.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$python; break; fi; done)

# Byte code is made where a module is imported: most never are.
PIP_INSTALL = $(1)/bin/python -m pip --disable-pip-version-check install -qq --no-compile --require-virtualenv
LOCKED = --require-hashes --only-binary :all: --requirement

# What a lock names, into an environment.  uv, which pip installs first, takes a tenth of pip's time; where it finds no packages
# (only pip knows an index of yours, or there is none for uv itself), pip installs all.
define INSTALL
	@echo "Installing $(2) into $(1) ..."
	@{ $(PIP_INSTALL) $(LOCKED) locks/uv.txt && $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(LOCKED) $(2); } 2>/dev/null \
		|| $(PIP_INSTALL) $(LOCKED) $(2)
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
endef

# Nothing of the caller's Python leaks in; tests whose byte code is kept are collected in half the time.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test quick lint types layers unit test-long fuzz verdicts coverage total others branches clients clients-quick dap-client extension format docs links score bench ptx picture lock changelog release clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

# ── the two commands of the README ──────────────────────────────────────────────────────

run: $(VENV)/run.done ## run seven examples that nvcc compiled, and compare the results with NumPy
	@$(BIN)/python examples/run.py

# mypy takes half a minute of one processor: the first tests run beside it.
test: $(VENV)/dev.done ## everything that continuous integration runs
	@$(MAKE) --no-print-directory --jobs=4 lint types layers branches
	@$(MAKE) --no-print-directory others total

# ── the parts of `make test` ────────────────────────────────────────────────────────────

lint: $(VENV)/dev.done ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/dev.done ## mypy, strict
	$(BIN)/mypy

layers: $(VENV)/dev.done ## import-linter: which part may know which
	$(BIN)/lint-imports --no-logo

unit: $(VENV)/dev.done ## the tests
	$(BIN)/pytest -n auto --dist worksteal

# The parts, with the checkers, which run small kernels on both engines; not the engines themselves, nor the longest, nor
# those that start a Python or a browser.
QUICK := tests/unit $(addprefix --ignore tests/unit/,engine tools playground checkers/test_complete.py cli/test_main.py)

quick: $(VENV)/dev.done ## the tests to run after each edit: under a minute on two processors
	$(BIN)/pytest -n auto --dist worksteal $(QUICK)

# The debug adapter, driven by the client of VS Code's own adapters.  It needs Node, and says so where there is none.
dap-client: $(VENV)/dev.done ## the debug adapter by VS Code's test client (needs node)
	@if ! command -v npm >/dev/null; then echo "skipped: make dap-client needs node and npm, which are not here"; exit 0; fi; \
	cd tests/clients/dap && npm ci --no-audit --no-fund --silent && PTXVM="$(CURDIR)/$(BIN)/ptxvm" npm test --silent

# ── longer work ─────────────────────────────────────────────────────────────────────────

test-long: $(VENV)/dev.done ## the tests that take minutes
	$(BIN)/pytest -n auto --dist worksteal -m long

fuzz: $(VENV)/dev.done ## 500 random kernels on both engines; what fails becomes small and is printed
	$(BIN)/pytest -n 0 --hypothesis-profile=long tests/generated/test_engines_agree.py -k random

verdicts: $(VENV)/dev.done ## 12,000 instructions with operands of other sorts, against a real ptxas (needs ../shared, and ptxas on the PATH)
	$(BIN)/pytest -n auto -m long tests/oracle/test_ptxas_registers.py

# ── coverage ────────────────────────────────────────────────────────────────────────────

# All tests run once, in two halves, and with the probes of `tools/probes.py`, which cost a tenth of the time.  Statements and
# branches count alike.
MEASURED = $(BIN)/pytest -n auto --dist worksteal -p probes --probes=.cache/coverage.$@

coverage: branches others total ## all tests: at least 92 % of the whole tree, all of the rooms that need no engine

# The report alone, of the tests of `branches` and `others`, which have run.
total:
	$(BIN)/coverage combine --keep --quiet .cache/coverage.branches .cache/coverage.others
	$(BIN)/coverage report --fail-under=92

# `tests/conftest.py` lists the tests that are about the rooms that need no engine: they alone count for these rooms.
PURE := src/ptxvm/algebra/*,src/ptxvm/diagnostics/*,src/ptxvm/isa/*,src/ptxvm/syntax/*

branches: $(VENV)/dev.done ## the branches of the rooms that need no engine, by the tests that are about them
	$(MEASURED) --pure=only
	$(BIN)/coverage report --data-file=.cache/coverage.branches --include='$(PURE)' --fail-under=100

others: $(VENV)/dev.done ## all tests but those of `branches`
	$(MEASURED) --pure=not

# CUDA clients on ptxvm's driver, in an environment of their own: some gigabytes.  `make clients PARTS=cudapy/test_sm.py` runs
# a part of numba-cuda's tests.
CLIENTS := .venv-clients
PARTS :=

clients: clients-quick ## CUDA clients on ptxvm's driver: the tests of numba-cuda too, which take a quarter of an hour
	$(CLIENTS)/bin/python tests/clients/cuda_cpp/run.py
	$(CLIENTS)/bin/python tests/clients/numba_suite.py $(PARTS)

clients-quick: $(CLIENTS)/clients.done ## our tests of Triton, tinygrad and cuda.core, two minutes
	$(CLIENTS)/bin/python -m pytest -c tests/clients/pytest.ini --ptxvm tests/clients

extension: $(VENV)/dev.done ## the VS Code extension, in editors/vscode/dist: its grammar is made from the declarations (needs npm)
	$(BIN)/python tools/grammar.py
	cd editors/vscode && npm ci --ignore-scripts && npm rebuild esbuild && npm test && npm run package

docs: $(VENV)/dev.done ## the documentation, in build/docs: the reference is made from the declarations
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "build/docs/index.html"

playground: $(VENV)/dev.done ## the playground as static files, in build/playground; PYODIDE=FOLDER puts Python in there, too
	$(BIN)/python tools/playground.py

links: $(VENV)/dev.done ## the links of the documentation to other sites; needs a network
	$(BIN)/python -m sphinx -q -b linkcheck -D opcodes=prmt docs build/links

mutants: $(VENV)/dev.done ## change what instructions mean, and see whether the conformance files notice
	$(BIN)/python tools/mutants.py --at-least 90

score: $(VENV)/run.done ## agreement of `ptxvm check` with ptxas at PTX 6.4 (needs ../shared)
	$(BIN)/python ../shared/isa/score.py

bench: $(VENV)/run.done ## the benchmarks
	$(BIN)/ptxvm bench

# ── housekeeping ────────────────────────────────────────────────────────────────────────

format: $(VENV)/dev.done ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

ptx: ## compile the examples again (needs nvcc 13.0)
	$(MAKE) -C examples

picture: $(VENV)/dev.done ## draw the pictures in the README, from a real session, and of the playground (needs Chromium)
	$(BIN)/python docs/picture.py
	$(BIN)/python docs/playground_picture.py

changelog: $(VENV)/dev.done ## show the notes of the next release
	$(BIN)/towncrier build --draft --version next

# REPOSITORY=https://HOST/OWNER/ptxvm is where the project is published: the package then has its addresses.
REPOSITORY :=

release: $(VENV)/dev.done ## build the distributions in dist/ and try them from outside the checkout; with notes and a bill of materials
	REPOSITORY='$(REPOSITORY)' $(BIN)/python tools/release.py

# Both locks name the same versions, for every supported Python and platform, with hashes.
UV_COMPILE = uv pip compile --quiet --universal --fork-strategy fewest --generate-hashes \
	--no-annotate --no-emit-index-url --custom-compile-command 'make lock'

lock: ## choose the versions of all dependencies anew (needs uv)
	$(UV_COMPILE) --upgrade pyproject.toml --all-extras --group pyproject.toml:dev --group pyproject.toml:docs \
		--group pyproject.toml:changelog locks/build.in --output-file locks/dev.txt
	$(UV_COMPILE) --upgrade pyproject.toml locks/build.in --constraint locks/dev.txt --output-file locks/run.txt
	$(UV_COMPILE) --upgrade pyproject.toml --group pyproject.toml:clients locks/build.in --constraint locks/dev.txt --output-file locks/clients.txt
	echo uv | $(UV_COMPILE) --upgrade - --output-file locks/uv.txt

clean: ## remove everything that these commands made
	rm -rf $(VENV) $(CLIENTS) docs/reference .cache .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist

# ── the environment ─────────────────────────────────────────────────────────────────────

# Each `.done` file says that .venv holds what its lock names.
$(VENV)/run.done $(VENV)/dev.done: $(VENV)/%.done: locks/%.txt locks/uv.txt pyproject.toml | $(VENV)/bin/python
	$(call INSTALL,$(VENV),locks/$*.txt)
	@touch $@

$(CLIENTS)/clients.done: locks/clients.txt locks/uv.txt pyproject.toml
	@test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv $(CLIENTS)
	$(call INSTALL,$(CLIENTS),locks/clients.txt)
	@touch $@

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "ptxvm needs Python 3.11 or later; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "This Python cannot make environments; Debian and Ubuntu keep that in the package python3-venv." >&2; exit 1; }
