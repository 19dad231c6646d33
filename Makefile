PYTHON ?= python3
VENV ?= .venv
DATA ?= data
JOBS ?= auto

BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help venv demo test lint docs wheel bench clean

help: ## Show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(VENV)/.created ## Create the virtual environment

demo: $(VENV)/.installed-demo ## Trees beside a flat softmax on ICD-10-CM diagnosis texts
	@$(BIN)/python -m thinleaf demo

# mypy takes one core for a minute, so kernels are compiled meanwhile.
test: $(VENV)/.installed-test ## Lint, then run every test and doctest, on all cores or on JOBS
	@$(BIN)/python -m tests.compile_kernels & compiling=$$!; \
	$(MAKE) --no-print-directory lint; linted=$$?; \
	wait $$compiling && exit $$linted
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

lint: $(VENV)/.installed-test ## Check style, types, import direction and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

docs: $(VENV)/.installed-docs ## Build the site in build/site, with every example run
	$(BIN)/python -m sphinx -W --keep-going -q docs build/site
	$(BIN)/python -m tests.check_site build/site
	@echo "The site: build/site/index.html"

wheel: $(VENV)/.installed-release ## Build sdist and wheel in dist, and try both in a clean environment
	$(BIN)/python -m tests.check_distribution

bench: $(VENV)/.installed-bench ## Run the benchmarks on the data sets in DATA (default: data)
	$(BIN)/python -m benchmarks.run_all --data $(DATA)

clean: ## Remove the virtual environment, builds and caches
	rm -rf $(VENV) build dist docs/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/thinleaf/native/*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit("thinleaf needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

# Every extra goes into the same editable install, so they add up.
# The extension is built then: where its sources change, it is built anew.
$(VENV)/.installed-%: pyproject.toml hatch_build.py $(wildcard src/thinleaf/native/*.[ch]) | $(VENV)/.created
	@echo "Installing thinleaf[$*] into $(VENV)"
	@$(BIN)/python -m pip install -q -e '.[$*]'
	@touch $@
