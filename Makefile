# A thin front for CMake: `make help` lists what there is.
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)

.PHONY: all configure test soak fuzz coverage analyse bench bench-scale demo dist dist-test docs install clean format check help attacks

all: configure                ## build the library, the command line and the benchmarks into build/
	@cmake --build build -j $(JOBS)

configure:
	@command -v cmake >/dev/null && command -v ninja >/dev/null \
	    || { echo "make: cmake and ninja are missing; tools/setup build installs them" >&2; exit 2; }
	@cmake --preset release -DCMAKE_INSTALL_PREFIX="$(PREFIX)" --log-level=NOTICE >/dev/null

test:                         ## the whole test suite; installs what it needs
	@tools/setup build
	@tools/setup test demo & tools/build release; built=$$?; wait $$! && exit $$built
	@tools/test

soak:                         ## the stress tests with random options for half an hour (MINUTES=30); and what make dist has left
	@tools/soak $(or $(MINUTES),30)
	@[ ! -d dist ] || tools/dist_test names wheel node musl crate alpine debian arm64

fuzz:                         ## the fuzzers, each a share of the time (MINUTES=10)
	@tools/setup build test
	@tools/build release
	@tools/fuzz $(or $(MINUTES),10)

coverage:                     ## which lines and branches the tests run: a table and build/coverage/html
	@tools/setup build test coverage
	@tools/coverage

analyse:                      ## cppcheck, gcc's and clang's analyzers, clang-tidy, cargo-deny: some minutes
	@tools/setup build analyse
	@tools/analyse

# A peer that cannot be built is named, and left out: the others are still worth measuring.
bench:                        ## the benchmarks, real programs and services, beside the other allocators
	@tools/setup build bench
	@tools/build release
	@build/hakmem peers install || echo "make: going on without the peers named above" >&2
	@build/hakmem bench
	@build/hakmem bench --real --label real
	@build/hakmem bench --after-peak --label after-peak

bench-scale:                  ## what each operation costs over sizes and threads, beside the others
	@tools/setup build bench
	@tools/build release
	@build/hakmem peers install || echo "make: going on without the peers named above" >&2
	@bench/scale/run

demo:                         ## real programs under hakmem beside glibc, as a table
	@tools/setup build demo
	@tools/build release
	@tools/demo

attacks:                      ## which mistakes each hardened allocator finds, and what that costs
	@tools/setup build bench
	@tools/build release
	@tools/attacks
	@tools/attacks --cost

dist:                         ## tarballs, packages for Debian, Python and Node, a crate, into dist/
	@tools/setup build dist
	@tools/dist

dist-test: dist               ## installs and runs what make dist has built, with each glibc that Debian has; once more, with equal hashes
	@tools/dist_test
	@tools/glibc_matrix || [ $$? -eq 77 ]

docs:                         ## the documents as a site that needs no network: build/site/index.html
	@tools/setup docs
	@tools/site

install: all                  ## into $(DESTDIR)$(PREFIX)
	@DESTDIR="$(DESTDIR)" cmake --install build

format:                       ## rewrite the C files in the house style
	@tools/format

check:                        ## formatting, layers, both compilers, unit tests: under a minute
	@tools/check

clean:                        ## remove build/
	@rm -rf build

help:
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
