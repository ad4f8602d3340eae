#include "tools/serve/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/profile.h"
#include "tools/cli/search_flags.h"
#include "tools/serve/metrics.h"
#include "tools/serve/searches.h"

struct entry {
    char *name, *path;
    catalog *of;
    pthread_mutex_t lock; /* of current */
    snapshot *current;
    pthread_mutex_t opening; /* held while a later commit is opened */
    gx_engine_options engine;
    gx_cost_profile *profile;
    dev_t device; /* of the file, where it is one */
    ino_t inode;
    load load;
    char trouble[256]; /* why the last commit could not be opened, told once */
};

struct catalog {
    server *sv;
    entry *entries;
    uint32_t n;
    gx_index_options open;
    gx_engine_kind kind;
    gx_service_options service;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    snapshot *retired;
    bool closing, watching;
    pthread_t watcher;
};

enum { WATCH_MS = 200 };

double serve_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *entry_name(const entry *e)
{
    return e->name;
}

const char *entry_path(const entry *e)
{
    return e->path;
}

/* ---- snapshots ---- */

/* The documents that a token's filter selects. */
struct allowed {
    char *filter;
    uint64_t *words;
    struct allowed *next;
};

static void free_snapshot(snapshot *s)
{
    gx_service_close(s->service);
    for (uint32_t i = 0; i < s->n_idle; ++i)
        gx_session_close(s->idle[i]);
    views_close(s->views);
    gx_engine_close(s->gpu);
    gx_engine_close(s->cpu);
    gx_index_close(s->ix);
    for (struct allowed *a = s->allowed, *next; a; a = next) {
        next = a->next;
        free(a->filter);
        free(a->words);
        free(a);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

load *snapshot_load(const snapshot *s)
{
    return &s->of->load;
}

snapshot *snapshot_hold(snapshot *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

/* The last holder may be a thread of the snapshot's own service, so that the watcher frees it. */
void snapshot_release(snapshot *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    catalog *c = s->of->of;
    pthread_mutex_lock(&c->lock);
    s->next = c->retired;
    c->retired = s;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

static gx_status open_engines(snapshot *s, const snapshot *old, gx_error *err)
{
    entry *e = s->of;
    gx_engine_options options = e->engine;
    const bool again = old && gx_index_commit(s->ix) && gx_index_commit(old->ix);
    options.kind = GX_ENGINE_CPU;
    gx_status st =
        again ? gx_engine_reopen(&s->cpu, old->cpu, s->ix, err) : gx_engine_open(&s->cpu, s->ix, &options, err);
    if (st || e->of->kind == GX_ENGINE_CPU)
        return st;
    options.kind = GX_ENGINE_GPU;
    st = again && old->gpu ? gx_engine_reopen(&s->gpu, old->gpu, s->ix, err)
                           : gx_engine_open(&s->gpu, s->ix, &options, err);
    if (st == GX_OK || e->of->kind == GX_ENGINE_GPU)
        return old ? GX_OK : st; /* once it serves, it goes on with the CPU */
    if (cli_verbose())
        cli_note("%s: the CPU answers all queries: %s", e->name, err->text);
    return GX_OK;
}

/* Take over the index; old may be NULL. */
static gx_status open_snapshot(snapshot **out, entry *e, gx_index *ix, const snapshot *old, gx_error *err)
{
    gx_service_options options = e->of->service;
    snapshot *s = calloc(1, sizeof *s);
    if (!s) {
        gx_index_close(ix);
        *err = (gx_error){GX_ENOMEM, "no memory for an index"};
        return GX_ENOMEM;
    }
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->refs, 1);
    s->ix = ix;
    s->of = e;
    s->opened = serve_clock();
    s->n_docs = gx_index_n_docs(ix);
    s->stats.size = sizeof s->stats;
    gx_index_get_quick_stats(ix, &s->stats);
    gx_status st = open_engines(s, old, err);
    options.cpu = s->cpu;
    options.gpu = s->gpu;
    options.profile = e->profile;
    options.answer = searches_answered;
    if (st == GX_OK)
        st = gx_service_open(&s->service, &options, err);
    if (st != GX_OK)
        free_snapshot(s);
    else
        *out = s;
    return st;
}

gx_status snapshot_session(snapshot *s, gx_session **out, gx_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->n_idle)
        *out = s->idle[--s->n_idle];
    pthread_mutex_unlock(&s->lock);
    if (*out)
        return GX_OK;
    if (s->gpu && gx_session_open(out, s->gpu, err) == GX_OK)
        return GX_OK;
    return gx_session_open(out, s->cpu, err);
}

void snapshot_give_back(snapshot *s, gx_session *session, bool healthy)
{
    pthread_mutex_lock(&s->lock);
    if (healthy && s->n_idle < sizeof s->idle / sizeof *s->idle) {
        s->idle[s->n_idle++] = session;
        session = NULL;
    }
    pthread_mutex_unlock(&s->lock);
    gx_session_close(session);
}

/* The words of a filter, made at its first use. */
static gx_status find_allowed(snapshot *s, const char *filter, const uint64_t **out, gx_error *err)
{
    for (struct allowed *a = s->allowed; a; a = a->next)
        if (strcmp(a->filter, filter) == 0) {
            *out = a->words;
            return GX_OK;
        }
    struct allowed *a = calloc(1, sizeof *a);
    gx_filter *f = NULL;
    gx_status st = GX_ENOMEM;
    if (a && (a->filter = strdup(filter)) && (a->words = calloc(s->n_docs / 64 + 1, sizeof *a->words)))
        st = gx_filter_open(&f, s->ix, filter, strlen(filter), NULL, err);
    else
        *err = (gx_error){GX_ENOMEM, "no memory for a filter"};
    if (st == GX_OK)
        st = gx_filter_evaluate(f, a->words, NULL, err);
    gx_filter_close(f);
    if (st == GX_OK) {
        a->next = s->allowed;
        s->allowed = a;
        *out = a->words;
    } else if (a) {
        free(a->filter);
        free(a->words);
        free(a);
    }
    return st;
}

gx_status snapshot_allows(snapshot *s, const char *filter, uint64_t docid, bool *out, gx_error *err)
{
    const uint64_t *words = NULL;
    *out = true;
    if (!filter)
        return GX_OK;
    pthread_mutex_lock(&s->lock);
    const gx_status st = find_allowed(s, filter, &words, err);
    *out = st == GX_OK && (words[docid / 64] >> (docid % 64) & 1);
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- names ---- */

static entry *find(catalog *c, const char *name)
{
    for (uint32_t i = 0; i < c->n; ++i)
        if (strcmp(c->entries[i].name, name) == 0)
            return &c->entries[i];
    return NULL;
}

snapshot *catalog_get(catalog *c, const char *name)
{
    entry *e = find(c, name);
    if (!e)
        return NULL;
    pthread_mutex_lock(&e->lock);
    snapshot *s = snapshot_hold(e->current);
    pthread_mutex_unlock(&e->lock);
    return s;
}

const char *catalog_name(const catalog *c, uint32_t i)
{
    return i < c->n ? c->entries[i].name : NULL;
}

/* ---- later commits ---- */

static bool file_is_another(const entry *e)
{
    struct stat st;
    return stat(e->path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_dev != e->device || st.st_ino != e->inode);
}

static void remember_file(entry *e)
{
    struct stat st;
    if (stat(e->path, &st) == 0) {
        e->device = st.st_dev;
        e->inode = st.st_ino;
    }
}

/* Tell why a later commit is not served, once. */
static void complain(entry *e, const gx_error *err)
{
    if (strncmp(e->trouble, err->text, sizeof e->trouble - 1) == 0)
        return;
    snprintf(e->trouble, sizeof e->trouble, "%.*s", (int)sizeof e->trouble - 1, err->text);
    cli_warn("%s: the earlier commit is served: %s", e->name, err->text);
}

/* Open the last commit, where it is not that which is served. */
static bool refresh(entry *e)
{
    gx_error err = {0};
    gx_index *ix = NULL;
    snapshot *next = NULL, *old = e->current; /* only this function, under `opening`, changes it */
    const bool many = gx_index_n_parts(old->ix) > 0;
    gx_status st = GX_OK;
    if (many)
        st = gx_index_reopen(&ix, old->ix, &e->of->open, &err);
    else if (file_is_another(e))
        st = gx_index_open(&ix, e->path, &e->of->open, &err);
    if (st == GX_OK && !ix)
        return true;
    if (st == GX_OK && !many)
        remember_file(e);
    if (st == GX_OK)
        st = open_snapshot(&next, e, ix, old, &err);
    if (st != GX_OK) {
        complain(e, &err);
        return false;
    }
    e->trouble[0] = 0;
    pthread_mutex_lock(&e->lock);
    e->current = next;
    pthread_mutex_unlock(&e->lock);
    snapshot_release(old);
    return true;
}

bool catalog_refresh(catalog *c, const char *name)
{
    entry *e = find(c, name);
    if (!e)
        return false;
    pthread_mutex_lock(&e->opening);
    const bool good = refresh(e);
    pthread_mutex_unlock(&e->opening);
    return good;
}

static void free_retired(catalog *c)
{
    pthread_mutex_lock(&c->lock);
    snapshot *s = c->retired;
    c->retired = NULL;
    pthread_mutex_unlock(&c->lock);
    for (snapshot *next; s; s = next) {
        next = s->next;
        free_snapshot(s);
    }
}

static void *watch(void *arg)
{
    catalog *c = arg;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += WATCH_MS * 1000000l;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&c->lock);
        if (!c->closing && !c->retired)
            pthread_cond_timedwait(&c->wake, &c->lock, &until);
        const bool closing = c->closing;
        pthread_mutex_unlock(&c->lock);
        free_retired(c);
        if (closing)
            return NULL;
        for (uint32_t i = 0; i < c->n; ++i)
            catalog_refresh(c, c->entries[i].name);
        metrics_tick(c->sv);
    }
}

/* ---- opening ---- */

/* "NAME=PATH", or a path whose name is that of the file. */
static int read_name(entry *e, const cli_args *a, const char *arg)
{
    const char *equals = strchr(arg, '='), *slash = strrchr(arg, '/');
    if (equals && (!slash || equals < slash)) {
        e->name = strndup(arg, (size_t)(equals - arg));
        e->path = strdup(equals + 1);
    } else {
        const char *base = slash && slash[1] ? slash + 1 : arg;
        e->name = strndup(base, strcspn(base, "./"));
        e->path = strdup(arg);
    }
    if (!e->name || !e->path)
        return cli_fail(GX_ENOMEM, "no memory for the names of indexes");
    const size_t len = strlen(e->name);
    if (len == 0 || len > 100 || e->name[0] == '_' || e->name[0] == '-' || e->name[0] == '.' ||
        strspn(e->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") < len)
        return cli_usage(a,
                         "'%s': a name has 1 to 100 letters, digits, '_', '-' and '.', and begins with a letter or "
                         "digit; write NAME=%s",
                         e->name, e->path);
    if (gx_word_index("v1|status|vector_stores|health|metrics|openapi.json|retrieve|mcp|agents", e->name, len) >= 0)
        return cli_usage(a, "'%s' is a path of the server's own; write NAME=%s with another name", e->name, e->path);
    for (uint32_t i = 0; i < e->of->n; ++i)
        if (strcmp(e->of->entries[i].name, e->name) == 0)
            return cli_usage(a, "'%s' is there twice; write NAME=%s with another name", e->name, e->path);
    return 0;
}

static int open_entry(entry *e, const cli_args *a)
{
    gx_index *ix = NULL;
    gx_error err = {0};
    char *where = NULL;
    int code = cli_open_index(&ix, a, e->path);
    if (code)
        return code;
    remember_file(e);
    if (!(e->profile = malloc(sizeof *e->profile))) {
        gx_index_close(ix);
        return cli_fail(GX_ENOMEM, "no memory for a profile");
    }
    code = profile_read(e->profile, &where, cli_text(a, "profile"), e->path, ix);
    free(where);
    if (code) {
        gx_index_close(ix);
        return code;
    }
    return open_snapshot(&e->current, e, ix, NULL, &err) ? cli_fail_error(&err) : 0;
}

/* Several indexes share the GPU: each has the share of its file's bytes. */
static void share_memory(catalog *c, uint64_t budget)
{
    uint64_t total = 0, *bytes = calloc(c->n + 1, sizeof *bytes);
    gx_device *devices = NULL;
    gx_error ignored;
    uint32_t n = 0;
    if (c->n < 2 || c->kind == GX_ENGINE_CPU || !bytes)
        goto done;
    if (budget == 0 && gx_devices(&devices, &n, &ignored) == GX_OK)
        for (uint32_t i = 0; i < n; ++i)
            if (devices[i].number == c->entries[0].engine.device)
                budget = devices[i].free_memory - devices[i].free_memory / 16;
    for (uint32_t i = 0; i < c->n; ++i) {
        gx_index *ix = NULL;
        gx_index_stats stats = {.size = sizeof stats};
        const gx_index_options light = {.size = sizeof light, .check = GX_CHECK_STRUCTURE};
        if (gx_index_open(&ix, c->entries[i].path, &light, &ignored) == GX_OK) {
            gx_index_get_quick_stats(ix, &stats);
            total += bytes[i] = stats.file_bytes;
        }
        gx_index_close(ix);
    }
    for (uint32_t i = 0; i < c->n && budget && total; ++i)
        c->entries[i].engine.device_memory = (uint64_t)((double)budget * ((double)bytes[i] / (double)total));
done:
    free(bytes);
    free(devices);
}

static void read_service_flags(catalog *c, const cli_args *a, uint32_t callers)
{
    gx_service_options *o = &c->service;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    gx_service_options_init(o, sizeof *o);
    o->cpu_threads = (uint32_t)cli_count(a, "cpu-threads");
    if (o->cpu_threads == 0)
        o->cpu_threads = cores > 4 ? (uint32_t)cores / 4 : 1;
    o->gpu_threads = (uint32_t)cli_count(a, "gpu-threads");
    o->batch = (uint32_t)cli_count(a, "gpu-batch");
    o->batch_seconds = 1e-6 * cli_number(a, "batch-time");
    o->hang = cli_number(a, "gpu-timeout");
    o->bound = c->sv->limits.waiting;
    o->callers = callers;
    o->caller_seconds = 1e-6 * cli_number(a, "caller-time");
}

int catalog_open(catalog **out, server *sv, const cli_args *a, uint32_t callers)
{
    catalog *c = calloc(1, sizeof *c);
    *out = c;
    if (!c || !(c->entries = calloc((size_t)a->argc, sizeof *c->entries)))
        return cli_fail(GX_ENOMEM, "no memory for %d indexes", a->argc);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    c->sv = sv;
    c->open = (gx_index_options){.size = sizeof c->open, .check = GX_CHECK_STRUCTURE};
    c->kind = (gx_engine_kind)cli_choice(a, "engine");
    read_service_flags(c, a, callers);
    int code = 0;
    for (int i = 0; i < a->argc && code == 0; ++i) {
        entry *e = &c->entries[i];
        e->of = c;
        e->engine = cli_engine_options(a);
        pthread_mutex_init(&e->lock, NULL);
        pthread_mutex_init(&e->opening, NULL);
        code = read_name(e, a, a->argv[i]);
        ++c->n;
        if (code == 0 && (code = cli_add_devices(&e->engine, a)) == 0)
            code = cli_add_residency(&e->engine, a);
    }
    if (code == 0)
        share_memory(c, cli_count(a, "device-memory"));
    for (uint32_t i = 0; i < c->n && code == 0; ++i)
        code = open_entry(&c->entries[i], a);
    if (code == 0 && pthread_create(&c->watcher, NULL, watch, c))
        code = cli_fail(GX_ENOMEM, "cannot start a thread");
    c->watching = code == 0;
    return code;
}

void catalog_close(catalog *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->watching)
        pthread_join(c->watcher, NULL);
    for (uint32_t i = 0; i < c->n; ++i)
        snapshot_release(c->entries[i].current);
    free_retired(c);
    for (uint32_t i = 0; i < c->n; ++i) {
        free(c->entries[i].name);
        free(c->entries[i].path);
        free(c->entries[i].profile);
        pthread_mutex_destroy(&c->entries[i].lock);
        pthread_mutex_destroy(&c->entries[i].opening);
    }
    free(c->entries);
    free(c);
}
