/* Plans of cuDNN where its library cannot be asked: one engine without a workspace. */
#include "cuda.h"
typedef struct descriptor *descriptor_t;
size_t cudnnGetVersion(void);
int cudnnBackendCreateDescriptor(int, descriptor_t *);
int cudnnBackendDestroyDescriptor(descriptor_t);
int cudnnBackendSetAttribute(descriptor_t, int, int, int64_t, const void *);
int cudnnBackendGetAttribute(descriptor_t, int, int, int64_t, int64_t *, void *);
int cudnnBackendFinalize(descriptor_t);

int main(void) {
  assert(cudnnGetVersion() == 90100);
  descriptor_t plan, heuristics;
  int64_t count = -1, workspace = -1;
  CHECK(cudnnBackendCreateDescriptor(5, &plan));
  CHECK(cudnnBackendCreateDescriptor(4, &heuristics));
  CHECK(cudnnBackendGetAttribute(heuristics, 202, 15, 0, &count, NULL));
  assert(count == 1);
  int64_t value = 11;
  CHECK(cudnnBackendSetAttribute(plan, 1301, 3, 1, &value));
  value = 0;
  CHECK(cudnnBackendGetAttribute(plan, 1301, 3, 1, &count, &value));
  assert(count == 1 && value == 11);
  CHECK(cudnnBackendFinalize(plan));
  CHECK(cudnnBackendGetAttribute(plan, 402, 3, 1, &count, &workspace));
  assert(count == 1 && workspace == 0);
  CHECK(cudnnBackendDestroyDescriptor(plan));
  CHECK(cudnnBackendDestroyDescriptor(heuristics));
  return 0;
}
