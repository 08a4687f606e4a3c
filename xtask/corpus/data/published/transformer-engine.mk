# Compiles the part of Transformer Engine for PyTorch, which has no wheel, with g++ alone, and installs it:
#
#   make -f transformer-engine.mk -j2 SOURCE=transformer_engine_torch-2.16.0 PYTHON=target/torch/torch-2.12.0-te/bin/python
#
# SOURCE is the unpacked source package. PYTHON is of an environment with the packages of `torch-2.12.0-te.txt`, among them
# CUDA's headers; what is compiled goes to its site-packages, and objects to the folder `transformer-engine` beside SOURCE.
SITE := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
HEADERS := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')
SUFFIX := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
VERSION := $(lastword $(subst -, ,$(notdir $(SOURCE))))
LIBRARY := $(SITE)/transformer_engine_torch$(SUFFIX)
METADATA := $(SITE)/transformer_engine_torch-$(VERSION).dist-info/METADATA
OBJECTS := $(patsubst $(SOURCE)/%.cpp,$(SOURCE)/../transformer-engine/%.o,$(shell find $(SOURCE)/csrc -name '*.cpp'))
INCLUDED := $(addprefix $(SOURCE)/,common_headers common_headers/common common_headers/common/include csrc) \
    $(SITE)/nvidia/cu13/include $(SITE)/nvidia/cu13/include/cccl $(SITE)/nvidia/cudnn/include $(SITE)/nvidia/nccl/include \
    $(SITE)/torch/include $(SITE)/torch/include/torch/csrc/api/include $(HEADERS)
# Its host code is small, and what it allocates does not depend on how it is optimized.
CXXFLAGS := -O0 -g0 -w -fPIC -std=c++20 -fvisibility=hidden -DTORCH_EXTENSION_NAME=transformer_engine_torch \
    -DTORCH_API_INCLUDE_EXTENSION_H $(addprefix -I,$(INCLUDED))

.PHONY: install
install: $(LIBRARY) $(METADATA)

$(LIBRARY): $(OBJECTS)
	g++ -shared -o $@ $^ -L$(SITE)/torch/lib -lc10 -lc10_cuda -ltorch -ltorch_cpu -ltorch_cuda -ltorch_python

$(METADATA):
	mkdir -p $(dir $@)
	printf 'Metadata-Version: 2.1\nName: transformer-engine-torch\nVersion: $(VERSION)\n' > $@

$(SOURCE)/../transformer-engine/%.o: $(SOURCE)/%.cpp
	mkdir -p $(dir $@)
	g++ $(CXXFLAGS) -c $< -o $@
