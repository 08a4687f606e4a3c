// NVML: what PyTorch asks when it counts devices and when it reports an out-of-memory.
#include "vgpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_OK = 0, NVML_INVALID_ARGUMENT = 2, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6 };

// A device's handle is an address within this.
static char devices[MAX_DEVICES];
static int number(const void *device) { return (int)((const char *)device - devices); }
static int is_device(const void *device) { return number(device) >= 0 && number(device) < vgpu_config()->devices; }

API(int, nvmlInit)(void) { return NVML_OK; }
API(int, nvmlInit_v2)(void) { return NVML_OK; }
API(int, nvmlInitWithFlags)(unsigned flags) { (void)flags; return NVML_OK; }
API(int, nvmlShutdown)(void) { return NVML_OK; }
API(const char *, nvmlErrorString)(int status) {
  return status == NVML_OK ? "Success" : status == NVML_NOT_SUPPORTED ? "Not supported by xmem's virtual GPU" : "Error";
}
API(int, nvmlSystemGetCudaDriverVersion)(int *version) { *version = vgpu_config()->driver; return NVML_OK; }
API(int, nvmlSystemGetCudaDriverVersion_v2)(int *version) { *version = vgpu_config()->driver; return NVML_OK; }
API(int, nvmlSystemGetDriverVersion)(char *text, unsigned length) { snprintf(text, length, "xmem virtual GPU"); return NVML_OK; }
API(int, nvmlDeviceGetCount_v2)(unsigned *count) { *count = (unsigned)vgpu_config()->devices; return NVML_OK; }
API(int, nvmlDeviceGetCount)(unsigned *count) { return vgpu_nvmlDeviceGetCount_v2(count); }
API(int, nvmlDeviceGetHandleByIndex_v2)(unsigned index, void **device) {
  if (index >= (unsigned)vgpu_config()->devices) return NVML_INVALID_ARGUMENT;
  *device = devices + index;
  return NVML_OK;
}
API(int, nvmlDeviceGetHandleByIndex)(unsigned index, void **device) { return vgpu_nvmlDeviceGetHandleByIndex_v2(index, device); }
API(int, nvmlDeviceGetHandleByPciBusId_v2)(const char *text, void **device) {
  unsigned domain, bus;
  if (sscanf(text, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > (unsigned)vgpu_config()->devices) return NVML_NOT_FOUND;
  *device = devices + bus - 1;
  return NVML_OK;
}
static void uuid_text(int device, char *text, size_t length) {
  unsigned char uuid[16];
  vgpu_uuid((char *)uuid, device);
  int at = snprintf(text, length, "GPU-");
  for (int i = 0; i < 16 && at >= 0 && (size_t)at < length; i++)
    at += snprintf(text + at, length - (size_t)at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}
API(int, nvmlDeviceGetUUID)(void *device, char *text, unsigned length) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  uuid_text(number(device), text, length);
  return NVML_OK;
}
API(int, nvmlDeviceGetIndex)(void *device, unsigned *index) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  *index = (unsigned)number(device);
  return NVML_OK;
}
API(int, nvmlDeviceGetName)(void *device, char *text, unsigned length) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  snprintf(text, length, "%s", vgpu_config()->name);
  return NVML_OK;
}
API(int, nvmlDeviceGetCudaComputeCapability)(void *device, int *major, int *minor) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  *major = vgpu_config()->major;
  *minor = vgpu_config()->minor;
  return NVML_OK;
}
struct memory { unsigned long long total, free, used; };
API(int, nvmlDeviceGetMemoryInfo)(void *device, struct memory *memory) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  unsigned long long total = vgpu_config()->memory, free = vgpu_free_memory(number(device));
  *memory = (struct memory){total, free, total - free};
  return NVML_OK;
}
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };
API(int, nvmlDeviceGetMemoryInfo_v2)(void *device, struct memory_v2 *memory) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  memory->total = vgpu_config()->memory;
  memory->reserved = 0;
  memory->free = vgpu_free_memory(number(device));
  memory->used = memory->total - memory->free;
  return NVML_OK;
}
struct utilization { unsigned gpu, memory; };
API(int, nvmlDeviceGetUtilizationRates)(void *device, struct utilization *rates) {
  if (!is_device(device)) return NVML_INVALID_ARGUMENT;
  *rates = (struct utilization){0, 0};
  return NVML_OK;
}
// nvmlGpuFabricInfoV_t: its size is in the lower bits of the version; a state of zero means that there is no fabric.
API(int, nvmlDeviceGetGpuFabricInfoV)(void *device, unsigned *info) {
  unsigned size = *info & 0xffffff;
  if (!is_device(device) || size < sizeof *info || size > 256) return NVML_INVALID_ARGUMENT;
  memset(info + 1, 0, size - sizeof *info);
  return NVML_OK;
}
// Nothing runs: sensors read zero. Clocks are those of the board, in MHz.
API(int, nvmlDeviceGetTemperature)(void *device, int sensor, unsigned *degrees) {
  (void)sensor;
  *degrees = 0;
  return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT;
}
// nvmlTemperature_t: version, sensor, degrees.
API(int, nvmlDeviceGetTemperatureV)(void *device, int *temperature) {
  temperature[2] = 0;
  return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT;
}
API(int, nvmlDeviceGetPowerUsage)(void *device, unsigned *milliwatts) {
  *milliwatts = 0;
  return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT;
}
API(int, nvmlDeviceGetTotalEnergyConsumption)(void *device, unsigned long long *millijoules) {
  *millijoules = 0;
  return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT;
}
API(int, nvmlDeviceGetClockInfo)(void *device, int clock, unsigned *megahertz) {
  enum { MEMORY = 2 };
  const struct config *g = vgpu_config();
  *megahertz = (unsigned)(clock == MEMORY ? g->memory_clock : g->sm_clock) / 1000;
  return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT;
}
API(int, nvmlDeviceGetMaxClockInfo)(void *device, int clock, unsigned *megahertz) { return vgpu_nvmlDeviceGetClockInfo(device, clock, megahertz); }
// No process is listed: the one that asks knows its own memory.
API(int, nvmlDeviceGetComputeRunningProcesses)(void *device, unsigned *count) { *count = 0; return is_device(device) ? NVML_OK : NVML_INVALID_ARGUMENT; }
API(int, nvmlDeviceGetComputeRunningProcesses_v2)(void *device, unsigned *count) { return vgpu_nvmlDeviceGetComputeRunningProcesses(device, count); }
API(int, nvmlDeviceGetComputeRunningProcesses_v3)(void *device, unsigned *count) { return vgpu_nvmlDeviceGetComputeRunningProcesses(device, count); }
API(int, nvmlDeviceGetGraphicsRunningProcesses_v3)(void *device, unsigned *count) { return vgpu_nvmlDeviceGetComputeRunningProcesses(device, count); }
// No links between devices, and no fabric. Programs ask in order to choose, and go on.
API(int, nvmlDeviceGetNvLinkState)(void) { return NVML_NOT_SUPPORTED; }
API(int, nvmlDeviceGetNvLinkRemoteDeviceType)(void) { return NVML_NOT_SUPPORTED; }
API(int, nvmlDeviceGetNvLinkRemotePciInfo_v2)(void) { return NVML_NOT_SUPPORTED; }
