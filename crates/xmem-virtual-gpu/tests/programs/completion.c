/* Work is complete when the host waits for it, with the argument 1; without, at once. */
#include "cuda.h"
#include <dlfcn.h>
#include <pthread.h>

static event_t last;
static void *ask(void *status) {
  *(int *)status = cudaEventQuery(last);
  return NULL;
}
/* The answer for a thread that puts no work on streams. */
static int elsewhere(event_t event) {
  int status;
  pthread_t thread;
  last = event;
  pthread_create(&thread, NULL, ask, &status);
  pthread_join(thread, NULL);
  return status;
}

int main(int count, char **arguments) {
  int late = count > 1 && atoi(arguments[1]) ? 600 : 0;
  void (*iteration)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "vgpu_iteration");
  assert(iteration);
  stream_t a, b;
  event_t first, second, other;
  CHECK(cudaStreamCreateWithFlags(&a, 1));
  CHECK(cudaStreamCreateWithFlags(&b, 1));
  CHECK(cudaEventCreateWithFlags(&first, 0));
  CHECK(cudaEventCreateWithFlags(&second, 0));
  CHECK(cudaEventCreateWithFlags(&other, 0));
  CHECK(cudaEventQuery(first));

  /* A wait for one stream is none for the other. */
  CHECK(cudaEventRecord(first, a));
  CHECK(cudaEventRecord(other, b));
  FAILS(cudaEventQuery(first), late);
  CHECK(cudaStreamSynchronize(a));
  CHECK(cudaEventQuery(first));
  FAILS(cudaEventQuery(other), late);

  /* Who waits for a stream waits for what it waited for, and for nothing later. */
  CHECK(cudaEventRecord(first, a));
  CHECK(cudaStreamWaitEvent(b, first, 0));
  CHECK(cudaEventRecord(second, b));
  CHECK(cudaEventRecord(other, a));
  CHECK(cudaEventSynchronize(second));
  CHECK(cudaEventQuery(first));
  FAILS(cudaEventQuery(other), late);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventQuery(other));

  /* The device waits for its work before it releases memory. */
  void *address;
  CHECK(cudaMalloc(&address, MIB));
  CHECK(cudaEventRecord(first, b));
  FAILS(cudaEventQuery(first), late);
  CHECK(cudaFree(address));
  CHECK(cudaEventQuery(first));

  /* At the latest at the end of the next iteration, and only then for a thread that looks from time to time. */
  CHECK(cudaEventRecord(first, NULL));
  CHECK(cudaEventRecord(second, a));
  CHECK(cudaStreamSynchronize(a));
  iteration();
  FAILS(cudaEventQuery(first), late);
  assert(elsewhere(second) == late);
  iteration();
  CHECK(cudaEventQuery(first));
  assert(elsewhere(second) == 0);
  return 0;
}
