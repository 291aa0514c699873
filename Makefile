# make demo: see it work.  make test: everything that must pass.  make help: the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo build docs test lint format bench peers sanitize tsan fuzz soak clean

PYTHON := $(CURDIR)/.venv/bin/python
PEERS := $(CURDIR)/.peers/bin/python
CMAKE := PATH="$(CURDIR)/.venv/bin:$$PATH" cmake
CONFIGURE := -G Ninja -DPython_EXECUTABLE=$(PYTHON) -DTAPEFLOW_WERROR=ON
PYTEST := $(PYTHON) -m pytest -q -n 2 --dist loadgroup
CLANG_FORMAT := $(CURDIR)/.venv/bin/clang-format
CPP_FILES = $(shell find core -name '*.cc' -o -name '*.h')
STUBS := tapeflow/__init__.pyi
JOBS := 2
SECONDS := 3600
STEPS := 1000000

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build  ## train a small model with a tape, then explain a gradient that is None
	@$(PYTHON) examples/demo.py

build: .venv/stamp  ## incremental build; afterwards `import tapeflow` works in this folder
	@[ -f build/build.ninja ] || $(CMAKE) -S . -B build $(CONFIGURE) -DTAPEFLOW_MODULE_DIR=$(CURDIR)/tapeflow/_src >/dev/null
	@$(CMAKE) --build build -j $(JOBS)
	@$(PYTHON) -m compileall -q tapeflow
	@[ -f $(STUBS) ] && [ -z "$$(find tapeflow/_src tools/stub*.py -newer $(STUBS) -name '*.[ps][yo]' -print -quit)" ] \
	  || $(PYTHON) -m tools.stubs .

test: lint build  ## lint, unit and property tests, conformance
	@$(PYTEST) && echo "make test: all passed" || { echo "make test: FAILED (see above)"; exit 1; }

lint: build  ## rules, format and types: ruff, clang-format, mypy --strict, stubtest; pyright on a typical program
	@$(PYTHON) -m ruff check . && $(PYTHON) -m ruff format --check --diff -q . \
	  && $(CLANG_FORMAT) --dry-run --Werror $(CPP_FILES) && $(PYTHON) -m mypy && $(PYTHON) -m tools.check_stubs \
	  && $(PYTHON) -m pyright --pythonpath $(PYTHON) tests/typing/training.py \
	  || { echo "make lint: FAILED (make format repairs the layout)"; exit 1; }

format: .venv/stamp  ## let ruff and clang-format put imports and layout right
	@$(PYTHON) -m ruff check -q --fix . ; $(PYTHON) -m ruff format -q . ; $(CLANG_FORMAT) -i $(CPP_FILES)

bench: build  ## step times against the peers (make peers installs them); ARGS=--compiled for compiled modes
	@$(PYTHON) benchmarks/compare.py $(ARGS)

docs: build  ## the site, in build/docs: guides, executed tutorials and the API reference; warnings, dead links, browser errors fail
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' \
	  > .venv/docs-requirements.txt
	@$(PYTHON) -m pip install -q --disable-pip-version-check -r .venv/docs-requirements.txt
	@$(PYTHON) -m sphinx -q -W --keep-going -b html docs build/docs
	@$(PYTHON) -m tools.check_site build/docs && echo "make docs: build/docs/index.html"

fuzz: build  ## mutated calls and files for an hour (SECONDS=...), then the property tests with many more examples
	@$(PYTHON) -m tests.fuzz.test_fuzz $(SECONDS)
	@TAPEFLOW_EXAMPLES=2000 $(PYTEST) tests/ops

soak: build  ## a million steps with flat memory; failing allocations, interrupts, ten thousand signatures (STEPS=...)
	@$(PYTHON) -m tests.fuzz.soak $(STEPS)

# The tests run on a copy of the tree, so that the sanitised module never replaces the real one. The sanitizer's library is
# preloaded, and libstdc++ too: AddressSanitizer must find its `throw` at start.
# $(1) folder, $(2) CMake option, $(3) library, $(4) environment, $(5) tests
define SANITIZED_TESTS
	@rm -rf $(1)/tree && mkdir -p $(1)/tree
	@cp -r pyproject.toml README.md core tapeflow tests examples benchmarks docs tools $(1)/tree
	@rm -f $(1)/tree/tapeflow/_src/_core.*
	@$(CMAKE) -S . -B $(1) $(CONFIGURE) -D$(2)=ON -DTAPEFLOW_MODULE_DIR=$(CURDIR)/$(1)/tree/tapeflow/_src >/dev/null
	@$(CMAKE) --build $(1) -j $(JOBS)
	@cd $(1)/tree && export PYTHONPATH="$$PWD" PYTHONMALLOC=malloc $(4) && \
	  LD_PRELOAD="$$(g++ -print-file-name=$(3)) $$(g++ -print-file-name=libstdc++.so)" $(PYTEST) -p no:cacheprovider $(5) \
	  && echo "make $@: clean" || { echo "make $@: FAILED (see above)"; exit 1; }
endef

sanitize: .venv/stamp  ## build with AddressSanitizer and UBSan and run the tests
	$(call SANITIZED_TESTS,build-sanitize,TAPEFLOW_SANITIZE,libasan.so,ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1,)

TSAN_TESTS := tests/plan tests/core tests/function tests/data tests/compat/v1/queues tests/compat/v1/sessions tests/autodiff/test_gradient_tape.py
tsan: .venv/stamp  ## build with ThreadSanitizer and run the tests of plans, functions, datasets, queues and threads
	$(call SANITIZED_TESTS,build-tsan,TAPEFLOW_TSAN,libtsan.so,TSAN_OPTIONS=halt_on_error=1:die_after_fork=0:suppressions=$(CURDIR)/tools/tsan.txt:ignore_noninstrumented_modules=1,$(TSAN_TESTS))

peers: .peers/stamp  ## TensorFlow, PyTorch and JAX in a virtual environment of their own, for the benchmarks

clean:  ## remove what was built (the virtual environments stay)
	rm -rf build build-sanitize build-tsan dist tapeflow/_src/_core.*.so .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find tapeflow tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
	find tapeflow -name '*.pyi' -not -path '*/_src/*' -delete
	find tapeflow -mindepth 1 -type d -empty -delete

# ------------------------------------------------------------------------------------------ virtual environments
define CHECK_PYTHON
python3 -c 'import sys; sys.version_info >= (3, 11) or sys.exit(f"Tapeflow needs Python 3.11 or newer; python3 is {sys.version.split()[0]}")'
endef

# What to install is written once, in pyproject.toml. A .pth file makes this checkout importable from any folder.
define REQUIREMENTS
import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); extra = p["project"]["optional-dependencies"]; \
print(*p["build-system"]["requires"], *p["project"]["dependencies"], *extra["test"], *extra["dev"], sep="\n")
endef

.venv/stamp: pyproject.toml
	@$(CHECK_PYTHON)
	@[ -x $(PYTHON) ] || python3 -m venv .venv
	@$(PYTHON) -c '$(REQUIREMENTS)' > .venv/requirements.txt
	@echo "setting up .venv" && $(PYTHON) -m pip install -q --disable-pip-version-check -r .venv/requirements.txt
	@echo "$(CURDIR)" > "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tapeflow_checkout.pth"
	@touch $@

.peers/stamp:
	@$(CHECK_PYTHON)
	@[ -x $(PEERS) ] || python3 -m venv .peers
	@$(PEERS) -m pip install -q --disable-pip-version-check torch==2.13.0
	@$(PEERS) -m pip install -q --disable-pip-version-check 'tensorflow-cpu==2.21.*' jax
	@touch $@
