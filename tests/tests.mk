# Tests: units with cmocka, stages end to end in shell speaking TAP; both run by prove, twice: plain, and under ASan and UBSan.
SERVERS := $(patsubst tests/%_server.c,$(B)/tests/%_server,$(wildcard tests/*_server.c))
UNITS   := $(patsubst tests/%.c,$(B)/tests/%,$(filter-out $(wildcard tests/*_server.c) $(wildcard tests/gpu_*.c),$(wildcard tests/test_*.c)))
SHELLS  := $(sort $(wildcard tests/*.t))
ASAN    := B=build/asan OPT='-O1 -g' SAN='-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

test: deps
	@$(MAKE) --no-print-directory -s -j$$(nproc) check
	@$(MAKE) --no-print-directory -s asan
check: all $(UNITS) $(SERVERS) $(FUZZ_DRIVERS) layers
	@B=$(B) tests/run.sh $(UNITS) $(SHELLS)
asan:
	@$(MAKE) --no-print-directory -s -j$$(nproc) $(ASAN) NVCC= check

bench: all $(B)/bench/generate
	@B=$(B) bench/run.sh
bench-scale: all $(B)/bench/generate
	@B=$(B) bench/scale.sh

$(B)/tests/test_%: $(B)/tests/test_%.o $(STORE) $(NORM) $(INGEST) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_INGEST) $(L_NORM) $(L_STORE) $(call lib,cmocka)
$(B)/tests/%_server: $(B)/tests/%_server.o
	$(CC) $(LDFLAGS) -o $@ $^ $(call lib,openssl)
$(B)/bench/generate: $(B)/bench/generate.o $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_CORE) -lm
.PRECIOUS: $(B)/tests/%.o $(B)/%.host.o $(B)/%.device.o
.PHONY: test check asan bench bench-scale
