#pragma once

#include <stdbool.h>
#include <stdint.h>

void shadow_open(int arena, uint64_t bytes);
void shadow_set(int arena, uint64_t offset, uint64_t size, bool live);
