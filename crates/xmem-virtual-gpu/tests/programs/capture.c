/* The states of a capture. */
#include "cuda.h"
#include <pthread.h>
enum { NONE, ACTIVE, INVALIDATED };
enum { GLOBAL, THREAD_LOCAL, RELAXED };

static int status(stream_t stream) {
  int value;
  CHECK(cudaStreamIsCapturing(stream, &value));
  return value;
}
static void *allocate_elsewhere(void *expected) {
  void *address;
  FAILS(cudaMalloc(&address, MIB), *(int *)expected);
  return NULL;
}
static void elsewhere(int expected) {
  pthread_t thread;
  pthread_create(&thread, NULL, allocate_elsewhere, &expected);
  pthread_join(thread, NULL);
}

int main(void) {
  stream_t a, b;
  event_t event, old;
  graph_t graph, executable;
  void *address;
  CHECK(cudaStreamCreateWithFlags(&a, 1));
  CHECK(cudaStreamCreateWithFlags(&b, 1));
  CHECK(cudaEventCreateWithFlags(&event, 0));
  CHECK(cudaEventCreateWithFlags(&old, 0));
  CHECK(cudaEventRecord(old, b));

  /* From begin to end, and the graph is launched. */
  assert(status(a) == NONE && status(NULL) == NONE);
  FAILS(cudaStreamEndCapture(a, &graph), 401);
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  FAILS(cudaStreamBeginCapture(a, RELAXED), 401);
  assert(status(a) == ACTIVE && status(b) == NONE);
  /* A stream that waits for the captured one joins it, and leaves with it. */
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaStreamWaitEvent(b, event, 0));
  assert(status(b) == ACTIVE);
  CHECK(cudaEventRecord(event, b));
  CHECK(cudaStreamWaitEvent(a, event, 0));
  CHECK(cudaStreamEndCapture(a, &graph));
  assert(graph && status(a) == NONE && status(b) == NONE);
  CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(executable, b));
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaEventQuery(event));

  /* The legacy stream cannot be captured. */
  FAILS(cudaStreamBeginCapture(NULL, GLOBAL), 900);

  /* Unsafe calls in the modes of the capture and of the thread. */
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  CHECK(cudaMalloc(&address, MIB));
  elsewhere(0);
  CHECK(cudaStreamEndCapture(a, &graph));
  CHECK(cudaStreamBeginCapture(a, THREAD_LOCAL));
  elsewhere(0);
  assert(status(a) == ACTIVE);
  FAILS(cudaMalloc(&address, MIB), 900);
  assert(status(a) == INVALIDATED);
  FAILS(cudaStreamEndCapture(a, &graph), 901);
  assert(!graph && status(a) == NONE);
  CHECK(cudaStreamBeginCapture(a, GLOBAL));
  int mode = RELAXED;
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  assert(mode == GLOBAL);
  CHECK(cudaMalloc(&address, MIB));
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  assert(mode == RELAXED && status(a) == ACTIVE);
  elsewhere(900);
  assert(status(a) == INVALIDATED);
  FAILS(cudaStreamEndCapture(a, &graph), 901);

  /* Waiting on the host, for streams and for events. */
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  CHECK(cudaStreamSynchronize(b));
  FAILS(cudaStreamSynchronize(a), 900);
  FAILS(cudaStreamEndCapture(a, &graph), 901);
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  CHECK(cudaEventRecord(event, a));
  FAILS(cudaEventQuery(event), 907);
  FAILS(cudaStreamEndCapture(a, &graph), 901);
  CHECK(cudaStreamBeginCapture(a, GLOBAL));
  FAILS(cudaDeviceSynchronize(), 900);
  FAILS(cudaStreamEndCapture(a, &graph), 901);

  /* Work from before the capture, and an end on another stream. */
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  FAILS(cudaStreamWaitEvent(a, old, 0), 905);
  FAILS(cudaStreamEndCapture(a, &graph), 901);
  CHECK(cudaStreamBeginCapture(a, RELAXED));
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaStreamWaitEvent(b, event, 0));
  FAILS(cudaStreamEndCapture(b, &graph), 903);
  FAILS(cudaStreamEndCapture(a, &graph), 901);
  assert(status(b) == NONE);
  CHECK(cudaDeviceSynchronize());

  float time;
  CHECK(cudaEventRecord(old, a));
  CHECK(cudaEventRecord(event, a));
  CHECK(cudaEventElapsedTime(&time, old, event));
  assert(time >= 1);
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  return 0;
}
