# The short way in. CMake does the work; its settings are in CMakePresets.json.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CMAKE_FLAGS ?=
FUZZ_SECONDS ?= 600
FUZZ ?=

# $(call build,PRESET): configure and build one of the presets; the make that CMake starts has flags and jobs of its own
define build
cmake --preset $(1) $(CMAKE_FLAGS) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null || \
	{ echo "configuring failed; 'make deps' installs what is missing" >&2; exit 1; }
MAKEFLAGS=--no-print-directory cmake --build --preset $(1) -j $(JOBS)
endef

.PHONY: all deps deps-check demo check check-main check-sanitizers check-plan-only check-valgrind fuzz nightly bench \
	install clean help

all: ## build into build/; the program is build/convoy
	@$(call build,release)

deps: ## install the packages of packages.txt that are missing
	@bash tools/install_packages.sh

deps-check: ## and those that only tests need
	@bash tools/install_packages.sh check

demo: deps all ## calibrate, plan, train lenet5 on two ranks, compare, report; about two minutes on 2 cores
	@bash tools/demo.sh build/convoy

check: deps-check check-main check-sanitizers check-plan-only check-valgrind ## every test, in four builds

check-main: ## all tests, warnings are errors
	@$(call build,check)
	ctest --preset check

check-sanitizers: ## unit tests under the address and undefined behaviour sanitizers
	@$(call build,asan)
	ctest --preset asan

check-plan-only: ## tests of the build that needs no library but YAML and JSON; its pages look as those of check-main
	@$(call build,plan-only)
	ctest --preset plan-only

check-valgrind: check-main ## a few unit tests under valgrind
	@bash tools/check_valgrind.sh build-check/tests

fuzz: ## give hostile files to the readers: FUZZ_SECONDS (600) each, or FUZZ="yaml npy" alone; needs clang
	@command -v clang >/dev/null || { echo "fuzz: needs Debian's clang and libomp-dev" >&2; exit 1; }
	@$(call build,fuzz)
	bash tools/fuzz.sh build-fuzz $(FUZZ_SECONDS) $(FUZZ)

nightly: all ## what is too long for check under the sanitizers, and every strategy against the serial run; over an hour
	@$(call build,asan)
	ctest --preset nightly
	@OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
	OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_WAIT_POLICY=passive \
	bash tests/ranks/matrix.sh build/convoy mpiexec tests/ranks/nightly.txt

bench: all ## measure training throughput, beside PyTorch where it is installed
	@bash tools/bench.sh build/convoy

install: all ## install under PREFIX (/usr/local); honours DESTDIR
	@cmake --install build --prefix $(PREFIX)

clean: ## remove all that was built
	rm -rf build build-debug build-check build-asan build-plan-only build-fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
