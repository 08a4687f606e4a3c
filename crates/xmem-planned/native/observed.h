#pragma once

#include <stdbool.h>
#include <stdint.h>

void observed_start(void);
void observed_add(const void *pointer, uint64_t size);
void observed_mark(void);
bool observed_write(const char *path);
