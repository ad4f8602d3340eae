/* merge.c: parts of a collection are merged: which, by a policy, and how. */
#include "index/commit/writer_state.h"

#include <stdlib.h>

#include "engine/status.h"
#include "index/convert/rewrite.h"

#define TIER 4u              /* parts of about one size that are merged into one, which is of the next size */
#define SMALLEST_TIER 10000u /* documents: smaller parts count as being of this size */
#define MAX_DELETED_SHARE 3u /* a part is written anew if more than one in this many of its documents is deleted */

/* Put one part in the place of the parts [first, first + n_merged). */
static gx_status merge_run(gx_collection *c, uint32_t first, uint32_t n_merged, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_next_commit n;
    gx_index *slice, *ix = NULL;
    gx_manifest_part m;
    gx_status st = gx_next_commit_begin(&n, c, err);
    const uint64_t number = n.m.next++;
    char *path = gx_collection_part_path(c, number);
    o.cancel = c->opt.cancel;
    o.user = c->opt.user;
    if (st == GX_OK && !path)
        st = gx_collection_no_memory(c, err);
    if (st == GX_OK && (st = gx_collection_slice(&slice, c->ix, first, n_merged, err)) == GX_OK) {
        c->counts.merged_documents += gx_index_n_docs(slice);
        st = gx_collection_rewrite(slice, path, &o, c->opt.threads ? c->opt.threads : 1, err);
        gx_index_close(slice);
    }
    free(path);
    for (uint32_t i = 0; i < c->m.n_parts && st == GX_OK; ++i) {
        if (i == first) {
            if ((st = gx_next_commit_open_part(c, number, &ix, &m, err)) == GX_OK)
                gx_next_commit_append(&n, &m, ix, NULL);
        } else if (i < first || i >= first + n_merged) {
            st = gx_next_commit_keep(&n, c, i, err);
        }
    }
    if (st == GX_OK)
        st = gx_next_commit_finish(c, &n, err);
    gx_next_commit_free(&n);
    if (st == GX_ECANCELLED) { /* the last commit is as it was, and so is what has been said of it */
        gx_collection_sweep(c);
        return st;
    }
    c->counts.merges += st == GX_OK;
    return gx_collection_fail(c, st);
}

static uint32_t tier_of(const gx_part *p)
{
    uint32_t tier = 0;
    for (uint64_t size = SMALLEST_TIER; size < p->n_live; size *= TIER)
        ++tier;
    return tier;
}

/* Whether one part can have the documents of all, and none has more than the others together: a large one would be
 * written anew for each few that are added. */
static bool is_balanced(const gx_part *parts, uint32_t n)
{
    uint64_t all = 0, most = 0;
    for (uint32_t i = 0; i < n; ++i) {
        all += parts[i].n_live;
        most = parts[i].n_live > most ? parts[i].n_live : most;
    }
    return most <= all - most && all <= GX_MAX_PART_DOCS;
}

/* A balanced run of TIER parts, side by side, none of a tier above the least tier for which there is
 * such a run; or a part of which too much is deleted. Merging neighbours alone keeps the order of
 * documents. */
static bool find_run(const gx_collection *c, uint32_t *first, uint32_t *n)
{
    const gx_parts *p = c->ix->parts;
    for (uint32_t tier = 0; tier < 32; ++tier) {
        uint32_t run = 0;
        for (uint32_t i = 0; i < p->n; ++i) {
            run = tier_of(&p->parts[i]) <= tier ? run + 1 : 0;
            if (run < TIER || !is_balanced(p->parts + i + 1 - TIER, TIER))
                continue;
            *n = TIER;
            *first = i + 1 - TIER;
            return true;
        }
    }
    for (*first = 0, *n = 1; *first < p->n; ++*first)
        if ((uint64_t)(p->parts[*first].ix->n_docs - p->parts[*first].n_live) * MAX_DELETED_SHARE >
            p->parts[*first].ix->n_docs)
            return true;
    return false;
}

gx_status gx_collection_merge(gx_collection *c, gx_merge_policy policy, gx_error *err)
{
    uint32_t first, n;
    if ((unsigned)policy > GX_MERGE_ALL)
        return gx_fail(err, GX_EUSAGE, "merge policy %d does not exist", (int)policy);
    gx_status st = gx_collection_commit(c, err);
    if (st == GX_OK && policy == GX_MERGE_ALL && gx_index_is_wide(c->ix))
        return gx_fail(err, GX_EUSAGE,
                       "%s has %llu documents, and one part has at most %u: its parts cannot become one", c->path,
                       (unsigned long long)gx_index_n_docs(c->ix), GX_MAX_PART_DOCS);
    if (st == GX_OK && policy == GX_MERGE_ALL && (c->m.n_parts > 1 || c->ix->parts->parts[0].deletes))
        return merge_run(c, 0, c->m.n_parts, err);
    while (st == GX_OK && policy == GX_MERGE_TIERS && find_run(c, &first, &n))
        st = merge_run(c, first, n, err);
    return st;
}
