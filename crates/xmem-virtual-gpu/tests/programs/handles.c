/* Handles that are destroyed twice, used after their end, or never were handles: CUDA's errors. */
#include "cuda.h"
#define INVALID_VALUE 1
#define INVALID_HANDLE 400

static void streams(void) {
  stream_t stream, other;
  event_t event;
  int priority;
  CHECK(cudaStreamCreateWithFlags(&stream, 0));
  CHECK(cudaStreamCreateWithFlags(&other, 0));
  CHECK(cudaEventCreateWithFlags(&event, 0));
  CHECK(cudaStreamDestroy(stream));
  FAILS(cudaStreamDestroy(stream), INVALID_HANDLE);
  FAILS(cudaStreamDestroy(NULL), INVALID_HANDLE);
  FAILS(cudaStreamDestroy((stream_t)(uintptr_t)0x1234), INVALID_HANDLE);
  FAILS(cudaStreamDestroy((stream_t)event), INVALID_HANDLE);
  FAILS(cudaStreamSynchronize(stream), INVALID_HANDLE);
  FAILS(cudaStreamGetPriority(stream, &priority), INVALID_HANDLE);
  FAILS(cudaEventRecord(event, stream), INVALID_HANDLE);
  FAILS(cudaStreamWaitEvent(stream, event, 0), INVALID_HANDLE);
  FAILS(cudaStreamBeginCapture(stream, 0), INVALID_HANDLE);
  /* The others are as before. */
  CHECK(cudaEventRecord(event, other));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaEventDestroy(event));
}

static void events(void) {
  event_t event, other;
  float elapsed;
  CHECK(cudaEventCreateWithFlags(&event, 0));
  CHECK(cudaEventCreateWithFlags(&other, 0));
  CHECK(cudaEventRecord(other, NULL));
  CHECK(cudaEventDestroy(event));
  FAILS(cudaEventDestroy(event), INVALID_HANDLE);
  FAILS(cudaEventDestroy(NULL), INVALID_HANDLE);
  FAILS(cudaEventRecord(event, NULL), INVALID_HANDLE);
  FAILS(cudaEventQuery(event), INVALID_HANDLE);
  FAILS(cudaEventSynchronize(event), INVALID_HANDLE);
  FAILS(cudaStreamWaitEvent(NULL, event, 0), INVALID_HANDLE);
  FAILS(cudaEventElapsedTime(&elapsed, event, other), INVALID_HANDLE);
  CHECK(cudaEventDestroy(other));
}

static void graphs(void) {
  stream_t stream;
  graph_t graph, executable;
  CHECK(cudaStreamCreateWithFlags(&stream, 0));
  CHECK(cudaStreamBeginCapture(stream, 0));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  FAILS(cudaGraphDestroy(graph), INVALID_VALUE);
  FAILS(cudaGraphDestroy(NULL), INVALID_VALUE);
  graph_t none;
  FAILS(cudaGraphInstantiateWithFlags(&none, graph, 0), INVALID_VALUE);
  CHECK(cudaGraphLaunch(executable, stream));
  CHECK(cudaGraphExecDestroy(executable));
  FAILS(cudaGraphExecDestroy(executable), INVALID_VALUE);
  FAILS(cudaGraphLaunch(executable, stream), INVALID_VALUE);
  CHECK(cudaStreamDestroy(stream));
}

static void pools(void) {
  pool_t pool;
  uint64_t value;
  void *memory;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  FAILS(cudaMemPoolDestroy(pool), INVALID_VALUE);
  CHECK(cudaMemPoolGetAttribute(pool, 4, &value));
  FAILS(cudaMemPoolDestroy(NULL), INVALID_VALUE);
  FAILS(cudaMemPoolTrimTo((pool_t)(uintptr_t)0x1230, 0), INVALID_VALUE);
  FAILS(cudaMemPoolGetAttribute((pool_t)&value, 4, &value), INVALID_VALUE);
  FAILS(cudaMallocFromPoolAsync(&memory, 1, (pool_t)&value, NULL), INVALID_VALUE);
  /* CUmemPoolProps is longer; nothing of it is read. */
  char properties[128] = {0};
  CHECK(cudaMemPoolCreate(&pool, properties));
  CHECK(cudaMallocFromPoolAsync(&memory, 100, pool, NULL));
  CHECK(cudaMemPoolDestroy(pool));
  FAILS(cudaMemPoolDestroy(pool), INVALID_VALUE);
  CHECK(cudaFreeAsync(memory, NULL));
}

/* More of them than the table begins with, destroyed in another order. */
static void many(void) {
  enum { COUNT = 5000 };
  static event_t events[COUNT];
  for (int i = 0; i < COUNT; i++) CHECK(cudaEventCreateWithFlags(&events[i], 0));
  for (int i = 0; i < COUNT; i += 3) CHECK(cudaEventDestroy(events[i]));
  for (int i = 0; i < COUNT; i++) FAILS(cudaEventQuery(events[i]), i % 3 ? 0 : INVALID_HANDLE);
  for (int i = COUNT; i-- > 0;) FAILS(cudaEventDestroy(events[i]), i % 3 ? 0 : INVALID_HANDLE);
  for (int i = 0; i < COUNT; i++) FAILS(cudaEventQuery(events[i]), INVALID_HANDLE);
}

int main(void) {
  streams();
  events();
  graphs();
  pools();
  many();
  return 0;
}
