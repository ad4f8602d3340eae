#include "tests/support/query_fixture.h"

#include <math.h>
#include <unistd.h>

#include "codecs/auto_codec.h"
#include "engine/device.h"
#include "tests/support/test.h"

static char dir[] = "/tmp/gpuidx-test-query-XXXXXX";

int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

/* ---- settings ---- */

uint64_t test_seed(void)
{
    const char *s = getenv("GX_TEST_SEED");
    return s ? strtoull(s, NULL, 0) : 20240611;
}

uint32_t env_uint(const char *name, uint32_t otherwise)
{
    const char *s = getenv(name);
    return s ? (uint32_t)strtoul(s, NULL, 0) : otherwise;
}

uint32_t ding2009_max_k(void)
{
    return env_uint("GX_TEST_NAMED_K", UINT32_MAX);
}

uint32_t min_cases(void)
{
    return env_uint("GX_TEST_CASES", 20000);
}

/* ---- a collection, its file and an engine on it ---- */

bool open_engine(fixture *f, const engine_row *row, uint64_t map_memory)
{
    gx_error err = {0};
    gx_engine_options opt = GX_ENGINE_OPTIONS;
    opt.kind = row->kind;
    opt.map_memory = map_memory;
    opt.n_devices = row->n_devices;
    for (uint32_t i = 0; i < row->n_devices; ++i)
        opt.devices[i] = (int)i;
    if (row->cpu)
        setenv("GX_CPU", row->cpu, 1);
    const gx_status st = gx_engine_open(&f->en, f->ix, &opt, &err);
    unsetenv("GX_CPU");
    gx_device *gpus = NULL;
    uint32_t n_gpus = 0;
    const bool usable = st == GX_ENOGPU && gx_devices(&gpus, &n_gpus, NULL) == GX_OK && gpus[0].usable &&
                        n_gpus >= row->n_devices;
    free(gpus);
    if ((st == GX_ENOGPU && !usable) || (row->cpu && st == GX_EUSAGE))
        return false;
    if (st != GX_OK || gx_session_open(&f->s, f->en, &err) != GX_OK)
        fail_msg("%s: %s", row->name, err.text);
    return true;
}

void open_fixture(fixture *f, gen_collection *c, const gx_codec *docids, const gx_codec *tfs)
{
    gx_error err = {0};
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/x.gx", dir);
    memset(f, 0, sizeof *f);
    f->docids = docids;
    f->tfs = tfs;
    f->c = c;
    if (gen_write(f->c, path, docids, tfs, &err) != GX_OK || gx_index_open(&f->ix, path, NULL, &err) != GX_OK)
        fail_msg("seed %llu: %s", (unsigned long long)c->seed, err.text);
    unlink(path);
}

void open_collection(fixture *f, uint64_t seed, gen_shape shape, uint32_t n_docs, uint32_t n_terms,
                     const gx_codec *docids, const gx_codec *tfs)
{
    open_fixture(f, gen_open(seed, shape, n_docs, n_terms), docids, tfs);
}

void close_engine(fixture *f)
{
    gx_session_close(f->s);
    gx_engine_close(f->en);
    f->s = NULL;
    f->en = NULL;
}

void close_collection(fixture *f)
{
    close_engine(f);
    gx_index_close(f->ix);
    gen_close(f->c);
}

/* ---- random choices ---- */

const gx_codec *pick_codec(uint32_t i)
{
    uint32_t n = 0;
    while (gx_codecs[n])
        ++n;
    return i % (n + 1) < n ? gx_codecs[i % (n + 1)] : &gx_codec_auto;
}

static void add_word(test_query *t, size_t *len, const char *word)
{
    *len += (size_t)snprintf(t->text + *len, sizeof t->text - *len, "%s%s", *len ? " " : "", word);
}

void make_query(test_query *t, gen_rng *r, const gen_collection *c, uint32_t max_words)
{
    size_t len = 0;
    char word[16];
    memset(t, 0, sizeof *t);
    t->q.terms = t->terms;
    t->q.qtfs = t->qtfs;
    for (uint32_t n = gen_below(r, 40) ? 1 + gen_below(r, max_words) : 0; n; --n) {
        if (gen_below(r, 25) == 0) {
            snprintf(word, sizeof word, "z%u", t->q.n_unknown++);
            add_word(t, &len, word);
            continue;
        }
        const uint32_t term = gen_below(r, gen_below(r, 4) ? c->n_terms : 3);
        uint32_t i = 0;
        while (i < t->q.n_terms && t->terms[i] != term)
            ++i;
        t->terms[i] = term;
        t->qtfs[i] += 1;
        t->q.n_terms += i == t->q.n_terms;
        gen_term_name(term, word);
        add_word(t, &len, word);
    }
}

/* ---- the comparison ---- */

void check_answer(const fixture *f, const engine_row *row, const test_query *t, const gx_query_options *opt,
                  const oracle_answer *want, engine_answer got)
{
    const uint32_t *const docids = got.docids, n_hits = got.n_hits;
    const float *const scores = got.scores;
    const char *wrong = NULL;
    uint32_t at = 0;
    if (n_hits != want->n_hits)
        wrong = "number of hits";
    for (uint32_t i = 0; i < want->n_hits && !wrong; ++i) {
        const float score = ldexpf((float)want->hits[i].fixed, -want->exponent);
        const double slack =
            1e-5 * fmax(1, want->hits[i].exact) + t->q.n_terms * exp2(-want->exponent); /* a step a term */
        at = i;
        if (docids[i] != want->hits[i].docid)
            wrong = "docid";
        else if (memcmp(&score, &scores[i], sizeof score) != 0)
            wrong = "score's bits";
        else if (fabs(scores[i] - want->hits[i].exact) > slack)
            wrong = "score, against the exact one";
        else if (fabs(scores[i] - want->exact[i]) > slack)
            wrong = "score, against the exact one at this rank";
    }
    if (wrong)
        fail_msg("%s: wrong %s at rank %u (%u hits, %u wanted; there %u %.9g, wanted %u %.9g, exact %.9g): collection "
                 "seed %llu, shape %d, %u documents, %u terms, "
                 "codecs %s %s; %s, op %d preset %s k %u k1 %g b %g prune %d algorithm %d recursion %u; query '%.300s'",
                 row->name, wrong, at, n_hits, want->n_hits, docids[at], scores[at], want->hits[at].docid,
                 ldexpf((float)want->hits[at].fixed, -want->exponent), want->hits[at].exact,
                 (unsigned long long)f->c->seed, f->c->shape, f->c->n_docs, f->c->n_terms, f->docids->name,
                 f->tfs->name, t->q.mask ? "masked" : "no mask", opt->op, gx_preset_name(opt->preset), opt->k, opt->k1,
                 opt->b, opt->prune, opt->algorithm, opt->recursion, t->text);
}

const search_variant ways[N_SEARCH_VARIANTS] = {
    {true, false, GX_ALGORITHM_AUTO}, {false, false, GX_ALGORITHM_AUTO}, {true, true, GX_ALGORITHM_AUTO},
    {true, false, GX_ALGORITHM_PMF},  {true, false, GX_ALGORITHM_TAAT},  {true, false, GX_ALGORITHM_BLOCK_MAX},
    {true, false, GX_ALGORITHM_DAAT},
};
