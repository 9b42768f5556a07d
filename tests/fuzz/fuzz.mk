# Fuzz targets, one a file fuzz_NAME.c. `make fuzz SECONDS=n` runs each under libFuzzer, AddressSanitizer and UBSan (clang); `make test`
# runs the same code over the committed inputs with a plain driver. docs/hardening.md says how to go on from a finding.
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_NAMES   := $(patsubst tests/fuzz/fuzz_%.c,%,$(FUZZ_SOURCES))
FUZZ_DRIVERS := $(addprefix $(B)/tests/fuzz/,$(FUZZ_NAMES))
FUZZERS      := $(addprefix $(B)/fuzzer/,$(FUZZ_NAMES))
FUZZ_PARTS   := $(B)/tests/fuzz/fuzz.o $(STORE) $(VERIFY) $(NORM) $(INGEST) $(K_HOST) $(CORE)
FUZZ_LIBS     = $(L_INGEST) $(L_NORM) $(L_STORE) $(L_VERIFY) -lm
FUZZ_SAN     := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
SECONDS      ?= 60

$(FUZZ_DRIVERS): $(B)/tests/fuzz/%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/drive.o $(FUZZ_PARTS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS)
$(FUZZERS): $(B)/fuzzer/%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_PARTS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS)
fuzzers: $(FUZZERS)
fuzz: bins
	@command -v clang >/dev/null || { echo 'fuzz: no clang here: apt-get install clang' >&2; exit 69; }
	@$(MAKE) --no-print-directory -s -j$$(nproc) B=build/fuzz CC=clang OPT='-O1 -g -Wno-missing-field-initializers' SAN='-fsanitize=fuzzer-no-link $(FUZZ_SAN)' NVCC= L_CUDA= fuzzers
	@B=$(B) tests/fuzz/run.sh $(SECONDS) $(if $(TARGET),$(TARGET),$(FUZZ_NAMES))
.PHONY: fuzz fuzzers
