/* thread_number.h: numbers of threads, by which they find places of their own in shared arrays. */
#ifndef GX_ENGINE_THREAD_NUMBER_H
#define GX_ENGINE_THREAD_NUMBER_H

#include <stdint.h>

/* The number of the calling thread: threads are counted from 0, in the order in which they first ask. A thread
 * keeps its number; that of a thread that has ended is not given again, so that numbers wrap after 2^32 threads. */
uint32_t gx_thread_number(void);

#endif
