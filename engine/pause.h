/* pause.h: tell the processor that a loop waits for memory to change. */
#ifndef GX_ENGINE_PAUSE_H
#define GX_ENGINE_PAUSE_H

static inline void gx_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#else
    __asm__ volatile("");
#endif
}

#endif
