#pragma once

// Does not return if PyTorch's exceptions are found.
void raise_out_of_memory(char *message);
