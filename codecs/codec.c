#include <stdio.h>
#include <string.h>

#include "codecs/auto_codec.h"
#include "codecs/codec.h"
#include "engine/api/gpuidx_advanced.h"
#include "engine/status.h"

const gx_codec *const gx_codecs[] = {
#define GX_ENTRY(ID, NUMBER, NAME) &gx_codec_##NAME,
    GX_CODECS(GX_ENTRY)
#undef GX_ENTRY
        NULL};

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

bool gx_codec_block_valid(const gx_codec *codec, const uint32_t *words, uint32_t n_words, uint32_t n, uint8_t param)
{
    uint32_t values[GX_MAX_BLOCK], again[GX_MAX_WORDS];
    if (!codec->valid(words, n_words, n, param))
        return false;
    codec->decode(words, n_words, n, param, values);
    return codec->encode(values, n, param, again) == n_words &&
           (n_words == 0 || memcmp(again, words, n_words * sizeof *again) == 0);
}

gx_status gx_codec_find(const gx_codec **out, const char *name, gx_error *err)
{
    *out = strcmp(name, gx_codec_auto.name) == 0 ? &gx_codec_auto : gx_codec_by_name(name);
    if (*out)
        return GX_OK;
    char known[800];
    size_t n = (size_t)snprintf(known, sizeof known, "%s", gx_codec_auto.name);
    for (const gx_codec *const *c = gx_codecs; *c && n + 32 < sizeof known; ++c)
        n += (size_t)snprintf(known + n, sizeof known - n, ", %s", (*c)->name);
    return gx_fail(err, GX_EUSAGE, "no codec is called \"%s\"; there are: %s", name, known);
}

gx_status gx_codec_find_pair(const gx_codec **docids, const gx_codec **tfs, const char *docid_name, const char *tf_name,
                             gx_error *err)
{
    const gx_status st = gx_codec_find(docids, docid_name ? docid_name : "gpubp128", err);
    if (st != GX_OK)
        return st;
    *tfs = *docids;
    return tf_name ? gx_codec_find(tfs, tf_name, err) : GX_OK;
}

const char *gx_codec_name(uint32_t i)
{
    uint32_t n = 0;
    while (n < i && gx_codecs[n])
        ++n;
    return gx_codecs[n] ? gx_codecs[n]->name : NULL;
}
