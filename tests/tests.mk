# Tests: units with cmocka, stages end to end in shell speaking TAP, both run by prove.
HELPERS := $(patsubst tests/%_server.c,$(B)/tests/%_server,$(wildcard tests/*_server.c))
UNITS   := $(TESTS)
SHELLS  := $(sort $(wildcard tests/*.t))

$(B)/tests/test_%: $(B)/tests/test_%.o $(CORE) $(NORM) $(INGEST) $(STORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--allow-multiple-definition -o $@ $^ $(L_INGEST) $(L_NORM) $(L_STORE) $(call lib,cmocka)
$(B)/tests/%_server: $(B)/tests/%_server.o
	$(CC) $(LDFLAGS) -o $@ $^ $(call lib,openssl)
