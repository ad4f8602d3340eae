#include "query/score/bm25.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Never negative: the 1 inside the logarithm sees to that. */
static double idf_lucene(double n_docs, double df)
{
    return log(1.0 + (n_docs - df + 0.5) / (df + 0.5));
}

static double idf_pisa(double n_docs, double df)
{
    return fmax(1e-6, log((n_docs - df + 0.5) / (df + 0.5)));
}

static double idf_atire(double n_docs, double df)
{
    return log(n_docs / df);
}

static double idf_robertson(double n_docs, double df)
{
    return fmax(0.0, log((n_docs - df + 0.5) / (df + 0.5)));
}

static double idf_none(double n_docs, double df)
{
    (void)n_docs, (void)df;
    return 1;
}

#define LUCENE_FORMULA "ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * dl / avgdl))"

static const gx_preset_info presets[GX_N_PRESETS] = {
    [GX_BM25] = {"bm25", LUCENE_FORMULA, 0.9f, 0.4f, idf_lucene, false, false, false},
    [GX_BM25_LUCENE] = {"bm25:lucene", LUCENE_FORMULA, 1.2f, 0.75f, idf_lucene, false, false, false},
    [GX_BM25_PISA] = {"bm25:pisa",
                      "max(1e-6, ln((N - df + 0.5) / (df + 0.5))) * (k1 + 1) * tf / (tf + k1 * (1 - b + b * dl / "
                      "avgdl))",
                      0.9f, 0.4f, idf_pisa, true, false, false},
    [GX_BM25_ATIRE] = {"bm25:atire", "ln(N / df) * (k1 + 1) * tf / (tf + k1 * (1 - b + b * dl / avgdl))", 0.9f, 0.4f,
                       idf_atire, true, false, false},
    [GX_BM25_ROBERTSON] = {"bm25:robertson",
                           "max(0, ln((N - df + 0.5) / (df + 0.5))) * (k1 + 1) * tf / (tf + k1 * (1 - b + b * dl / "
                           "avgdl))",
                           1.2f, 0.75f, idf_robertson, true, false, false},
    [GX_BM25_LUCENE_LOSSY] = {"bm25:lucene-lossy", LUCENE_FORMULA ", dl in Lucene's one-byte code", 0.9f, 0.4f,
                              idf_lucene, false, true, false},
    [GX_IMPACT] = {"impact", "tf * unit", 0, 0, idf_none, false, false, true},
};

const gx_preset_info *gx_preset_get(gx_preset p)
{
    assert((unsigned)p < GX_N_PRESETS);
    return &presets[p];
}

bool gx_preset_find(const char *name, gx_preset *out)
{
    for (int p = 0; p < GX_N_PRESETS; ++p) {
        if (strcmp(presets[p].name, name) == 0) {
            *out = (gx_preset)p;
            return true;
        }
    }
    return false;
}

const char *gx_preset_name(gx_preset p)
{
    return (unsigned)p < GX_N_PRESETS ? presets[p].name : "unknown preset";
}

void gx_preset_parameters(gx_preset p, float *k1, float *b)
{
    *k1 = presets[p].linear ? NAN : presets[p].k1;
    *b = presets[p].linear ? NAN : presets[p].b;
}
