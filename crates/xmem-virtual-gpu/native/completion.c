// When work on streams is complete: at once, or as late as a host that runs ahead of the GPU can notice.
//
// With `run_ahead`, work is complete when the host waits for it (CUDA Programming Guide, "Streams" and "Events"), at the
// latest at the end of the next iteration. Each stream has a timeline, an event is a moment on one. Who waits for a
// moment also waits for what its stream waited for before.
//
// A thread that puts no work on streams, such as the one that lets go of what NCCL's collectives held, looks from time to
// time (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, `Watchdog::runLoop`). It is taken to look once in an iteration.
#include "vgpu.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

// Seconds after which work is complete even if nobody waits: some programs ask again and again.
#define PATIENCE 10

struct wait { uint64_t at, until; struct timeline *on; struct wait *next; };
struct timeline { uint64_t done, noticed; struct wait *waits; struct timeline *next; };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct timeline implicit, *timelines = &implicit;
static uint64_t now, iteration;
static __thread int is_working;

static int runs_ahead(void) { return vgpu_config()->run_ahead; }

void vgpu_thread_works(void) { is_working = 1; }

struct timeline *vgpu_timeline(struct timeline **of) {
  if (!runs_ahead()) return NULL;
  if (!of) return &implicit;
  pthread_mutex_lock(&mutex);
  // Never freed: events outlive their streams.
  if (!*of && (*of = calloc(1, sizeof **of))) {
    (*of)->next = timelines;
    timelines = *of;
  }
  struct timeline *timeline = *of ? *of : &implicit;
  pthread_mutex_unlock(&mutex);
  return timeline;
}

// Completes a timeline up to a moment, and what it waited for until then.
static void complete(struct timeline *timeline, uint64_t until) {
  if (timeline->done >= until) return;
  timeline->done = until;
  for (struct wait **at = &timeline->waits; *at;) {
    struct wait *wait = *at;
    if (wait->at > until) {
      at = &wait->next;
      continue;
    }
    *at = wait->next;
    struct timeline *on = wait->on;
    uint64_t other = wait->until;
    free(wait);
    complete(on, other);
    // The list may have changed.
    at = &timeline->waits;
  }
}

void vgpu_moment_record(struct moment *moment, struct timeline *timeline) {
  *moment = (struct moment){timeline, 0, 0};
  is_working = 1;
  if (!timeline) return;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  pthread_mutex_lock(&mutex);
  moment->at = ++now;
  moment->second = time.tv_sec;
  pthread_mutex_unlock(&mutex);
}

void vgpu_timeline_waits(struct timeline *timeline, struct moment moment) {
  is_working = 1;
  if (!timeline || !moment.on || timeline == moment.on) return;
  pthread_mutex_lock(&mutex);
  struct wait *wait = moment.on->done < moment.at ? malloc(sizeof *wait) : NULL;
  if (wait) {
    *wait = (struct wait){++now, moment.at, moment.on, timeline->waits};
    timeline->waits = wait;
  }
  pthread_mutex_unlock(&mutex);
}

int vgpu_moment_is_complete(struct moment moment) {
  if (!moment.on) return 1;
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  pthread_mutex_lock(&mutex);
  if (time.tv_sec > moment.second + PATIENCE) complete(moment.on, moment.at);
  int is_complete = moment.at <= (is_working ? moment.on->done : moment.on->noticed);
  pthread_mutex_unlock(&mutex);
  return is_complete;
}

void vgpu_host_waits_for(struct moment moment) {
  if (!moment.on) return;
  pthread_mutex_lock(&mutex);
  complete(moment.on, moment.at);
  pthread_mutex_unlock(&mutex);
}

void vgpu_host_waits(struct timeline *timeline) {
  if (!runs_ahead()) return;
  pthread_mutex_lock(&mutex);
  for (struct timeline *each = timelines; each; each = each->next)
    if (!timeline || each == timeline) complete(each, now);
  pthread_mutex_unlock(&mutex);
}

// An iteration ends: what was recorded before it began is complete, and has been noticed.
API(void, iteration)(void) {
  if (!runs_ahead()) return;
  pthread_mutex_lock(&mutex);
  for (struct timeline *each = timelines; each; each = each->next) {
    complete(each, iteration);
    if (each->noticed < iteration) each->noticed = iteration;
  }
  iteration = now;
  pthread_mutex_unlock(&mutex);
}
