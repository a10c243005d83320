# Two commands are enough: `make book` and `make test`. `make help` lists the others.
# Plain POSIX shell, relative paths only: the folder may lie anywhere, spaces included.

PROFILE ?= full
JOBS ?= 2
PORT ?= 8000
PYTEST_ARGS ?=
LAB_ARGS ?=
PIP_ARGS ?=
LOCK_ARGS ?= --upgrade
KEEP ?=
# PYTHON=… names the interpreter to make the environment with; by default the newest one found.

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/attsvm-stamp
PIP := $(PY) -m pip --disable-pip-version-check
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help book pdf test serve lab bench format lint lock drift package clean distclean env

help:
	@echo "make book      execute the chapters that changed, render the site (PROFILE=full or quick)"
	@echo "make test      run the tests (PYTEST_ARGS=… for pytest)"
	@echo "make serve     show the last site at http://127.0.0.1:$(PORT)/ (PORT=…)"
	@echo "make lab       open the chapters in Jupyter Lab (LAB_ARGS=… for it)"
	@echo "make pdf       the whole book on paper, made of the last site"
	@echo "make bench     run the benchmarks, write their tables into the README and the book"
	@echo "make format    mend what ruff can mend, format code and notebooks"
	@echo "make lint      ruff, mypy, and two checkers of the workflows"
	@echo "make lock      find the newest versions, write requirements.lock (KEEP=torch==2.13.0 keeps"
	@echo "               one back; LOCK_ARGS= moves nothing, only adds what pyproject.toml asks anew)"
	@echo "make drift     how far the claims' numbers move on the newest versions (PROFILE=…)"
	@echo "make package   wheel and sdist into dist/, checked"
	@echo "make clean     remove what builds and tests made, executed chapters too"
	@echo "make distclean remove the environment as well"
	@echo "PIP_ARGS=… goes to pip, for env and drift"

book: env
	@echo "==> Building the book, profile $(PROFILE), $(JOBS) chapters at a time"
	@$(PY) -m attsvm build --profile "$(PROFILE)" --jobs "$(JOBS)"

# Without a browser on this machine, Playwright brings its own.
test: env
	@$(PY) -c "from companion.ship import browser; raise SystemExit(not browser())" || \
	  { echo "==> No Chromium found: installing Playwright's"; $(PY) -m playwright install chromium; }
	@$(ONE_THREAD) $(PY) -m pytest -n "$(JOBS)" --dist loadfile $(PYTEST_ARGS)

serve: env
	@$(PY) -m attsvm serve --port "$(PORT)"

# The environment's kernel, even where the reader has one of the same name.
lab: env
	@echo "==> Opening the chapters in Jupyter Lab"
	@JUPYTER_PREFER_ENV_PATH=1 $(PY) -m jupyter lab $(LAB_ARGS) book

pdf: env
	@$(PY) -m attsvm pdf

bench: env
	@mkdir -p benchmarks/results
	@for name in svm descent scale; do \
	  echo "==> benchmarks/bench_$$name.py"; \
	  $(ONE_THREAD) $(PY) benchmarks/bench_$$name.py --json benchmarks/results/$$name.json || exit 1; \
	done
	@$(PY) benchmarks/publish.py

format: env
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

lint: env
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@if [ -d .github/workflows ]; then \
	  $(VENV)/bin/actionlint && $(VENV)/bin/zizmor --offline --quiet --no-progress .github/workflows; \
	fi

# torch's build for CUDA asks for packages that follow from torch's own version: a lock that named
# them could not be installed beside a build without CUDA.
lock: env
	@echo "==> Resolving ($(LOCK_ARGS))"
	@mkdir -p _build && cp requirements.lock _build/lock.txt
	@printf '%s\n' "-e .[dev]" "-e companion" "$(KEEP)" | \
	  $(PY) -m uv pip compile -q $(LOCK_ARGS) --output-file _build/lock.txt - > /dev/null
	@{ echo "# Every version that the book was built and tested with. Written by make lock: do not edit."; \
	  echo "# A build of torch for the CPU alone (local label +cpu) satisfies its line too."; \
	  grep -Ev '^(cuda-|nvidia-|triton)' _build/lock.txt; } > requirements.lock
	@rm _build/lock.txt

# The newest versions live in an environment of their own; the lock is left alone. Chapters run one
# by one there: one that fails on them must not hide the others. Exit code 1: a verdict changed.
NEWEST := _build/newest-venv
drift: book
	@echo "==> Installing the newest versions in a fresh environment"
	@rm -rf _build/drift $(NEWEST) && mkdir -p _build/drift
	@python=$$($(FIND_PYTHON)) && "$$python" -m venv $(NEWEST)
	@$(NEWEST)/bin/python -m pip --disable-pip-version-check install -q $(PIP_ARGS) -e . -e companion
	@$(NEWEST)/bin/python -m pip --disable-pip-version-check freeze --exclude-editable \
	  > _build/drift/newest.txt
	@$(PY) -m attsvm list | grep -v "left out" | cut -d " " -f 1 | \
	  $(ONE_THREAD) xargs -P "$(JOBS)" -I CHAPTER sh -c \
	  'echo "==> CHAPTER"; $(NEWEST)/bin/python -m attsvm run "CHAPTER" --profile "$(PROFILE)" \
	    --output "_build/drift/runs/CHAPTER" || echo "CHAPTER" >> _build/drift/failed.txt'
	@rm -rf $(NEWEST)
	@$(PY) -m attsvm drift _build/html _build/drift/runs --output _build/drift

package: env
	@echo "==> Building wheel and sdist"
	@rm -rf dist
	@$(PY) -m build --no-isolation --outdir dist .
	@$(PY) -m twine check --strict dist/*

clean:
	@echo "==> Removing _build and the caches of the tools"
	@rm -rf _build build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	@find attsvm companion tools tests benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	@echo "==> Removing the environment"
	@rm -rf $(VENV) attsvm.egg-info companion/attsvm_companion.egg-info

# Prints the interpreter to use. Every candidate is run, not just found: a shim may lead nowhere.
FIND_PYTHON = \
	for candidate in $${PYTHON:-$(PYTHON) python3.13 python3.12 python3.11 python3 python}; do \
	  if "$$candidate" -c "import sys; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; then \
	    if "$$candidate" -c "import ensurepip, venv" >/dev/null 2>&1; then \
	      echo "$$candidate"; exit 0; \
	    fi; \
	    echo "$$candidate cannot make virtual environments" \
	      "(on Debian: apt install python3-venv)" >&2; \
	  fi; \
	done; \
	echo "Python 3.11 or newer is needed and was not found" \
	  "(python3 is $$(python3 --version 2>&1)). Set PYTHON=/path/to/python3." >&2; \
	exit 1

# One environment, made once and brought up to date when a pin or the metadata changes. Its scripts
# hold its own path, so it is made anew in a folder that was moved or copied.
env:
	@wanted="$$(cat requirements.lock pyproject.toml companion/pyproject.toml | cksum) $$(pwd)"; \
	have=$$(cat $(STAMP) 2>/dev/null); \
	if [ "$$have" = "$$wanted" ] && [ -x $(PY) ]; then exit 0; fi; \
	if [ -d $(VENV) ]; then \
	  case "$$have" in ""|*" $$(pwd)") moved=no ;; *) moved=yes ;; esac; \
	  if [ $$moved = yes ] || \
	     ! $(PY) -c "import sys; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; then \
	    echo "==> The environment in $(VENV) does not work here: making it anew"; \
	    rm -rf $(VENV); \
	  fi; \
	fi; \
	if [ ! -d $(VENV) ]; then \
	  python=$$($(FIND_PYTHON)) || exit 1; \
	  echo "==> Making the environment $(VENV) with $$python ($$("$$python" --version 2>&1))"; \
	  "$$python" -m venv $(VENV) || exit 1; \
	fi; \
	rm -f $(STAMP); \
	echo "==> Installing the packages of requirements.lock (some minutes the first time)"; \
	$(PIP) install -q $(PIP_ARGS) -r requirements.lock || exit 1; \
	$(PIP) install -q --no-deps --no-build-isolation -e . -e companion || exit 1; \
	echo "$$wanted" > $(STAMP)
