/* next_commit.c: commits: parts are kept, with what has been deleted of them, and documents added become a part. */
#include "index/commit/writer_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/status.h"
#include "index/commit/files.h"
#include "index/convert/rewrite.h"
#include "index/inversion/builder.h"

void gx_next_commit_free(gx_next_commit *n)
{
    for (uint32_t i = 0; n->parts && i < n->m.n_parts; ++i) {
        gx_deletes_close(n->parts[i].deletes);
        gx_index_close(n->parts[i].ix);
    }
    free(n->parts);
    gx_manifest_free(&n->m);
}

gx_status gx_next_commit_begin(gx_next_commit *n, const gx_collection *c, gx_error *err)
{
    *n = (gx_next_commit){.m = c->m, .max_parts = c->m.n_parts + 1};
    ++n->m.commit;
    n->m.n_parts = 0;
    n->m.parts = calloc(n->max_parts, sizeof *n->m.parts);
    n->parts = calloc(n->max_parts, sizeof *n->parts);
    return n->m.parts && n->parts ? GX_OK : gx_collection_no_memory(c, err);
}

void gx_next_commit_append(gx_next_commit *n, const gx_manifest_part *m, gx_index *ix, gx_deletes *deletes)
{
    n->m.parts[n->m.n_parts] = *m;
    n->parts[n->m.n_parts++] = (gx_part){ix, deletes, 0, ix->n_docs - (deletes ? deletes->n_deleted : 0)};
}

void gx_next_commit_drop_file(const gx_collection *c, const char *name)
{
    if (name[0])
        unlinkat(c->dir_fd, name, 0);
}

/* Delete documents of a part that is to be in the next commit, in a new file. */
static gx_status delete_from(gx_next_commit *n, const gx_collection *c, gx_manifest_part *m, const gx_index *ix,
                             gx_deletes **deletes, gx_docid_set *gone, gx_error *err)
{
    gx_deletes *d;
    const size_t stem = strlen(m->file) - strlen(".gx");
    if (!gx_docid_set_cover(gone, ix->n_docs))
        return gx_collection_no_memory(c, err);
    gx_status st = gx_deletes_make(&d, ix, *deletes, gone->words, err);
    if (st != GX_OK)
        return st;
    gx_deletes_close(*deletes);
    *deletes = d;
    if (d->n_deleted == ix->n_docs) /* the part goes, unless it is the last */
        return GX_OK;
    snprintf(m->deletes.file, sizeof m->deletes.file, GX_DELETES_NAME, (int)stem, m->file,
             (unsigned long long)n->m.commit);
    return gx_deletes_write(d, &c->place, c->path, ix, &m->deletes, err);
}

gx_status gx_next_commit_keep(gx_next_commit *n, gx_collection *c, uint32_t i, gx_error *err)
{
    gx_manifest_part m = c->m.parts[i];
    const gx_part *p = &c->ix->parts->parts[i];
    if (p->ix->n_docs == 0 && (c->m.n_parts > 1 || c->builder)) /* the first one of a collection that was made empty */
        return GX_OK;
    gx_deletes *deletes = gx_deletes_share(p->deletes);
    const gx_status st = c->gone[i].n ? delete_from(n, c, &m, p->ix, &deletes, &c->gone[i], err) : GX_OK;
    if (st == GX_OK && !(deletes && deletes->n_deleted == p->ix->n_docs))
        gx_next_commit_append(n, &m, gx_index_share(p->ix), deletes);
    else
        gx_deletes_close(deletes);
    return st;
}

static void describe_part(gx_manifest_part *m, const gx_index *ix, uint64_t number)
{
    *m = (gx_manifest_part){.bytes = ix->file_bytes, .n_docs = ix->n_docs, .n_tokens = ix->n_tokens};
    snprintf(m->file, sizeof m->file, GX_PART_NAME, (unsigned long long)number);
    memcpy(m->uuid, ix->header->uuid, sizeof m->uuid);
}

gx_status gx_next_commit_open_part(const gx_collection *c, uint64_t number, gx_index **ix, gx_manifest_part *m,
                                   gx_error *err)
{
    char *path = gx_collection_part_path(c, number);
    const gx_status st = path ? gx_index_open_in(ix, c->dir_fd, path, GX_CHECK_STRUCTURE, GX_LOAD_MAP, err)
                              : gx_collection_no_memory(c, err);
    free(path);
    if (st == GX_OK)
        describe_part(m, *ix, number);
    return st;
}

/* The part of the documents added. */
static gx_status add_part(gx_next_commit *n, gx_collection *c, gx_error *err)
{
    gx_index *ix = NULL;
    gx_deletes *deletes = NULL;
    gx_manifest_part m;
    n->m.next = c->number + 1;
    gx_status st = gx_builder_finish(c->builder, err);
    if (st == GX_OK)
        st = gx_next_commit_open_part(c, c->number, &ix, &m, err);
    if (st == GX_OK && c->gone_new.n)
        st = delete_from(n, c, &m, ix, &deletes, &c->gone_new, err);
    const bool empty = ix && (deletes ? deletes->n_deleted == ix->n_docs : ix->n_docs == 0);
    if (st == GX_OK && !empty) {
        gx_next_commit_append(n, &m, ix, deletes);
        return st;
    }
    if (empty)
        gx_next_commit_drop_file(c, m.file);
    gx_deletes_close(deletes);
    gx_index_close(ix);
    return st;
}

/* The part that tells best what the collection stores. */
static uint32_t most_telling(const gx_parts *p)
{
    uint32_t best = 0;
    int most = -1;
    for (uint32_t i = 0; i < p->n; ++i) {
        const int here = (p->parts[i].ix->text ? 2 : 0) + gx_index_stores_titles(p->parts[i].ix);
        best = here > most ? i : best;
        most = here > most ? here : most;
    }
    return best;
}

/* All documents are gone: an index of none, which keeps analyzer and attributes. */
static gx_status add_empty_part(gx_next_commit *n, gx_collection *c, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_index *none, *ix = NULL;
    gx_manifest_part m;
    const uint64_t number = n->m.next++;
    char *path = gx_collection_part_path(c, number);
    gx_status st =
        path ? gx_collection_slice(&none, c->ix, most_telling(c->ix->parts), 1, err) : gx_collection_no_memory(c, err);
    if (st == GX_OK) {
        gx_part *p = &none->parts->parts[0];
        uint64_t *all = malloc(((size_t)p->ix->n_docs / 64 + 1) * sizeof *all);
        gx_deletes *old = p->deletes;
        if (all)
            memset(all, 0xff, ((size_t)p->ix->n_docs / 64 + 1) * sizeof *all);
        st = all ? gx_deletes_make(&p->deletes, p->ix, old, all, err) : gx_collection_no_memory(c, err);
        if (st == GX_OK) {
            gx_deletes_close(old);
            none->n_docs = p->n_live = 0;
            none->n_tokens = 0;
            st = gx_collection_rewrite(none, path, &c->place, &o, 1, err);
        } else {
            p->deletes = old;
        }
        free(all);
        gx_index_close(none);
    }
    if (st == GX_OK && (st = gx_next_commit_open_part(c, number, &ix, &m, err)) == GX_OK)
        gx_next_commit_append(n, &m, ix, NULL);
    free(path);
    return st;
}

gx_status gx_next_commit_finish(gx_collection *c, gx_next_commit *n, gx_error *err)
{
    gx_index *ix = calloc(1, sizeof *ix);
    const uint32_t n_parts = n->m.n_parts;
    gx_docid_set *gone = calloc(n_parts + 1, sizeof *gone);
    gx_status st = ix && gone && (ix->path = strdup(c->path)) ? GX_OK : gx_collection_no_memory(c, err);
    if (st == GX_OK) {
        gx_part *parts = n->parts;
        n->parts = NULL;
        if ((st = gx_collection_of_parts(ix, parts, n_parts, err)) == GX_OK) {
            bool placed = false;
            if ((st = gx_collection_check_place(c, err)) == GX_OK)
                st = gx_manifest_write(&n->m, &c->place, c->path, true, &placed, err);
            ix->parts->commit = n->m.commit;
            ix->parts->checksum = n->m.checksum;
            memcpy(ix->parts->uuid, n->m.uuid, sizeof n->m.uuid);
            c->failed = c->keep_files = c->keep_files || (st != GX_OK && placed);
        }
    }
    if (st != GX_OK) {
        gx_index_close(ix);
        free(gone);
        return st;
    }
    if (!gx_remove_old_files(c->dir_fd, &c->m, &n->m))
        gx_sweep_folder(c->dir_fd, &n->m);
    gx_collection_free_gone(c);
    gx_index_close(c->ix);
    gx_manifest_free(&c->m);
    c->ix = ix;
    c->n_new = 0;
    c->gone = gone;
    c->m = n->m;
    n->m = (gx_manifest){0};
    return st;
}

static bool is_changed(const gx_collection *c)
{
    bool changed = c->builder != NULL;
    for (uint32_t i = 0; i < c->m.n_parts; ++i)
        changed = changed || c->gone[i].n;
    return changed;
}

gx_status gx_collection_commit(gx_collection *c, gx_error *err)
{
    return gx_collection_commit_folded(c, false, err);
}

gx_status gx_collection_commit_folded(gx_collection *c, bool fold, gx_error *err)
{
    gx_next_commit n;
    gx_status st = gx_collection_check(c, err);
    if (st != GX_OK || !is_changed(c))
        return st;
    st = gx_next_commit_begin(&n, c, err);
    if (st == GX_OK)
        st = gx_collection_check_place(c, err);
    for (uint32_t i = 0; i < c->m.n_parts && st == GX_OK; ++i)
        st = gx_next_commit_keep(&n, c, i, err);
    if (st == GX_OK && c->builder)
        st = add_part(&n, c, err);
    if (st == GX_OK && fold)
        gx_next_commit_fold(&n, c);
    if (st == GX_OK && n.m.n_parts == 0)
        st = add_empty_part(&n, c, err);
    if (st == GX_OK && n.m.n_parts > GX_MAX_PARTS)
        st = gx_fail(err, GX_EUSAGE, "%s would have more than %u parts: merge it", c->path, GX_MAX_PARTS);
    if (st == GX_OK)
        st = gx_next_commit_finish(c, &n, err);
    gx_next_commit_free(&n);
    gx_builder_abort(c->builder);
    c->builder = NULL;
    c->counts.commits += st == GX_OK;
    return gx_collection_fail(c, st);
}
