// Streams, events, and the capture of graphs. What is followed is which streams are being captured, because
// PyTorch's private pools and its checks depend on it.
//
// The states are those of the CUDA Programming Guide, "Creating a Graph Using Stream Capture", and of the
// runtime's documentation of cudaStreamBeginCapture and cudaThreadExchangeStreamCaptureMode.
#define _GNU_SOURCE
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

// Handles of the streams that exist without being created: none, legacy, and per thread.
#define IS_IMPLICIT(stream) ((uintptr_t)(stream) <= 2)
enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum { NONE, ACTIVE, INVALIDATED };
#define EXTERNAL 1 // cudaEventRecordExternal, cudaEventWaitExternal

struct graph { size_t nodes; };
struct capture {
  unsigned long long id;
  int mode, is_invalid;
  pthread_t thread;
  struct stream *origin;
  struct graph *graph;
  struct capture *next;
};
struct stream {
  int device, priority;
  unsigned flags;
  unsigned long long id;
  struct capture *capture;
  struct timeline *timeline;
  struct stream *next;
};
struct event {
  struct timespec time;
  int is_recorded;
  unsigned long long capture;
  struct moment moment;
  uint64_t logged; // the moment in the log of activity.c
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams;
static struct capture *captures;
static unsigned long long ids = 16, capture_ids;
static __thread int thread_mode = GLOBAL;

int vgpu_is_stream(const struct stream *stream) { return IS_IMPLICIT(stream) || vgpu_handle_exists(HANDLE_STREAM, stream); }

int vgpu_stream_create(struct stream **stream, int device, unsigned flags, int priority) {
  struct stream *s = vgpu_handle_make(HANDLE_STREAM, sizeof *s);
  if (!s) return CUDA_OUT_OF_MEMORY;
  s->device = device;
  s->flags = flags;
  s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
  pthread_mutex_lock(&mutex);
  s->id = ids++;
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&mutex);
  *stream = s;
  return CUDA_OK;
}

int vgpu_stream_destroy(struct stream *stream) {
  if (!vgpu_handle_remove(HANDLE_STREAM, stream)) return CUDA_INVALID_HANDLE;
  pthread_mutex_lock(&mutex);
  for (struct stream **at = &streams; *at; at = &(*at)->next) {
    if (*at != stream) continue;
    *at = stream->next;
    if (stream->capture) stream->capture->is_invalid = 1;
    if (stream->capture && stream->capture->origin == stream) stream->capture->origin = NULL;
    break;
  }
  pthread_mutex_unlock(&mutex);
  free(stream);
  return CUDA_OK;
}

// A stream that was created; what is no handle counts as the legacy stream.
static int is_created(const struct stream *stream) { return !IS_IMPLICIT(stream) && vgpu_handle_exists(HANDLE_STREAM, stream); }

int vgpu_stream_priority(const struct stream *stream) { return is_created(stream) ? stream->priority : 0; }
unsigned vgpu_stream_flags(const struct stream *stream) { return is_created(stream) ? stream->flags : 0; }
int vgpu_stream_device(const struct stream *stream, int device) { return is_created(stream) ? stream->device : device; }
unsigned long long vgpu_stream_id(const struct stream *stream) { return is_created(stream) ? stream->id : (uintptr_t)stream; }

static struct timeline *timeline_of(struct stream *stream) { return vgpu_timeline(is_created(stream) ? &stream->timeline : NULL); }

static struct capture *capture_of(const struct stream *stream) { return is_created(stream) ? stream->capture : NULL; }

static int is_event(const struct event *event) { return vgpu_handle_exists(HANDLE_EVENT, event); }

static struct capture *find_capture(unsigned long long id) {
  for (struct capture *c = captures; c; c = c->next) if (c->id == id) return c;
  return NULL;
}

// The captures that forbid this thread a call, by the modes of the threads.
static int forbidding(int (*act)(struct capture *)) {
  int found = 0;
  pthread_t self = pthread_self();
  for (struct capture *c = captures; c; c = c->next) {
    int is_own = pthread_equal(c->thread, self);
    int forbids = thread_mode == RELAXED ? 0
      : thread_mode == THREAD_LOCAL ? is_own && c->mode != RELAXED
      : (is_own && c->mode != RELAXED) || c->mode == GLOBAL;
    if (forbids) found |= act(c);
  }
  return found;
}
static int invalidate(struct capture *capture) { capture->is_invalid = 1; return 1; }

int vgpu_capture_unsafe_call(void) {
  // No lock for programs without captures: every allocation comes here.
  if (!__atomic_load_n(&captures, __ATOMIC_ACQUIRE)) return CUDA_OK;
  pthread_mutex_lock(&mutex);
  int is_forbidden = forbidding(invalidate);
  pthread_mutex_unlock(&mutex);
  return is_forbidden ? CUDA_CAPTURE_UNSUPPORTED : CUDA_OK;
}

int vgpu_device_synchronize(void) {
  int status = vgpu_capture_unsafe_call();
  if (status) return status;
  vgpu_host_waits(NULL);
  vgpu_log_host_waits('d', NULL, 0);
  vgpu_pools_synchronize();
  return CUDA_OK;
}

int vgpu_stream_synchronize(struct stream *stream) {
  if (!vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE;
  pthread_mutex_lock(&mutex);
  struct capture *c = capture_of(stream);
  if (c) c->is_invalid = 1;
  pthread_mutex_unlock(&mutex);
  if (c) return CUDA_CAPTURE_UNSUPPORTED;
  vgpu_host_waits(timeline_of(stream));
  vgpu_log_host_waits('h', stream, 0);
  vgpu_pools_synchronize();
  return CUDA_OK;
}

int vgpu_event_create(struct event **event) {
  *event = vgpu_handle_make(HANDLE_EVENT, sizeof **event);
  return *event ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}
int vgpu_event_destroy(struct event *event) { return vgpu_handle_drop(HANDLE_EVENT, event) ? CUDA_OK : CUDA_INVALID_HANDLE; }

int vgpu_event_record(struct event *event, struct stream *stream, unsigned flags, const void *caller) {
  if (!is_event(event) || !vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE;
  clock_gettime(CLOCK_MONOTONIC, &event->time);
  pthread_mutex_lock(&mutex);
  struct capture *c = capture_of(stream);
  event->capture = c && !(flags & EXTERNAL) ? c->id : 0;
  event->is_recorded = 1;
  pthread_mutex_unlock(&mutex);
  vgpu_moment_record(&event->moment, event->capture ? NULL : timeline_of(stream));
  event->logged = event->capture ? 0 : vgpu_log_record(stream, caller);
  return CUDA_OK;
}

static int query(struct event *event) {
  if (!is_event(event)) return CUDA_INVALID_HANDLE;
  pthread_mutex_lock(&mutex);
  struct capture *c = event->capture ? find_capture(event->capture) : NULL;
  if (c) c->is_invalid = 1;
  pthread_mutex_unlock(&mutex);
  return c ? CUDA_CAPTURED_EVENT : CUDA_OK;
}

int vgpu_event_query(struct event *event) {
  int status = query(event);
  return status || vgpu_moment_is_complete(event->moment) ? status : CUDA_NOT_READY;
}

int vgpu_event_synchronize(struct event *event) {
  int status = query(event);
  if (status) return status;
  vgpu_host_waits_for(event->moment);
  if (event->logged) vgpu_log_host_waits('e', NULL, event->logged);
  return status;
}

// At least a millisecond: benchmarks that repeat a kernel for a given time divide by this.
int vgpu_event_elapsed(float *milliseconds, const struct event *from, const struct event *to) {
  if (!is_event(from) || !is_event(to) || !from->is_recorded || !to->is_recorded) return CUDA_INVALID_HANDLE;
  double elapsed = (double)(to->time.tv_sec - from->time.tv_sec) * 1e3 + (double)(to->time.tv_nsec - from->time.tv_nsec) * 1e-6;
  *milliseconds = elapsed < 1 ? 1 : (float)elapsed;
  return CUDA_OK;
}

// A stream that waits for an event of a captured one is captured, too.
int vgpu_stream_wait(struct stream *stream, struct event *event, unsigned flags) {
  if (!is_event(event) || !vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE;
  if (flags & EXTERNAL) return CUDA_OK;
  int status = CUDA_OK;
  pthread_mutex_lock(&mutex);
  struct capture *own = capture_of(stream), *other = event->capture ? find_capture(event->capture) : NULL;
  if (other && !own) {
    if (IS_IMPLICIT(stream)) {
      other->is_invalid = 1;
      status = CUDA_CAPTURE_UNSUPPORTED;
    } else stream->capture = other;
  } else if (own && own != other && event->is_recorded) {
    // The event was recorded before this capture, or in another one.
    own->is_invalid = 1;
    status = CUDA_CAPTURE_ISOLATION;
  }
  pthread_mutex_unlock(&mutex);
  if (status || own || other) return status;
  vgpu_timeline_waits(timeline_of(stream), event->moment);
  vgpu_log_wait(stream, event->logged);
  return status;
}

void vgpu_stream_work(struct stream *stream) {
  vgpu_thread_works();
  vgpu_log_work(stream);
  if (!__atomic_load_n(&captures, __ATOMIC_ACQUIRE)) return;
  pthread_mutex_lock(&mutex);
  struct capture *c = capture_of(stream);
  if (c) c->graph->nodes++;
  pthread_mutex_unlock(&mutex);
}

int vgpu_capture_begin(struct stream *stream, int mode) {
  if (mode < GLOBAL || mode > RELAXED) return CUDA_INVALID_VALUE;
  // The legacy stream cannot be captured. The stream of a thread could be, which nothing here does.
  if (IS_IMPLICIT(stream)) return CUDA_CAPTURE_UNSUPPORTED;
  if (!vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE;
  struct capture *c = calloc(1, sizeof *c);
  // It becomes a handle when the capture ends.
  struct graph *graph = calloc(1, sizeof *graph);
  if (!c || !graph) {
    free(c);
    free(graph);
    return CUDA_OUT_OF_MEMORY;
  }
  pthread_mutex_lock(&mutex);
  int is_captured = stream->capture != NULL;
  if (!is_captured) {
    *c = (struct capture){++capture_ids, mode, 0, pthread_self(), stream, graph, captures};
    stream->capture = c;
    __atomic_store_n(&captures, c, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&mutex);
  if (!is_captured) return CUDA_OK;
  free(c);
  free(graph);
  return CUDA_ILLEGAL_STATE;
}

int vgpu_capture_end(struct stream *stream, struct graph **graph) {
  if (graph) *graph = NULL;
  if (!vgpu_is_stream(stream)) return CUDA_INVALID_HANDLE;
  pthread_mutex_lock(&mutex);
  struct capture *c = capture_of(stream);
  int status = CUDA_OK;
  if (!c) status = CUDA_ILLEGAL_STATE;
  else if (c->origin && c->origin != stream) {
    c->is_invalid = 1;
    status = CUDA_CAPTURE_UNMATCHED;
  } else if (c->mode != RELAXED && !pthread_equal(c->thread, pthread_self())) {
    c->is_invalid = 1;
    status = CUDA_CAPTURE_WRONG_THREAD;
  } else {
    for (struct stream *s = streams; s; s = s->next) if (s->capture == c) s->capture = NULL;
    struct capture **at = &captures;
    while (*at != c) at = &(*at)->next;
    __atomic_store_n(at, c->next, __ATOMIC_RELEASE);
    if (c->is_invalid) {
      free(c->graph);
      status = CUDA_CAPTURE_INVALIDATED;
    } else if (!graph || vgpu_handle_add(HANDLE_GRAPH, c->graph)) {
      free(c->graph);
      if (graph) status = CUDA_OUT_OF_MEMORY;
    } else *graph = c->graph;
    free(c);
  }
  pthread_mutex_unlock(&mutex);
  return status;
}

int vgpu_capture_status(const struct stream *stream, unsigned long long *id, struct graph **graph) {
  pthread_mutex_lock(&mutex);
  struct capture *c = capture_of(stream);
  int status = !c ? NONE : c->is_invalid ? INVALIDATED : ACTIVE;
  if (id) *id = c ? c->id : 0;
  if (graph) *graph = c ? c->graph : NULL;
  pthread_mutex_unlock(&mutex);
  return status;
}

int vgpu_capture_exchange_mode(int *mode) {
  if (!mode || *mode < GLOBAL || *mode > RELAXED) return CUDA_INVALID_VALUE;
  int old = thread_mode;
  thread_mode = *mode;
  *mode = old;
  return CUDA_OK;
}

struct graph *vgpu_graph_create(void) { return vgpu_handle_make(HANDLE_GRAPH, sizeof(struct graph)); }
int vgpu_graph_destroy(struct graph *graph) { return vgpu_handle_drop(HANDLE_GRAPH, graph) ? CUDA_OK : CUDA_INVALID_VALUE; }
int vgpu_is_graph(const struct graph *graph) {
  int is_captured = 0;
  if (vgpu_handle_exists(HANDLE_GRAPH, graph)) return 1;
  pthread_mutex_lock(&mutex);
  for (struct capture *c = captures; c && graph; c = c->next) is_captured |= c->graph == graph;
  pthread_mutex_unlock(&mutex);
  return is_captured;
}
int vgpu_graph_clone(struct graph **copy, const struct graph *graph) {
  *copy = NULL;
  if (!vgpu_is_graph(graph)) return CUDA_INVALID_VALUE;
  *copy = vgpu_graph_create();
  if (!*copy) return CUDA_OUT_OF_MEMORY;
  **copy = *graph;
  return CUDA_OK;
}
// At least one: calls of libraries are not counted.
size_t vgpu_graph_nodes(const struct graph *graph) { return graph->nodes ? graph->nodes : 1; }
