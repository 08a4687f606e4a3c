// The properties of the device: as attributes, as cudaDeviceProp of each major version of CUDA, and as
// occupancy.
#include "vgpu.h"
#include <stdio.h>
#include <string.h>

#define SHARED_PER_BLOCK 49152
#define REGISTERS_PER_BLOCK 65536
#define RESERVED_SHARED 1024

// The numbers are those of cudaDeviceAttr. What is not listed is zero: not supported, or unknown.
int vgpu_attribute(int attribute, int device) {
  const struct config *g = vgpu_config();
  switch (attribute) {
    case 1: return 1024;                      // MaxThreadsPerBlock
    case 2: case 3: return 1024;              // MaxBlockDimX, Y
    case 4: return 64;                        // MaxBlockDimZ
    case 5: return 2147483647;                // MaxGridDimX
    case 6: case 7: return 65535;             // MaxGridDimY, Z
    case 8: return SHARED_PER_BLOCK;          // MaxSharedMemoryPerBlock
    case 9: return 65536;                     // TotalConstantMemory
    case 10: return 32;                       // WarpSize
    case 11: return 2147483647;               // MaxPitch
    case 12: return REGISTERS_PER_BLOCK;      // MaxRegistersPerBlock
    case 13: return g->sm_clock;              // ClockRate
    case 14: return 512;                      // TextureAlignment
    case 15: return 1;                        // GpuOverlap
    case 16: return g->sms;                   // MultiProcessorCount
    case 19: return 1;                        // CanMapHostMemory
    case 30: return 512;                      // SurfaceAlignment
    case 31: return 1;                        // ConcurrentKernels
    case 33: return vgpu_machine_device(device) + 1; // PciBusId
    case 34: return 0;                        // PciDeviceId: the slot on its bus
    case 36: return g->memory_clock;          // MemoryClockRate
    case 37: return g->bus_width;             // GlobalMemoryBusWidth
    case 38: return g->l2;                    // L2CacheSize
    case 39: return g->threads_per_sm;        // MaxThreadsPerMultiProcessor
    case 40: return 3;                        // AsyncEngineCount
    case 41: return 1;                        // UnifiedAddressing
    case 51: return 32;                       // TexturePitchAlignment
    case 75: return g->major;                 // ComputeCapabilityMajor
    case 76: return g->minor;                 // ComputeCapabilityMinor
    case 78: case 79: case 80: return 1;      // StreamPrioritiesSupported, GlobalL1Cache, LocalL1Cache
    case 81: return g->shared_per_sm;         // MaxSharedMemoryPerMultiprocessor
    case 82: return g->registers_per_sm;      // MaxRegistersPerMultiprocessor
    case 83: return 1;                        // ManagedMemory
    case 89: case 90: case 91: return 1;      // ConcurrentManagedAccess, ComputePreemption, CanUseHostPointer
    case 95: return 1;                        // CooperativeLaunch
    case 97: return g->shared_per_block_optin; // MaxSharedMemoryPerBlockOptin
    case 99: return 1;                        // HostRegisterSupported
    case 102: return 1;                       // Virtual memory management
    case 103: return 1;                       // Handles of memory as file descriptors
    case 106: return g->blocks_per_sm;        // MaxBlocksPerMultiprocessor
    case 108: return g->l2 / 4 * 3;           // MaxPersistingL2CacheSize
    case 111: return RESERVED_SHARED;         // ReservedSharedMemoryPerBlock
    case 115: return 1;                       // MemoryPoolsSupported
    case 120: return g->major >= 9;           // ClusterLaunch
    default: return 0;
  }
}

void vgpu_uuid(char uuid[16], int device) {
  memcpy(uuid, "xmem-virtual-gpu", 16);
  uuid[15] = (char)('0' + device);
}

// The offsets of cudaDeviceProp's fields: up to CUDA 12 (11 is a beginning of 12), and from 13 on.
// From the public headers of CUDA 11.8, 12.4 and 13.0 (driver_types.h); -1 where a field is not there.
struct offset { short before_13, since_13; };
enum { SIZE_11 = 728, SIZE_12 = 1032, SIZE_13 = 1008 };

struct properties { char *at; int is_13; size_t size; };

static void put(struct properties *p, struct offset offset, const void *value, size_t size) {
  int at = p->is_13 ? offset.since_13 : offset.before_13;
  if (at >= 0 && (size_t)at + size <= p->size) memcpy(p->at + at, value, size);
}
static void put_int(struct properties *p, short before_13, short since_13, int value) {
  put(p, (struct offset){before_13, since_13}, &value, sizeof value);
}
static void put_size(struct properties *p, short before_13, short since_13, size_t value) {
  put(p, (struct offset){before_13, since_13}, &value, sizeof value);
}

static int fill(char *at, int major, int device) {
  const struct config *g = vgpu_config();
  if (device < 0 || device >= vgpu_visible_devices()) return CUDA_INVALID_DEVICE;
  struct properties properties = {at, major >= 13, major >= 13 ? SIZE_13 : major == 12 ? SIZE_12 : SIZE_11};
  struct properties *p = &properties;
  memset(at, 0, p->size);
  snprintf(at, 256, "%s", g->name);
  vgpu_uuid(at + 256, vgpu_machine_device(device));
  put_size(p, 288, 288, g->memory);                // totalGlobalMem
  put_size(p, 296, 296, SHARED_PER_BLOCK);         // sharedMemPerBlock
  put_int(p, 304, 304, REGISTERS_PER_BLOCK);       // regsPerBlock
  put_int(p, 308, 308, 32);                        // warpSize
  put_size(p, 312, 312, 2147483647);               // memPitch
  put_int(p, 320, 320, 1024);                      // maxThreadsPerBlock
  put_int(p, 324, 324, 1024);                      // maxThreadsDim
  put_int(p, 328, 328, 1024);
  put_int(p, 332, 332, 64);
  put_int(p, 336, 336, 2147483647);                // maxGridSize
  put_int(p, 340, 340, 65535);
  put_int(p, 344, 344, 65535);
  put_int(p, 348, -1, g->sm_clock);                // clockRate
  put_size(p, 352, 352, 65536);                    // totalConstMem
  put_int(p, 360, 360, g->major);                  // major
  put_int(p, 364, 364, g->minor);                  // minor
  put_size(p, 368, 368, 512);                      // textureAlignment
  put_size(p, 376, 376, 32);                       // texturePitchAlignment
  put_int(p, 384, -1, 1);                          // deviceOverlap
  put_int(p, 388, 384, g->sms);                    // multiProcessorCount
  put_int(p, 400, 392, 1);                         // canMapHostMemory
  put_int(p, 408, 396, 131072);                    // maxTexture1D
  put_int(p, 420, 404, 131072);                    // maxTexture2D
  put_int(p, 424, 408, 65536);
  put_size(p, 568, 552, 512);                      // surfaceAlignment
  put_int(p, 576, 560, 1);                         // concurrentKernels
  put_int(p, 584, 568, vgpu_machine_device(device) + 1); // pciBusID
  put_int(p, 600, 584, 3);                         // asyncEngineCount
  put_int(p, 604, 588, 1);                         // unifiedAddressing
  put_int(p, 608, -1, g->memory_clock);            // memoryClockRate
  put_int(p, 612, 592, g->bus_width);              // memoryBusWidth
  put_int(p, 616, 596, g->l2);                     // l2CacheSize
  put_int(p, 620, 600, g->l2 / 4 * 3);             // persistingL2CacheMaxSize
  put_int(p, 624, 604, g->threads_per_sm);         // maxThreadsPerMultiProcessor
  put_int(p, 628, 608, 1);                         // streamPrioritiesSupported
  put_int(p, 632, 612, 1);                         // globalL1CacheSupported
  put_int(p, 636, 616, 1);                         // localL1CacheSupported
  put_size(p, 640, 624, (size_t)g->shared_per_sm); // sharedMemPerMultiprocessor
  put_int(p, 648, 632, g->registers_per_sm);       // regsPerMultiprocessor
  put_int(p, 652, 636, 1);                         // managedMemory
  put_int(p, 676, 656, 1);                         // concurrentManagedAccess
  put_int(p, 680, 660, 1);                         // computePreemptionSupported
  put_int(p, 684, 664, 1);                         // canUseHostPointerForRegisteredMem
  put_int(p, 688, 668, 1);                         // cooperativeLaunch
  put_size(p, 696, 672, (size_t)g->shared_per_block_optin); // sharedMemPerBlockOptin
  put_int(p, 712, 688, g->blocks_per_sm);          // maxBlocksPerMultiProcessor
  put_size(p, 720, 696, RESERVED_SHARED);          // reservedSharedMemPerBlock
  put_int(p, 728, 704, 1);                         // hostRegisterSupported
  put_int(p, 744, 720, 1);                         // memoryPoolsSupported
  put_int(p, 768, 744, 1);                         // ipcEventSupported
  put_int(p, 772, 748, g->major >= 9);             // clusterLaunch
  return CUDA_OK;
}

// CUDA 12 kept the old function for programs that were compiled with CUDA 11.
API(int, cudaGetDeviceProperties)(char *properties, int device) {
  return fill(properties, vgpu_config()->runtime >= 13000 ? 13 : 11, device);
}
API(int, cudaGetDeviceProperties_v2)(char *properties, int device) {
  return fill(properties, vgpu_config()->runtime >= 13000 ? 13 : 12, device);
}

int vgpu_occupancy(int block, size_t shared) {
  const struct config *g = vgpu_config();
  const int registers = 32;
  if (block < 1) block = 1;
  block = (block + 31) / 32 * 32;
  int blocks = g->threads_per_sm / block, by_registers = g->registers_per_sm / (registers * block);
  if (by_registers < blocks) blocks = by_registers;
  if (shared) {
    size_t by_shared = (size_t)g->shared_per_sm / (shared + RESERVED_SHARED);
    if (by_shared < (size_t)blocks) blocks = (int)by_shared;
  }
  if (blocks > g->blocks_per_sm) blocks = g->blocks_per_sm;
  return blocks < 1 ? 1 : blocks;
}

struct error { int status; const char *name, *text; };
static const struct error ERRORS[] = {
  {CUDA_OK, "cudaSuccess", "no error"},
  {CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
  {CUDA_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
  {CUDA_NOT_INITIALIZED, "cudaErrorInitializationError", "initialization error"},
  {CUDA_NO_DEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
  {CUDA_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
  {CUDA_NO_KERNEL_IMAGE, "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"},
  {CUDA_FILE_NOT_FOUND, "cudaErrorFileNotFound", "file not found"},
  {CUDA_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "invalid device context"},
  {CUDA_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
  {CUDA_ILLEGAL_STATE, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
  {CUDA_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
  {CUDA_PEER_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
  {CUDA_PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
  {CUDA_HOST_ALREADY_REGISTERED, "cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"},
  {CUDA_HOST_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
  {CUDA_NOT_READY, "cudaErrorNotReady", "device not ready"},
  {CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported by xmem's virtual GPU"},
  {CUDA_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
  {CUDA_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
  {CUDA_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched", "capture was not begun on this stream"},
  {CUDA_CAPTURE_ISOLATION, "cudaErrorStreamCaptureIsolation", "dependency on uncaptured work in another stream"},
  {CUDA_CAPTURED_EVENT, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"},
  {CUDA_CAPTURE_WRONG_THREAD, "cudaErrorStreamCaptureWrongThread", "attempt to end a capture from another thread than the one that began it"},
};

static const struct error *find_error(int status) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++) if (ERRORS[i].status == status) return &ERRORS[i];
  return NULL;
}
const char *vgpu_error_name(int status) {
  const struct error *error = find_error(status);
  return error ? error->name : "cudaErrorUnknown";
}
const char *vgpu_error_text(int status) {
  const struct error *error = find_error(status);
  return error ? error->text : "unknown error";
}
