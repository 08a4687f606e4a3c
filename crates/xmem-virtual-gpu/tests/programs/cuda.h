/* Declarations of CUDA's functions, as far as the test programs call them. */
#pragma once
#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define MIB ((size_t)1 << 20)
#define CHECK(call) do { int status_ = (call); if (status_) { fprintf(stderr, "%s:%d: %s is %d\n", __FILE__, __LINE__, #call, status_); exit(1); } } while (0)
#define FAILS(call, expected) do { int status_ = (call); if (status_ != (expected)) { fprintf(stderr, "%s:%d: %s is %d\n", __FILE__, __LINE__, #call, status_); exit(1); } } while (0)
typedef struct stream *stream_t;
typedef struct event *event_t;
typedef struct graph *graph_t;
typedef struct pool *pool_t;
int cudaGetDeviceCount(int *);
int cudaSetDevice(int);
int cudaGetDevice(int *);
int cudaGetDeviceProperties(void *, int);
int cudaGetDeviceProperties_v2(void *, int);
int cudaDeviceGetAttribute(int *, int, int);
int cudaRuntimeGetVersion(int *);
int cudaDeviceCanAccessPeer(int *, int, int);
int cudaDeviceEnablePeerAccess(int, unsigned);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
int cudaPeekAtLastError(void);
int cudaMemGetInfo(size_t *, size_t *);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaHostAlloc(void **, size_t, unsigned);
int cudaFreeHost(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaMemset(void *, int, size_t);
int cudaMemcpyAsync(void *, const void *, size_t, int, stream_t);
int cudaMemcpy2D(void *, size_t, const void *, size_t, size_t, size_t, int);
int cudaMemset2D(void *, size_t, int, size_t, size_t);
int cudaMallocPitch(void **, size_t *, size_t, size_t);
struct pointer { int type, device; void *device_address, *host_address; long reserved[8]; };
int cudaPointerGetAttributes(struct pointer *, const void *);
int cudaMallocAsync(void **, size_t, stream_t);
int cudaFreeAsync(void *, stream_t);
int cudaDeviceGetDefaultMemPool(pool_t *, int);
int cudaMemPoolGetAttribute(pool_t, int, void *);
int cudaMemPoolSetAttribute(pool_t, int, void *);
int cudaMemPoolTrimTo(pool_t, size_t);
int cudaMemPoolCreate(pool_t *, const void *);
int cudaMemPoolDestroy(pool_t);
int cudaMallocFromPoolAsync(void **, size_t, pool_t, stream_t);
int cudaStreamCreateWithFlags(stream_t *, unsigned);
int cudaStreamDestroy(stream_t);
int cudaStreamGetPriority(stream_t, int *);
int cudaStreamSynchronize(stream_t);
int cudaStreamWaitEvent(stream_t, event_t, unsigned);
int cudaStreamBeginCapture(stream_t, int);
int cudaStreamEndCapture(stream_t, graph_t *);
int cudaStreamIsCapturing(stream_t, int *);
int cudaThreadExchangeStreamCaptureMode(int *);
int cudaEventCreateWithFlags(event_t *, unsigned);
int cudaEventDestroy(event_t);
int cudaEventRecord(event_t, stream_t);
int cudaEventQuery(event_t);
int cudaEventSynchronize(event_t);
int cudaEventElapsedTime(float *, event_t, event_t);
int cudaGraphInstantiateWithFlags(graph_t *, graph_t, unsigned long long);
int cudaGraphLaunch(graph_t, stream_t);
int cudaGraphDestroy(graph_t);
int cudaGraphExecDestroy(graph_t);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
struct size { unsigned x, y, z; };
int cudaFuncGetAttributes(void *, const void *);
int cudaLaunchKernel(const void *, struct size, struct size, void **, size_t, stream_t);
void **__cudaRegisterFatBinary(const void *);
void __cudaUnregisterFatBinary(void **);
void __cudaRegisterFunction(void **, const void *);
int cuModuleLoad(void **, const char *);
int cuModuleLoadData(void **, const void *);
int cuModuleUnload(void *);
int cuModuleGetFunction(void **, void *, const char *);
int cuFuncGetAttribute(int *, int, void *);
int cudaIpcGetMemHandle(void *, void *);
int cudaImportExternalMemory(void *, const void *);
int cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
