# make demo     a program changes its GPU while it runs (DEVICE=emulated, or cuda on a machine with an NVIDIA GPU)
# make demo-process   a program is saved with its process, ended, and goes on from the file on another node (docs/processes.md)
# make demo-vm  a virtual machine moves, and goes to disk and comes back with its program's GPU (docs/virtual-machines.md)
# make check    all tests, of what repeats others a sample
# make check-all  these, which entries succeed, all programs in every flavour, with folding forced and saved with their processes,
#                 a thousand kills of program, worker, daemon and client, a thousand random histories of objects that are suspended
#                 and resumed, a thousand of modules, and a hundred threads for a minute under thread sanitizer; takes an hour and a
#                 half on two cores
# make stage    a release, installed into build/stage; its debug information in build/stage-debug
# make asan, make tsan   the tests under a sanitizer          make bench    figures, never asserted
# make fuzz     libFuzzer on what strangers send, a minute each (clang)
# make format   clang-format over the sources                 make clean    removes build/, keeps .deps/
#
# Every target first installs what is missing (tools/setup) and uses the presets of CMakePresets.json.

DEVICE ?= emulated
JOBS ?= $(shell nproc)
stage := build/stage
shown := linked-list linked-list-shared contents working-set
# What the demo needs of the build tree, which has the shape of an installed one.
parts := vgpud vgpuctl vgpu-relay vgpu-worker vgpu_cuda vgpu_cudart vgpu_emulator
demo := $(parts) $(shown:%=tests/programs/%)
cublas := vgpu_face_cublas vgpu_face_cublasLt vgpu_double_cublas vgpu_double_cublasLt

# $(call build,PRESET,TARGETS): configures it and builds these targets, all of them where none is named.
build = cmake --preset $(1) >/dev/null && cmake --build --preset $(1) --parallel $(JOBS) $(if $(2),--target $(2))

.PHONY: all setup build stage check check-all demo demo-process demo-vm asan tsan fuzz bench format clean
all: build

setup:
	@tools/setup

build: setup
	@$(call build,release)

stage: setup
	@$(call build,release,installed)
	@rm -rf $(stage)
	@cmake --install build/release --prefix $(stage) --strip >/dev/null
	@tools/debug-files build/release $(stage)

check: build
	@tests/list-known-failures
	@ctest --preset release --parallel 2

check-all: check
	@ctest --preset release -C forced -L forced --parallel 2
	@tests/campaign/kill-campaign build/release --rounds 1000 --each 10 --jobs $(JOBS)
	@tests/campaign/history-campaign build/release --seeds 1000 --jobs $(JOBS)
	@VGPU_HISTORIES=50 build/release/tests/checkpoint/snapshot-test --test-case='variables*are where they were*'
	@cmake --preset tsan -DVGPU_PROGRAM_OBJECTS=$(CURDIR)/build/release/tests/programs >/dev/null
	@cmake --build --preset tsan --parallel $(JOBS) --target $(parts) $(cublas) tests/programs/many-families
	@ctest --preset tsan -C forced -R '^virtual/many-families-minute$$'

demo: setup
	@$(call build,release,$(demo))
	@tools/demo build/release build/release/tests/programs $(DEVICE)

demo-process: setup
	@$(call build,release,$(parts) tests/programs/process-state)
	@tools/demo build/release build/release/tests/programs $(DEVICE) process

demo-vm: setup
	@$(call build,release,$(parts) tests/programs/steady)
	@tools/demo-vm build/release

asan tsan: setup
	@$(call build,release,vgpu_programs)
	@cmake --preset $@ -DVGPU_PROGRAM_OBJECTS=$(CURDIR)/build/release/tests/programs >/dev/null
	@cmake --build --preset $@ --parallel $(JOBS)
	@ctest --preset $@ --parallel 2

fuzz:
	@tools/setup clang libclang-rt-dev
	@$(call build,fuzz,ptx-fuzz container-fuzz ptx-replay container-replay)
	@cmake --build --preset fuzz --target fuzz-ptx-run
	@cmake --build --preset fuzz --target fuzz-container-run

bench:
	@tools/setup liburing-dev
	@$(call build,release)
	@for bench in build/release/tests/bench/*-bench; do echo "$$bench"; "$$bench" || exit 1; done
	@build/release/bin/vgpuctl run -- build/release/tests/bench/launch-program

format:
	@git ls-files '*.h' '*.cc' '*.cu' '*.c' | xargs clang-format -i

clean:
	@rm -rf build
