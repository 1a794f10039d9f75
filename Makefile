# Everything runs in .venv, which each target creates if needed. Requires Python 3.11+ and a C++ compiler.
PYTHON ?= python3
BIN := .venv/bin
CPP := $(wildcard cpp/*.cpp) $(wildcard cpp/*.hpp)

.PHONY: help demo test check check-python check-examples check-cpp sanitize sanitize-quick sanitize-threads check-arm stubs format fuzz soak bench bench-index bench-metric \
  bench-river bench-run bench-live bench-saving bench-past bench-scale bench-keyed bench-importance bench-intervals bench-peers bench-classification bench-page bench-scaling figures bench-rates bench-guard clean
.DEFAULT_GOAL := help

# pip compiles no bytecode, because most modules of the packages are never imported. Python does when it first imports a
# module, and stores it.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

demo: .venv/demo.stamp ## learn a table of flights with `ellipack run` and write its report, then compare learners on a synthetic stream
	@$(BIN)/ellipack demo

# BLAS threads would compete with the other test process for cores.
test: export OPENBLAS_NUM_THREADS := 1
test: .venv/dev.stamp ## run all tests
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# Most checks use one core, so that two of them run at the same time. The longest one starts first.
check: .venv/dev.stamp ## run what CI runs: a sanitizer run, lint, format, types, layers, C++ checks, doctests, all tests
	$(MAKE) --jobs=2 --output-sync=target sanitize-quick check-python check-cpp check-examples
	$(MAKE) test

check-python: .venv/dev.stamp ## check lint, format, types and layers of the Python sources
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-examples: .venv/dev.stamp ## run the examples in docstrings and documents
	$(BIN)/python -m pytest --doctest-modules src README.md docs --doctest-glob='*.md'

# clang-tidy reads the kernels as one file: alone, each would take as long, because of the standard headers. It skips the
# bindings, which are mostly templates of nanobind.
KERNELS := $(filter-out cpp/bindings% cpp/cpu.cpp,$(wildcard cpp/*.cpp))
check-cpp: .venv/dev.stamp ## check format and lint of the C++ sources, and that the stub is up to date
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	printf '#include "%s"\n' $(KERNELS) > build/kernels.cpp
	$(BIN)/clang-tidy --quiet build/kernels.cpp -- -std=c++20 -I. -Wall -Wextra -Wpedantic -Wno-psabi
	$(BIN)/python -m nanobind.stubgen --quiet --module ellipack._core_baseline --output-file build/_core.pyi
	@cmp build/_core.pyi src/ellipack/_core.pyi || { echo "the interface of the module has changed: run 'make stubs'" >&2; exit 1; }

stubs: .venv/dev.stamp ## write the typed stub of the compiled module
	$(BIN)/python -m nanobind.stubgen --module ellipack._core_baseline --output-file src/ellipack/_core.pyi

format: .venv/dev.stamp ## format Python and C++
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# Run pytest with a module built with sanitizers: $(call sanitized,NAME OF THE BUILD,LIBRARY)
# Children that tests fork while threads learn start threads, which the thread sanitizer refuses by default.
sanitized = LD_PRELOAD="$$($${CXX:-c++} -print-file-name=$2) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS='halt_on_error=1 die_after_fork=0' ELLIPACK_CPU=baseline \
  build/sanitize-$1/venv/bin/python -m pytest -p no:cacheprovider

sanitize: build/sanitize-address/created.stamp ## run the tests of kernels and loading and the fuzzers with address and undefined-behavior sanitizers
	$(call sanitized,address,libasan.so) tests/core tests/test_neighbors.py tests/learners tests/metric tests/fuzz tests/serialization

sanitize-quick: build/sanitize-address/created.stamp ## run a quick part of these
	$(call sanitized,address,libasan.so) --hypothesis-profile quick tests/core tests/test_neighbors.py

sanitize-threads: build/sanitize-thread/created.stamp ## run the tests of learners that threads share with the thread sanitizer
	$(call sanitized,thread,libtsan.so) --capture=no tests/estimators/test_concurrency.py tests/estimators/test_shared_learners.py tests/test_neighbors.py

# Needs a cross compiler and an emulator: Debian's packages g++-aarch64-linux-gnu and qemu-user-static.
KERNEL_BITS := tests/portability/kernel_bits.cpp $(addprefix cpp/,deferred_calibration.cpp gradients.cpp kd_tree.cpp kd_tree_checks.cpp \
  kd_tree_search.cpp local_models.cpp loo_scoring.cpp packing_core.cpp)
KERNEL_OPTIONS := -std=c++20 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Wpedantic -Wno-psabi \
  -Werror -Icpp
check-arm: ## compare bits of the kernels on this processor, compiled by CXX, and on an emulated ARM64 processor
	@mkdir -p build/arm64
	$${CXX:-c++} $(KERNEL_OPTIONS) $(KERNEL_BITS) -o build/arm64/here
	aarch64-linux-gnu-g++ $(KERNEL_OPTIONS) -static $(KERNEL_BITS) -o build/arm64/arm64
	build/arm64/here | tee build/arm64/here.txt
	qemu-aarch64-static build/arm64/arm64 > build/arm64/arm64.txt
	diff build/arm64/here.txt build/arm64/arm64.txt

fuzz: export FUZZ ?= 20
fuzz: .venv/dev.stamp ## run the fuzzers, and all tests with random examples, FUZZ=20 times as long as in the tests
	$(BIN)/python -m pytest --numprocesses 2 tests/fuzz tests/estimators/test_concurrency.py
	$(BIN)/python -m pytest --numprocesses 2 -m hypothesis --ignore tests/fuzz

soak: .venv/bench.stamp ## learn an endless stream for MINUTES=3: memory and latency over time
	@$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),3) || [ $$? = 2 ]  # 2: the run was too short, which is not a failure

bench: .venv/bench.stamp ## speed of the paper's algorithms against NumPy
	@$(BIN)/python -m benchmarks.speed

bench-index: .venv/bench-index.stamp ## the neighbor index against a NumPy scan, SciPy's kd-tree and HNSW
	@$(BIN)/python -m benchmarks.index

bench-metric: .venv/peers.stamp ## error and cost of MetricRegressor; DATA=FOLDER of CSV files adds River [PEERS=TABLE.md: errors of peers]
	@$(BIN)/python -m benchmarks.metric $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers $(PEERS))

bench-past: .venv/peers.stamp ## error with and without the past of the label, by row and by key
	@$(BIN)/python -m benchmarks.past

bench-intervals: .venv/peers.stamp ## prediction intervals beside River's, LightGBM's and running quantiles; DATA=FOLDER of CSV files [JOBS=1: streams at a time]
	@$(BIN)/python -m benchmarks.intervals $(if $(DATA),--data $(DATA)) $(if $(JOBS),--jobs $(JOBS))

bench-keyed: .venv/peers.stamp ## one learner per key beside one learner for all: error, cost and memory
	@$(BIN)/python -m benchmarks.keyed

bench-peers: .venv/peers.stamp ## compare with River, scikit-learn and LightGBM on public streams, a few minutes; ARGS='--full', '--help'
	@$(BIN)/python -m benchmarks.comparison $(if $(DATA),--data $(DATA)) $(if $(ROWS),--rows $(ROWS)) $(ARGS)

bench-importance: .venv/peers.stamp ## measured importance against known variance shares and permutation, and its cost; DATA=folder: more tables
	@$(BIN)/python -m benchmarks.importance $(if $(DATA),--data $(DATA))

bench-classification: .venv/peers.stamp ## error rates of classifiers on the streams of the comparison
	@$(BIN)/python -m benchmarks.classification $(if $(ROWS),--rows $(ROWS))

bench-page: .venv/peers.stamp ## write docs/benchmarks.md, its plots and the README table from docs/benchmarks/results.json
	@$(BIN)/python -m benchmarks.page

bench-river: .venv/peers.stamp ## cost of predict_one and learn_one against River's KNN
	@$(BIN)/python -m benchmarks.river

bench-run: .venv/bench-reading.stamp ## time and memory of `ellipack run` over a table of ROWS=100000, and of reading alone
	@$(BIN)/python -m benchmarks.reading
	@$(BIN)/python -m benchmarks.run_command $(if $(ROWS),--rows $(ROWS))

bench-live: .venv/bench-reading.stamp ## latency of `ellipack run` on a pipe
	@$(BIN)/python -m benchmarks.live

bench-saving: .venv/bench.stamp ## save a learner of a million rows, against writing as many bytes
	@$(BIN)/python -m benchmarks.saving

bench-scale: .venv/dev.stamp ## one learner on many workers: speed, costs, a model of 64 workers, error against shards; DATA=FOLDER, STREAM=10000000
	@$(BIN)/python -m benchmarks.scale $(if $(DATA),--data $(DATA)) $(if $(ROWS),--rows $(ROWS)) $(if $(STREAM),--stream $(STREAM))

bench-scaling: .venv/bench-figures.stamp ## cost and memory against rounds, dimension, rank, centers; FULL=1: to 1,000,000 rounds
	@$(BIN)/python -m benchmarks.scaling $(if $(FULL),--full)

figures: .venv/bench-figures.stamp ## check the paper's claims: regret, effective rank, error of the metric; FULL=1: longer
	@$(BIN)/python -m benchmarks.claims $(if $(FULL),--full)

bench-rates: .venv/bench-figures.stamp ## growth of regret where the theorems' rates are attained, and Theorem 2 against a run; FULL=1: 10^7 rounds, ten seeds [JOBS=1: runs at a time]
	@$(BIN)/python -m benchmarks.rates $(if $(FULL),--full) $(if $(JOBS),--jobs $(JOBS))

bench-guard: .venv/bench.stamp ## which measures got worse since BASE=revision (default: where this branch left main; on main, the last commit)
	@$(BIN)/python -m benchmarks.guard $(if $(BASE),--base $(BASE))

clean: ## remove the environment and all build products
	rm -rf .venv build out dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The target is a stamp, not the interpreter, because a failed venv leaves an interpreter behind.
.venv/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ellipack needs Python 3.11 or later: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv \
	  || { echo "$(PYTHON) -m venv failed: on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
	@touch $@

# The build tools are installed into the same environment, so that a rebuild compiles only what has changed.
# setuptools builds those packages of public tables that have no wheel.
.venv/%.stamp: .venv/created.stamp pyproject.toml constraints.txt CMakeLists.txt $(wildcard cpp/*)
	@command -v $${CXX:-c++} >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || { echo "ellipack needs a \
	C++20 compiler, g++ 12 or clang 15 or later: apt-get install g++, dnf install gcc-c++ or xcode-select --install" >&2; exit 1; }
	@echo "Installing the packages for 'make $(MAKECMDGOALS)' into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt \
	  cmake nanobind ninja scikit-build-core 'setuptools>=70.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt \
	  --no-build-isolation --editable '.[$*]'
	@touch $@

# Second environments that use the packages of the first, with their own compiled modules.
SANITIZERS_address := address,undefined
SANITIZERS_thread := thread
build/sanitize-%/created.stamp: .venv/dev.stamp
	@echo "Building with sanitizers ..."
	@$(BIN)/python -m venv --clear --without-pip $(@D)/venv
	@$(BIN)/python -c 'import site; print(site.getsitepackages()[0])' \
	  > "$$($(@D)/venv/bin/python -c 'import site; print(site.getsitepackages()[0])')/shared.pth"
	@$(BIN)/python -m pip --python $(@D)/venv/bin/python install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation --config-settings=build-dir=$(@D)/cmake \
	  --config-settings=cmake.define.ELLIPACK_SANITIZE=$(SANITIZERS_$*) --config-settings=cmake.define.ELLIPACK_BASELINE_ONLY=ON .
	@touch $@
