// Convolutions of compute capability 9 whose kernels split sums among multiprocessors, with a workspace for the parts.
//
// Without a GPU, cuDNN takes it to have 18 multiprocessors, whatever its description says, and names the workspace for
// those. An engine can be restricted to fewer of them (CUDNN_ATTR_ENGINE_SM_COUNT_TARGET), which shows how the workspace
// follows from their number, and hence how large it is with all.
//
// As the samples show, and the allocations of an H100 with cuDNN 9.19 (traces/measured/h100-80g): the output has so many
// tiles; the GPU runs a wave of clusters at once, each of so many tiles. Tiles that fill no wave are split among the clusters of
// one, if there are two for each at least; each part then needs room for a tile of 32-bit sums, and 4 bytes to wait.
#include "cudnn.h"

enum { OK = 0 };
// cudnnBackendDescriptorType_t
enum { ENGINE = 2, CONFIG = 3, CHOICE = 7, GRAPH = 15 };
// cudnnBackendAttributeType_t
enum { TYPE_INT64 = 3, TYPE_KNOB = 9, TYPE_DESCRIPTOR = 15, TYPE_INT32 = 23 };
// cudnnBackendAttributeName_t
enum {
  CONFIG_ENGINE = 300, CONFIG_CHOICES = 302, CONFIG_WORKSPACE = 303, PLAN_CONFIG = 401, CHOICE_KNOB = 600, CHOICE_VALUE = 601,
  ENGINE_GRAPH = 1300, ENGINE_INDEX = 1301, ENGINE_SMS = 1306, ENGINE_DEVICE = 1307,
};
// cudnnBackendKnobType_t
enum { KNOB_WORKSPACE = 25, KNOB_CLUSTER_M = 27, KNOB_CLUSTER_N = 28 };
enum { MAX_CHOICES = 32 };

struct choice { int knob; int64_t value; };
struct config { const struct cudnn *library; void *graph; int64_t engine; int choices; struct choice choice[MAX_CHOICES]; };

// Clusters of so many blocks that an H100 of 132 multiprocessors runs at once: not all of its groups of multiprocessors have a
// multiple of them. Those of 3, 4, 5 and 8 blocks follow from measured workspaces.
static int clusters(int blocks, int sms) {
  static const int measured[] = {0, 132, 66, 40, 30, 22, 20, 15, 15};
  if (blocks < 1) return 0;
  return blocks <= 8 ? measured[blocks] * sms / 132 : sms / blocks;
}

// Parts of `tiles` (of clusters) among `wave` clusters, if no tile can have more than `most` of them.
static int parts(int tiles, int wave, int most) {
  int rest = tiles < wave ? tiles : tiles % wave;
  if (!rest) return 0;
  int each = wave / rest < most ? wave / rest : most;
  return each >= 2 ? rest * each : 0;
}

struct guess { size_t tile; int tiles, most, score; };

// How well so many tiles of this size explain the samples: two for a sample that they explain, one if parts were limited.
static struct guess rate(const size_t *samples, size_t least, size_t tile, int tiles) {
  struct guess guess = {tile, tiles, 1, 0};
  int limited = 0;
  for (int n = 1; n <= SPLIT_SAMPLES; n++) {
    if (samples[n - 1] == SIZE_MAX) continue;
    size_t more = samples[n - 1] - least, rest = more % tile;
    if (rest >= 1024) return (struct guess){0};
    int found = (int)(more / tile), expected = parts(tiles, n, n);
    int left = tiles < n ? tiles : tiles % n;
    if (found == expected) guess.score += 2;
    else if (found > 0 && expected > found && found % left == 0) guess.score += 1, limited = 1;
    if (found > 0 && left && found / left > guess.most) guess.most = found / left;
  }
  if (!limited) guess.most = SPLIT_SAMPLES * SPLIT_SAMPLES;
  return guess;
}

size_t vgpu_split_size(const size_t *samples, int blocks, int sms, size_t found) {
  enum { MAX_TILES = 4096, SMALL = 4096 };
  size_t least = SIZE_MAX, largest = 0;
  for (int n = 0; n < SPLIT_SAMPLES; n++) {
    if (samples[n] == SIZE_MAX) continue;
    if (samples[n] < least) least = samples[n];
    if (samples[n] > largest) largest = samples[n];
  }
  if (least == SIZE_MAX || largest - least < SMALL) return found;
  struct guess best = {0};
  for (size_t tile = 4096; tile <= (size_t)256 << 10; tile *= 2)
    for (int tiles = 1; tiles <= MAX_TILES; tiles++) {
      struct guess guess = rate(samples, least, tile, tiles);
      if (guess.score > best.score) best = guess;
    }
  // At least three of four samples: else the kernel follows another rule.
  if (best.score * 2 < SPLIT_SAMPLES * 3) return found;
  int wave = clusters(blocks, sms), all = (best.tiles + blocks - 1) / blocks;
  if (!wave) return found;
  size_t split = (size_t)parts(all, wave, best.most) * (size_t)blocks;
  // The least has 131 bytes for more than one wave, or none.
  size_t whole = least % 16 == 0 ? least : least > 131 ? least - 131 : 0;
  if (split) return whole + 131 + split * (best.tile + 4);
  return all <= wave ? whole : whole + 131;
}

static void *make(const struct cudnn *library, int type) {
  void *made = NULL;
  return library->create(type, &made) == OK ? made : NULL;
}
static int get_one(const struct cudnn *library, void *from, int name, int type, void *value) {
  int64_t count = 0;
  int status = library->get(from, name, type, 1, &count, value);
  return status ? status : count != 1;
}
static void drop(const struct cudnn *library, void *descriptor) { if (descriptor) library->destroy(descriptor); }

// Reads how a plan is configured; zero if its kernel splits no sums.
static int read_config(const struct cudnn *library, void *plan, struct config *config) {
  void *chosen = make(library, CONFIG), *engine = make(library, ENGINE);
  void *choices[MAX_CHOICES] = {NULL};
  int64_t count = 0;
  int is_split = 0, clustered = 0;
  *config = (struct config){.library = library, .graph = make(library, GRAPH)};
  for (int n = 0; n < MAX_CHOICES; n++) choices[n] = make(library, CHOICE);
  if (!chosen || !engine || !config->graph) goto done;
  if (get_one(library, plan, PLAN_CONFIG, TYPE_DESCRIPTOR, &chosen)) goto done;
  if (get_one(library, chosen, CONFIG_ENGINE, TYPE_DESCRIPTOR, &engine)) goto done;
  if (get_one(library, engine, ENGINE_GRAPH, TYPE_DESCRIPTOR, &config->graph)) goto done;
  if (get_one(library, engine, ENGINE_INDEX, TYPE_INT64, &config->engine)) goto done;
  if (library->get(chosen, CONFIG_CHOICES, TYPE_DESCRIPTOR, MAX_CHOICES, &count, choices) || count > MAX_CHOICES) goto done;
  for (int n = 0; n < count; n++) {
    struct choice *choice = &config->choice[config->choices];
    if (get_one(library, choices[n], CHOICE_KNOB, TYPE_KNOB, &choice->knob)) goto done;
    if (get_one(library, choices[n], CHOICE_VALUE, TYPE_INT64, &choice->value)) goto done;
    is_split |= choice->knob == KNOB_WORKSPACE && choice->value == 0;
    clustered |= choice->knob == KNOB_CLUSTER_M;
    config->choices++;
  }
done:
  for (int n = 0; n < MAX_CHOICES; n++) drop(library, choices[n]);
  drop(library, chosen);
  drop(library, engine);
  return is_split && clustered;
}

// The workspace with so many multiprocessors and clusters of one block; SIZE_MAX if the engine cannot.
static size_t sample(const struct config *config, int32_t sms) {
  const struct cudnn *library = config->library;
  void *engine = make(library, ENGINE), *chosen = make(library, CONFIG), *choices[MAX_CHOICES] = {NULL};
  int64_t size = -1;
  int status = !engine || !chosen;
  if (!status) status = library->set(engine, ENGINE_GRAPH, TYPE_DESCRIPTOR, 1, &config->graph);
  if (!status) status = library->set(engine, ENGINE_INDEX, TYPE_INT64, 1, &config->engine);
  if (!status) status = library->set(engine, ENGINE_DEVICE, TYPE_DESCRIPTOR, 1, &library->device);
  if (!status) status = library->set(engine, ENGINE_SMS, TYPE_INT32, 1, &sms);
  if (!status) status = library->finalize(engine);
  if (!status) status = library->set(chosen, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &engine);
  for (int n = 0; n < config->choices && !status; n++) {
    const struct choice *choice = &config->choice[n];
    int64_t value = choice->knob == KNOB_CLUSTER_M || choice->knob == KNOB_CLUSTER_N ? 1 : choice->value;
    choices[n] = make(library, CHOICE);
    status = !choices[n] || library->set(choices[n], CHOICE_KNOB, TYPE_KNOB, 1, &choice->knob)
      || library->set(choices[n], CHOICE_VALUE, TYPE_INT64, 1, &value) || library->finalize(choices[n]);
  }
  if (!status && config->choices) status = library->set(chosen, CONFIG_CHOICES, TYPE_DESCRIPTOR, config->choices, choices);
  if (!status) status = library->finalize(chosen);
  if (!status) status = get_one(library, chosen, CONFIG_WORKSPACE, TYPE_INT64, &size);
  for (int n = 0; n < config->choices; n++) drop(library, choices[n]);
  drop(library, chosen);
  drop(library, engine);
  return status || size < 0 ? SIZE_MAX : (size_t)size;
}

size_t vgpu_split_workspace(const struct cudnn *library, void *plan, int sms, size_t found) {
  struct config config;
  size_t samples[SPLIT_SAMPLES];
  if (read_config(library, plan, &config)) {
    int64_t blocks = 1;
    for (int n = 0; n < config.choices; n++) {
      int knob = config.choice[n].knob;
      if (knob == KNOB_CLUSTER_M || knob == KNOB_CLUSTER_N) blocks *= config.choice[n].value;
    }
    for (int n = 0; n < SPLIT_SAMPLES; n++) samples[n] = sample(&config, n + 1);
    if (blocks >= 1 && blocks <= sms) found = vgpu_split_size(samples, (int)blocks, sms, found);
  }
  drop(library, config.graph);
  return found;
}
