# make demo   installs ranksvm with its dependencies, and runs a complete example
# make test   also installs the tools for the checks, and runs every check
# make docs   writes the documentation to build/docs/html
# make test-oldest  runs the tests on the oldest dependencies that pyproject.toml admits, and audits these dependencies
# make man    writes man pages to build/man
# make fuzz   runs fuzz tests with sanitizers for SECONDS (default 240)
# All targets need Python >= 3.11 with venv and a C++ compiler. They reuse .venv, and work offline after the first run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# RUNS marks that the build tools, the package and its dependencies are installed; READY, also the tools for the checks.
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
# --no-compile: Python compiles a module when it is first imported; compiling everything takes 100 MB and 30 seconds.
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# Bytecode is written even if the user's environment forbids it, because pip, meson and Cython run several times.
unexport PYTHONDONTWRITEBYTECODE
# so that meson and ninja are found in .venv
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help setup demo docs man test test-slow test-oldest fuzz lint format clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

setup: $(READY)

BUILD_FILES := .ci/ninja pyproject.toml meson.build meson.options src/ranksvm/meson.build src/ranksvm/_compiled/meson.build

# The editable install rebuilds compiled modules on import if their sources have changed; it runs .ci/ninja for this.
EDITABLE := NINJA=$(CURDIR)/.ci/ninja $(INSTALL) --no-build-isolation --editable .
$(RUNS): $(BUILD_FILES)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing ranksvm and its dependencies into $(VENV), and compiling: about a minute"
	@$(INSTALL) --upgrade 'pip>=25.1'
	@$(INSTALL) --group build
	@$(EDITABLE)
	@touch $@

# The same build with HostDevice, which replaces a GPU in tests.
$(READY): $(BUILD_FILES)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) --upgrade 'pip>=25.1'
	@$(INSTALL) --group dev
	@$(EDITABLE) -Csetup-args=-Dhost_device=true
	@touch $(RUNS) $@

demo: $(RUNS)
	@rm -rf demo-output
	@$(BIN)/ranksvm demo
	@echo '  . $(VENV)/bin/activate   first: it puts this ranksvm on the PATH of your shell'

man: $(READY)
	$(BIN)/python .ci/man_pages.py build/man

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@# -S disables the editable install's import hook, through which the import graph cannot be read
	PYTHONPATH=src:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
		$(BIN)/python -S -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	$(BIN)/python -m numpydoc.hooks.validate_docstrings $$(git ls-files 'src/ranksvm/*.py' | grep -v /cli/)

# Only pages that have changed are built again. A warning is an error.
docs: $(READY)
	@$(BIN)/python -c 'import ranksvm.estimators'
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 \
		--conf-dir docs --doctree-dir build/docs/doctrees . build/docs/html

# Write bytecode even if the environment forbids it: the tests start hundreds of short processes, which import a lot.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(READY)
	@# lint and docs at the same time, because each uses mostly one core
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint docs
	@# rebuild compiled modules once here, not in both workers
	@$(BIN)/python -c 'import ranksvm.estimators'
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

# PYTHON must be the oldest supported Python, because the oldest releases have wheels only for it.
OLDEST := .venv-oldest

test-oldest: export PATH := $(CURDIR)/$(OLDEST)/bin:$(PATH)
test-oldest:
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(OLDEST)/bin/python .ci/oldest.py > $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --group build --group test \
		-c $(OLDEST)/constraints.txt
	@$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
		-c $(OLDEST)/constraints.txt -Csetup-args=-Dhost_device=true .
	$(OLDEST)/bin/python -m pytest -n 2 -m "not slow"
	@test -x $(OLDEST)/audit/bin/python || $(PYTHON) -m venv $(OLDEST)/audit
	@if $(OLDEST)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit; \
		then $(OLDEST)/audit/bin/python .ci/audit.py; \
		else echo "The oldest dependencies were not audited: pip-audit cannot be installed from here."; fi

# A separate build with the address and undefined-behavior sanitizers (GCC on Linux); -S disables the editable install.
FUZZ := .fuzz
SECONDS ?= 240
TARGETS ?=
PURELIB = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

$(FUZZ)/build/build.ninja: | $(READY)
	$(BIN)/meson setup $(FUZZ)/build --prefix=$(CURDIR)/$(FUZZ)/install -Dbuildtype=release \
		-Db_ndebug=false -Db_sanitize=address,undefined -Db_lundef=false -Dpython.install_env=prefix -Dhost_device=true

fuzz: $(FUZZ)/build/build.ninja
	@$(BIN)/meson install -C $(FUZZ)/build --quiet
	PYTHONPATH=$$(dirname $$(ls -d $(CURDIR)/$(FUZZ)/install/lib*/python*/site-packages/ranksvm)):$(PURELIB):tests \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		$(BIN)/python -S tests/fuzz/run.py $(TARGETS) --seconds $(SECONDS)

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf build docs/api docs/gallery dist $(VENV) $(OLDEST) $(FUZZ) demo-output
