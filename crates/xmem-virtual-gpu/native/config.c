// The configuration file, and the log.
#define _GNU_SOURCE
#include "vgpu.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct config config;
static int is_configured;
static int log_file = -1;
static int visible[MAX_DEVICES], visible_count;

struct number { const char *key; size_t offset; int wide; };
#define NUMBER(field) {#field, offsetof(struct config, field), sizeof config.field == 8}
static const struct number NUMBERS[] = {
  NUMBER(memory), NUMBER(context), NUMBER(capacity), NUMBER(devices), NUMBER(major), NUMBER(minor), NUMBER(sms),
  NUMBER(threads_per_sm), NUMBER(blocks_per_sm), NUMBER(registers_per_sm), NUMBER(shared_per_block_optin),
  NUMBER(shared_per_sm), NUMBER(l2), NUMBER(sm_clock), NUMBER(memory_clock), NUMBER(bus_width),
  NUMBER(pci_device), NUMBER(runtime), NUMBER(driver), NUMBER(cublas), NUMBER(nccl), NUMBER(run_ahead), NUMBER(copy_limit),
};

static void set(const char *key, const char *value) {
  if (!strcmp(key, "name")) snprintf(config.name, sizeof config.name, "%s", value);
  else if (!strcmp(key, "cudnn")) snprintf(config.cudnn, sizeof config.cudnn, "%s", value);
  else if (!strcmp(key, "log")) log_file = open(value, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  else for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
    if (strcmp(key, NUMBERS[i].key)) continue;
    char *field = (char *)&config + NUMBERS[i].offset;
    unsigned long long number = strtoull(value, NULL, 10);
    if (NUMBERS[i].wide) *(uint64_t *)field = number;
    else *(int *)field = (int)number;
  }
}

// CUDA_VISIBLE_DEVICES as the driver reads it: numbers or beginnings of UUIDs up to the first that names no
// device. An unset variable shows all.
static void read_visible(void) {
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  if (!text) {
    for (; visible_count < config.devices; visible_count++) visible[visible_count] = visible_count;
    return;
  }
  while (*text && visible_count < MAX_DEVICES) {
    char item[64];
    size_t length = strcspn(text, ",");
    snprintf(item, sizeof item, "%.*s", (int)length, text);
    int device = -1;
    if (!strncmp(item, "GPU-", 4)) {
      for (int i = 0; i < config.devices && device < 0; i++) {
        unsigned char uuid[16];
        char full[64];
        vgpu_uuid((char *)uuid, i);
        int at = snprintf(full, sizeof full, "GPU-");
        for (int b = 0; b < 16; b++)
          at += snprintf(full + at, sizeof full - at, b == 4 || b == 6 || b == 8 || b == 10 ? "-%02x" : "%02x", uuid[b]);
        if (!strncmp(full, item, strlen(item))) device = i;
      }
    } else {
      char *end;
      long number = strtol(item, &end, 10);
      if (end != item && number >= 0 && number < config.devices) device = (int)number;
    }
    for (int i = 0; i < visible_count; i++) if (visible[i] == device) device = -1;
    if (device < 0) return;
    visible[visible_count++] = device;
    text += length;
    if (*text == ',') text++;
  }
}

static void read_config(void) {
  const char *path = getenv("XMEM_VGPU_CONFIG");
  FILE *file = path ? fopen(path, "re") : NULL;
  if (!file) return;
  char line[8192];
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char *value = strchr(line, '=');
    if (!value) continue;
    *value++ = 0;
    set(line, value);
  }
  fclose(file);
  if (config.devices < 0) config.devices = 0;
  if (config.devices > MAX_DEVICES) config.devices = MAX_DEVICES;
  is_configured = config.memory > 0;
  if (!is_configured) config.devices = 0;
  read_visible();
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
const struct config *vgpu_config(void) { pthread_once(&once, read_config); return &config; }
int vgpu_configured(void) { vgpu_config(); return is_configured; }
int vgpu_visible_devices(void) { vgpu_config(); return visible_count; }
int vgpu_machine_device(int device) {
  vgpu_config();
  return device >= 0 && device < visible_count ? visible[device] : 0;
}

void vgpu_log(const char *format, ...) {
  vgpu_config();
  if (log_file < 0) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (length > (int)sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  // One write for a line: several processes share the file. There is nowhere to report an error.
  ssize_t written = write(log_file, line, (size_t)length);
  (void)written;
}

// True for the first time with this text. Each function has one text, so that its address is enough.
static int is_new(const char *name) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static const char **seen;
  static size_t count, room;
  pthread_mutex_lock(&mutex);
  size_t i = 0;
  while (i < count && seen[i] != name) i++;
  int is_new = i == count;
  if (is_new && count == room) {
    size_t more = room ? 2 * room : 256;
    const char **grown = realloc(seen, more * sizeof *seen);
    if (grown) seen = grown, room = more;
  }
  if (is_new && count < room) seen[count++] = name;
  pthread_mutex_unlock(&mutex);
  return is_new;
}

API(int, unimplemented)(const char *name, int status) {
  if (is_new(name)) vgpu_log("call %s %d", name, status);
  return status;
}

void vgpu_unknown_size(const char *name) {
  if (is_new(name)) vgpu_log("size %s", name);
}

void vgpu_estimated_size(const char *name) {
  if (is_new(name)) vgpu_log("estimate %s", name);
}
