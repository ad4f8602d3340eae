/* stages.h: where the time of a build goes. */
#ifndef GX_INDEX_BUILD_STAGES_H
#define GX_INDEX_BUILD_STAGES_H

#include <time.h>

/* Indices of gx_builder_counts.seconds. */
enum gx_builder_stage {
    GX_STAGE_ANALYSE,
    GX_STAGE_INVERT,
    GX_STAGE_MERGE,
    GX_STAGE_LISTS,
    GX_STAGE_DOCUMENTS,
    GX_N_STAGES
};

static inline double gx_stage_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The time since the stamp went into the stage; returns the stamp of the next one. */
static inline double gx_stage_lap(double seconds[GX_N_STAGES], enum gx_builder_stage stage, double stamp)
{
    const double t = gx_stage_now();
    seconds[stage] += t - stamp;
    return t;
}

#endif
