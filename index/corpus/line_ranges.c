#include "index/corpus/line_ranges.h"

#include <pthread.h>
#include <stdlib.h>

#include "engine/parallel.h"
#include "index/corpus/line_cuts.h"

#define PIECE_BYTES (1u << 20)
#define MAX_READERS 16u

typedef struct range {
    gx_line_piece piece;
    bool done; /* under the lock */
} range;

struct gx_line_ranges {
    gx_line_cuts *cuts;
    gx_threads *threads;
    range *ranges; /* [n_ranges]: number i of the file is at i % n_ranges */
    uint32_t n_ranges;

    pthread_mutex_t lock; /* of what follows, of ranges' done, and of claims */
    pthread_cond_t room, parsed;
    uint64_t n_taken, n_given;
    bool cut; /* no range is left to take */
    atomic_bool stop;

    /* the caller's: */
    bool begun;  /* the oldest range's turn has begun */
    size_t next; /* document of the oldest range */
    gx_doc_parts parts;
    bool failed; /* by a status after which there is no next document */
};

/* ---- threads ---- */

/* Take the next range. NULL: there is none. The lock is held. */
static range *take_range(gx_line_ranges *r)
{
    while (!r->cut && !atomic_load(&r->stop) && r->n_taken - r->n_given == r->n_ranges)
        pthread_cond_wait(&r->room, &r->lock);
    if (r->cut || atomic_load(&r->stop))
        return NULL;
    range *g = &r->ranges[r->n_taken % r->n_ranges];
    r->cut = !gx_line_cuts_claim(r->cuts, &g->piece);
    if (!r->cut)
        ++r->n_taken;
    else
        pthread_cond_broadcast(&r->parsed); /* the caller may wait for a range that does not come */
    return r->cut ? NULL : g;
}

static void read_ranges(void *user, uint32_t number)
{
    gx_line_ranges *r = user;
    pthread_mutex_lock(&r->lock);
    for (range *g; (g = take_range(r));) {
        pthread_mutex_unlock(&r->lock);
        gx_line_cuts_read(r->cuts, number, &g->piece, &r->stop, NULL, NULL);
        pthread_mutex_lock(&r->lock);
        g->done = true;
        pthread_cond_signal(&r->parsed);
    }
    pthread_cond_broadcast(&r->room); /* another thread may wait for room, and no range be left */
    pthread_mutex_unlock(&r->lock);
}

/* ---- opening and closing ---- */

gx_status gx_line_ranges_open(gx_line_ranges **out, gx_source *s, gx_error *err)
{
    const uint32_t n = s->opt.threads < MAX_READERS ? s->opt.threads : MAX_READERS;
    gx_line_cuts *cuts = NULL;
    *out = NULL;
    gx_status st = n ? gx_line_cuts_open(&cuts, s, n, PIECE_BYTES, err) : GX_OK;
    if (!cuts)
        return st;
    gx_line_ranges *r = calloc(1, sizeof *r);
    if (!r || !(r->ranges = calloc(2 * (size_t)n + 2, sizeof *r->ranges))) {
        free(r);
        gx_line_cuts_close(cuts);
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->room, NULL);
    pthread_cond_init(&r->parsed, NULL);
    r->cuts = cuts;
    r->n_ranges = 2 * n + 2;
    r->threads = gx_threads_start(n, 0, read_ranges, r);
    if (!r->threads) {
        gx_line_ranges_close(r); /* the source reads the file itself */
        return GX_OK;
    }
    gx_line_cuts_take(s);
    *out = r;
    return GX_OK;
}

void gx_line_ranges_close(gx_line_ranges *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->room);
    pthread_mutex_unlock(&r->lock);
    gx_threads_join(r->threads);
    gx_line_cuts_close(r->cuts);
    for (uint32_t i = 0; i < r->n_ranges; ++i)
        gx_line_piece_free(&r->ranges[i].piece);
    gx_doc_parts_free(&r->parts);
    pthread_cond_destroy(&r->parsed);
    pthread_cond_destroy(&r->room);
    pthread_mutex_destroy(&r->lock);
    free(r->ranges);
    free(r);
}

/* ---- the caller's side ---- */

/* Wait for the oldest range. NULL: there is none. */
static range *wait_for_range(gx_line_ranges *r)
{
    range *g = &r->ranges[r->n_given % r->n_ranges];
    pthread_mutex_lock(&r->lock);
    while (!(g->done && r->n_given < r->n_taken) && !(r->cut && r->n_given == r->n_taken))
        pthread_cond_wait(&r->parsed, &r->lock);
    const bool any = r->n_given < r->n_taken;
    pthread_mutex_unlock(&r->lock);
    return any ? g : NULL;
}

/* The oldest range has been given: another may be read in its place. */
static void release_range(gx_line_ranges *r, range *g)
{
    gx_line_cuts_end(r->cuts, &g->piece);
    r->begun = false;
    r->next = 0;
    pthread_mutex_lock(&r->lock);
    g->done = false;
    ++r->n_given;
    pthread_cond_signal(&r->room);
    pthread_mutex_unlock(&r->lock);
}

static gx_status give_document(gx_line_ranges *r, const gx_line_piece *p, size_t i, gx_source *s, gx_error *err)
{
    s->doc.file = gx_line_cuts_path(r->cuts);
    s->doc.line = gx_line_cuts_line(r->cuts, p, i);
    if (!gx_doc_batch_get(&p->docs, i, &r->parts, &s->doc.doc)) {
        r->failed = true;
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->doc.file);
    }
    ++s->counts.documents;
    return GX_OK;
}

gx_status gx_line_ranges_next(gx_line_ranges *r, gx_source *s, bool *found, gx_error *err)
{
    *found = false;
    for (range *g; !r->failed && (g = wait_for_range(r)); release_range(r, g)) {
        gx_line_piece *const p = &g->piece;
        gx_status st = r->begun ? GX_OK : gx_line_cuts_begin(r->cuts, s, p, err);
        r->begun = true;
        r->failed = st != GX_OK;
        if (st)
            return st;
        if (r->next == p->docs.n)
            continue;
        const size_t i = r->next++;
        if (p->docs.docs[i].status != GX_OK) {
            st = gx_line_cuts_error(r->cuts, p, i, err);
            r->failed = st != GX_EINPUT;
            s->counts.bad += st == GX_EINPUT;
            return st;
        }
        *found = true;
        return give_document(r, p, i, s, err);
    }
    return GX_OK;
}
