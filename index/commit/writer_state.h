/* writer_state.h: what the files that change a collection share.
 *
 *   writer.c        opens it; documents are added, deleted and updated
 *   next_commit.c   commits
 *   merge.c         merges parts
 */
#ifndef GX_INDEX_COMMIT_WRITER_STATE_H
#define GX_INDEX_COMMIT_WRITER_STATE_H

#include <sys/types.h>

#include "engine/api/gpuidx_advanced.h"
#include "index/commit/docid_set.h"
#include "index/manifest.h"
#include "index/read/collection.h"

#define GX_MAX_PART_DOCS (UINT32_MAX - 1)

struct gx_collection {
    char *path;
    int dir_fd;        /* the folder: what is done is done there, wherever it is moved */
    int cwd;           /* what path is relative to */
    int lock;          /* LOCK in it */
    pid_t pid;         /* of the process that holds the lock; a forked child has the descriptor, too */
    gx_place place;    /* of new files */
    gx_unsynced files; /* those of the next commit */
    gx_collection_options opt;
    gx_manifest m;
    gx_index *ix;          /* the last commit: the parts of m */
    gx_docid_set *gone;    /* [m.n_parts] deleted since */
    gx_builder *builder;   /* NULL: nothing has been added since */
    uint64_t number;       /* of the builder's file */
    gx_docid_set gone_new; /* of the builder's documents */
    uint32_t n_new;        /* documents added to the builder, those deleted since among them */
    gx_collection_counts counts;
    bool failed;     /* nothing but close is allowed */
    bool keep_files; /* it is not known which commit a crash would leave, or the folder is another writer's */
};

gx_status gx_collection_no_memory(const gx_collection *c, gx_error *err); /* GX_ENOMEM, told */

/* GX_EUSAGE if a change failed before. */
gx_status gx_collection_check(const gx_collection *c, gx_error *err);

/* A change that cannot be undone alone: only the last commit is left. */
gx_status gx_collection_fail(gx_collection *c, gx_status st);

/* GX_EIO where the folder, its lock or its manifest is not the one any more that was opened: nothing may be written. */
gx_status gx_collection_check_place(gx_collection *c, gx_error *err);

/* Remove what a change that failed has left, by the manifest on disk. */
void gx_collection_sweep(gx_collection *c);

void gx_collection_free_gone(gx_collection *c);

/* The path of the part of this number; the caller frees. NULL: no memory. */
char *gx_collection_part_path(const gx_collection *c, uint64_t number);

/* The parts and the manifest of the next commit, while they are being made. */
typedef struct gx_next_commit {
    gx_manifest m; /* n_parts of room for max_parts */
    gx_part *parts;
    uint32_t max_parts;
} gx_next_commit;

/* Free what n holds, also after gx_next_commit_begin or gx_next_commit_finish has failed. */
void gx_next_commit_free(gx_next_commit *n);

/* A commit without parts so far. GX_ENOMEM. */
gx_status gx_next_commit_begin(gx_next_commit *n, const gx_collection *c, gx_error *err);

/* Append a part. Takes the references. */
void gx_next_commit_append(gx_next_commit *n, const gx_manifest_part *m, gx_index *ix, gx_deletes *deletes);

/* Append the i-th part of the last commit, without what has been deleted since; nothing if that is all. */
gx_status gx_next_commit_keep(gx_next_commit *n, gx_collection *c, uint32_t i, gx_error *err);

/* Remove a file that was written for the next commit, and is not to be in it. */
void gx_next_commit_drop_file(const gx_collection *c, const char *name);

/* Merge small parts of the next commit before it is one, so that they need no commit of their own. What fails here is
 * left to a later merge. */
void gx_next_commit_fold(gx_next_commit *n, gx_collection *c);

/* As gx_collection_commit. fold: with gx_next_commit_fold. */
gx_status gx_collection_commit_folded(gx_collection *c, bool fold, gx_error *err);

/* Open the file of a part that has been written, and describe it in *m. */
gx_status gx_next_commit_open_part(const gx_collection *c, uint64_t number, gx_index **ix, gx_manifest_part *m,
                                   gx_error *err);

/* Sync the files, write the manifest; the commit becomes the collection's. Takes what n holds. If a step behind the
 * manifest fails, nothing but close is allowed. */
gx_status gx_next_commit_finish(gx_collection *c, gx_next_commit *n, gx_error *err);

#endif
