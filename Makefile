# Everything runs in .venv. It is made on first use and brought up to date when pyproject.toml or
# locks/ change: `make run` installs what running needs, the other targets the rest on top.
# Packages come with the versions and hashes in locks/; `make lock` writes these files.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed-base
STAMP := $(VENV)/.installed
# Where this variable is set, each process compiles the modules that it imports anew: a second per command, and minutes
# of the tests.
export PYTHONDONTWRITEBYTECODE :=
# pip compiles on one core and includes the tests of packages, so we compile.
PIP := $(BIN)/python -m pip --disable-pip-version-check
HASHED := --require-hashes --no-deps
INSTALL := $(PIP) install --no-compile $(HASHED)
COMPILE := $(BIN)/python -m compileall -q -j 0 -x '/(tests|pip|setuptools)/' $(VENV)/lib bayplan
# Two workers more than cores: the end-to-end tests wait for processes for half of their time. Files are distributed in
# the order of tests/conftest.py, those that take long first.
PYTEST_ARGS ?= -n $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)') --dist loadfile --no-loadscope-reorder
CASES ?= $(wildcard ../shared/conformance) tests/conformance/cases
HISTORIES ?= 2000
FAULT_HISTORIES ?= 10000
ARGS ?=

.DEFAULT_GOAL := help
AXE_VERSION := 4.10.3
APT := $(if $(filter 0,$(shell id -u)),,sudo )apt-get

.PHONY: FORCE help run test field slow test-page lint types unit life e2e conformance release-facts counterfactuals bench bench-stream bench-plan fgd churn bench-up bench-apiserver format clean kernel

# Without the time limit that pyproject.toml sets for a test.
UNLIMITED := -o faulthandler_timeout=0

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The environment is made anew when another PYTHON is asked for than the one it was made with.
$(VENV)/.python: FORCE
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Makefile: PYTHON: expected Python 3.11 or newer; got $(PYTHON) ($$($(PYTHON) --version 2>&1 | head -n 1)). Try: make PYTHON=python3.11" >&2; exit 1; }
	@wanted=$$($(PYTHON) --version); \
	if ! test -x $(BIN)/python || { test "$(origin PYTHON)" != file && test "$$($(BIN)/python --version)" != "$$wanted"; }; then \
	  echo "Making an environment in $(VENV) with $$wanted"; \
	  $(PYTHON) -m venv --clear $(VENV) && touch $@; \
	elif ! test -e $@; then touch $@; fi

$(BASE): $(VENV)/.python pyproject.toml locks/run.txt
	@echo "Installing what Bayplan needs to run, and its build backend"
	@$(INSTALL) -r locks/run.txt
	@echo "Installing Bayplan"
	@$(PIP) install --no-compile --no-deps --no-build-isolation -e .
	@$(COMPILE) || true
	@touch $@

$(STAMP): $(BASE) locks/test.txt
	@echo "Installing the extras and the tools for tests"
	@$(INSTALL) -r locks/test.txt
	@$(COMPILE) || true
	@touch $@

FORCE:

run: $(BASE) ## Schedule the example workload on the example cluster
	@# simulate ends with 1 when pods stay pending, which the example shows on purpose
	@$(BIN)/bayplan simulate -f examples/cluster.yaml -f examples/workload.yaml || [ $$? -eq 1 ]
	@echo "The command is $(BIN)/bayplan. Try: $(BIN)/bayplan --help"

# Without a C compiler this says that NumPy is used, and goes on. An interpreter compiles a module of its own.
kernel: $(STAMP) ## Compile the amounts kernel beside its source, if the source is newer
	@$(BIN)/python hatch_build.py

# Each worker compiles the tests that are not compiled yet, so this is done once before; what cannot be collected fails
# in the run. mypy needs one core, the tests leave a part of two: together they take less time. Its findings follow the
# tests.
test: lint kernel ## Lint, check types, run the tests
	@mkdir -p build
	@echo "Compiling the tests"
	@ls -d tests/*/ tests/test_*.py | xargs -P 2 -n 12 $(BIN)/python -m pytest -q --collect-only > build/collected.txt 2>&1 || true
	@echo "Checking types beside the tests"
	@$(BIN)/mypy > build/types.txt 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -q $(PYTEST_ARGS); tested=$$?; \
	wait $$types; checked=$$?; cat build/types.txt; test $$tested -eq 0 -a $$checked -eq 0

lint: $(STAMP) ## Check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## Check types
	$(BIN)/mypy

unit: kernel ## Run the tests alone (PYTEST_ARGS=...)
	$(BIN)/python -m pytest -q $(PYTEST_ARGS)

.PHONY: coverage

coverage: kernel ## Run the tests with branch coverage; list the ten least covered modules (PYTEST_ARGS=...)
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/python -m coverage run -m pytest -q $(PYTEST_ARGS) $(ARGS)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage report --sort=cover > build/coverage/report.txt
	@head -n 12 build/coverage/report.txt && grep TOTAL build/coverage/report.txt

test-page: kernel ## Test the page in Chromium, which is installed if it is not there (Debian)
	@command -v chromium >/dev/null || { $(APT) -q update && $(APT) -qy install --no-install-recommends chromium; }
	@test -e build/axe/package/axe.min.js || { mkdir -p build/axe && cd build/axe && npm pack --silent axe-core@$(AXE_VERSION) && tar xzf axe-core-$(AXE_VERSION).tgz; }
	BAYPLAN_NEEDS_CHROMIUM=1 $(BIN)/python -m pytest -q tests/web $(ARGS)

field: kernel ## Ask every question about published manifests, dumps and our corpus, then mutate it (MUTATIONS=20000, ARGS="files")
	$(BIN)/python -m tests.field $(ARGS)
	BAYPLAN_FIELD_MUTATIONS=$(or $(MUTATIONS),20000) $(BIN)/python -m pytest -q $(UNLIMITED) tests/field/test_mutations.py

slow: kernel ## Run the tests that take too long for every run, and properties with ten times as many examples
	BAYPLAN_SLOW=1 $(BIN)/python -m pytest -q $(UNLIMITED) -m slow $(PYTEST_ARGS)
	BAYPLAN_EXAMPLES=10 $(BIN)/python -m pytest -q $(UNLIMITED) $(PYTEST_ARGS) $$(grep -rl random_examples --include='test_*.py' tests)

life: kernel ## Follow pods through random histories, for minutes (HISTORIES=..., FAULT_HISTORIES=..., ARGS=--hypothesis-seed=...)
	BAYPLAN_LIFE_EXAMPLES=$(HISTORIES) $(BIN)/python -m pytest -q $(UNLIMITED) tests/life tests/engine/test_histories.py $(ARGS)
	$(BIN)/python -m tests.faults --count $(FAULT_HISTORIES)

e2e: kernel ## Run the end-to-end tests, on a real control plane, too, if KUBEBUILDER_ASSETS has one
	$(BIN)/python -m pytest -q $(PYTEST_ARGS) tests/e2e $(ARGS)

conformance: kernel ## Compare with recorded decisions of kube-scheduler (CASES="files or folders")
	$(BIN)/python -m tests.rig.conformance.cli $(CASES)

release-facts: kernel ## Run the cases of v1.36 with other releases, and name the facts that change them, for an hour (CASES="files or folders")
	$(BIN)/python -m tests.rig.conformance.release_facts $(CASES)

counterfactuals: kernel ## Make every change that explain names, and see that the pod fits (CASES="files or folders")
	$(BIN)/python -m tests.rig.conformance.counterfactuals $(CASES)

bench: kernel ## Measure speed (ARGS=...)
	$(BIN)/bayplan research bench $(ARGS)

bench-stream: kernel ## Measure speed and memory by the length of a trace (ARGS="1000000 10000000")
	$(BIN)/python -m benchmarks.stream $(ARGS)

.PHONY: bench-instructions

bench-instructions: kernel ## Count the instructions per pod here and in another checkout, on Linux (ARGS="../before -w churn")
	$(BIN)/python -m benchmarks.instructions $(ARGS)

.PHONY: bench-sweep

bench-sweep: kernel ## Measure a sweep with one process and with two, on an idle machine (ARGS="100 2")
	$(BIN)/python -m benchmarks.sweep $(ARGS)

fgd: kernel ## Reproduce the table of the FGD paper (research/fgd); needs the trace (ARGS=FOLDER ...)
	$(BIN)/python research/fgd/run.py $(ARGS)

.PHONY: suite

suite: kernel ## Run the benchmark of placement policies (research/suite); needs the traces (ARGS=FOLDER ...)
	$(BIN)/python research/suite/run.py $(ARGS)

bench-plan: kernel ## Measure `plan` on twenty seeded workloads against first fit decreasing (ARGS="--pods 20000" ...)
	$(BIN)/python -m benchmarks.plan_seeds $(ARGS)

bench-week: kernel ## Measure a simulated week with an autoscaler (ARGS=--autoscaler cluster-autoscaler)
	$(BIN)/python -m benchmarks.autoscaling_week $(ARGS)

churn: kernel ## kube-controller-manager and kube-scheduler on `up` for an hour (MINUTES=...); needs KUBEBUILDER_ASSETS
	BAYPLAN_CHURN_MINUTES=$(or $(MINUTES),60) $(BIN)/python -m pytest -q -n 0 $(UNLIMITED) tests/e2e/test_real_controllers.py

bench-up: kernel ## Measure pods per second from creation to Running on `up` (ARGS="--nodes 1000 --pods 20000")
	$(BIN)/python -m benchmarks.up_bench $(ARGS)

.PHONY: storm

storm: kernel ## Send random requests to `up` with RBAC, for minutes (COUNT=...)
	$(BIN)/python -m tests.security.storm --count $(or $(COUNT),50000) $(ARGS)

bench-apiserver: kernel ## Measure speed on a real API server; needs KUBEBUILDER_ASSETS (ARGS=...)
	$(BIN)/python -m benchmarks.apiserver_bench_cli $(ARGS)

.PHONY: docs
DOCS_STAMP := $(VENV)/.installed-docs

$(DOCS_STAMP): $(BASE) locks/docs.txt
	@echo "Installing what builds the documentation"
	@$(INSTALL) -r locks/docs.txt
	@touch $@

docs: $(DOCS_STAMP) ## Build the documentation into site/ and check its links
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@$(BIN)/python docs/_site/check_site.py site

format: $(STAMP) ## Rewrite the source in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the environment, caches and builds
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f bayplan/amounts/_kernel.*.so bayplan/amounts/_kernel.*.pyd
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: lock

lock: ## Write locks/ anew after a change of constraints.txt or of a dependency, for minutes; asks pip's index
	@$(PYTHON) -m venv --clear build/lock
	build/lock/bin/python locks/generator.py

.PHONY: dist lint-github actionlint

dist: ## Build sdist and wheel in dist/, check them, try the wheel in an empty environment
	@$(PYTHON) -m venv --clear build/tools
	@build/tools/bin/python -m pip --disable-pip-version-check --quiet install $(HASHED) -r locks/dist.txt
	build/tools/bin/python -m tests.dist

lint-github: ## Check workflows, issue forms and CITATION.cff against their schemas, and workflows for weak spots
	@test -x build/lint-github/bin/zizmor || { $(PYTHON) -m venv --clear build/lint-github && \
	  build/lint-github/bin/python -m pip --disable-pip-version-check --quiet install $(HASHED) -r locks/github.txt; }
	build/lint-github/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	build/lint-github/bin/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	build/lint-github/bin/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	build/lint-github/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	build/lint-github/bin/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	build/lint-github/bin/zizmor --offline --no-progress --quiet .github

actionlint: ## Lint .github/workflows (the package downloads actionlint from GitHub when it is installed)
	@$(PYTHON) -m venv --clear build/actionlint
	@build/actionlint/bin/python -m pip --disable-pip-version-check --quiet install $(HASHED) -r locks/actionlint.txt
	build/actionlint/bin/actionlint

.PHONY: mutants

mutants: kernel ## Break the engine and the live driver in many ways; each must turn a test red (ARGS=--only ...)
	$(BIN)/python -m tests.engine.break_it $(ARGS)
	$(BIN)/python -m tests.faults.break_it $(ARGS)
