/* bench_parts: what the parts of a collection cost: the same generated documents
 * (tools/bench/data/collection.h) as one index, as collections of several parts, and with some deleted
 * against a fresh build of the others. Every answer is compared with that of the one index.
 *
 *   bench_parts [--engine=gpu|cpu] [--join=auto|never|always] [--docs=N] [--terms=N] [--queries=N]
 *               [--parts=8,32] [--deleted=PERCENT] [--sessions=N] [--batch=N] [--runs=N]
 *               [--cpu-check=N] [--op=or|and|and-or] [--k=N] [--gpus=N] [--spread=copies|parts] DIR
 *
 * plans: plans that are made beforehand, their answers as keys; text: gx_search of queries as
 * text. The one file is searched on the first GPU, by --sessions threads; the parts are spread over
 * the first --gpus, with as many threads for each. --runs=0 writes the indexes to DIR and measures
 * nothing. They are removed at the end.
 */
#include <getopt.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/parallel.h"
#include "index/write/writer.h"
#include "query/engine/engine.h"
#include "query/engine/session.h"
#include "tools/bench/data/collection.h"

enum { WAVE = 64, MOST_PARTS = 4096, MOST_COUNTS = 8 };

typedef struct options {
    gx_synth_options synth;
    gx_engine_kind engine;
    gx_join join;
    gx_op op;
    uint32_t parts[MOST_COUNTS], n_counts, deleted, sessions, batch, runs, cpu_check, k, gpus;
    gx_spread spread;
    const char *dir;
} options;

typedef struct answers {
    uint32_t *docids, *n;
    double *scores;
} answers;

typedef struct bench {
    const options *o;
    gx_synth *s;
    uint32_t n_threads, n;
    uint64_t *kept; /* a bit a document */
    char (*texts)[64];
    gx_query *queries;
} bench;

static void check(gx_status st, const char *what, const gx_error *err)
{
    if (st == GX_OK)
        return;
    fprintf(stderr, "bench_parts: %s: %s\n", what, err->text);
    exit(st == GX_ENOGPU ? 77 : 1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_deleted(const options *o, uint32_t docid)
{
    return (docid * 2654435761u >> 8) % 100 < o->deleted;
}

/* ---- indexes ---- */

/* Documents [begin, end) of the collection, of those that are kept, to be written. */
typedef struct piece {
    const bench *b;
    uint32_t begin, end, first_term;
    const uint32_t *rank; /* [n_docs] their numbers among the kept, or NULL: all are */
    gx_list_encoder lists[WAVE];
} piece;

static void encode_term(void *user, uint32_t number)
{
    piece *p = user;
    const gx_index *ix = &p->b->s->ix;
    const uint32_t term = p->first_term + number;
    const gx_list l = gx_index_list(ix, term);
    uint32_t *docids = malloc((l.df + GX_MAX_BLOCK) * 2ull * sizeof *docids), *tfs = docids + l.df + GX_MAX_BLOCK;
    uint32_t n = 0, j = 0;
    for (uint32_t hi = l.n_blocks; hi - j > 1;) { /* the last block that begins at or before the piece */
        const uint32_t mid = j + (hi - j) / 2;
        if (l.heads[mid] <= p->begin)
            j = mid;
        else
            hi = mid;
    }
    for (; j < l.n_blocks && l.heads[j] < p->end; ++j) {
        uint32_t d[GX_MAX_BLOCK], t[GX_MAX_BLOCK];
        const uint32_t here = gx_list_decode_docids(&l, j, d);
        gx_list_decode_tfs(&l, j, t);
        for (uint32_t i = 0; i < here; ++i) {
            if (d[i] < p->begin || d[i] >= p->end || (p->rank && !(p->b->kept[d[i] / 64] >> d[i] % 64 & 1)))
                continue;
            docids[n] = p->rank ? p->rank[d[i]] : d[i] - p->begin;
            tfs[n++] = t[i];
        }
    }
    char name[16];
    gx_error err;
    const gx_term_postings list = {
        .term = name, .len = (size_t)sprintf(name, "%06u", term), .df = n, .docids = docids, .tfs = tfs};
    if (n)
        check(gx_list_encoder_add(&p->lists[number], &list, &err), "encode", &err);
    free(docids);
}

static void write_index(const bench *b, const char *path, uint32_t begin, uint32_t end, const uint32_t *rank)
{
    const gx_index *ix = &b->s->ix;
    gx_writer_options o = GX_WRITER_OPTIONS;
    gx_writer *w;
    gx_error err;
    piece *p = calloc(1, sizeof *p);
    *p = (piece){.b = b, .begin = begin, .end = end, .rank = rank};
    o.force = true;
    o.docids = o.tfs = b->o->synth.codec;
    check(gx_writer_open(&w, path, &o, &err), "write", &err);
    for (uint32_t d = begin; d < end; ++d) {
        char id[16];
        if (rank && !(b->kept[d / 64] >> d % 64 & 1))
            continue;
        const gx_document doc = {.id = id, .id_len = (size_t)sprintf(id, "%09u", d)};
        check(gx_writer_add_document(w, &doc, ix->doc_lens[d], &err), "write", &err);
    }
    for (uint32_t i = 0; i < WAVE; ++i)
        gx_writer_open_encoded(w, &p->lists[i]);
    for (; p->first_term < ix->n_terms; p->first_term += WAVE) {
        const uint32_t left = ix->n_terms - p->first_term, n = left < WAVE ? left : WAVE;
        gx_parallel_for(b->n_threads, n, encode_term, p);
        for (uint32_t i = 0; i < n; ++i)
            check(gx_writer_add_encoded(w, &p->lists[i], &err), "write", &err);
    }
    check(gx_writer_finish_with(w, NULL, &err), "write", &err);
    gx_writer_close(w);
    for (uint32_t i = 0; i < WAVE; ++i)
        gx_list_encoder_close(&p->lists[i]);
    free(p);
}

/* A collection of n parts at `path`. */
static void write_parts(const bench *b, const char *path, uint32_t n)
{
    const uint32_t n_docs = b->s->ix.n_docs;
    char *paths[MOST_PARTS] = {NULL};
    gx_error err = {0};
    for (uint32_t i = 0; i < n; ++i) {
        if (asprintf(&paths[i], "%s.%u.gx", path, i) < 0)
            exit(1);
        write_index(b, paths[i], (uint32_t)((uint64_t)n_docs * i / n), (uint32_t)((uint64_t)n_docs * (i + 1) / n),
                    NULL);
    }
    check(gx_collect(path, (const char *const *)paths, n, &err), "collect", &err);
    for (uint32_t i = 0; i < n; ++i) {
        unlink(paths[i]);
        free(paths[i]);
    }
}

static void delete_some(const bench *b, const char *path)
{
    gx_collection *c;
    gx_error err = {0};
    check(gx_collection_open(&c, path, NULL, &err), "open", &err);
    for (uint32_t d = 0; d < b->s->ix.n_docs; ++d) {
        char id[16];
        bool found;
        if (is_deleted(b->o, d))
            check(gx_collection_delete(c, id, (size_t)sprintf(id, "%09u", d), &found, &err), "delete", &err);
    }
    check(gx_collection_commit(c, &err), "commit", &err);
    gx_collection_close(c);
}

/* ---- measuring ---- */

typedef struct worker {
    const bench *b;
    gx_session *session;
    gx_plan *plans;
    gx_hits *hits;
    uint32_t *docids, *n_hits;
    float *scores;
    bool texts;
    pthread_t thread;
} worker;

static gx_query_options query_options(const options *o)
{
    gx_query_options q = GX_QUERY_OPTIONS;
    q.k = o->k;
    q.op = o->op;
    return q;
}

static void *work(void *arg)
{
    worker *w = arg;
    const options *o = w->b->o;
    const gx_query_options q = query_options(o);
    gx_error err = {0};
    for (uint32_t r = 0; r < o->runs; ++r)
        for (uint32_t i = 0; i < w->b->n; i += o->batch) {
            const uint32_t n = w->b->n - i < o->batch ? w->b->n - i : o->batch;
            const gx_results out = {sizeof out, w->docids, w->scores, w->n_hits, NULL, NULL};
            check(w->texts ? gx_search(w->session, w->b->queries + i, n, &q, &out, &err)
                           : gx_session_run(w->session, w->plans + i, n, w->hits + i, &err),
                  "search", &err);
        }
    return NULL;
}

static double run_workers(worker *workers, uint32_t n, bool texts)
{
    for (uint32_t i = 0; i < n; ++i)
        workers[i].texts = texts;
    const double t = now();
    for (uint32_t i = 0; i < n; ++i)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (uint32_t i = 0; i < n; ++i)
        pthread_join(workers[i].thread, NULL);
    return (double)n * workers->b->n * workers->b->o->runs / (now() - t);
}

static void measure_speed(const bench *b, gx_engine *en, uint32_t n_sessions, double speed[2])
{
    const options *o = b->o;
    const gx_query_options q = query_options(o);
    worker *workers = calloc(n_sessions, sizeof *workers);
    gx_error err = {0};
    for (uint32_t i = 0; i < n_sessions; ++i) {
        worker *w = &workers[i];
        *w = (worker){.b = b,
                      .plans = calloc(b->n, sizeof *w->plans),
                      .hits = calloc(b->n, sizeof *w->hits),
                      .docids = malloc((size_t)o->batch * o->k * sizeof *w->docids),
                      .n_hits = malloc(o->batch * sizeof *w->n_hits),
                      .scores = malloc((size_t)o->batch * o->k * sizeof *w->scores)};
        check(gx_session_open(&w->session, en, &err), "session", &err);
        for (uint32_t j = 0; j < b->n; ++j) {
            check(gx_engine_plan(&w->plans[j], en, &b->queries[j], &q, &err), "plan", &err);
            w->hits[j].keys = malloc(w->plans[j].k * sizeof(uint64_t));
        }
    }
    run_workers(workers, n_sessions, false); /* warm */
    speed[0] = run_workers(workers, n_sessions, false);
    speed[1] = run_workers(workers, n_sessions, true);
    for (uint32_t i = 0; i < n_sessions; ++i) {
        for (uint32_t j = 0; j < b->n; ++j) {
            gx_plan_free(&workers[i].plans[j]);
            free(workers[i].hits[j].keys);
        }
        gx_session_close(workers[i].session);
        free(workers[i].plans);
        free(workers[i].hits);
        free(workers[i].docids);
        free(workers[i].n_hits);
        free(workers[i].scores);
    }
    free(workers);
}

static answers answer(const bench *b, gx_engine *en, uint32_t n)
{
    const options *o = b->o;
    const gx_query_options q = query_options(o);
    const answers a = {calloc((size_t)n * o->k, sizeof *a.docids), calloc(n, sizeof *a.n),
                       calloc((size_t)n * o->k, sizeof *a.scores)};
    const gx_results out = {sizeof out, a.docids, NULL, a.n, NULL, a.scores};
    gx_session *session;
    gx_error err = {0};
    check(gx_session_open(&session, en, &err), "session", &err);
    check(gx_search(session, b->queries, n, &q, &out, &err), "search", &err);
    gx_session_close(session);
    return a;
}

static uint32_t count_different(const answers *a, const answers *other, uint32_t n, uint32_t k)
{
    uint32_t different = 0;
    for (uint32_t i = 0; i < n; ++i)
        different += a->n[i] != other->n[i] ||
                     memcmp(a->docids + (size_t)i * k, other->docids + (size_t)i * k, a->n[i] * sizeof *a->docids) ||
                     memcmp(a->scores + (size_t)i * k, other->scores + (size_t)i * k, a->n[i] * sizeof *a->scores);
    return different;
}

static void free_answers(answers *a)
{
    free(a->docids);
    free(a->n);
    free(a->scores);
}

/* Open `path`, compare its answers with *want, or make that; print its speed, against that of
 * `base` unless this is the base. Returns false where answers differ. */
static bool measure(const bench *b, const char *name, const char *path, answers *want, double base[2])
{
    const options *o = b->o;
    gx_engine_options eo = GX_ENGINE_OPTIONS, cpu = GX_ENGINE_OPTIONS;
    gx_index *ix;
    gx_engine *en;
    gx_error err = {0};
    double t = now(), speed[2];
    uint32_t different = 0;
    eo.kind = o->engine;
    eo.join = o->join;
    const uint32_t n_gpus = want->docids ? o->gpus : 1;
    for (uint32_t i = 0; i < n_gpus; ++i)
        eo.devices[eo.n_devices++] = (int)i;
    if (n_gpus > 1)
        eo.spread = o->spread;
    cpu.kind = GX_ENGINE_CPU;
    check(gx_index_open(&ix, path, NULL, &err), "open", &err);
    check(gx_engine_open(&en, ix, &eo, &err), "engine", &err);
    const double open_s = now() - t;
    answers got = answer(b, en, b->n);
    if (!want->docids) {
        const uint32_t n = o->cpu_check < b->n ? o->cpu_check : b->n;
        gx_engine *witness;
        *want = got;
        check(gx_engine_open(&witness, ix, &cpu, &err), "engine", &err);
        answers expected = answer(b, witness, n);
        different = count_different(&expected, want, n, o->k);
        free_answers(&expected);
        gx_engine_close(witness);
        measure_speed(b, en, o->sessions, base);
        memcpy(speed, base, sizeof speed);
    } else {
        different = count_different(want, &got, b->n, o->k);
        free_answers(&got);
        measure_speed(b, en, o->sessions * n_gpus, speed);
    }
    printf("%-28s opened in %6.2f s  plans %9.0f q/s (%.3f)  text %9.0f q/s (%.3f)  %u of %u answers differ\n", name,
           open_s, speed[0], speed[0] / base[0], speed[1], speed[1] / base[1], different, b->n);
    fflush(stdout);
    gx_engine_close(en);
    gx_index_close(ix);
    return different == 0;
}

/* ---- the program ---- */

/* Where the value of a flag that is a number goes; NULL: it is none. */
static uint32_t *number_flag(options *o, int c)
{
    switch (c) {
    case 'd':
        return &o->synth.n_docs;
    case 't':
        return &o->synth.n_terms;
    case 'q':
        return &o->synth.n_queries;
    case 'x':
        return &o->deleted;
    case 's':
        return &o->sessions;
    case 'b':
        return &o->batch;
    case 'r':
        return &o->runs;
    case 'u':
        return &o->cpu_check;
    case 'k':
        return &o->k;
    case 'g':
        return &o->gpus;
    default:
        return NULL;
    }
}

static options parse(int argc, char **argv)
{
    static const struct option longs[] = {
        {"engine", 1, 0, 'e'},  {"join", 1, 0, 'j'},  {"docs", 1, 0, 'd'},      {"terms", 1, 0, 't'},
        {"queries", 1, 0, 'q'}, {"parts", 1, 0, 'p'}, {"deleted", 1, 0, 'x'},   {"sessions", 1, 0, 's'},
        {"batch", 1, 0, 'b'},   {"runs", 1, 0, 'r'},  {"cpu-check", 1, 0, 'u'}, {"op", 1, 0, 'o'},
        {"k", 1, 0, 'k'},       {"gpus", 1, 0, 'g'},  {"spread", 1, 0, 'y'},    {0, 0, 0, 0},
    };
    options o = {.synth = GX_SYNTH_OPTIONS,
                 .engine = GX_ENGINE_GPU,
                 .parts = {8, 32},
                 .n_counts = 2,
                 .deleted = 10,
                 .sessions = 8,
                 .batch = 1024,
                 .runs = 8,
                 .cpu_check = 64,
                 .k = 10,
                 .gpus = 1};
    o.synth.codec = gx_codec_by_name("gpubp128");
    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        uint32_t *number = number_flag(&o, c);
        if (number) {
            *number = (uint32_t)strtoul(optarg, NULL, 0);
            continue;
        }
        switch (c) {
        case 'e':
            o.engine = strcmp(optarg, "cpu") ? GX_ENGINE_GPU : GX_ENGINE_CPU;
            break;
        case 'j':
            o.join = *optarg == 'n' ? GX_JOIN_NEVER : strcmp(optarg, "always") ? GX_JOIN_AUTO : GX_JOIN_ALWAYS;
            break;
        case 'p':
            o.n_counts = 0;
            for (char *p = optarg; p && *p && o.n_counts < MOST_COUNTS; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
                o.parts[o.n_counts++] = (uint32_t)atoi(p);
            break;
        case 'o':
            o.op = strcmp(optarg, "or") == 0 ? GX_OP_OR : strcmp(optarg, "and") == 0 ? GX_OP_AND : GX_OP_AND_OR;
            break;
        case 'y':
            o.spread = *optarg == 'p' ? GX_SPREAD_PARTS : GX_SPREAD_COPIES;
            break;
        default:
            exit(2);
        }
    }
    if (optind + 1 != argc || o.sessions == 0 || o.batch == 0 || o.k == 0 || o.gpus - 1 >= GX_MAX_DEVICES) {
        fprintf(stderr, "usage: bench_parts [OPTIONS] DIR\n");
        exit(2);
    }
    o.dir = argv[optind];
    return o;
}

static void write_queries(bench *b)
{
    b->n = b->s->n_queries;
    b->texts = calloc(b->n, sizeof *b->texts);
    b->queries = calloc(b->n, sizeof *b->queries);
    for (uint32_t i = 0; i < b->n; ++i) {
        const gx_synth_query *q = &b->s->queries[i];
        size_t len = 0;
        for (uint32_t t = 0; t < q->n; ++t)
            len += (size_t)sprintf(b->texts[i] + len, "%06u ", q->terms[t]);
        b->queries[i] = (gx_query){.size = sizeof *b->queries, .text = b->texts[i], .len = len};
    }
}

static void remove_at(const char *path)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command))
        fprintf(stderr, "bench_parts: cannot remove %s\n", path);
}

/* One part of which some documents are deleted, and a build of the others. */
static bool measure_deletes(bench *b)
{
    const uint32_t n_docs = b->s->ix.n_docs;
    char fresh[512], some[512];
    uint32_t *rank = malloc((n_docs + 1ull) * sizeof *rank), n = 0;
    answers want = {0};
    double base[2], t = now();
    b->kept = calloc(n_docs / 64 + 1, sizeof *b->kept);
    for (uint32_t d = 0; d < n_docs; ++d) {
        rank[d] = n;
        b->kept[d / 64] |= (uint64_t)!is_deleted(b->o, d) << d % 64;
        n += !is_deleted(b->o, d);
    }
    snprintf(fresh, sizeof fresh, "%s/fresh.gx", b->o->dir);
    snprintf(some, sizeof some, "%s/deleted", b->o->dir);
    write_index(b, fresh, 0, n_docs, rank);
    write_parts(b, some, 1);
    delete_some(b, some);
    printf("written and deleted in %.1f s\n", now() - t);
    bool ok = b->o->runs == 0 || measure(b, "a build of what is left", fresh, &want, base);
    ok = b->o->runs == 0 || (measure(b, "one part with deletes", some, &want, base) && ok);
    remove_at(fresh);
    remove_at(some);
    free_answers(&want);
    free(rank);
    free(b->kept);
    return ok;
}

int main(int argc, char **argv)
{
    const options o = parse(argc, argv);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bench b = {.o = &o, .n_threads = processors > 0 ? (uint32_t)processors : 1};
    answers want = {0};
    gx_error err;
    double t = now(), base[2];
    char path[512], name[64];
    check(gx_synth_open(&b.s, &o.synth, &err), "generate", &err);
    write_queries(&b);
    snprintf(path, sizeof path, "%s/whole.gx", o.dir);
    write_index(&b, path, 0, b.s->ix.n_docs, NULL);
    printf("%u documents, %.1f M postings, generated and written in %.1f s\n", b.s->ix.n_docs,
           (double)b.s->ix.n_postings / 1e6, now() - t);
    bool ok = o.runs == 0 || measure(&b, "one file", path, &want, base);
    remove_at(path);
    for (uint32_t i = 0; i < o.n_counts; ++i) {
        snprintf(path, sizeof path, "%s/parts%u", o.dir, o.parts[i]);
        snprintf(name, sizeof name, "%u parts", o.parts[i]);
        t = now();
        write_parts(&b, path, o.parts[i]);
        printf("written in %.1f s\n", now() - t);
        ok = o.runs == 0 || (measure(&b, name, path, &want, base) && ok);
        if (o.runs)
            remove_at(path);
    }
    if (o.deleted)
        ok = measure_deletes(&b) && ok;
    free_answers(&want);
    free(b.texts);
    free(b.queries);
    gx_synth_close(b.s);
    return ok ? 0 : 1;
}
