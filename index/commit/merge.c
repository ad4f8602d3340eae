/* merge.c: parts of a collection are merged: which, by a policy, and how. */
#include "index/commit/writer_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/convert/rewrite.h"

#define TIER 4u              /* parts of about one size that are merged into one, which is of the next size */
#define SMALLEST_TIER 10000u /* documents: smaller parts count as being of this size */
#define MAX_DELETED_SHARE 3u /* a part is written anew if more than one in this many of its documents is deleted */

#define FOLD_BYTES                                                                                                     \
    (8u << 20) /* files that a merge reads before the commit that makes it needed; longer ones it would delay */

/* Put one part in the place of the parts [first, first + n_merged). */
static gx_status merge_run(gx_collection *c, uint32_t first, uint32_t n_merged, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_next_commit n;
    gx_index *slice, *ix = NULL;
    gx_manifest_part m;
    gx_status st = gx_next_commit_begin(&n, c, err);
    if (st == GX_OK)
        st = gx_collection_check_place(c, err);
    const uint64_t number = n.m.next++;
    char *path = gx_collection_part_path(c, number);
    o.cancel = c->opt.cancel;
    o.user = c->opt.user;
    if (st == GX_OK && !path)
        st = gx_collection_no_memory(c, err);
    if (st == GX_OK && (st = gx_collection_slice(&slice, c->ix, first, n_merged, err)) == GX_OK) {
        c->counts.merged_documents += gx_index_n_docs(slice);
        st = gx_collection_rewrite(slice, path, &c->place, &o, c->opt.threads ? c->opt.threads : 1, err);
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
    if (st != GX_OK) /* the last commit is as it was, and so is what has been said of it */
        gx_collection_sweep(c);
    c->counts.merges += st == GX_OK;
    c->failed = c->failed || c->keep_files;
    return st;
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

static uint64_t count_bytes(const gx_part *parts, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; ++i)
        bytes += parts[i].ix->file_bytes;
    return bytes;
}

/* A balanced run of TIER parts, side by side, none of a tier above the least tier for which there is
 * such a run; or a part of which too much is deleted. Of runs of more than `most` bytes none. Merging
 * neighbours alone keeps the order of documents. */
static bool find_run(const gx_part *parts, uint32_t n_parts, uint64_t most, uint32_t *first, uint32_t *n)
{
    for (uint32_t tier = 0; tier < 32; ++tier) {
        uint32_t run = 0;
        for (uint32_t i = 0; i < n_parts; ++i) {
            run = tier_of(&parts[i]) <= tier ? run + 1 : 0;
            if (run < TIER || !is_balanced(parts + i + 1 - TIER, TIER) ||
                count_bytes(parts + i + 1 - TIER, TIER) > most)
                continue;
            *n = TIER;
            *first = i + 1 - TIER;
            return true;
        }
    }
    for (*first = 0, *n = 1; *first < n_parts; ++*first)
        if ((uint64_t)(parts[*first].ix->n_docs - parts[*first].n_live) * MAX_DELETED_SHARE >
                parts[*first].ix->n_docs &&
            parts[*first].ix->file_bytes <= most)
            return true;
    return false;
}

/* ---- merges before a commit ---- */

static bool is_in_last_commit(const gx_collection *c, const char *file)
{
    bool is = false;
    for (uint32_t i = 0; !is && i < c->m.n_parts; ++i)
        is = strcmp(c->m.parts[i].file, file) == 0 || strcmp(c->m.parts[i].deletes.file, file) == 0;
    return is;
}

/* Let the part stand for those of [first, first + n_merged). */
static void replace_run(gx_next_commit *n, const gx_collection *c, uint32_t first, uint32_t n_merged, gx_index *ix,
                        const gx_manifest_part *m)
{
    for (uint32_t i = first; i < first + n_merged; ++i) {
        gx_manifest_part *old = &n->m.parts[i];
        if (!is_in_last_commit(c, old->file))
            gx_next_commit_drop_file(c, old->file);
        if (!is_in_last_commit(c, old->deletes.file))
            gx_next_commit_drop_file(c, old->deletes.file);
        gx_deletes_close(n->parts[i].deletes);
        gx_index_close(n->parts[i].ix);
    }
    const uint32_t behind = n->m.n_parts - first - n_merged;
    memmove(n->m.parts + first + 1, n->m.parts + first + n_merged, behind * sizeof *n->m.parts);
    memmove(n->parts + first + 1, n->parts + first + n_merged, behind * sizeof *n->parts);
    n->m.n_parts -= n_merged - 1;
    n->m.parts[first] = *m;
    n->parts[first] = (gx_part){ix, NULL, 0, ix->n_docs};
}

static gx_status fold_run(gx_next_commit *n, gx_collection *c, uint32_t first, uint32_t n_merged)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_error why;
    gx_index *all = NULL, *ix = NULL;
    gx_manifest_part m;
    const uint64_t number = n->m.next++;
    char *path = gx_collection_part_path(c, number);
    gx_status st = path ? gx_collection_share(&all, c->path, n->parts + first, n_merged, &why) : GX_ENOMEM;
    if (st == GX_OK)
        st = gx_collection_rewrite(all, path, &c->place, &o, 1, &why);
    if (st == GX_OK && (st = gx_next_commit_open_part(c, number, &ix, &m, &why)) == GX_OK) {
        c->counts.merged_documents += ix->n_docs;
        ++c->counts.merges;
        replace_run(n, c, first, n_merged, ix, &m);
    }
    gx_index_close(all);
    free(path);
    return st;
}

void gx_next_commit_fold(gx_next_commit *n, gx_collection *c)
{
    uint32_t first, n_merged;
    while (find_run(n->parts, n->m.n_parts, FOLD_BYTES, &first, &n_merged) && fold_run(n, c, first, n_merged) == GX_OK)
        ;
}

/* ---- merges for their own sake ---- */

gx_status gx_collection_merge(gx_collection *c, gx_merge_policy policy, gx_error *err)
{
    uint32_t first, n;
    if ((unsigned)policy > GX_MERGE_ALL)
        return gx_fail(err, GX_EUSAGE, "merge policy %d does not exist", (int)policy);
    gx_status st = gx_collection_commit_folded(c, policy == GX_MERGE_TIERS, err);
    if (st == GX_OK && policy == GX_MERGE_ALL && gx_index_is_wide(c->ix))
        return gx_fail(err, GX_EUSAGE,
                       "%s has %llu documents, and one part has at most %u: its parts cannot become one", c->path,
                       (unsigned long long)gx_index_n_docs(c->ix), GX_MAX_PART_DOCS);
    if (st == GX_OK && policy == GX_MERGE_ALL && (c->m.n_parts > 1 || c->ix->parts->parts[0].deletes))
        return merge_run(c, 0, c->m.n_parts, err);
    while (st == GX_OK && policy == GX_MERGE_TIERS &&
           find_run(c->ix->parts->parts, c->ix->parts->n, UINT64_MAX, &first, &n))
        st = merge_run(c, first, n, err);
    return st;
}
