# kernels/, verify/ and their tests. Each kernels/NAME.cu is read twice: its contract and host reference by the C compiler, its
# kernels by nvcc. Without nvcc everything builds, with the CPU device only. Needs no GPU.
NVCC       ?= $(firstword $(shell command -v nvcc 2>/dev/null) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA_ARCHS ?= 80 90
CUDA_LAST   = $(lastword $(CUDA_ARCHS))
NVFLAGS     = -std=c++20 -O3 -I. -Xfatbin=-compress-all -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unused-function,-Wno-missing-field-initializers \
              -Xcompiler -fno-exceptions,-fno-rtti,-fno-threadsafe-statics \
              $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
              -gencode arch=compute_$(CUDA_LAST),code=compute_$(CUDA_LAST)

K_SOURCES := $(filter-out kernels/gemm.cu,$(wildcard kernels/*.cu)) # operations
K_HOST    := $(patsubst %.cu,$(B)/%.host.o,$(K_SOURCES)) $(call obj,$(wildcard kernels/*.c))
ifneq ($(NVCC),)
K_DEVICE  := $(patsubst %.cu,$(B)/%.device.o,$(K_SOURCES) kernels/gemm.cu)
L_CUDA    := -L$(dir $(NVCC))../lib64 -lcudart_static -ldl -lrt -lpthread
endif

all: kernels
kernels: $(K_HOST) $(K_DEVICE)
.PHONY: kernels

$(B)/%.host.o: %.cu
	@mkdir -p $(@D)
	$(CC) -x c $(CFLAGS) -MMD -MP -c -o $@ $<
$(B)/%.device.o: %.cu
	@mkdir -p $(@D)
	$(NVCC) $(NVFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(B)/tests/test_ref_%: $(B)/tests/test_ref_%.o $(K_HOST)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(call lib,cmocka) -lm
