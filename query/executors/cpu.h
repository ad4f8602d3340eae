/* cpu.h: what tests ask of the CPU executor's state. */
#ifndef GX_QUERY_EXECUTORS_CPU_H
#define GX_QUERY_EXECUTORS_CPU_H

#include <stdint.h>

/* How many live lists (cpu/lists.h) have been made. Thread-safe. */
uint32_t gx_cpu_state_n_live_lists(const void *state);

#endif
