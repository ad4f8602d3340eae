#include "index/convert/impacts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "engine/text/json_text.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"
#include "index/write/quantizer.h"

/* A parameter of a model: its place in gx_impact_options, its default, and the least and the
 * greatest value. */
typedef struct parameter {
    const char *name; /* NULL: the model has no more */
    size_t at;
    double usual, least, most;
} parameter;

#define PARAMETER(name, usual, least, most)                                                                            \
    {                                                                                                                  \
#name, offsetof(gx_impact_options, name), usual, least, most                                                   \
    }

static const struct model {
    const char *name;
    parameter parameters[4];
} models[GX_N_IMPACT_MODELS] = {
    [GX_IMPACTS_KEEP] = {"keep", {{0}}},
    [GX_IMPACTS_BM25] = {"bm25", {PARAMETER(k1, .9, 0, 1e6), PARAMETER(b, .4, 0, 1)}},
    [GX_IMPACTS_BM25L] = {"bm25l", {PARAMETER(k1, 1.2, 0, 1e6), PARAMETER(b, .75, 0, 1), PARAMETER(delta, .5, 0, 1e6)}},
    [GX_IMPACTS_DPH] = {"dph", {{0}}},
    [GX_IMPACTS_QL] = {"ql", {PARAMETER(mu, 1000, 1e-6, 1e12)}},
    [GX_IMPACTS_PL2] = {"pl2", {PARAMETER(c, 1, 1e-6, 1e6)}},
};

static double *value_of(gx_impact_options *o, const parameter *p)
{
    return (double *)(void *)((char *)o + p->at);
}

/* ---- options ---- */

/* One of the parameters "name=value" behind the model's name. */
static gx_status parse_parameter(gx_impact_options *o, const char *text, const char *p, size_t n, gx_error *err)
{
    const char *equals = memchr(p, '=', n);
    const parameter *known = models[o->model].parameters;
    const size_t name = equals ? (size_t)(equals - p) : n;
    while (known->name && (strlen(known->name) != name || memcmp(known->name, p, name) != 0))
        ++known;
    if (!known->name)
        return gx_fail(err, GX_EUSAGE, "impacts '%s': %s has no parameter '%.*s'", text, models[o->model].name,
                       (int)(name < 80 ? name : 80), p);
    if (!equals || gx_parse_float(equals + 1, n - name - 1, value_of(o, known)))
        return gx_fail(err, GX_EUSAGE, "impacts '%s': %s needs a number, as in %s=%g", text, known->name, known->name,
                       known->usual);
    return GX_OK;
}

gx_status gx_impact_options_parse(gx_impact_options *out, const char *text, gx_error *err)
{
    gx_impact_options o = GX_IMPACT_OPTIONS;
    const size_t name = strcspn(text, ":");
    o.bits = out->bits;
    o.list_units = out->list_units;
    for (int m = GX_IMPACTS_KEEP + 1; m < GX_N_IMPACT_MODELS; ++m)
        if (strlen(models[m].name) == name && memcmp(models[m].name, text, name) == 0)
            o.model = (gx_impact_model)m;
    if (o.model == GX_IMPACTS_KEEP)
        return gx_fail(err, GX_EUSAGE, "impacts '%s': it is none of bm25, bm25l, dph, ql and pl2", text);
    for (const char *p = text[name] ? text + name + 1 : NULL; p;) {
        const size_t n = strcspn(p, ",");
        const gx_status st = parse_parameter(&o, text, p, n, err);
        if (st != GX_OK)
            return st;
        p = p[n] ? p + n + 1 : NULL;
    }
    *out = o;
    return GX_OK;
}

gx_status gx_impact_options_complete(gx_impact_options *out, const gx_impact_options *given, const gx_index *ix,
                                     gx_error *err)
{
    gx_impact_options o = *given;
    if ((unsigned)o.model >= GX_N_IMPACT_MODELS)
        return gx_fail(err, GX_EUSAGE, "impacts of model %d do not exist", (int)o.model);
    o.bits = o.bits ? o.bits : GX_DEFAULT_IMPACT_BITS;
    if (o.bits < GX_MIN_IMPACT_BITS || o.bits > GX_MAX_IMPACT_BITS)
        return gx_fail(err, GX_EUSAGE, "impacts of %u bits; it must be %u to %u", o.bits, GX_MIN_IMPACT_BITS,
                       GX_MAX_IMPACT_BITS);
    for (const parameter *p = models[o.model].parameters; p->name; ++p) {
        double *x = value_of(&o, p);
        *x = isnan(*x) ? p->usual : *x;
        if (!(*x >= p->least && *x <= p->most))
            return gx_fail(err, GX_EUSAGE, "%s of %s is %g; it must lie between %g and %g", p->name,
                           models[o.model].name, *x, p->least, p->most);
    }
    if (o.model != GX_IMPACTS_KEEP && ix->impacts)
        return gx_fail(err, GX_EUSAGE, "%s holds impacts already, and no term frequencies of which %s could be made",
                       ix->path, models[o.model].name);
    *out = o;
    return GX_OK;
}

/* ---- scores ---- */

/* What a formula takes. */
typedef struct posting {
    double tf, dl, avgdl, n_docs, df, cf, n_tokens;
} posting;

static double bm25(const gx_impact_options *o, const posting *p)
{
    const double idf = log(1 + (p->n_docs - p->df + .5) / (p->df + .5));
    return idf * p->tf / (p->tf + o->k1 * (1 - o->b + o->b * p->dl / p->avgdl));
}

static double bm25l(const gx_impact_options *o, const posting *p)
{
    const double c = p->tf / (1 - o->b + o->b * p->dl / p->avgdl);
    return log((p->n_docs + 1) / (p->df + .5)) * (o->k1 + 1) * (c + o->delta) / (o->k1 + c + o->delta);
}

static double dph(const gx_impact_options *o, const posting *p)
{
    (void)o;
    const double f = p->tf < p->dl ? p->tf / p->dl : .99999; /* of a document of one term only, 1 would score 0 */
    const double information = p->tf * log2(p->tf * p->avgdl / p->dl * (p->n_docs / p->cf));
    return (1 - f) * (1 - f) / (p->tf + 1) * (information + .5 * log2(2 * M_PI * p->tf * (1 - f)));
}

static double ql(const gx_impact_options *o, const posting *p)
{
    return log(1 + p->tf / (o->mu * (p->cf / p->n_tokens))) + log(o->mu / (p->dl + o->mu));
}

static double pl2(const gx_impact_options *o, const posting *p)
{
    const double t = p->tf * log2(1 + o->c * p->avgdl / p->dl), l = p->cf / p->n_docs;
    return (t * log2(t / l) + (l - t) * M_LOG2E + .5 * log2(2 * M_PI * t)) / (t + 1);
}

void gx_impact_scores(const gx_impact_options *o, const gx_index *ix, uint64_t cf, uint32_t df, const uint32_t *docids,
                      const uint32_t *tfs, double *scores)
{
    static double (*const formulas[])(const gx_impact_options *, const posting *) = {
        [GX_IMPACTS_BM25] = bm25, [GX_IMPACTS_BM25L] = bm25l, [GX_IMPACTS_DPH] = dph,
        [GX_IMPACTS_QL] = ql,     [GX_IMPACTS_PL2] = pl2,
    };
    posting p = {.avgdl = ix->avgdl,
                 .n_docs = ix->n_docs,
                 .df = df,
                 .cf = (double)cf,
                 .n_tokens = ix->n_tokens ? (double)ix->n_tokens : 1};
    for (uint32_t i = 0; i < df; ++i) {
        const uint32_t dl = gx_index_length(ix, docids[i]);
        p.tf = tfs[i];
        p.dl = dl ? dl : 1; /* imported lengths may be 0 */
        const double x = formulas[o->model](o, &p);
        scores[i] = x > 0 ? x : 0;
    }
}

/* ---- META ---- */

char *gx_impact_meta(const gx_impact_options *o, const gx_index *ix)
{
    gx_impact_options own = *o;
    json_t *root = gx_json_load(ix->meta, ix->meta_len, 0, NULL);
    json_t *impacts = json_pack("{s:s, s:i, s:s}", "of", models[o->model].name, "bits", (int)o->bits, "scale",
                                o->list_units ? "list" : "collection");
    for (const parameter *p = models[o->model].parameters; impacts && p->name; ++p)
        json_object_set_new(impacts, p->name, json_real(*value_of(&own, p)));
    char *text = NULL;
    if (root && impacts && json_object_set(root, "impacts", impacts) == 0)
        text = gx_json_dump(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(impacts);
    json_decref(root);
    return text;
}
