# Build and test everything. `make help` lists the targets.
CC      ?= cc
PREFIX  ?= /usr/local
B       := build
PKGS    := libcurl jansson libcrypto lmdb libzstd
STD     := -std=c17 -D_GNU_SOURCE -I.
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
OPT     ?= -O2 -g
SAN     ?=
CFLAGS  := $(STD) $(WARN) $(OPT) $(SAN) $(shell pkg-config --cflags $(PKGS) cmocka 2>/dev/null)
LDFLAGS := $(SAN)
lib      = $(shell pkg-config --libs $(1) 2>/dev/null)

obj       = $(patsubst %.c,$(B)/%.o,$(1))
stage     = $(call obj,$(filter-out $(1)/main.c,$(wildcard $(1)/*.c)))
CORE     := $(call obj,$(filter-out core/ki.c,$(wildcard core/*.c)))
INGEST   := $(call stage,ingest)
NORM     := $(call stage,normalize)
WIRE     := $(B)/normalize/record.o
STORE    := $(call stage,store)
BINS     := $(addprefix $(B)/bin/,ki ki-ingest ki-normalize ki-store)
TESTS    := $(patsubst tests/test_%.c,$(B)/tests/test_%,$(wildcard tests/test_*.c))

L_CORE   := $(call lib,jansson libcrypto)
L_INGEST := $(call lib,libcurl) $(L_CORE)
L_NORM   := -lcsv $(L_CORE) -lm
L_STORE  := $(call lib,lmdb libzstd) $(L_CORE) -lm

all: $(BINS)

run: deps
	@$(MAKE) --no-print-directory all
	@packaging/run-default

include verify/verify.mk
include tests/tests.mk

$(B)/bin/ki: $(B)/core/ki.o $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_CORE)
$(B)/bin/ki-ingest: $(B)/ingest/main.o $(INGEST) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_INGEST)
$(B)/bin/ki-normalize: $(B)/normalize/main.o $(NORM) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_NORM)
$(B)/bin/ki-store: $(B)/store/main.o $(STORE) $(WIRE) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_STORE)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(B) -name '*.d' 2>/dev/null)
