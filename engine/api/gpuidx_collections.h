/* gpuidx_collections.h: several index files as one index, and how it is changed. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_COLLECTIONS_H
#define GPUIDX_COLLECTIONS_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- collections: several index files as one index, to which documents are added and from which
 * they are deleted ---- */

/* A collection is a folder: index files, which never change, the deleted documents of each, and a
 * manifest, which names the files of the last commit (FORMAT.md, "Collections").
 *
 *   parts (gpuidx build) -- gx_collect --> folder -- gx_index_open --> gx_index of its live
 *   documents
 *                                            ^
 *                       gx_collection_open --'  add, delete, update, merge, commit
 *
 * gx_index_open takes the folder's path as it takes a file's. The index equals the one that a build
 * of the live documents, in their order, would make: docids (from 0, without gaps), statistics,
 * term numbers, and so the answers of every search, to the bit (but for searches with
 * gx_query_options.block_budget). It is one commit, and stays it;
 * later commits change nothing in it, and the files that it uses remain until it is closed.
 * gx_index_reopen gives the last commit. gx_index_meta is that of the first part.
 *
 * A part has at most 2^32 - 2 documents, deleted ones included; all parts together may have more. Such a collection
 * is wide: its docids are numbers of 64 bits, in the same order. All that searches, changes and tells of a collection
 * takes a wide one. What makes one file of all its documents refuses it with GX_EUSAGE (GX_MERGE_ALL, GX_JOIN_ALWAYS,
 * gx_index_rewrite, exports but that of attributes). */

/* Make a collection of n index files, or a copy of the last commit of one collection, at folder path, which is
 * created. Their documents are in the
 * order of the files. The files get a second name in the folder (a hard link), or are copied where
 * it lies on another file system; as ever, they must not be written into. A copy may be made while others search and
 * change the collection, and is one commit. GX_EUSAGE (no file; files
 * that differ in analyzer, block length, attributes, in storing texts or in holding impacts; an
 * external id in two of them), GX_EEXISTS (the folder exists), GX_ENOTFOUND, GX_EIO, GX_ECORRUPT
 * (one is damaged), GX_ENOMEM; then there is no folder. */
GX_API gx_status gx_collect(const char *path, const char *const *files, size_t n, gx_error *err);

/* Make a collection without documents at folder path, to which documents are added as a builder with these options
 * would
 * take them (path, source, force and duplicates count for nothing; NULL: the defaults). *made: it was made. Where
 * there is
 * one already it stays as it is, if documents are taken alike there, and with opt NULL in any case. GX_EUSAGE (they are
 * not: another analyzer, other attributes, another block length, in storing titles or texts; vectors or none, or
 * another unit, which must be given with vectors), GX_EEXISTS (path
 * is no collection), statuses of gx_builder_open and gx_index_open. */
GX_API gx_status gx_collection_create(const char *path, const gx_builder_options *opt, bool *made, gx_error *err);

/* Open the last commit of the collection that old is a commit of, with the parts that both have
 * shared. *out is NULL, and the status GX_OK, where old is the last commit or is no collection. It
 * reads the manifest, which takes about 20 us. opt may be NULL. Statuses as of gx_index_open.
 * Thread-safe. */
GX_API gx_status gx_index_reopen(gx_index **out, const gx_index *old, const gx_index_options *opt, gx_error *err);

/* As gx_index_get_stats, which takes a pass over the terms of a collection's parts, once; this
 * takes no time, but n_terms may be 0 of a collection. */
GX_API gx_status gx_index_get_quick_stats(const gx_index *ix, gx_index_stats *st);
GX_API uint64_t gx_index_n_docs(const gx_index *ix); /* their n_documents */

/* The parts of a collection and the number of its commit; 0 of an index that is one file. */
GX_API uint32_t gx_index_n_parts(const gx_index *ix);
GX_API uint64_t gx_index_commit(const gx_index *ix);

typedef struct gx_part_info {
    size_t size;
    const char *path; /* of the file; it belongs to the index */
    uint32_t n_docs;  /* live documents */
    uint32_t n_deleted;
    uint64_t bytes; /* of the file */
} gx_part_info;
/* What part i is. The caller sets out->size. GX_ENOTFOUND: i is not below gx_index_n_parts. */
GX_API gx_status gx_index_get_part(const gx_index *ix, uint32_t i, gx_part_info *out);

/* One of n processes that search a collection together (gx_engine_options.shard): each has all of
 * its files open, and searches some of the parts, side by side, by bytes. Statistics are those of
 * the whole. All processes search the same queries in the same batches, one session each, and all
 * get the same answers, those of the whole; counts of matches are those of a process's own parts. */
typedef struct gx_shard {
    uint32_t number, n; /* number < n */
    /* Called twice a pass over a batch of n queries: behind the process's first part, so that
     * thresholds travel, and at the end. Query i has n_keys[i] keys, falling, where ks[0] + ... +
     * ks[i - 1] keys may precede; each becomes the ks[i] greatest different ones of all
     * processes.
     *
     * A key is score << 32 | ~docid. Of a wide collection, highs[i] has the upper 32 bits of the docid of keys[i],
     * and of two keys that one is greater which has the greater score, or with equal scores the smaller docid. Of any
     * other collection, highs is NULL. */
    gx_status (*exchange)(void *user, uint64_t *keys, uint32_t *highs, uint32_t *n_keys, const uint32_t *ks, uint32_t n,
                          gx_error *err);
    void *user;
} gx_shard;

/* Open an engine on another commit of the collection that `old` is an engine of, with old's
 * options. It shares what old has made of the parts that both commits have. Where parts are joined
 * (gx_engine_options.join) that takes up to some tenths of a second more, of one processor in four:
 * the others answer queries, by `old` for example.
 * Sessions and masks are those of one engine; open new ones. A session on a GPU takes over the memory
 * of one on `old` that was closed before, so that opening it takes no time.
 * Both engines may be used, and are closed, independently. Statuses of gx_engine_open.
 * Thread-safe. */
GX_API gx_status gx_engine_reopen(gx_engine **out, const gx_engine *old, const gx_index *ix, gx_error *err);

/* ---- changing a collection ---- */

/* The one writer of a collection, which holds a lock on it until it is closed. Changes are seen by
 * nobody until gx_collection_commit returns; then they are on disk, and survive a crash of the
 * process or the machine. Readers go on with the commit that they have open. What is added and
 * deleted between two commits is one change: all of it is kept or none. A process that dies leaves
 * the last commit, and files that the next writer removes.
 *
 * After every commit, document frequencies, the number of documents and their lengths are those of
 * the live documents alone. A document added comes after all others. For one thread at a time. */
typedef struct gx_collection gx_collection;

typedef struct gx_collection_options {
    size_t size;
    uint64_t memory;  /* bytes for the inversion, as gx_builder_options.memory; 0: 512 MiB */
    uint32_t threads; /* of a build, as gx_builder_options.threads, and of a merge's lists */
    gx_check check;   /* of the files that are opened; default GX_CHECK_STRUCTURE */
    /* Called now and then during a merge, and while the lock is waited for; true: stop, GX_ECANCELLED. May be NULL. */
    bool (*cancel)(void *user);
    void *user;
    double wait; /* seconds to wait for the lock while another process has it; 0: none, INFINITY: as long as it takes */
} gx_collection_options;
#define GX_COLLECTION_OPTIONS                                                                                          \
    {                                                                                                                  \
        sizeof(gx_collection_options), 0, 0, GX_CHECK_STRUCTURE, NULL, NULL, 0                                         \
    }
GX_API void gx_collection_options_init(gx_collection_options *o, size_t size);

/* Take the lock, open the last commit, and remove files that a writer which died has left. opt may
 * be NULL. GX_EUSAGE (opt), GX_ENOTFOUND (the folder is no collection), GX_EIO (another process
 * holds the lock), GX_ECORRUPT, GX_ENOMEM. */
GX_API gx_status gx_collection_open(gx_collection **out, const char *path, const gx_collection_options *opt,
                                    gx_error *err);
/* Close it; what has not been committed is dropped. NULL is fine. */
GX_API void gx_collection_close(gx_collection *c);

/* The last commit, until the next one or gx_collection_close. */
GX_API const gx_index *gx_collection_index(const gx_collection *c);

/* Add a document; values of attributes are numbered as gx_index_get_attribute numbers them.
 * GX_EINPUT (an id that a live document has, and as gx_builder_add): it is not added, and the next
 * one may be. GX_EUSAGE: 2^32 - 2 documents have been added, which can be committed; or the collection holds impacts
 * that are not of vectors. To one of vectors they are added with vectors (gx_document.vector), whose weights become
 * impacts of its unit, as gx_builder_options.unit says; where that is 1 because all weights were whole numbers, a
 * fraction is GX_EINPUT.
 * After any other failure, of this and of the functions below, the collection must be closed and has
 * its last commit. */
GX_API gx_status gx_collection_add(gx_collection *c, const gx_document *doc, gx_error *err);

/* Delete the document of this id. *found: there was one. GX_ENOMEM. */
GX_API gx_status gx_collection_delete(gx_collection *c, const char *id, size_t len, bool *found, gx_error *err);

/* Delete the document of the same id, if there is one (*replaced, which may be NULL), and add this
 * one. GX_EINPUT (as gx_builder_add): neither is done. */
GX_API gx_status gx_collection_update(gx_collection *c, const gx_document *doc, bool *replaced, gx_error *err);

/* Make what was added and deleted since the last commit the next one. Without changes it does
 * nothing. GX_ECORRUPT, GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_collection_commit(gx_collection *c, gx_error *err);

typedef enum gx_merge_policy {
    /* Merge 4 neighbouring parts of about one size into one, none of which has more documents than the
     * others together, as long as there are any, and write parts of which more than a third is deleted
     * anew. So there are at most 3 parts of each of the sizes 10,000, 40,000, 160,000, ... documents
     * where parts are added at the end, and each document is written once a size. No part of more than 2^32 - 2
     * documents is made. */
    GX_MERGE_TIERS,
    GX_MERGE_ALL /* one part, without deleted documents; of a wide collection GX_EUSAGE */
} gx_merge_policy;

/* Commit, then merge parts, a commit each. Answers stay the same. GX_EUSAGE, GX_ECANCELLED (the
 * collection stays usable), GX_ECORRUPT, GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_collection_merge(gx_collection *c, gx_merge_policy policy, gx_error *err);

/* What was done since it was opened. */
typedef struct gx_collection_counts {
    size_t size;
    uint64_t added, deleted; /* documents; an update may count in both */
    uint64_t commits, merges;
    uint64_t merged_documents; /* that merges have written */
} gx_collection_counts;
/* The caller sets counts->size. GX_EUSAGE: it is too small. */
GX_API gx_status gx_collection_get_counts(const gx_collection *c, gx_collection_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
