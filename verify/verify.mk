# kernels/, verify/ and their tests. Each kernels/NAME.cu is read twice: its contract and host reference by the C compiler, its
# kernels by nvcc. Without nvcc everything builds, with the CPU device only. Needs no GPU.
NVCC       ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 80 90
L_VERIFY   := $(call lib,jansson libcrypto libzstd)
L_STATIC   ?= -Wl,-Bstatic -ljansson -Wl,-Bdynamic -lcrypto
CUDA_LAST   = $(lastword $(CUDA_ARCHS))
NVFLAGS     = -std=c++20 -O3 -I. -Xfatbin=-compress-all -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unused-function,-Wno-missing-field-initializers \
              -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
              $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(CUDA_LAST),code=compute_$(CUDA_LAST)

K_SOURCES := $(filter-out kernels/gemm.cu,$(wildcard kernels/*.cu)) # operations
K_HOST    := $(patsubst %.cu,$(B)/%.host.o,$(K_SOURCES)) $(call obj,$(wildcard kernels/*.c))
ifneq ($(NVCC),)
K_DEVICE  := $(patsubst %.cu,$(B)/%.device.o,$(K_SOURCES) kernels/gemm.cu)
V_DEVICE  := $(patsubst %.cu,$(B)/%.device.o,$(wildcard verify/*.cu))
GPU_BINS  := $(B)/bin/gpu-test $(B)/bin/gpu-bench
L_CUDA    := -L$(dir $(NVCC))../lib64 -lcudart_static -ldl -lrt -lpthread
endif

VERIFY    := $(B)/verify.a

$(VERIFY): $(patsubst %.c,$(B)/%.o,$(filter-out verify/main.c,$(wildcard verify/*.c)))

all: kernels $(B)/bin/ki-verify $(GPU_BINS)
kernels: $(K_HOST) $(K_DEVICE)
.PHONY: kernels gpu-test gpu-bench

BINS += $(B)/bin/ki-verify
$(B)/bin/ki-verify: $(B)/verify/main.o $(V_DEVICE) $(K_DEVICE) $(K_HOST) $(VERIFY) $(NORM) $(CORE)
$(B)/bin/ki-verify: LIBS = $(L_VERIFY) $(L_CUDA) -lm
$(B)/verify/manifest.o: CFLAGS += -DKI_CUDA_ARCHS='"$(if $(NVCC),$(CUDA_ARCHS))"'

# The device tests and the device table; both say SKIP without a GPU. The programs need no toolchain where they run: carry
# build/bin/gpu-test, build/bin/gpu-bench, fixtures/gpu/ and config/tolerances.json to a GPU host.
gpu-test gpu-bench: %: $(B)/bin/%
	$< $(GPU_OPTIONS)
$(B)/bin/gpu-%: $(B)/tests/gpu_%.o $(B)/tests/gpu_cases.o $(V_DEVICE) $(K_DEVICE) $(K_HOST) $(VERIFY) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_STATIC) $(L_CUDA) -lm

$(B)/%.host.o: %.cu
	@mkdir -p $(@D)
	$(CC) -x c $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/%.device.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(B)/tests/test_ref_%: $(B)/tests/test_ref_%.o $(K_HOST)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(call lib,cmocka) -lm
$(B)/tests/test_verify_%: $(B)/tests/test_verify_%.o $(K_HOST) $(VERIFY) $(NORM) $(CORE)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(L_VERIFY) $(call lib,cmocka) -lm
.PRECIOUS: $(B)/verify/%.o $(B)/verify/%.device.o
