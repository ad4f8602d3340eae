#include "query/plan/sdm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/api/gpuidx_advanced.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"
#include "index/fields/view.h"
#include "index/positions.h"

#define MAX_WEIGHT 1e6
#define FORM "it has the form WORDS,ORDERED,UNORDERED, such as 0.85,0.1,0.05"

static gx_status read_weight(float *out, const char *text, size_t len, gx_error *err)
{
    char part[32], *end;
    if (len == 0 || len >= sizeof part)
        return gx_fail(err, GX_EUSAGE, FORM);
    memcpy(part, text, len);
    part[len] = 0;
    if (!gx_is_digit(part[strspn(part, "+-.")]) || part[strspn(part, "0123456789.eE+-")])
        return gx_fail(err, GX_EUSAGE, "'%s' is not a number", part);
    const double x = gx_strtod(part, &end);
    if (*end || !isfinite(x))
        return gx_fail(err, GX_EUSAGE, "'%s' is not a number", part);
    if (!(x >= 0 && x <= MAX_WEIGHT))
        return gx_fail(err, GX_EUSAGE, "'%s' is %s", part, x < 0 ? "less than 0" : "more than 1e6");
    *out = (float)x;
    return GX_OK;
}

gx_status gx_sdm_read(gx_sdm *out, const char *text, gx_error *err)
{
    float weights[3] = {0, 0, 0};
    *out = (gx_sdm){0, 0, 0};
    if (strcmp(text, "off") == 0)
        return GX_OK;
    if (strcmp(text, "on") == 0)
        text = "0.85,0.1,0.05";
    for (int i = 0; i < 3; ++i) {
        const size_t len = strcspn(text, ",");
        if ((i < 2) != (text[len] == ','))
            return gx_fail(err, GX_EUSAGE, FORM);
        const gx_status st = read_weight(&weights[i], text, len, err);
        if (st != GX_OK)
            return st;
        text += len + (i < 2);
    }
    if (!(weights[0] > 0))
        return gx_fail(err, GX_EUSAGE, "the weight of the words must be above 0");
    *out = (gx_sdm){weights[0], weights[1], weights[2]};
    return GX_OK;
}

void gx_sdm_write(const gx_sdm *sdm, char *text)
{
    if (gx_sdm_is_on(sdm))
        gx_print(text, GX_SDM_BYTES, "%.7g,%.7g,%.7g", sdm->words, sdm->ordered, sdm->unordered);
    else
        snprintf(text, GX_SDM_BYTES, "off");
}

static bool is_weight(float x)
{
    return x >= 0 && x <= (float)MAX_WEIGHT;
}

gx_status gx_sdm_check(const gx_query_options *opt, const gx_index *ix, gx_error *err)
{
    const gx_sdm *s = &opt->sdm;
    if (!gx_sdm_is_on(s))
        return GX_OK;
    if (!(is_weight(s->words) && is_weight(s->ordered) && is_weight(s->unordered) && s->words > 0))
        return gx_fail(err, GX_EUSAGE,
                       "sdm: the weights are %g, %g, %g; they must be from 0 to 1e6, and that of the words above 0",
                       (double)s->words, (double)s->ordered, (double)s->unordered);
    if (opt->op == GX_OP_AND_OR)
        return gx_fail(err, GX_EUSAGE, "sdm: searches with AND first and then OR have no pairs; choose one of the two");
    if (gx_preset_get(opt->preset)->linear)
        return gx_fail(err, GX_EUSAGE, "sdm: the scorer %s has no score for pairs; use a BM25 scorer",
                       gx_preset_name(opt->preset));
    if (gx_view_of(ix))
        return gx_fail(err, GX_EUSAGE, "sdm: pairs are not weighed by fields; leave out the fields");
    if (!gx_index_has_positions(ix))
        return gx_fail(err, GX_EUSAGE, "sdm: pairs need positions, which this index lacks; build it with --positions");
    return GX_OK;
}

static bool add_pair(gx_boolean *b, const gx_scored_word *first, const gx_scored_word *second, gx_phrase_kind kind,
                     float weight)
{
    if (!gx_reserve(&b->phrases, &b->max_phrases, b->n_phrases + (size_t)1, sizeof *b->phrases) ||
        !gx_reserve(&b->words, &b->max_words, b->n_words + (size_t)2, sizeof *b->words))
        return false;
    const uint32_t offset = kind == GX_PHRASE_WORDS ? second->position - first->position : 0;
    b->phrases[b->n_phrases++] = (gx_read_phrase){.kind = kind,
                                                  .slop = kind == GX_PHRASE_WORDS ? 0 : GX_SDM_WINDOW,
                                                  .first = b->n_words,
                                                  .n = 2,
                                                  .weight = weight};
    b->words[b->n_words++] = (gx_read_word){first->at, first->len, {UINT32_MAX, 0}};
    b->words[b->n_words++] = (gx_read_word){second->at, second->len, {UINT32_MAX, offset}};
    return true;
}

gx_status gx_sdm_add_pairs(gx_boolean *b, uint32_t first, const gx_sdm *sdm, gx_error *err)
{
    bool good = true;
    for (uint32_t before = first, i = first + 1; i < b->n_scored && good; ++i) {
        const gx_scored_word x = b->scored[before], y = b->scored[i];
        if (y.position == x.position) /* of several words at one position the first stands for them */
            continue;
        if (b->n_phrases > 2 * GX_MAX_TERMS)
            return gx_fail(err, GX_EUSAGE, "sdm: the query has more than %u pairs; shorten it", GX_MAX_TERMS);
        if (sdm->ordered > 0 && y.position - x.position <= GX_MAX_OFFSET)
            good = add_pair(b, &x, &y, GX_PHRASE_WORDS, sdm->ordered);
        if (sdm->unordered > 0)
            good = good && add_pair(b, &x, &y, GX_PHRASE_NEAR, sdm->unordered);
        before = i;
    }
    return good ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory for the pairs of a query");
}
