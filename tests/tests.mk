# Tests: units with cmocka, stages end to end in shell speaking TAP; both run by prove, twice: plain, and under ASan and UBSan.
SERVERS := $(patsubst tests/%_server.c,$(B)/tests/%_server,$(wildcard tests/*_server.c))
UNITS   := $(patsubst tests/%.c,$(B)/tests/%,$(filter-out $(wildcard tests/*_server.c) $(wildcard tests/gpu_*.c),$(wildcard tests/test_*.c)))
TOOLS   := $(B)/tests/fault
SHELLS  := $(sort $(wildcard tests/*.t))
ASAN    := B=build/asan OPT='-O1 -g' SAN='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

test: deps
	@$(MAKE) --no-print-directory -s -j$$(nproc) check
	@$(MAKE) --no-print-directory -s asan
check: all $(UNITS) $(SERVERS) $(FUZZ_DRIVERS) $(TOOLS) layers
	@B=$(B) tests/run.sh $(UNITS) $(SHELLS)
asan:
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(ASAN) NVCC= check

# The long forms: 1,000 kills, every fault at every system call, minutes of writers and readers. docs/faults.md has the figures.
soak: all $(TOOLS)
	@KI_TEST_LONG=1 B=$(B) tests/run.sh tests/faults.t tests/crash.t tests/damage.t tests/store.t

# Everything under memcheck, hours of one core. Left out is what looks at the kernel and not at memory (docs/hardening.md).
VALGRIND_NOT := tests/sandbox.t tests/child.t tests/faults.t tests/crash.t tests/browser.t $(B)/valgrind/tests/test_sandbox
valgrind: all $(UNITS) $(SERVERS) $(FUZZ_DRIVERS)
	@B=$(B) tests/valgrind.sh $(filter-out $(VALGRIND_NOT),$(UNITS:$(B)/%=$(B)/valgrind/%) $(SHELLS))

bench: all $(B)/bench/generate
	@B=$(B) bench/run.sh
bench-scale: all $(B)/bench/generate
	@B=$(B) bench/scale.sh

$(B)/tests/test_%: $(B)/tests/test_%.o $(STORE) $(NORM) $(INGEST) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_INGEST) $(L_NORM) $(L_STORE) $(call lib,cmocka)
$(B)/tests/%_server: $(B)/tests/%_server.o
	$(CC) $(LDFLAGS) -o $@ $^ $(call lib,openssl)
$(TOOLS): $(B)/tests/fault.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^
$(B)/bench/generate: $(B)/bench/generate.o $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_CORE) -lm
.PRECIOUS: $(B)/tests/%.o $(B)/%.host.o $(B)/%.device.o
.PHONY: test check asan soak valgrind bench bench-scale
