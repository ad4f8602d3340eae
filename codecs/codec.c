#include <string.h>

#include "codecs/codecs.h"

const gx_codec *const gx_codecs[] = {
    &gx_codec_raw,
    &gx_codec_gpubp128,
    &gx_codec_gpubp256,
    &gx_codec_gpuvbyte128,
    &gx_codec_gpuvbyte1024,
    &gx_codec_lane1024,
    NULL
};

const gx_codec *gx_codec_by_name(const char *name)
{
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}

const gx_codec *gx_codec_by_id(uint8_t id)
{
    for (const gx_codec *const *c = gx_codecs; *c; ++c) {
        if ((*c)->id == id)
            return *c;
    }
    return NULL;
}
