// CUDA's functions, by name, from the libraries that the process has loaded already.
#define _GNU_SOURCE
#include "planned.h"

#include <dlfcn.h>

struct cuda cuda;

static void *library(const char *const *names) {
    for (; *names; names++) {
        void *found = dlopen(*names, RTLD_LAZY | RTLD_NOLOAD);
        if (found)
            return found;
    }
    return RTLD_DEFAULT;
}

bool cuda_find(void) {
    static const char *const runtimes[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", NULL};
    static const char *const drivers[] = {"libcuda.so.1", NULL};
    void *runtime = library(runtimes), *driver = library(drivers);
#define FIND(from, field, name) *(void **)&cuda.field = dlsym(from, name)
    FIND(runtime, malloc, "cudaMalloc");
    FIND(runtime, free, "cudaFree");
    FIND(runtime, synchronize, "cudaDeviceSynchronize");
    FIND(runtime, get_device, "cudaGetDevice");
    FIND(runtime, set_device, "cudaSetDevice");
    FIND(runtime, last_error, "cudaGetLastError");
    FIND(runtime, mem_info, "cudaMemGetInfo");
    FIND(runtime, is_capturing, "cudaStreamIsCapturing");
    FIND(runtime, capture_info, "cudaStreamGetCaptureInfo");
    FIND(runtime, exchange_capture_mode, "cudaThreadExchangeStreamCaptureMode");
    FIND(runtime, event_create, "cudaEventCreateWithFlags");
    FIND(runtime, event_record, "cudaEventRecord");
    FIND(runtime, event_query, "cudaEventQuery");
    FIND(runtime, event_synchronize, "cudaEventSynchronize");
    FIND(runtime, event_destroy, "cudaEventDestroy");
    FIND(driver, reserve, "cuMemAddressReserve");
    FIND(driver, create, "cuMemCreate");
    FIND(driver, map, "cuMemMap");
    FIND(driver, set_access, "cuMemSetAccess");
    FIND(driver, unmap, "cuMemUnmap");
    FIND(driver, release, "cuMemRelease");
#undef FIND
    return cuda.malloc && cuda.free && cuda.synchronize && cuda.get_device && cuda.set_device && cuda.last_error
        && cuda.mem_info && cuda.is_capturing && cuda.exchange_capture_mode && cuda.event_create && cuda.event_record
        && cuda.event_query && cuda.event_synchronize && cuda.event_destroy;
}
