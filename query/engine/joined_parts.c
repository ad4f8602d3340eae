#include "query/engine/joined_parts.h"

#include <stdlib.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/convert/join.h"

#define FIRST_PARTS 2u /* parts side by side that are joined when an engine is opened */
#define LATER_PARTS 8u /* those that are joined when one is opened again, on a later commit */
/* Parts side by side that have no more postings than so many a processor are joined at every commit,
 * which takes some tenths of a second. */
#define SMALL_POSTINGS (UINT64_C(8) << 20)
#define CPU_SMALL_POSTINGS (UINT64_C(2) << 20) /* the same where the CPU searches, whose copies are not free */
#define MAX_PROCESSORS 16u
#define MAX_THREADS 64u
/* When an engine is opened again, queries are being answered: of so many processors one joins. */
#define PROCESSORS_A_LATER_THREAD 4u
/* Parts of which more than one in so many documents is deleted are written without them: when an
 * engine is opened, and when one is opened again. */
#define FIRST_DELETED_SHARE 64u
#define LATER_DELETED_SHARE 8u

/* A joined index, and the parts of which it was made, as they were. */
typedef struct joined_run {
    uint32_t n;
    gx_part *was; /* [n], with references */
    gx_index *ix;
} joined_run;

struct gx_joined_parts {
    gx_index *view;
    gx_part_range range;
    uint32_t n_runs;
    joined_run *runs; /* [view->parts->n at most] */
};

static void close_parts(gx_part *parts, uint32_t n)
{
    for (uint32_t i = 0; parts && i < n; ++i) {
        gx_deletes_close(parts[i].deletes);
        gx_index_close(parts[i].ix);
    }
    free(parts);
}

void gx_joined_parts_close(gx_joined_parts *j)
{
    if (!j)
        return;
    gx_index_close(j->view);
    for (uint32_t i = 0; i < j->n_runs; ++i) {
        close_parts(j->runs[i].was, j->runs[i].n);
        gx_index_close(j->runs[i].ix);
    }
    free(j->runs);
    free(j);
}

const gx_index *gx_joined_parts_index(const gx_joined_parts *j)
{
    return j->view;
}

gx_part_range gx_joined_parts_range(const gx_joined_parts *j)
{
    return j->range;
}

static gx_part share_part(const gx_part *p)
{
    return (gx_part){gx_index_share(p->ix), gx_deletes_share(p->deletes), p->base, p->n_live};
}

/* NULL: no memory. */
static gx_part *share_parts(const gx_part *parts, uint32_t n)
{
    gx_part *shared = malloc(n * sizeof *shared);
    for (uint32_t i = 0; shared && i < n; ++i)
        shared[i] = share_part(&parts[i]);
    return shared;
}

/* Whether all documents that are live now were so before. They may not have been where a backup was put back. */
static bool were_live(const gx_part *was, const gx_part *now)
{
    const uint32_t n_docs = now->ix->n_docs;
    bool were = true;
    for (size_t w = 0; was->deletes && were && w * 64 < n_docs; ++w) {
        const uint64_t there = n_docs - w * 64 < 64 ? (UINT64_C(1) << (n_docs - w * 64)) - 1 : UINT64_MAX;
        were = !(there & (now->deletes ? now->deletes->live[w] : UINT64_MAX) & ~was->deletes->live[w]);
    }
    return were;
}

/* The joined index of old whose parts are those before `end` and still good; NULL: none. */
static const joined_run *find_run(const gx_joined_parts *old, const gx_parts *now, uint32_t first, uint32_t end)
{
    for (uint32_t r = 0; old && r < old->n_runs; ++r) {
        const joined_run *run = &old->runs[r];
        uint64_t n_gone = 0;
        uint32_t i = 0;
        for (; i < run->n && first + i < end && run->was[i].ix == now->parts[first + i].ix &&
               were_live(&run->was[i], &now->parts[first + i]);
             ++i)
            n_gone += run->was[i].n_live - now->parts[first + i].n_live;
        if (i == run->n && n_gone * LATER_DELETED_SHARE <= run->ix->n_docs)
            return run;
    }
    return NULL;
}

/* What gx_joined_parts_open makes. */
typedef struct joining {
    const gx_index *collection;
    gx_joined_parts *j;
    gx_part *parts; /* [n_parts] of the view */
    uint32_t n_parts;
    uint32_t n_indexes; /* joined ones, where nothing is joined yet */
    uint32_t n_threads;
    bool needed; /* want of room is an error */
} joining;

/* The parts [first, first + run->n) are searched as run->ix. Takes run's references. */
static gx_status append_run(joining *to, const joined_run *run, uint32_t first, gx_error *err)
{
    gx_deletes *d;
    to->j->runs[to->j->n_runs++] = *run;
    const gx_status st = gx_deletes_of_joined(&d, run->ix, run->was, to->collection->parts->parts + first, run->n, err);
    if (st == GX_OK)
        to->parts[to->n_parts++] = (gx_part){gx_index_share(run->ix), d, 0, 0};
    return st;
}

static gx_status share_run(joining *to, const joined_run *run, uint32_t first, gx_error *err)
{
    const joined_run shared = {run->n, share_parts(run->was, run->n), gx_index_share(run->ix)};
    if (shared.was)
        return append_run(to, &shared, first, err);
    gx_index_close(shared.ix);
    return gx_fail(err, GX_ENOMEM, "no memory for %u parts", run->n);
}

static gx_status join_run(joining *to, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_index *collection = to->collection;
    joined_run run = {n, share_parts(collection->parts->parts + first, n), NULL};
    gx_index *slice = NULL;
    gx_status st = run.was ? gx_collection_slice(&slice, collection, first, n, err)
                           : gx_fail(err, GX_ENOMEM, "no memory for %u parts", n);
    if (st == GX_OK)
        st = gx_index_join(&run.ix, slice, to->n_threads, err);
    gx_index_close(slice);
    if (st == GX_OK)
        return append_run(to, &run, first, err);
    close_parts(run.was, n);
    return st;
}

/* Of the machine, at most so many. */
static uint32_t count_processors(uint32_t most)
{
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > most ? most : (uint32_t)n;
}

static uint64_t small_postings(void)
{
    return SMALL_POSTINGS * count_processors(MAX_PROCESSORS);
}

/* How many parts from the first on have at most so many postings together; 1 where the first alone has more. */
static uint32_t count_small(const gx_part *parts, uint32_t n, uint64_t most)
{
    uint64_t n_postings = 0;
    uint32_t i = 0;
    while (i < n && (n_postings += parts[i].ix->n_postings) <= most)
        ++i;
    return i ? i : 1;
}

static bool is_worth_joining(const gx_part *parts, uint32_t n, bool again)
{
    uint64_t n_docs = 0, n_live = 0;
    uint32_t n_groups = 0;
    for (uint32_t i = 0; i < n; i += count_small(parts + i, n - i, small_postings()))
        ++n_groups;
    for (uint32_t i = 0; i < n; ++i) {
        n_docs += parts[i].ix->n_docs;
        n_live += parts[i].n_live;
    }
    return (again ? n_groups >= LATER_PARTS : n >= FIRST_PARTS) ||
           (n_docs - n_live) * (again ? LATER_DELETED_SHARE : FIRST_DELETED_SHARE) > n_docs;
}

/* Parts as they are. */
static void append_parts(joining *to, uint32_t begin, uint32_t end)
{
    for (uint32_t i = begin; i < end; ++i)
        to->parts[to->n_parts++] = share_part(&to->collection->parts->parts[i]);
}

/* Join parts, or let them be where there is no room for that. */
static gx_status append_joined(joining *to, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_status st = join_run(to, first, n, err);
    if (st == GX_OK || to->needed || (st != GX_ENOMEM && st != GX_EIO && st != GX_ENOTFOUND))
        return st;
    append_parts(to, first, first + n);
    return GX_OK;
}

/* Join parts to n_indexes of about the same size, at most one a part; a part that is alone in one
 * stays as it is if it has few deleted documents. */
static gx_status append_several(joining *to, uint32_t first, uint32_t n, gx_error *err)
{
    const gx_part *parts = to->collection->parts->parts;
    const uint32_t n_indexes = n < to->n_indexes ? n : to->n_indexes, end = first + n;
    uint64_t all = 0, bytes = 0;
    gx_status st = GX_OK;
    for (uint32_t i = first; i < end; ++i)
        all += parts[i].ix->file_bytes;
    for (uint32_t now = 1; first < end && st == GX_OK; ++now) {
        uint32_t i = first;
        do
            bytes += parts[i++].ix->file_bytes;
        while (i < end &&
               (now == n_indexes || ((double)bytes * n_indexes < (double)all * now && end - i > n_indexes - now)));
        if (is_worth_joining(parts + first, i - first, false))
            st = append_joined(to, first, i - first, err);
        else
            append_parts(to, first, i);
        first = i;
    }
    return st;
}

/* Append the parts that are not joined yet, or joined in a small index. `alone`: an old joined index of exactly these
 * parts, or NULL. */
static gx_status append_loose(joining *to, uint32_t first, uint32_t n, const joined_run *alone, bool again,
                              gx_error *err)
{
    const gx_part *parts = to->collection->parts->parts;
    gx_status st = GX_OK;
    if (n && alone && alone->n == n)
        return share_run(to, alone, first, err);
    if (n && is_worth_joining(parts + first, n, again))
        return again ? append_joined(to, first, n, err) : append_several(to, first, n, err);
    for (uint32_t end = first + n, here; first < end && st == GX_OK; first += here) {
        here = count_small(parts + first, end - first, small_postings());
        if (here > 1)
            st = append_joined(to, first, here, err);
        else
            append_parts(to, first, first + 1);
    }
    return st;
}

/* Join the parts that are small together, and leave the others as they are. */
static gx_status append_small(joining *to, gx_part_range range, const gx_joined_parts *old, gx_error *err)
{
    const gx_parts *p = to->collection->parts;
    const uint64_t most = CPU_SMALL_POSTINGS * count_processors(MAX_PROCESSORS);
    gx_status st = GX_OK;
    append_parts(to, 0, range.begin);
    to->j->range.begin = to->n_parts;
    for (uint32_t i = range.begin, n; i < range.end && st == GX_OK; i += n) {
        n = count_small(p->parts + i, range.end - i, most);
        const joined_run *run = n > 1 ? find_run(old, p, i, range.end) : NULL;
        if (n == 1)
            append_parts(to, i, i + 1);
        else
            st = run && run->n == n ? share_run(to, run, i, err) : append_joined(to, i, n, err);
    }
    to->j->range.end = to->n_parts;
    if (st == GX_OK)
        append_parts(to, range.end, p->n);
    return st;
}

static gx_status append_all(joining *to, gx_part_range range, const gx_joined_parts *old, gx_error *err)
{
    const gx_parts *p = to->collection->parts;
    gx_status st = GX_OK;
    const joined_run *alone = NULL;
    uint32_t loose = range.begin; /* the first part that has not been appended */
    append_parts(to, 0, range.begin);
    to->j->range.begin = to->n_parts;
    for (uint32_t i = range.begin; i < range.end && st == GX_OK;) {
        const joined_run *run = find_run(old, p, i, range.end);
        if (!run || run->ix->n_postings <= small_postings()) { /* more may have come beside it */
            alone = i == loose ? run : NULL;
            i += run ? run->n : 1;
            continue;
        }
        st = append_loose(to, loose, i - loose, alone, true, err);
        if (st == GX_OK)
            st = share_run(to, run, i, err);
        loose = i += run->n;
        alone = NULL;
    }
    if (st == GX_OK)
        st = append_loose(to, loose, range.end - loose, alone, old != NULL, err);
    to->j->range.end = to->n_parts;
    if (st == GX_OK)
        append_parts(to, range.end, p->n);
    return st;
}

gx_status gx_joined_parts_open(gx_joined_parts **out, const gx_index *collection, gx_part_range range,
                               uint32_t n_indexes, const gx_joined_parts *old, gx_joined_which which, gx_error *err)
{
    const uint32_t n = collection->parts->n, threads = count_processors(MAX_THREADS),
                   later = (threads + PROCESSORS_A_LATER_THREAD - 1) / PROCESSORS_A_LATER_THREAD;
    joining to = {.collection = collection,
                  .j = calloc(1, sizeof *to.j),
                  .parts = calloc(n, sizeof *to.parts),
                  .n_indexes = n_indexes,
                  .n_threads = old || which == GX_JOINED_SMALL ? later : threads,
                  .needed = which == GX_JOINED_NEEDED};
    *out = NULL;
    if (to.j)
        to.j->runs = calloc(n, sizeof *to.j->runs);
    gx_status st = GX_OK;
    if (!to.j || !to.j->runs || !to.parts)
        st = gx_fail(err, GX_ENOMEM, "no memory for %u parts", n);
    else
        st = which == GX_JOINED_SMALL ? append_small(&to, range, old, err) : append_all(&to, range, old, err);
    if (st == GX_OK)
        st = gx_collection_of_joined(&to.j->view, collection, to.parts, to.n_parts, err);
    else
        close_parts(to.parts, to.n_parts);
    if (st == GX_OK)
        *out = to.j;
    else
        gx_joined_parts_close(to.j);
    return st;
}
