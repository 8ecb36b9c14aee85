# Every target sets up .venv by itself when it is missing or stale; see tools/setup_venv.py.
#   make demo PYTHON=python3.12     to name the interpreter

PYTHON ?= python3
# Several processes read the tests, and later ones find the compiled files.
export PYTHONDONTWRITEBYTECODE :=
IN_VENV := .venv/bin/python -m
# Three at a time, because many tests wait. Slow tests that share a server or a cluster are a group.
SIDE_BY_SIDE := $(IN_VENV) pytest -n 3 --dist
GROUPED := $(SIDE_BY_SIDE) loadgroup
# Each process draws a secret for the delimiters around judged texts, and a small model judges a
# little differently with each. With a given secret the model is asked the same every time. Its
# tests run one by one, because it uses all cores.
ON_THE_MODEL := DEMUR_SECRET=tests $(IN_VENV) pytest
REAL := tests/real integrations/llama-index/tests/test_real.py
LEFT_OUT :=

.PHONY: help demo test test-all check lint quick fast smoke-real slow real notebooks documentation \
	packaging affected release-check site bench clean before-tests env-run env-dev weights

help:
	@echo 'make demo      watch a guarded chain answer questions, on local models alone (fetches 1.1 GB once)'
	@echo 'make test      run the tests that show that demur works, on the real local model too'
	@echo 'make test-all  run all tests'
	@echo 'make check     lint, types, which room imports which, the quick tests'
	@echo 'make affected  run those of the other tests that the change since the last landing can reach'
	@echo 'make release-check  build the distributions, install them on every supported Python'
	@echo 'make site      build the documentation into site/, strictly; open site/index.html by a web server'
	@echo 'make bench     measure time and memory, side by side in one run (docs/performance.md)'
	@echo 'make clean     remove .venv and what tools left behind (the model stays)'

demo: env-run
	@$(IN_VENV) demur models pull
	@$(IN_VENV) demur demo

test: before-tests fast smoke-real
test-all: export DEMUR_RUN_ALL := 1
test-all: test slow real notebooks documentation packaging

check: lint quick

# In one run of make, also in one with `-j`, the parts come one after another: each uses all cores.
# Only the documentation and the distributions wait much, and can run side by side.
ASKED := $(MAKECMDGOALS) $(if $(filter test test-all,$(MAKECMDGOALS)),fast smoke-real)
ASKED += $(if $(filter test-all,$(MAKECMDGOALS)),slow real notebooks)
smoke-real: $(filter fast,$(ASKED))
slow: $(filter smoke-real,$(ASKED))
real: $(filter smoke-real slow,$(ASKED))
notebooks: $(filter smoke-real slow real,$(ASKED))
documentation packaging: $(filter smoke-real slow real notebooks,$(ASKED))

before-tests: env-dev
	@$(IN_VENV) tools.before_tests

lint: env-dev
	$(IN_VENV) ruff check .
	$(IN_VENV) ruff format --check .
	$(IN_VENV) mypy
	.venv/bin/lint-imports
	.venv/bin/lint-imports --config integrations/llama-index/pyproject.toml
	$(IN_VENV) tools.api

MARKED := slow or browser or real or documentation or packaging
QUICK := tests integrations/langchain/tests
quick: env-dev
	$(SIDE_BY_SIDE) worksteal -m 'not ($(MARKED))' $(QUICK)

# The quick tests and the smoke tests in one run, because to collect tests takes long.
fast: env-dev
	$(GROUPED) -m 'not real and (smoke or not ($(MARKED)))' $(QUICK) \
		$(shell grep -rlE 'mark\.smoke' --include='test_*.py' integrations research)

smoke-real: env-dev weights
	$(ON_THE_MODEL) -m 'smoke and real' $(REAL)

slow: env-dev
	$(GROUPED) -m '(slow or browser) and not (smoke or real or documentation or packaging)' \
		$(addprefix --ignore=,$(LEFT_OUT))

real: env-dev weights
	$(ON_THE_MODEL) -m 'real and not (smoke or documentation)' $(REAL)

notebooks: env-dev weights
	$(ON_THE_MODEL) -m documentation tests/real/test_notebooks.py

documentation: env-dev weights
	$(ON_THE_MODEL) -m 'documentation and not smoke' $(REAL) tests/exemplars tests/documentation \
		--ignore=tests/real/test_notebooks.py

# One Python, and wheels; `release-check` has all Pythons, and source distributions.
packaging: env-dev weights
	$(IN_VENV) pytest -n 2 --dist loadfile -m 'packaging and not smoke' tests/packaging

release-check: export DEMUR_RELEASE := 1
release-check: packaging

affected: env-dev
	@$(IN_VENV) tools.affected

site: env-dev
	$(IN_VENV) tools.site

bench: env-dev
	$(IN_VENV) bench.import_time
	$(IN_VENV) bench.scheduling
	$(IN_VENV) bench.guard
	$(IN_VENV) bench.judges
	$(IN_VENV) bench.gate
	$(IN_VENV) bench.crowd
	$(IN_VENV) bench.observe
	$(IN_VENV) bench.log
	$(IN_VENV) bench.report
	$(IN_VENV) bench.fewl
	$(IN_VENV) bench.fewl_inline
	$(IN_VENV) bench.exemplars
	$(IN_VENV) bench.reverse_validation
	$(IN_VENV) bench.tails
	$(IN_VENV) bench.ray_scoring --rows 3000 --workers 2
	$(IN_VENV) bench.chroma_scale
	$(IN_VENV) bench.capacity
	$(IN_VENV) peers.speed --peers demur

clean:
	rm -rf .venv site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

env-run env-dev: env-%:
	@$(PYTHON) tools/setup_venv.py $*

# The tests on the real model skip, and say so, where its weights cannot be had.
weights: env-dev
	@$(IN_VENV) demur models pull || echo '*** No local model: the tests marked "real" WILL BE SKIPPED. ***'
