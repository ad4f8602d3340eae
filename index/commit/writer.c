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
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/gpuidx_advanced.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/attributes.h"
#include "index/build/builder.h"
#include "index/collection.h"
#include "index/commit/files.h"
#include "index/convert/rewrite.h"

#define TIER 4u                   /* parts of about one size that are merged into one, which is of the next size */
#define SMALLEST_TIER 10000u      /* documents: smaller parts count as being of this size */
#define MAX_DOCS (UINT32_MAX - 1) /* of a part */
#define MAX_DELETED_SHARE 3u      /* a part is written anew if more than one in this many of its documents is deleted */

/* A set of docids that grows. */
typedef struct docid_set {
    uint64_t *words; /* [n_words] */
    size_t n_words;
    uint32_t n; /* docids in it */
} docid_set;

struct gx_collection {
    char *path;
    int lock;
    gx_collection_options opt;
    gx_manifest m;
    gx_index *ix;        /* the last commit: the parts of m */
    docid_set *gone;     /* [m.n_parts] deleted since */
    gx_builder *builder; /* NULL: nothing has been added since */
    uint64_t number;     /* of the builder's file */
    docid_set gone_new;  /* of the builder's documents */
    uint32_t n_new;      /* documents added to the builder, those deleted since among them */
    gx_collection_counts counts;
    bool failed; /* nothing but close is allowed */
};

/* ---- sets ---- */

static bool set_add(docid_set *s, uint32_t docid)
{
    const size_t at = docid / 64;
    if (at >= s->n_words) {
        const size_t n = at + at / 2 + 64;
        uint64_t *words = realloc(s->words, n * sizeof *words);
        if (!words)
            return false;
        memset(words + s->n_words, 0, (n - s->n_words) * sizeof *words);
        s->words = words;
        s->n_words = n;
    }
    s->words[at] |= UINT64_C(1) << docid % 64;
    ++s->n;
    return true;
}

static void set_clear(docid_set *s)
{
    free(s->words);
    *s = (docid_set){0};
}

/* Make the set readable for n_docs documents. */
static bool set_cover(docid_set *s, uint32_t n_docs)
{
    const size_t n = (size_t)n_docs / 64 + 1;
    if (s->n_words >= n)
        return true;
    uint64_t *words = realloc(s->words, n * sizeof *words);
    if (!words)
        return false;
    memset(words + s->n_words, 0, (n - s->n_words) * sizeof *words);
    s->words = words;
    s->n_words = n;
    return true;
}

static gx_status no_memory(const gx_collection *c, gx_error *err)
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
        st = no_memory(c, err);
    if (st == GX_OK) {
        gx_sweep_folder(path, &c->m);
        *out = c;
    } else {
        gx_collection_close(c);
    }
    return st;
}

static void free_gone(gx_collection *c)
{
    for (uint32_t i = 0; c->gone && i < c->m.n_parts; ++i)
        set_clear(&c->gone[i]);
    free(c->gone);
    c->gone = NULL;
    set_clear(&c->gone_new);
}

/* Remove what a change that failed has left, by the manifest on disk. */
static void sweep(const gx_collection *c)
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
        sweep(c);
    free_gone(c);
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

static gx_status check_state(const gx_collection *c, gx_error *err)
{
    return c->failed ? gx_fail(err, GX_EUSAGE, "%s: a change failed before; open the collection again", c->path)
                     : GX_OK;
}

/* A change that cannot be undone alone: only the last commit is left. */
static gx_status fail(gx_collection *c, gx_status st)
{
    c->failed = c->failed || st != GX_OK;
    return st;
}

/* ---- adding ---- */

static char *part_path(const gx_collection *c, uint64_t number)
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
    char *path = part_path(c, c->number);
    gx_status st = path ? gx_codecs_of_index(ix, &o.docid_codec, &o.tf_codec, err) : no_memory(c, err);
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
    if (c->n_new < MAX_DOCS)
        return GX_OK;
    return gx_fail(err, GX_EUSAGE, "%s: %u documents have been added, the most that a part can have: commit them first",
                   c->path, MAX_DOCS);
}

static gx_status add_document(gx_collection *c, const gx_document *doc, gx_error *err)
{
    gx_error why = {0};
    gx_status st = check_room(c, err);
    if (st == GX_OK && !c->builder)
        st = fail(c, open_builder(c, err));
    if (st != GX_OK)
        return st;
    st = gx_builder_add(c->builder, doc, &why);
    if (st == GX_OK) {
        ++c->n_new;
        ++c->counts.added;
        return st;
    }
    gx_fail(err, st, "%s", why.text);
    return st == GX_EINPUT || st == GX_EUSAGE ? st : fail(c, st);
}

gx_status gx_collection_add(gx_collection *c, const gx_document *document, gx_error *err)
{
    gx_document doc = {0};
    uint32_t part, docid;
    gx_status st = check_state(c, err);
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
    gx_status st = check_state(c, err);
    *found = false;
    if (st != GX_OK)
        return st;
    if (c->builder && (docid = gx_builder_forget(c->builder, id, len)) != UINT32_MAX) {
        *found = set_add(&c->gone_new, docid);
        st = *found ? GX_OK : fail(c, no_memory(c, err));
    } else if (find_in_parts(c, id, len, &part, &docid)) {
        *found = set_add(&c->gone[part], docid);
        st = *found ? GX_OK : fail(c, no_memory(c, err));
    }
    c->counts.deleted += *found;
    return st;
}

gx_status gx_collection_update(gx_collection *c, const gx_document *document, bool *replaced, gx_error *err)
{
    gx_document doc = {0};
    bool had = false;
    gx_status st = check_state(c, err);
    if (st == GX_OK)
        st = gx_sized_read(&doc, sizeof doc, document, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err);
    if (st == GX_OK)
        st = check_room(c, err);
    if (st == GX_OK && !c->builder)
        st = fail(c, open_builder(c, err));
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

/* ---- commits ---- */

/* The parts and the manifest of the next commit, while they are being made. */
typedef struct next_commit {
    gx_manifest m; /* n_parts of room for max_parts */
    gx_part *parts;
    uint32_t max_parts;
} next_commit;

static void free_next(next_commit *n)
{
    for (uint32_t i = 0; n->parts && i < n->m.n_parts; ++i) {
        gx_deletes_close(n->parts[i].deletes);
        gx_index_close(n->parts[i].ix);
    }
    free(n->parts);
    gx_manifest_free(&n->m);
}

static gx_status begin_commit(next_commit *n, const gx_collection *c, gx_error *err)
{
    *n = (next_commit){.m = c->m, .max_parts = c->m.n_parts + 1};
    ++n->m.commit;
    n->m.n_parts = 0;
    n->m.parts = calloc(n->max_parts, sizeof *n->m.parts);
    n->parts = calloc(n->max_parts, sizeof *n->parts);
    return n->m.parts && n->parts ? GX_OK : no_memory(c, err);
}

/* Takes the references. */
static void append_part(next_commit *n, const gx_manifest_part *m, gx_index *ix, gx_deletes *deletes)
{
    n->m.parts[n->m.n_parts] = *m;
    n->parts[n->m.n_parts++] = (gx_part){ix, deletes, 0, 0};
}

/* Delete documents of a part that is to be in the next commit, in a new file. */
static gx_status delete_from(next_commit *n, const gx_collection *c, gx_manifest_part *m, const gx_index *ix,
                             gx_deletes **deletes, docid_set *gone, gx_error *err)
{
    gx_deletes *d;
    const size_t stem = strlen(m->file) - strlen(".gx");
    if (!set_cover(gone, ix->n_docs))
        return no_memory(c, err);
    gx_status st = gx_deletes_make(&d, ix, *deletes, gone->words, err);
    if (st != GX_OK)
        return st;
    gx_deletes_close(*deletes);
    *deletes = d;
    if (d->n_deleted == ix->n_docs) /* the part goes, unless it is the last */
        return GX_OK;
    snprintf(m->deletes.file, sizeof m->deletes.file, GX_DELETES_NAME, (int)stem, m->file,
             (unsigned long long)n->m.commit);
    return gx_deletes_write(d, c->path, ix, &m->deletes, err);
}

static gx_status keep_part(next_commit *n, gx_collection *c, uint32_t i, gx_error *err)
{
    gx_manifest_part m = c->m.parts[i];
    const gx_part *p = &c->ix->parts->parts[i];
    gx_deletes *deletes = gx_deletes_share(p->deletes);
    const gx_status st = c->gone[i].n ? delete_from(n, c, &m, p->ix, &deletes, &c->gone[i], err) : GX_OK;
    if (st == GX_OK && !(deletes && deletes->n_deleted == p->ix->n_docs))
        append_part(n, &m, gx_index_share(p->ix), deletes);
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

static gx_status open_new_part(const gx_collection *c, uint64_t number, gx_index **ix, gx_manifest_part *m,
                               gx_error *err)
{
    char *path = part_path(c, number);
    const gx_status st = path ? gx_index_open_at(ix, path, GX_CHECK_STRUCTURE, GX_LOAD_MAP, err) : no_memory(c, err);
    free(path);
    if (st == GX_OK)
        describe_part(m, *ix, number);
    return st;
}

/* The part of the documents added. */
static gx_status add_part(next_commit *n, gx_collection *c, gx_error *err)
{
    gx_index *ix = NULL;
    gx_deletes *deletes = NULL;
    gx_manifest_part m;
    n->m.next = c->number + 1;
    gx_status st = gx_builder_finish(c->builder, err);
    if (st == GX_OK)
        st = open_new_part(c, c->number, &ix, &m, err);
    if (st == GX_OK && c->gone_new.n)
        st = delete_from(n, c, &m, ix, &deletes, &c->gone_new, err);
    const bool empty = ix && (deletes ? deletes->n_deleted == ix->n_docs : ix->n_docs == 0);
    if (st == GX_OK && !empty) {
        append_part(n, &m, ix, deletes);
        return st;
    }
    gx_deletes_close(deletes);
    gx_index_close(ix);
    return st;
}

/* All documents are gone: an index of none, which keeps analyzer and attributes. */
static gx_status add_empty_part(next_commit *n, gx_collection *c, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    gx_index *none, *ix = NULL;
    gx_manifest_part m;
    const uint64_t number = n->m.next++;
    char *path = part_path(c, number);
    gx_status st = path ? gx_collection_slice(&none, c->ix, 0, 1, err) : no_memory(c, err);
    if (st == GX_OK) {
        gx_part *p = &none->parts->parts[0];
        uint64_t *all = malloc(((size_t)p->ix->n_docs / 64 + 1) * sizeof *all);
        gx_deletes *old = p->deletes;
        if (all)
            memset(all, 0xff, ((size_t)p->ix->n_docs / 64 + 1) * sizeof *all);
        st = all ? gx_deletes_make(&p->deletes, p->ix, old, all, err) : no_memory(c, err);
        if (st == GX_OK) {
            gx_deletes_close(old);
            none->n_docs = p->n_live = 0;
            none->n_tokens = 0;
            st = gx_index_rewrite(none, path, &o, err);
        } else {
            p->deletes = old;
        }
        free(all);
        gx_index_close(none);
    }
    if (st == GX_OK && (st = open_new_part(c, number, &ix, &m, err)) == GX_OK)
        append_part(n, &m, ix, NULL);
    free(path);
    return st;
}

/* Write the manifest; the commit becomes the collection's. Takes what n holds. */
static gx_status finish_commit(gx_collection *c, next_commit *n, gx_error *err)
{
    gx_index *ix = calloc(1, sizeof *ix);
    const uint32_t n_parts = n->m.n_parts;
    docid_set *gone = calloc(n_parts + 1, sizeof *gone);
    gx_status st = ix && gone && (ix->path = strdup(c->path)) ? GX_OK : no_memory(c, err);
    if (st == GX_OK) {
        gx_part *parts = n->parts;
        n->parts = NULL;
        if ((st = gx_collection_of_parts(ix, parts, n_parts, err)) == GX_OK) {
            ix->parts->commit = n->m.commit;
            memcpy(ix->parts->uuid, n->m.uuid, sizeof n->m.uuid);
            st = gx_manifest_write(&n->m, c->path, true, err);
        }
    }
    if (st != GX_OK) {
        gx_index_close(ix);
        free(gone);
        return st;
    }
    free_gone(c);
    gx_index_close(c->ix);
    gx_manifest_free(&c->m);
    c->ix = ix;
    c->n_new = 0;
    c->gone = gone;
    c->m = n->m;
    n->m = (gx_manifest){0};
    gx_sweep_folder(c->path, &c->m);
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
    next_commit n;
    gx_status st = check_state(c, err);
    if (st != GX_OK || !is_changed(c))
        return st;
    st = begin_commit(&n, c, err);
    for (uint32_t i = 0; i < c->m.n_parts && st == GX_OK; ++i)
        st = keep_part(&n, c, i, err);
    if (st == GX_OK && c->builder)
        st = add_part(&n, c, err);
    if (st == GX_OK && n.m.n_parts == 0)
        st = add_empty_part(&n, c, err);
    if (st == GX_OK && n.m.n_parts > GX_MAX_PARTS)
        st = gx_fail(err, GX_EUSAGE, "%s would have more than %u parts: merge it", c->path, GX_MAX_PARTS);
    if (st == GX_OK)
        st = finish_commit(c, &n, err);
    free_next(&n);
    gx_builder_abort(c->builder);
    c->builder = NULL;
    c->counts.commits += st == GX_OK;
    return fail(c, st);
}

/* ---- merging ---- */

/* Put one part in the place of the parts [first, first + n_merged). */
static gx_status merge_run(gx_collection *c, uint32_t first, uint32_t n_merged, gx_error *err)
{
    gx_rewrite_options o = GX_REWRITE_OPTIONS;
    next_commit n;
    gx_index *slice, *ix = NULL;
    gx_manifest_part m;
    gx_status st = begin_commit(&n, c, err);
    const uint64_t number = n.m.next++;
    char *path = part_path(c, number);
    o.cancel = c->opt.cancel;
    o.user = c->opt.user;
    if (st == GX_OK && !path)
        st = no_memory(c, err);
    if (st == GX_OK && (st = gx_collection_slice(&slice, c->ix, first, n_merged, err)) == GX_OK) {
        c->counts.merged_documents += gx_index_n_docs(slice);
        st = gx_collection_rewrite(slice, path, &o, c->opt.threads ? c->opt.threads : 1, err);
        gx_index_close(slice);
    }
    free(path);
    for (uint32_t i = 0; i < c->m.n_parts && st == GX_OK; ++i) {
        if (i == first) {
            if ((st = open_new_part(c, number, &ix, &m, err)) == GX_OK)
                append_part(&n, &m, ix, NULL);
        } else if (i < first || i >= first + n_merged) {
            st = keep_part(&n, c, i, err);
        }
    }
    if (st == GX_OK)
        st = finish_commit(c, &n, err);
    free_next(&n);
    if (st == GX_ECANCELLED) { /* the last commit is as it was, and so is what has been said of it */
        sweep(c);
        return st;
    }
    c->counts.merges += st == GX_OK;
    return fail(c, st);
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
    return most <= all - most && all <= MAX_DOCS;
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
                       (unsigned long long)gx_index_n_docs(c->ix), MAX_DOCS);
    if (st == GX_OK && policy == GX_MERGE_ALL && (c->m.n_parts > 1 || c->ix->parts->parts[0].deletes))
        return merge_run(c, 0, c->m.n_parts, err);
    while (st == GX_OK && policy == GX_MERGE_TIERS && find_run(c, &first, &n))
        st = merge_run(c, first, n, err);
    return st;
}
