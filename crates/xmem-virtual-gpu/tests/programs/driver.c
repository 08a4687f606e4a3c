// What a program finds that opens the driver and NVML by their names, as torch, Triton and pynvml do.
// Exit status: 0 if both answer as on a GPU, else the number of the step that failed.
#include <dlfcn.h>
#include <stddef.h>

typedef int (*function)();

int main(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *management = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (!driver) return 1;
  if (!management) return 2;
  int count = 0, version = 0;
  if (((function)dlsym(driver, "cuInit"))(0)) return 3;
  if (((function)dlsym(driver, "cuDeviceGetCount"))(&count) || count != 1) return 4;
  if (((function)dlsym(management, "nvmlInit_v2"))()) return 5;
  if (((function)dlsym(management, "nvmlSystemGetCudaDriverVersion_v2"))(&version) || version < 12000) return 6;
  // NVML_ERROR_NOT_SUPPORTED: not implemented, and in the log.
  if (((function)dlsym(management, "nvmlDeviceGetFanSpeed"))(NULL, &count) != 3) return 7;
  return 0;
}
