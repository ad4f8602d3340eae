/* seconds.h: a time as text. */
#ifndef GX_ENGINE_TEXT_SECONDS_H
#define GX_ENGINE_TEXT_SECONDS_H

#include "engine/api/gpuidx_advanced.h"

/* Add what printf's %.6f prints. */
void gx_text_add_seconds(gx_text *t, double seconds);

#endif
