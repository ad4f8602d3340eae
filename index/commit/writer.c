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
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/clock.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/attributes/attributes.h"
#include "index/commit/files.h"
#include "index/convert/rewrite.h"
#include "index/fields/fields.h"
#include "index/inversion/builder.h"
#include "index/positions.h"
#include "index/write/bitmap_maker.h"

#define MAX_TRIES 100      /* to open a folder that is being replaced */
#define MOST_WAIT 50000000 /* ns between two looks at a lock that another process has */

gx_status gx_collection_no_memory(const gx_collection *c, gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "%s: no memory to change it", c->path);
}

/* ---- open and close ---- */

/* LOCK, which the first writer makes, for all who may write the manifest. -1 and errno. */
static int open_lock(const gx_collection *c)
{
    struct stat like;
    for (int tries = 0; tries < MAX_TRIES; ++tries) {
        int fd = openat(c->dir_fd, GX_LOCK_NAME, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == EACCES)
            fd = openat(c->dir_fd, GX_LOCK_NAME, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* which a local lock takes, too */
        if (fd >= 0 || errno != ENOENT)
            return fd;
        fd = openat(c->dir_fd, GX_LOCK_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 && fstatat(c->dir_fd, GX_MANIFEST_NAME, &like, 0) == 0)
            (void)!fchmod(fd, (like.st_mode & 0666) | 0200);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool is_cancelled(const gx_collection *c)
{
    return c->opt.cancel && c->opt.cancel(c->opt.user);
}

/* Wait for the lock until the deadline, by the clock of gx_clock_seconds. */
static gx_status wait_for_lock(const gx_collection *c, double deadline, gx_error *err)
{
    for (long ns = 1000000; flock(c->lock, LOCK_EX | LOCK_NB) != 0; ns = ns < MOST_WAIT ? 2 * ns : MOST_WAIT) {
        if (errno == EINTR)
            continue;
        if (errno != EWOULDBLOCK)
            return gx_fail(err, GX_EIO, "cannot lock %s: %s", c->path, strerror(errno));
        if (is_cancelled(c))
            return gx_fail(err, GX_ECANCELLED, "cancelled");
        if (gx_clock_seconds() >= deadline)
            return gx_fail(err, GX_EIO, "%s is being changed by another process; wait until it is done", c->path);
        nanosleep(&(struct timespec){0, ns}, NULL);
    }
    return GX_OK;
}

static void close_folder(gx_collection *c)
{
    if (c->lock >= 0 && c->pid == getpid()) /* a forked child, which has the descriptor, would keep the lock */
        flock(c->lock, LOCK_UN);
    if (c->lock >= 0)
        close(c->lock);
    if (c->dir_fd >= 0)
        close(c->dir_fd);
    c->lock = c->dir_fd = -1;
}

/* Whether folder and lock are still those at the path. */
static bool is_in_place(const gx_collection *c)
{
    return gx_has_name(c->dir_fd, c->cwd, c->path) && gx_has_name(c->lock, c->dir_fd, GX_LOCK_NAME);
}

/* Open the folder and lock it; again where another one has come in its place meanwhile. */
static gx_status take_lock(gx_collection *c, gx_error *err)
{
    const double deadline = gx_clock_seconds() + c->opt.wait;
    for (int tries = 0; tries < MAX_TRIES; ++tries) {
        if ((c->dir_fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            return gx_fail(err, gx_status_of_errno(errno), "cannot open %s: %s", c->path, strerror(errno));
        if ((c->lock = open_lock(c)) < 0)
            return gx_fail(err, GX_EIO, "cannot open %s/" GX_LOCK_NAME ": %s", c->path, strerror(errno));
        const gx_status st = wait_for_lock(c, deadline, err);
        if (st != GX_OK || is_in_place(c))
            return st;
        close_folder(c);
    }
    return gx_fail(err, GX_EIO, "cannot lock %s: it is replaced again and again", c->path);
}

gx_status gx_collection_check_place(gx_collection *c, gx_error *err)
{
    const char *what = NULL;
    if (!gx_has_name(c->dir_fd, c->cwd, c->path))
        what = "its folder has been moved, or another one has come in its place";
    else if (!gx_has_name(c->lock, c->dir_fd, GX_LOCK_NAME))
        what = "its file " GX_LOCK_NAME " has been removed or replaced";
    else if (!gx_manifest_is_last(&c->m, c->dir_fd))
        what = "its " GX_MANIFEST_NAME " has been replaced";
    else
        return GX_OK;
    c->keep_files = true;
    return gx_fail(err, GX_EIO, "%s: %s since it was opened: nothing is written; open it again", c->path, what);
}

static gx_status open_last_commit(gx_collection *c, gx_error *err)
{
    gx_status st = gx_manifest_read(&c->m, AT_FDCWD, c->path, err); /* before LOCK is made: it may be no collection */
    gx_manifest_free(&c->m);
    if (st == GX_OK)
        st = take_lock(c, err);
    if (st == GX_OK)
        st = gx_manifest_read(&c->m, c->dir_fd, c->path, err);
    if (st == GX_OK)
        st = gx_index_open_folder(&c->ix, c->dir_fd, c->path, c->opt.check, err);
    if (st == GX_OK && !(c->gone = calloc(c->m.n_parts, sizeof *c->gone)))
        st = gx_collection_no_memory(c, err);
    return st;
}

gx_status gx_collection_open(gx_collection **out, const char *path, const gx_collection_options *opt, gx_error *err)
{
    gx_collection_options own = GX_COLLECTION_OPTIONS;
    *out = NULL;
    gx_status st = gx_sized_read(&own, sizeof own, opt, GX_SIZE_THROUGH(gx_collection_options, user),
                                 "gx_collection_options", err);
    if (st == GX_OK && !(own.wait >= 0))
        st = gx_fail(err, GX_EUSAGE, "gx_collection_options.wait is %g, which is no number of seconds", own.wait);
    if (st != GX_OK)
        return st;
    gx_collection *c = calloc(1, sizeof *c);
    if (!c)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    c->opt = own;
    c->lock = c->dir_fd = -1;
    c->pid = getpid();
    if ((c->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
        c->cwd = AT_FDCWD;
    if (!(c->path = strdup(path)))
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK)
        st = open_last_commit(c, err);
    c->place = (gx_place){c->dir_fd, GX_MANIFEST_NAME, &c->files};
    if (st == GX_OK) {
        gx_sweep_folder(c->dir_fd, &c->m);
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

void gx_collection_sweep(gx_collection *c)
{
    gx_manifest m;
    gx_unsynced_forget(&c->files);
    if (c->keep_files || gx_manifest_read(&m, c->dir_fd, c->path, NULL) != GX_OK)
        return;
    gx_sweep_folder(c->dir_fd, &m);
    gx_manifest_free(&m);
}

void gx_collection_close(gx_collection *c)
{
    if (!c)
        return;
    gx_builder_abort(c->builder);
    if (c->failed && c->pid == getpid())
        gx_collection_sweep(c);
    gx_unsynced_forget(&c->files);
    gx_collection_free_gone(c);
    gx_index_close(c->ix);
    gx_manifest_free(&c->m);
    close_folder(c);
    if (c->cwd >= 0)
        close(c->cwd);
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
    if (ix->impacts && !gx_index_impact_bits(ix))
        return gx_fail(err, GX_EUSAGE,
                       "%s holds impacts that are not of vectors: neither texts nor vectors can be added", c->path);
    if (memmem(ix->meta, ix->meta_len, "\"fixed_fields\"", 14))
        return gx_fail(err, GX_EUSAGE,
                       "%s has fields of fixed weights, which the documents of a collection cannot have", c->path);
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        memcpy(names[i], ix->columns[i].name, ix->columns[i].name_len);
        names[i][ix->columns[i].name_len] = 0;
        attributes[i] = (gx_attribute){names[i], ix->columns[i].type};
        bitmaps[i] = gx_bitmap_options_asked(ix->columns[i].type, &ix->columns[i].bitmaps.asked);
    }
    c->number = c->m.next;
    char *path = gx_collection_part_path(c, c->number);
    gx_status st = path ? gx_codecs_of_index(ix, &o.docid_codec, &o.tf_codec, err) : gx_collection_no_memory(c, err);
    o.path = path;
    o.store_titles = gx_index_stores_titles(ix);
    o.store_text = ix->text != NULL;
    o.positions = gx_index_has_positions(ix);
    o.vector_bits = ix->impacts ? gx_index_impact_bits(ix) : 0;
    o.unit = ix->impacts ? ix->impact_unit : 0;
    o.memory = c->opt.memory;
    o.threads = c->opt.threads;
    o.attributes = attributes;
    o.n_attributes = ix->n_columns;
    o.bitmaps = bitmaps;
    gx_field fields[GX_MAX_INDEX_FIELDS];
    for (uint32_t f = 0; ix->fields && f < ix->fields->n; ++f)
        fields[f] = (gx_field){ix->fields->names[f], 0};
    o.fields = fields;
    o.n_fields = ix->fields ? ix->fields->n : 0;
    if (st == GX_OK)
        st = gx_builder_open_like(&c->builder, &o, ix->analyzer, &c->place, err);
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

/* Of a collection whose unit is 1 because all of its weights are whole numbers, and not because it was asked for. */
static gx_status check_whole(const gx_collection *c, const gx_document *doc, gx_error *err)
{
    const gx_index *ix = c->ix;
    if (!ix->impacts || ix->impact_unit != 1 || memmem(ix->meta, ix->meta_len, "\"given\"", 7))
        return GX_OK;
    for (uint32_t i = 0; i < doc->n_vector; ++i)
        if (isfinite(doc->vector[i].weight) && doc->vector[i].weight != floorf(doc->vector[i].weight))
            return gx_fail(err, GX_EINPUT,
                           "a weight is %g, and all weights of %s are whole numbers, which its unit, 1, tells apart; "
                           "build it with a unit that is given, and fractions can be added",
                           doc->vector[i].weight, c->path);
    return GX_OK;
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
    if ((st = check_whole(c, &doc, err)) != GX_OK)
        return st;
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
    if (st == GX_OK)
        st = check_whole(c, &doc, err);
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
