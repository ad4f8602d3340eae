/* stages.h: where the time of a build goes. */
#ifndef GX_INDEX_INVERSION_STAGES_H
#define GX_INDEX_INVERSION_STAGES_H

#include "engine/api/gpuidx.h"
#include "engine/clock.h"

/* The time since the stamp went into the stage; returns the stamp of the next one. */
static inline double gx_stage_lap(double seconds[GX_N_STAGES], gx_builder_stage stage, double stamp)
{
    const double t = gx_clock_seconds();
    seconds[stage] += t - stamp;
    return t;
}

#endif
