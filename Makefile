# Build and test everything. `make help` lists the targets; README.md says what they are for.
CC      ?= cc
PREFIX  ?= /usr/local
B       ?= build
STD     := -std=c17 -D_GNU_SOURCE -I.
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPT     ?= -O2 -g
SAN     ?=
CFLAGS  := $(STD) $(WARN) $(OPT) $(SAN) $(shell pkg-config --cflags libcurl jansson libcrypto lmdb libzstd 2>/dev/null)
LDFLAGS := $(SAN)
lib      = $(shell pkg-config --libs $(1) 2>/dev/null)
obj      = $(patsubst %.c,$(B)/%.o,$(1))
part     = $(call obj,$(filter-out $(1)/main.c core/ki.c,$(wildcard $(1)/*.c)))

L_CORE   := $(call lib,jansson libcrypto libseccomp)
L_INGEST := $(call lib,libcurl) $(L_CORE)
L_NORM   := -lcsv $(L_CORE) -lm
L_STORE  := $(call lib,lmdb libzstd) $(L_CORE) -lm
BINS     := $(addprefix $(B)/bin/,ki ki-ingest ki-normalize ki-store)
# Each part is an archive, so that a program takes from it what it uses.
CORE     := $(B)/core.a
NORM     := $(B)/normalize.a
INGEST   := $(B)/ingest.a
STORE    := $(B)/store.a

all: bins
bins: $(BINS)
help:
	@echo 'targets: deps all run test asan valgrind soak bench bench-scale fuzz layers man install deb deb-test clean; with nvcc: gpu-test gpu-bench'
deps:
	@packaging/deps.sh
# The nightly job on a small file that comes with the source, into a store under var/.
run:
	@packaging/deps.sh build
	@$(MAKE) --no-print-directory -s -j$$(nproc) bins
	@$(B)/bin/ki nightly --store var/store --out var/export --snapshot fixtures/csv/example/input.csv \
	  --commit 2120862ba532c9449e72d603ba6324310ae756e7
	@$(B)/bin/ki status --store var/store

include verify/verify.mk
include tests/fuzz/fuzz.mk
include tests/tests.mk

$(B)/core.a: $(call part,core)
$(B)/normalize.a: $(call part,normalize)
$(B)/ingest.a: $(call part,ingest)
$(B)/store.a: $(call part,store)
$(B)/%.a:
	@rm -f $@
	ar rcs $@ $^

$(B)/bin/ki: $(B)/core/ki.o $(CORE)
$(B)/bin/ki-ingest: $(B)/ingest/main.o $(INGEST) $(CORE)
$(B)/bin/ki-normalize: $(B)/normalize/main.o $(NORM) $(CORE)
$(B)/bin/ki-store: $(B)/store/main.o $(STORE) $(B)/normalize/record.o $(CORE)
$(B)/bin/ki: LIBS = $(L_CORE)
$(B)/bin/ki-ingest: LIBS = $(L_INGEST)
$(B)/bin/ki-normalize: LIBS = $(L_NORM)
$(B)/bin/ki-store: LIBS = $(L_STORE)
$(BINS):
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# Include directions of docs/architecture.md.
layers:
	@tests/layers.sh

include packaging/install.mk

clean:
	rm -rf $(B)

.PHONY: all bins help deps run layers clean
-include $(shell find $(B) -name deb -prune -o -type f -name '*.d' -print 2>/dev/null)
