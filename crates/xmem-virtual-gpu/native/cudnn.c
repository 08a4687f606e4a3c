// cuDNN. Its graph interface goes to the real library, in the mode without a device that cuDNN has since
// 9.8: wherever PyTorch passes a handle, the description of the device takes its place. So the lists of
// engines and the sizes of workspaces are cuDNN's own for that device. Only the execution has no effect.
//
// With an older library, each plan is one engine without a workspace, and the log says so.
//
// The numbers are those of cudnn_graph.h of cuDNN 9, which promises not to change them within a major
// version; cuDNN 8 has the same.
#define _GNU_SOURCE
#include "vgpu.h"
#include "cudnn.h"
#include "norms.h"
#include "recurrent.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, BAD_PARAMETER = 2000 };
// cudnnBackendDescriptorType_t
enum { FORWARD = 10, BACKWARD_DATA = 12, DEVICE_PROPERTIES = 38 };
// cudnnBackendAttributeType_t
enum { TYPE_HANDLE = 0, TYPE_BOOLEAN = 2, TYPE_INT64 = 3, TYPE_DOUBLE = 5, TYPE_POINTER = 6, TYPE_DESCRIPTOR = 15, TYPE_CHAR = 24, TYPE_FRACTION = 26 };
// cudnnBackendAttributeName_t
enum {
  HEURISTICS_GRAPH = 201, HEURISTICS_RESULTS = 202, HEURISTICS_DEVICE = 204,
  CONFIG_ENGINE = 300, CONFIG_INTERMEDIATES = 301, CONFIG_CHOICES = 302, CONFIG_WORKSPACE = 303,
  PLAN_HANDLE = 400, PLAN_WORKSPACE = 402, PLAN_JSON = 405, PLAN_DEVICE = 407,
  GRAPH_OPERATIONS = 801, GRAPH_ENGINES = 802,
  ENGINE_GRAPH = 1300, ENGINE_INDEX = 1301, ENGINE_KNOBS = 1302, ENGINE_NUMERICS = 1303, ENGINE_BEHAVIOR = 1305, ENGINE_DEVICE = 1307,
  DEVICE_JSON = 2702,
};
#define MAX_DESCRIPTORS 256

// A descriptor of PyTorch's: the real library's, or the attributes that were set.
struct attribute { int name, type; int64_t count; void *data; struct attribute *next; };
// `is_convolution`: a graph of one convolution, and what is made for it.
struct descriptor { int type, is_convolution; void *real; struct attribute *attributes; };

static struct cudnn library;

static void describe_device(char *json, size_t size) {
  const struct config *g = vgpu_config();
  char name[2 * sizeof g->name];
  size_t at = 0;
  for (const char *c = g->name; *c && at + 2 < sizeof name; c++) {
    if (*c == '"' || *c == '\\') name[at++] = '\\';
    name[at++] = (unsigned char)*c < ' ' ? ' ' : *c;
  }
  name[at] = 0;
  snprintf(json, size,
    "{\"deviceName\":\"%s\",\"cudaDeviceId\":0,\"deviceVer\":%d,\"multiProcessorCount\":%d,\"driverVer\":%d,"
    "\"maxSharedMemoryPerBlockOptin\":%d,\"totalGlobalMem\":%llu,\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":%d,\"maxCtasPerSM\":%d,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":%d,\"pciDeviceId\":%d,\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":%d,"
    "\"memClockRateKHz\":%d,\"l2CacheSize\":%d}",
    name, (g->major * 10 + g->minor) * 10, g->sms, g->driver, g->shared_per_block_optin, (unsigned long long)g->memory,
    g->registers_per_sm, g->blocks_per_sm, g->threads_per_sm, g->pci_device, g->sm_clock, g->memory_clock, g->l2);
}

static void load(void) {
  const char *path = vgpu_config()->cudnn;
  if (!*path) return;
  // By its path: the name is this stand-in's. Its own functions come before those of the stand-in.
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (!handle) {
    vgpu_log("cudnn cannot load %s: %s", path, dlerror());
    return;
  }
  size_t (*version)(void);
  *(void **)&version = dlsym(handle, "cudnnGetVersion");
  library.version = version ? version() : 0;
  if (library.version < 90800) {
    vgpu_log("cudnn %zu has no device-less mode, which came with 9.8: convolutions are recorded without workspaces", library.version);
    return;
  }
  *(void **)&library.create = dlsym(handle, "cudnnBackendCreateDescriptor");
  *(void **)&library.destroy = dlsym(handle, "cudnnBackendDestroyDescriptor");
  *(void **)&library.set = dlsym(handle, "cudnnBackendSetAttribute");
  *(void **)&library.get = dlsym(handle, "cudnnBackendGetAttribute");
  *(void **)&library.finalize = dlsym(handle, "cudnnBackendFinalize");
  *(void **)&library.last_error = dlsym(handle, "cudnnGetLastErrorString");
  if (!library.create || !library.destroy || !library.set || !library.get || !library.finalize) {
    vgpu_log("cudnn %s has no graph interface: convolutions are recorded without workspaces", path);
    return;
  }
  char json[2048];
  describe_device(json, sizeof json);
  int status = library.create(DEVICE_PROPERTIES, &library.device);
  if (!status) status = library.set(library.device, DEVICE_JSON, TYPE_CHAR, (int64_t)strlen(json), json);
  if (!status) status = library.finalize(library.device);
  if (status) {
    char text[512] = "";
    if (library.last_error) library.last_error(text, sizeof text);
    vgpu_log("cudnn refuses the device (status %d %s): convolutions are recorded without workspaces", status, text);
    return;
  }
  library.is_usable = 1;
}

static int is_real(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  return library.is_usable;
}

API(size_t, cudnnGetVersion)(void) { is_real(); return library.version; }
API(size_t, cudnnGetCudartVersion)(void) { return (size_t)vgpu_config()->runtime; }
API(int, cudnnGetProperty)(int part, int *value) {
  is_real();
  // 9.19.0 is 91900, 8.9.2 is 8902.
  int version = (int)library.version, thousand = version >= 90000 ? 10000 : 1000;
  *value = part == 0 ? version / thousand : part == 1 ? version % thousand / 100 : version % 100;
  return OK;
}
API(const char *, cudnnGetErrorString)(int status) { return status ? "CUDNN_STATUS of the stand-in for cuDNN" : "CUDNN_STATUS_SUCCESS"; }
API(void, cudnnGetLastErrorString)(char *text, size_t size) {
  if (library.is_usable && library.last_error) library.last_error(text, size);
  else if (size) *text = 0;
}
static int make(void **at, size_t size) { *at = vgpu_handle_make(HANDLE_LIBRARY, size); return *at ? OK : 4003; }
static int drop(void *handle) { return !handle || vgpu_handle_drop(HANDLE_LIBRARY, handle) ? OK : BAD_PARAMETER; }
static int is_handle(const void *handle) { return vgpu_handle_exists(HANDLE_LIBRARY, handle); }
API(int, cudnnCreate)(void ***handle) { return make((void **)handle, 64); }
API(int, cudnnDestroy)(void **handle) { return drop(handle); }
API(int, cudnnSetStream)(void **handle, void *stream) { if (!is_handle(handle)) return BAD_PARAMETER; *handle = stream; return OK; }
API(int, cudnnGetStream)(void **handle, void **stream) { if (!is_handle(handle)) return BAD_PARAMETER; *stream = *handle; return OK; }

// ---- descriptors ----
static size_t size_of(int type) {
  switch (type) {
    case TYPE_HANDLE: case TYPE_INT64: case TYPE_DOUBLE: case TYPE_POINTER: case TYPE_DESCRIPTOR: return 8;
    case TYPE_BOOLEAN: case TYPE_CHAR: return 1;
    case TYPE_FRACTION: return 16;
    default: return 4;
  }
}

API(int, cudnnBackendCreateDescriptor)(int type, struct descriptor **at) {
  struct descriptor *d = vgpu_handle_make(HANDLE_DESCRIPTOR, sizeof *d);
  if (!d) return 4003; // CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
  d->type = type;
  int status = is_real() ? library.create(type, &d->real) : OK;
  if (status) vgpu_handle_drop(HANDLE_DESCRIPTOR, d);
  else *at = d;
  return status;
}
static int is_descriptor(const struct descriptor *d) { return vgpu_handle_exists(HANDLE_DESCRIPTOR, d); }
API(int, cudnnBackendDestroyDescriptor)(struct descriptor *d) {
  if (!d) return OK;
  if (!vgpu_handle_remove(HANDLE_DESCRIPTOR, d)) return BAD_PARAMETER;
  int status = d->real ? library.destroy(d->real) : OK;
  for (struct attribute *a = d->attributes, *next; a; a = next) {
    next = a->next;
    free(a->data);
    free(a);
  }
  free(d);
  return status;
}
API(int, cudnnBackendInitialize)(struct descriptor *d) { (void)d; return OK; }
API(int, cudnnBackendFinalize)(struct descriptor *d) { return !is_descriptor(d) ? BAD_PARAMETER : d->real ? library.finalize(d->real) : OK; }

static struct attribute *find(struct descriptor *d, int name) {
  for (struct attribute *a = d->attributes; a; a = a->next) if (a->name == name) return a;
  return NULL;
}

// Values of one attribute: more than any has.
#define MAX_VALUES ((int64_t)1 << 20)

static int keep(struct descriptor *d, int name, int type, int64_t count, const void *data) {
  if (count > MAX_VALUES) return BAD_PARAMETER;
  struct attribute *a = find(d, name);
  if (!a) {
    a = calloc(1, sizeof *a);
    if (!a) return 4003;
    a->name = name;
    a->next = d->attributes;
    d->attributes = a;
  }
  size_t size = size_of(type) * (size_t)(count > 0 ? count : 1);
  void *copy = calloc(1, size);
  if (!copy) return 4003;
  if (data && count > 0) memcpy(copy, data, size);
  free(a->data);
  a->data = copy;
  a->type = type;
  a->count = count;
  return OK;
}

// The real descriptors in an array of PyTorch's.
static void unwrap(void **real, struct descriptor *const *descriptors, int64_t count) {
  for (int64_t i = 0; i < count; i++) real[i] = is_descriptor(descriptors[i]) ? descriptors[i]->real : NULL;
}

API(int, cudnnBackendSetAttribute)(struct descriptor *d, int name, int type, int64_t count, const void *data) {
  if (!is_descriptor(d)) return BAD_PARAMETER;
  if (!d->real) return keep(d, name, type, count, data);
  if (type == TYPE_HANDLE) {
    if (name != PLAN_HANDLE) return OK;
    return library.set(d->real, PLAN_DEVICE, TYPE_DESCRIPTOR, 1, &library.device);
  }
  if (type != TYPE_DESCRIPTOR) return library.set(d->real, name, type, count, data);
  void *real[MAX_DESCRIPTORS];
  if (count < 0 || count > MAX_DESCRIPTORS) return BAD_PARAMETER;
  unwrap(real, data, count);
  struct descriptor *const *given = data;
  for (int64_t i = 0; i < count; i++) {
    if (!is_descriptor(given[i])) continue;
    int is_one = name == GRAPH_OPERATIONS && count == 1 && given[i]->type >= FORWARD && given[i]->type <= BACKWARD_DATA;
    d->is_convolution |= is_one || given[i]->is_convolution;
  }
  int status = library.set(d->real, name, type, count, real);
  int device = name == HEURISTICS_GRAPH ? HEURISTICS_DEVICE : name == ENGINE_GRAPH ? ENGINE_DEVICE : 0;
  if (!status && device) status = library.set(d->real, device, TYPE_DESCRIPTOR, 1, &library.device);
  return status;
}

static int get_real(struct descriptor *d, int name, int type, int64_t wanted, int64_t *count, void *data) {
  if (name == PLAN_WORKSPACE && type == TYPE_INT64 && data && wanted > 0 && d->is_convolution && vgpu_config()->major == 9) {
    int status = library.get(d->real, name, type, wanted, count, data);
    int64_t *size = data;
    if (!status && *size >= 0) *size = (int64_t)vgpu_split_workspace(&library, d->real, vgpu_config()->sms, (size_t)*size);
    return status;
  }
  if (type != TYPE_DESCRIPTOR || !data) return library.get(d->real, name, type, wanted, count, data);
  void *real[MAX_DESCRIPTORS];
  struct descriptor **descriptors = data;
  if (wanted > MAX_DESCRIPTORS) wanted = MAX_DESCRIPTORS;
  unwrap(real, descriptors, wanted);
  int status = library.get(d->real, name, type, wanted, count, real);
  // The library fills the descriptors that it is given.
  for (int64_t i = 0; i < wanted; i++)
    if (is_descriptor(descriptors[i])) descriptors[i]->real = real[i], descriptors[i]->is_convolution = d->is_convolution;
  return status;
}

API(int, cudnnBackendGetAttribute)(struct descriptor *d, int name, int type, int64_t wanted, int64_t *count, void *data) {
  if (!is_descriptor(d)) return BAD_PARAMETER;
  if (d->real) return get_real(d, name, type, wanted, count, data);
  int64_t found = 0;
  int is_wanted = data && wanted > 0;
  switch (name) {
    // One engine and one configuration: the descriptors that the caller made stand for them.
    case HEURISTICS_RESULTS: case CONFIG_ENGINE: found = 1; break;
    case GRAPH_ENGINES:
      found = 1;
      if (is_wanted) *(int64_t *)data = 1;
      break;
    case PLAN_WORKSPACE: case CONFIG_WORKSPACE:
      found = 1;
      if (is_wanted) *(int64_t *)data = 0;
      break;
    case PLAN_JSON:
      found = 3;
      if (data && wanted >= 3) memcpy(data, "{}", 3);
      break;
    case ENGINE_NUMERICS: case ENGINE_BEHAVIOR: case ENGINE_KNOBS: case CONFIG_CHOICES: case CONFIG_INTERMEDIATES: break;
    default: {
      struct attribute *a = find(d, name);
      if (!a && name == ENGINE_INDEX) {
        found = 1;
        if (is_wanted) *(int64_t *)data = 0;
      } else if (a && a->count > 0) {
        found = a->count;
        if (is_wanted && size_of(type) > size_of(a->type)) return BAD_PARAMETER;
        if (is_wanted) memcpy(data, a->data, size_of(type) * (size_t)(wanted < found ? wanted : found));
      }
    }
  }
  if (count) *count = found;
  return OK;
}
API(int, cudnnBackendExecute)(void *handle, struct descriptor *plan, struct descriptor *pack) { (void)handle, (void)plan, (void)pack; return OK; }

// ---- the older interface: descriptors, and sizes that are not known without a device ----
#define DESCRIPTOR(kind) \
  API(int, cudnnCreate##kind##Descriptor)(void **at) { return make(at, 512); } \
  API(int, cudnnDestroy##kind##Descriptor)(void *descriptor) { return drop(descriptor); }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Activation)
DESCRIPTOR(Dropout)
DESCRIPTOR(Pooling)
DESCRIPTOR(RNNData)
DESCRIPTOR(CTCLoss)
DESCRIPTOR(SpatialTransformer)
DESCRIPTOR(ReduceTensor)
DESCRIPTOR(OpTensor)
DESCRIPTOR(LRN)

static int unknown(size_t *size, const char *what) {
  vgpu_unknown_size(what);
  if (size) *size = 0;
  return OK;
}
// Descriptors of tensors and filters keep their shape: PyTorch reads those of weights back.
struct shape { int type, format, count, sizes[8], strides[8]; };

// Sizes were measured with cuDNN 9 on GPUs of compute capability 9 (norms.c).
static int measured(size_t *size, size_t found, int is_like_it, const char *what) {
  is_real();
  int is_same = library.version >= 90000 && vgpu_config()->major == 9;
  if (!is_like_it || (found && !is_same)) vgpu_estimated_size(what);
  if (size) *size = found;
  return OK;
}
// Batch norm: none for tensors with channels first (BatchNorm1d, 2d and 3d, 13 shapes in 32 and 16 bits), and no reserve.
// Channels last is mode 2.
enum { SPATIAL_PERSISTENT = 2 };
enum { TYPE_OF_HALF = 2, TYPE_OF_FLOAT = 0 }; // cudnnDataType_t
static int batch_norm(int mode, int operations, const struct shape *x, int is_backward, size_t *size, const char *what) {
  if (size) *size = 0;
  if (mode != SPATIAL_PERSISTENT) return OK;
  if (!x || x->count < 2) return unknown(size, what);
  size_t rows = 1, channels = (size_t)x->sizes[1];
  for (int i = 0; i < x->count; i++) if (i != 1) rows *= (size_t)x->sizes[i];
  // `operations` are an activation and a sum, which PyTorch does not ask for.
  int is_like_it = !operations && (x->type == TYPE_OF_HALF || x->type == TYPE_OF_FLOAT) && (channels == 3 || channels >= 8);
  size_t found = is_backward ? vgpu_batch_norm_backward(rows, channels) : vgpu_batch_norm_forward(rows, channels, x->type == TYPE_OF_HALF);
  return measured(size, found, is_like_it, what);
}
API(int, cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize)(void *h, int mode, int operations, const struct shape *x, void *z, void *y, void *b, void *a, size_t *size) {
  (void)h, (void)z, (void)y, (void)b, (void)a;
  return batch_norm(mode, operations, x, 0, size, "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize");
}
API(int, cudnnGetBatchNormalizationBackwardExWorkspaceSize)(void *h, int mode, int operations, const struct shape *x, void *y, void *dy, void *dz, void *dx, void *b, void *a, size_t *size) {
  (void)h, (void)y, (void)dy, (void)dz, (void)dx, (void)b, (void)a;
  return batch_norm(mode, operations, x, 1, size, "cudnnGetBatchNormalizationBackwardExWorkspaceSize");
}
API(int, cudnnGetBatchNormalizationTrainingExReserveSpaceSize)(void *h, int mode, int operations, void *a, void *x, size_t *size) {
  (void)h, (void)a, (void)x;
  return measured(size, 0, mode != SPATIAL_PERSISTENT || !operations, "cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
}
// A generator of 48 bytes (curandState) for each of 1024 threads a multiprocessor, as measured on an H100 with cuDNN 9.19.
API(int, cudnnDropoutGetStatesSize)(void *h, size_t *size) {
  (void)h;
  vgpu_estimated_size("cudnnDropoutGetStatesSize");
  *size = (size_t)vgpu_config()->sms * 1024 * 48;
  return OK;
}
struct dropout { float probability; };
API(int, cudnnSetDropoutDescriptor)(struct dropout *d, void *h, float probability, void *states, size_t size, unsigned long long seed) {
  (void)h, (void)states, (void)size, (void)seed;
  d->probability = probability;
  return OK;
}
API(int, cudnnRestoreDropoutDescriptor)(struct dropout *d, void *h, float probability, void *states, size_t size, unsigned long long seed) {
  return vgpu_cudnnSetDropoutDescriptor(d, h, probability, states, size, seed);
}
// Steps, batch and classes of the probabilities.
static int ctc_loss(const struct shape *p, size_t *size, int is_like_it, const char *what) {
  if (!p || p->count != 3) return unknown(size, what);
  return measured(size, vgpu_ctc_loss((size_t)p->sizes[0], (size_t)p->sizes[1], (size_t)p->sizes[2]), is_like_it, what);
}
// The older function, for lengths on the host, was not measured.
API(int, cudnnGetCTCLossWorkspaceSize)(void *h, const struct shape *p, void *g, void *l, void *ll, void *il, int a, void *d, size_t *size) {
  (void)h, (void)g, (void)l, (void)ll, (void)il, (void)a, (void)d;
  return ctc_loss(p, size, 0, "cudnnGetCTCLossWorkspaceSize");
}
API(int, cudnnGetCTCLossWorkspaceSize_v8)(void *h, int a, void *d, const struct shape *p, void *g, size_t *size) {
  (void)h, (void)a, (void)d, (void)g;
  return ctc_loss(p, size, 1, "cudnnGetCTCLossWorkspaceSize_v8");
}
API(int, cudnnGetConvolutionForwardWorkspaceSize)(void *h, void *x, void *w, void *c, void *y, int algorithm, size_t *size) {
  (void)h, (void)x, (void)w, (void)c, (void)y, (void)algorithm;
  return unknown(size, "cudnnGetConvolutionForwardWorkspaceSize");
}
API(int, cudnnGetConvolutionBackwardDataWorkspaceSize)(void *h, void *w, void *dy, void *c, void *dx, int algorithm, size_t *size) {
  return vgpu_cudnnGetConvolutionForwardWorkspaceSize(h, w, dy, c, dx, algorithm, size);
}
API(int, cudnnGetConvolutionBackwardFilterWorkspaceSize)(void *h, void *x, void *dy, void *c, void *dw, int algorithm, size_t *size) {
  return vgpu_cudnnGetConvolutionForwardWorkspaceSize(h, x, dy, c, dw, algorithm, size);
}
// cudnnConvolutionFwdAlgoPerf_t and its siblings: algorithm, status, time, memory, determinism, math type.
struct performance { int algorithm, status; float time; size_t memory; int determinism, math, reserved[3]; };
static int one_algorithm(int wanted, int *found, struct performance *results) {
  if (found) *found = wanted > 0;
  if (wanted > 0) *results = (struct performance){.algorithm = 1, .determinism = 1};
  return OK;
}
#define ALGORITHMS(name) \
  API(int, name)(void *h, void *a, void *b, void *c, void *d, int wanted, int *found, struct performance *results) { \
    (void)h, (void)a, (void)b, (void)c, (void)d; \
    return one_algorithm(wanted, found, results); \
  }
ALGORITHMS(cudnnGetConvolutionForwardAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardDataAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
#define TRIALS(name) \
  API(int, name)(void *h, void *a, void *x, void *b, void *y, void *c, void *d, void *z, int wanted, int *found, struct performance *results) { \
    (void)h, (void)a, (void)x, (void)b, (void)y, (void)c, (void)d, (void)z; \
    return one_algorithm(wanted, found, results); \
  }
TRIALS(cudnnFindConvolutionForwardAlgorithmEx)
TRIALS(cudnnFindConvolutionBackwardDataAlgorithmEx)
TRIALS(cudnnFindConvolutionBackwardFilterAlgorithmEx)

// ---- recurrent networks: the size of the weights is their sum; the other sizes are estimates ----
API(int, cudnnCreateRNNDescriptor)(void **at) { return make(at, 512); }
API(int, cudnnDestroyRNNDescriptor)(void *descriptor) { return drop(descriptor); }
API(int, cudnnSetRNNDescriptor_v8)(struct rnn *rnn, int algorithm, int mode, int bias, int direction, int input_mode, int type, int precision, int math, int input, int hidden, int projection, int layers, const struct dropout *dropout) {
  (void)algorithm, (void)input_mode, (void)precision, (void)math;
  // Bias modes: none, one of the input, two, one of the state. Directions: one, two.
  int biases = bias == 0 ? 0 : bias == 2 ? 2 : 1;
  *rnn = (struct rnn){direction == 1 ? 2 : 1, mode, biases, type, input, hidden, projection, layers, dropout && dropout->probability > 0};
  return OK;
}
// All matrices of all layers are before all biases.
static size_t biases(const struct rnn *rnn) { return (size_t)vgpu_rnn_gates(rnn) * (size_t)rnn->hidden * (size_t)rnn->biases; }
static size_t weights(const struct rnn *rnn) {
  size_t sum = 0;
  for (int layer = 0; layer < rnn->layers * rnn->directions; layer++) sum += vgpu_rnn_matrices(rnn, layer) + biases(rnn);
  return sum;
}
API(int, cudnnGetRNNWeightSpaceSize)(void *h, const struct rnn *rnn, size_t *size) { (void)h; *size = weights(rnn) * vgpu_rnn_element(rnn); return OK; }
// The layout is 1 where sequences have lengths of their own.
API(int, cudnnSetRNNDataDescriptor)(struct sequences *at, int type, int layout, int steps, int batch, int width, const int *lengths, void *fill) {
  (void)type, (void)width, (void)fill;
  *at = (struct sequences){.batch = (size_t)batch, .packed = layout == 1};
  for (int i = 0; i < batch; i++) at->steps += (size_t)(lengths ? lengths[i] : steps);
  return OK;
}
API(int, cudnnGetRNNTempSpaceSizes)(void *h, const struct rnn *rnn, int mode, const struct sequences *x, size_t *workspace, size_t *reserve) {
  (void)h;
  vgpu_estimated_size("cudnnGetRNNTempSpaceSizes");
  if (workspace) *workspace = vgpu_rnn_workspace(rnn, x);
  if (reserve) *reserve = mode ? vgpu_rnn_reserve(rnn, x) : 0;
  return OK;
}

static void set_shape(struct shape *shape, int type, int format, int count, const int *sizes, const int *strides) {
  *shape = (struct shape){.type = type, .format = format, .count = count < 8 ? count : 8};
  for (int i = 0; i < shape->count; i++) {
    shape->sizes[i] = sizes[i];
    shape->strides[i] = strides ? strides[i] : 1;
  }
}
API(int, cudnnSetTensorNdDescriptor)(struct shape *shape, int type, int count, const int *sizes, const int *strides) { set_shape(shape, type, 0, count, sizes, strides); return OK; }
API(int, cudnnSetFilterNdDescriptor)(struct shape *shape, int type, int format, int count, const int *sizes) { set_shape(shape, type, format, count, sizes, NULL); return OK; }
API(int, cudnnGetTensorNdDescriptor)(const struct shape *shape, int wanted, int *type, int *count, int *sizes, int *strides) {
  *type = shape->type;
  *count = shape->count;
  for (int i = 0; i < wanted && i < 8; i++) sizes[i] = shape->sizes[i], strides[i] = shape->strides[i];
  return OK;
}
API(int, cudnnGetFilterNdDescriptor)(const struct shape *shape, int wanted, int *type, int *format, int *count, int *sizes) {
  *type = shape->type;
  *format = shape->format;
  *count = shape->count;
  for (int i = 0; i < wanted && i < 8; i++) sizes[i] = shape->sizes[i];
  return OK;
}
// The place of one matrix and its bias in the weights: gates of the input, then those of the state. Each of
// the four results may be unwanted.
API(int, cudnnGetRNNWeightParams)(void *h, const struct rnn *rnn, int layer, size_t size, char *space, int id, struct shape *matrix, void **matrix_at, struct shape *bias, void **bias_at) {
  (void)h, (void)size;
  int g = vgpu_rnn_gates(rnn), is_projection = id == 2 * g, is_state = id >= g;
  size_t hidden = (size_t)rnn->hidden, input = vgpu_rnn_layer_input(rnn, layer), output = vgpu_rnn_state(rnn);
  if (layer >= rnn->layers * rnn->directions || id > 2 * g || (is_projection && output == hidden)) {
    if (matrix_at) *matrix_at = NULL;
    if (bias_at) *bias_at = NULL;
    return OK;
  }
  size_t at = 0, bias_start = 0;
  for (int l = 0; l < rnn->layers * rnn->directions; l++) bias_start += vgpu_rnn_matrices(rnn, l);
  for (int l = 0; l < layer; l++) at += vgpu_rnn_matrices(rnn, l);
  int gate = is_state ? id - g : id;
  at += is_projection ? (size_t)g * hidden * (input + output)
    : is_state ? (size_t)g * hidden * input + (size_t)gate * hidden * output : (size_t)gate * hidden * input;
  int rows = (int)(is_projection ? output : hidden), columns = (int)(is_projection ? hidden : is_state ? output : input);
  if (matrix) set_shape(matrix, rnn->type, 0, 3, (int[]){1, rows, columns}, (int[]){rows * columns, columns, 1});
  if (matrix_at) *matrix_at = space + at * vgpu_rnn_element(rnn);
  int has_bias = !is_projection && (rnn->biases == 2 || (rnn->biases == 1 && !is_state));
  size_t bias_offset = bias_start + (size_t)layer * biases(rnn) + (size_t)id * hidden;
  if (bias_at) *bias_at = has_bias ? space + bias_offset * vgpu_rnn_element(rnn) : NULL;
  if (bias && has_bias) set_shape(bias, rnn->type, 0, 3, (int[]){1, rows, 1}, (int[]){rows, 1, 1});
  return OK;
}

// The interface of cuDNN 7 and 8, which PyTorch uses with cuDNN before 8.9.7 (ATen/cudnn/RNNUtils.h): the input and the
// type come with the descriptor of an input, batch times input times one.
API(int, cudnnSetRNNDescriptor_v6)(void *h, struct rnn *rnn, int hidden, int layers, void *dropout, int input_mode, int direction, int mode, int algorithm, int precision) {
  (void)h, (void)dropout, (void)input_mode, (void)algorithm;
  *rnn = (struct rnn){direction == 1 ? 2 : 1, mode, 2, precision, 0, hidden, 0, layers, 0};
  return OK;
}
API(int, cudnnSetRNNProjectionLayers)(void *h, struct rnn *rnn, int projection, int of_output) { (void)h, (void)of_output; rnn->projection = projection; return OK; }
static struct rnn with_input(const struct rnn *rnn, const struct shape *input) {
  struct rnn known = *rnn;
  known.input = input->sizes[1];
  known.type = input->type;
  return known;
}
API(int, cudnnGetRNNParamsSize)(void *h, const struct rnn *rnn, const struct shape *input, size_t *size, int type) {
  (void)type;
  struct rnn known = with_input(rnn, input);
  return vgpu_cudnnGetRNNWeightSpaceSize(h, &known, size);
}
API(int, cudnnGetRNNLinLayerMatrixParams)(void *h, const struct rnn *rnn, int layer, const struct shape *input, void *weights, char *space, int id, struct shape *matrix, void **at) {
  (void)weights;
  struct rnn known = with_input(rnn, input);
  return vgpu_cudnnGetRNNWeightParams(h, &known, layer, 0, space, id, matrix, at, NULL, NULL);
}
API(int, cudnnGetRNNLinLayerBiasParams)(void *h, const struct rnn *rnn, int layer, const struct shape *input, void *weights, char *space, int id, struct shape *bias, void **at) {
  (void)weights;
  struct rnn known = with_input(rnn, input);
  return vgpu_cudnnGetRNNWeightParams(h, &known, layer, 0, space, id, NULL, NULL, bias, at);
}
API(int, cudnnGetRNNWorkspaceSize)(void *h, void *rnn, int length, void *inputs, size_t *size) {
  (void)h, (void)rnn, (void)length, (void)inputs;
  unknown(size, "cudnnGetRNNWorkspaceSize");
  return OK;
}
API(int, cudnnGetRNNTrainingReserveSize)(void *h, void *rnn, int length, void *inputs, size_t *size) {
  (void)h, (void)rnn, (void)length, (void)inputs;
  unknown(size, "cudnnGetRNNTrainingReserveSize");
  return OK;
}
