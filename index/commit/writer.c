/* writer.c: changes to a collection: documents added and deleted, parts merged, commits.
 *
 *   add     -> builder ---------------.
 *   delete  -> bits of documents ---.  \
 *                                    \  `-> part-NNNNNN.gx          .
 *   commit                            `---> part-NNNNNN.CCCCCC.del   >- MANIFEST (renamed) -> old
 *                                                                    files go
 *   merge   -> gx_index_rewrite of a run of parts -> part-NNNNNN.gx '
 *
 * Until the manifest is renamed the folder holds the last commit and files that no manifest names,
 * which the next writer removes. Readers that have old files open keep them.
 */
#include "index/commit/writer_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/sized.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"
#include "index/commit/files.h"
#include "index/convert/rewrite.h"
#include "index/inversion/builder.h"

gx_status gx_collection_no_memory(const gx_collection *c, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "%s: no memory to change it", c->path);
}

/* ---- open and close ---- */

static gx_status take_lock(gx_collection *c, gx_error *err)
{
    char *path = gx_path_in(c->path, GX_LOCK_NAME);
    if (!path)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    gx_status st = GX_OK;
    if ((c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666)) < 0)
        st = gx_fail(err, GX_EIO, "cannot open %s: %s", path, strerror(errno));
    else if (flock(c->lock, LOCK_EX | LOCK_NB) != 0)
        st = errno == EWOULDBLOCK
                 ? gx_fail(err, GX_EIO, "%s is being changed by another process; wait until it is done", c->path)
                 : gx_fail(err, GX_EIO, "cannot lock %s: %s", path, strerror(errno));
    free(path);
    return st;
}

gx_status gx_collection_open(gx_collection **out, const char *path, const gx_collection_options *opt, gx_error *err)
{
    gx_collection_options own = GX_COLLECTION_OPTIONS;
    *out = NULL;
    gx_status st = gx_sized_read(&own, sizeof own, opt, GX_SIZE_THROUGH(gx_collection_options, user),
                                 "gx_collection_options", err);
    if (st != GX_OK)
        return st;
    gx_collection *c = calloc(1, sizeof *c);
    if (!c)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    c->opt = own;
    c->lock = -1;
    if (!(c->path = strdup(path)))
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK) /* before the lock's file is made: the folder may be no collection */
        st = gx_manifest_read(&c->m, path, err);
    gx_manifest_free(&c->m);
    if (st == GX_OK)
        st = take_lock(c, err);
    if (st == GX_OK)
        st = gx_manifest_read(&c->m, path, err);
    const gx_index_options check = {.size = sizeof check, .check = own.check};
    if (st == GX_OK)
        st = gx_index_open(&c->ix, path, &check, err);
    if (st == GX_OK && !(c->gone = calloc(c->m.n_parts, sizeof *c->gone)))
        st = gx_collection_no_memory(c, err);
    if (st == GX_OK) {
        gx_sweep_folder(path, &c->m);
        *out = c;
    } else {
        gx_collection_close(c);
    }
    return st;
}

void gx_collection_free_gone(gx_collection *c)
{
    for (uint32_t i = 0; c->gone && i < c->m.n_parts; ++i)
        gx_docid_set_clear(&c->gone[i]);
    free(c->gone);
    c->gone = NULL;
    gx_docid_set_clear(&c->gone_new);
}

void gx_collection_sweep(const gx_collection *c)
{
    gx_manifest m;
    if (gx_manifest_read(&m, c->path, NULL) != GX_OK)
        return;
    gx_sweep_folder(c->path, &m);
    gx_manifest_free(&m);
}

void gx_collection_close(gx_collection *c)
{
    if (!c)
        return;
    gx_builder_abort(c->builder);
    if (c->failed)
        gx_collection_sweep(c);
    gx_collection_free_gone(c);
    gx_index_close(c->ix);
    gx_manifest_free(&c->m);
    if (c->lock >= 0)
        close(c->lock); /* which unlocks it */
    free(c->path);
    free(c);
}

const gx_index *gx_collection_index(const gx_collection *c)
{
    return c->ix;
}

gx_status gx_collection_get_counts(const gx_collection *c, gx_collection_counts *counts)
{
    return gx_sized_write(counts, &c->counts, sizeof c->counts,
                          GX_SIZE_THROUGH(gx_collection_counts, merged_documents));
}

gx_status gx_collection_check(const gx_collection *c, gx_error *err)
{
    return c->failed ? gx_fail(err, GX_EUSAGE, "%s: a change failed before; open the collection again", c->path)
                     : GX_OK;
}

gx_status gx_collection_fail(gx_collection *c, gx_status st)
{
    c->failed = c->failed || st != GX_OK;
    return st;
}

/* ---- adding ---- */

char *gx_collection_part_path(const gx_collection *c, uint64_t number)
{
    char name[GX_MAX_PART_NAME + 1];
    snprintf(name, sizeof name, GX_PART_NAME, (unsigned long long)number);
    return gx_path_in(c->path, name);
}

static gx_status open_builder(gx_collection *c, gx_error *err)
{
    const gx_index *ix = c->ix;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_attribute attributes[GX_MAX_ATTRIBUTES];
    gx_bitmap_options bitmaps[GX_MAX_ATTRIBUTES];
    char names[GX_MAX_ATTRIBUTES][GX_MAX_ATTRIBUTE_NAME + 1];
    if (ix->impacts)
        return gx_fail(err, GX_EUSAGE, "%s holds impacts, which no text gives: documents cannot be added", c->path);
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        memcpy(names[i], ix->columns[i].name, ix->columns[i].name_len);
        names[i][ix->columns[i].name_len] = 0;
        attributes[i] = (gx_attribute){names[i], ix->columns[i].type};
        bitmaps[i] = ix->columns[i].bitmaps.asked;
    }
    c->number = c->m.next;
    char *path = gx_collection_part_path(c, c->number);
    gx_status st = path ? gx_codecs_of_index(ix, &o.docid_codec, &o.tf_codec, err) : gx_collection_no_memory(c, err);
    o.path = path;
    o.store_titles = ix->titles.n || ix->n_docs == 0;
    o.store_text = ix->text != NULL;
    o.memory = c->opt.memory;
    o.threads = c->opt.threads;
    o.attributes = attributes;
    o.n_attributes = ix->n_columns;
    o.bitmaps = bitmaps;
    if (st == GX_OK)
        st = gx_builder_open_like(&c->builder, &o, ix->analyzer, err);
    free(path);
    return st;
}

/* Where a live document of this id is: *part and *docid; false: there is none in the parts. */
static bool find_in_parts(const gx_collection *c, const char *id, size_t len, uint32_t *part, uint32_t *docid)
{
    for (uint32_t i = c->m.n_parts; i--;) {
        const gx_part *p = &c->ix->parts->parts[i];
        const gx_live live = {p->deletes, c->gone[i].words, c->gone[i].n_words};
        *docid = gx_index_find_live_doc(p->ix, &live, id, len);
        *part = i;
        if (*docid != UINT32_MAX)
            return true;
    }
    return false;
}

/* Before the document that no docid of the new part would number is added: later the whole commit would fail. */
static gx_status check_room(const gx_collection *c, gx_error *err)
{
    if (c->n_new < GX_MAX_PART_DOCS)
        return GX_OK;
    return gx_fail(err, GX_EUSAGE, "%s: %u documents have been added, the most that a part can have: commit them first",
                   c->path, GX_MAX_PART_DOCS);
}

static gx_status add_document(gx_collection *c, const gx_document *doc, gx_error *err)
{
    gx_error why = {0};
    gx_status st = check_room(c, err);
    if (st == GX_OK && !c->builder)
        st = gx_collection_fail(c, open_builder(c, err));
    if (st != GX_OK)
        return st;
    st = gx_builder_add(c->builder, doc, &why);
    if (st == GX_OK) {
        ++c->n_new;
        ++c->counts.added;
        return st;
    }
    gx_fail(err, st, "%s", why.text);
    return st == GX_EINPUT || st == GX_EUSAGE ? st : gx_collection_fail(c, st);
}

gx_status gx_collection_add(gx_collection *c, const gx_document *document, gx_error *err)
{
    gx_document doc = {0};
    uint32_t part, docid;
    gx_status st = gx_collection_check(c, err);
    if (st == GX_OK)
        st = gx_sized_read(&doc, sizeof doc, document, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err);
    if (st != GX_OK)
        return st;
    if (find_in_parts(c, doc.id, doc.id_len, &part, &docid) ||
        (c->builder && gx_builder_find(c->builder, doc.id, doc.id_len) != UINT32_MAX))
        return gx_fail(err, GX_EINPUT, "the id \"%.*s\" is that of a document of %s already; update replaces it",
                       (int)(doc.id_len < 200 ? doc.id_len : 200), doc.id, c->path);
    return add_document(c, &doc, err);
}

/* ---- deleting ---- */

gx_status gx_collection_delete(gx_collection *c, const char *id, size_t len, bool *found, gx_error *err)
{
    uint32_t part, docid;
    gx_status st = gx_collection_check(c, err);
    *found = false;
    if (st != GX_OK)
        return st;
    if (c->builder && (docid = gx_builder_forget(c->builder, id, len)) != UINT32_MAX) {
        *found = gx_docid_set_add(&c->gone_new, docid);
        st = *found ? GX_OK : gx_collection_fail(c, gx_collection_no_memory(c, err));
    } else if (find_in_parts(c, id, len, &part, &docid)) {
        *found = gx_docid_set_add(&c->gone[part], docid);
        st = *found ? GX_OK : gx_collection_fail(c, gx_collection_no_memory(c, err));
    }
    c->counts.deleted += *found;
    return st;
}

gx_status gx_collection_update(gx_collection *c, const gx_document *document, bool *replaced, gx_error *err)
{
    gx_document doc = {0};
    bool had = false;
    gx_status st = gx_collection_check(c, err);
    if (st == GX_OK)
        st = gx_sized_read(&doc, sizeof doc, document, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err);
    if (st == GX_OK)
        st = check_room(c, err);
    if (st == GX_OK && !c->builder)
        st = gx_collection_fail(c, open_builder(c, err));
    if (st == GX_OK) /* else a bad document would have deleted the good one */
        st = gx_builder_check(c->builder, &doc, err);
    if (st == GX_OK)
        st = gx_collection_delete(c, doc.id, doc.id_len, &had, err);
    if (st == GX_OK)
        st = add_document(c, &doc, err);
    if (replaced)
        *replaced = had;
    return st;
}
