/* gpuidx_advanced.h: what libgpuidx offers beyond gpuidx.h, and what may still change.
 *
 * The rules of gpuidx.h hold here too, but for one: any version may change or take away what stands
 * here, structs without a size among it. A program that uses it is compiled anew for each version
 * of the library.
 */
#ifndef GPUIDX_ADVANCED_H
#define GPUIDX_ADVANCED_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the GPUs of this machine ---- */

typedef struct gx_device {
    int number;                   /* CUDA's */
    char name[256];               /* "NVIDIA H100 80GB HBM3" */
    uint64_t memory, free_memory; /* bytes; free_memory 0 where the device cannot be asked */
    int major, minor;             /* compute capability */
    uint32_t multiprocessors;
    uint64_t l2_bytes;
    bool usable;
    char why[512]; /* why it is not usable, "" if it is */
} gx_device;

/* The GPUs seen, [*n] at *out, to be freed by the caller with free(). GX_OK with *n >= 1; GX_ENOGPU
 * with the reason in err when there is none to list (no driver, too old a driver, no device, built
 * without CUDA); GX_ENOMEM. */
GX_API gx_status gx_devices(gx_device **out, uint32_t *n, gx_error *err);

/* ---- verification of an index file ---- */

/* Verify the file at path, at exactly this level, without keeping it open. As gx_index_open, which
 * however never checks less than GX_CHECK_STRUCTURE. */
GX_API gx_status gx_index_verify(const char *path, gx_check level, gx_error *err);

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
 * gx_query_options.threshold_factor or block_budget). It is one commit, and stays it;
 * later commits change nothing in it, and the files that it uses remain until it is closed.
 * gx_index_reopen gives the last commit. gx_index_meta is that of the first part.
 *
 * A part has at most 2^32 - 2 documents, deleted ones included; all parts together may have more. Such a collection
 * is wide: its docids are numbers of 64 bits, in the same order. All that searches, changes and tells of a collection
 * takes a wide one. What makes one file of all its documents refuses it with GX_EUSAGE (GX_MERGE_ALL, GX_JOIN_ALWAYS,
 * gx_index_rewrite, exports but that of attributes). */

/* Make a collection of n index files at folder path, which is created. Their documents are in the
 * order of the files. The files get a second name in the folder (a hard link), or are copied where
 * it lies on another file system; as ever, they must not be written into. GX_EUSAGE (no file; files
 * that differ in analyzer, block length, attributes, in storing texts or in holding impacts; an
 * external id in two of them), GX_EEXISTS (the folder exists), GX_ENOTFOUND, GX_EIO, GX_ECORRUPT
 * (one is damaged), GX_ENOMEM; then there is no folder. */
GX_API gx_status gx_collect(const char *path, const char *const *files, size_t n, gx_error *err);

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
 * options. It shares what old has made of the parts that both commits have, so that it takes no
 * longer than the parts that are new. One processor in four joins parts: the others answer queries.
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
    uint64_t memory;            /* bytes for the inversion, as gx_builder_options.memory; 0: 512 MiB */
    uint32_t threads;           /* of a build, as gx_builder_options.threads, and of a merge's lists */
    gx_check check;             /* of the files that are opened; default GX_CHECK_STRUCTURE */
    bool (*cancel)(void *user); /* called now and then during a merge; true: stop, GX_ECANCELLED. May be NULL */
    void *user;
} gx_collection_options;
#define GX_COLLECTION_OPTIONS                                                                                          \
    {                                                                                                                  \
        sizeof(gx_collection_options), 0, 0, GX_CHECK_STRUCTURE, NULL, NULL                                            \
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
 * one may be. GX_EUSAGE: the collection holds impacts, or 2^32 - 2 documents have been added, which can be committed.
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

/* ---- corpora: documents from files ---- */

/* What a file of documents is. The manual page gpuidx-build(1) says what a document of each format
 * is, and where its id, title and text come from. */
typedef enum gx_source_format {
    GX_SOURCE_GUESS, /* by the file's name and first bytes; for a directory, by those of its first file */
    GX_SOURCE_JSONL,
    GX_SOURCE_TSV,
    GX_SOURCE_CSV,
    GX_SOURCE_TRECTEXT,
    GX_SOURCE_TRECWEB,
    GX_SOURCE_PLAIN,
    GX_SOURCE_FILES,
    GX_SOURCE_SMART,
    GX_SOURCE_WARC,
    GX_SOURCE_VECTORS, /* JSON objects with the member "vector": {term: weight}; gx_document.vector */
    GX_SOURCE_CSR      /* a sparse matrix in Big-ANN's form: a row a document, columns are terms */
} gx_source_format;

/* Find a format by its name, "jsonl" and so on. false: there is no such format. */
GX_API bool gx_source_format_find(const char *name, gx_source_format *out);
GX_API const char *gx_source_format_name(gx_source_format f); /* "guess" for GX_SOURCE_GUESS */

/* What names a document of the format files: a/b.html, b.html or b. */
typedef enum gx_file_id { GX_FILE_ID_PATH, GX_FILE_ID_NAME, GX_FILE_ID_STEM } gx_file_id;

typedef struct gx_source_options {
    size_t size;
    gx_source_format format;
    /* The columns of tsv and csv, such as "id,-,-,title,text". id occurs once. If title or text
     * occurs several times, the columns are joined with a space. The name of an attribute makes a
     * column its value. A column "-" is ignored. NULL: the file's header line names the columns;
     * without one, they are id,text or id,title,text. */
    const char *columns;
    size_t max_record; /* most bytes of a record, after decompression; 0: 64 MiB */
    bool latin1;       /* the bytes are Latin-1 (Windows-1252), not UTF-8 */
    bool else_latin1;  /* a title or text that is not UTF-8 is Latin-1; false: it is repaired */
    gx_file_id file_id;
    bool (*cancel)(void *user); /* called at every read; true: stop. May be NULL */
    void *user;
    /* The fields of jsonl and vectors, such as "id=docno,text=content,title" ("title" is
     * "title=title"). id occurs once. Several fields of title or text are joined with a space.
     * NULL: id, _id or docid; title; text, contents or content. Of vectors also "vector=NAME", the
     * object of terms and weights; without it, its name is vector. */
    const char *fields;
    /* [n_attributes] The source reads the members of JSON objects, and the columns of tsv and
     * csv, of these names as values of attributes, and uses them for nothing else. An array has
     * several values; a column has them with commas between, unless its type is
     * GX_ATTRIBUTE_KEYWORD. The names must outlive the source. */
    const gx_attribute *attributes;
    uint32_t n_attributes;
    /* Threads, at most 16, that read a large file of jsonl, tsv, vectors, plain, trectext or trecweb
     * ahead of the caller of gx_source_next, if it is not compressed; 0: none. Documents, errors and
     * counts are the same. */
    uint32_t threads;
} gx_source_options;
#define GX_SOURCE_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_source_options), GX_SOURCE_GUESS, NULL, 0, false, false, GX_FILE_ID_PATH, NULL, NULL, NULL, NULL, 0, \
            0                                                                                                          \
    }
GX_API void gx_source_options_init(gx_source_options *o, size_t size);

typedef struct gx_source gx_source;

/* Check that the n paths can be read, and begin. A path is a file, a directory (all files below it,
 * except hidden ones) or "-" (stdin). The strings of paths and opt must outlive the source. opt may
 * be NULL. GX_EUSAGE (opt's size, bad columns or fields, no path, "-" twice), GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. */
GX_API gx_status gx_source_open(gx_source **out, const char *const *paths, size_t n, const gx_source_options *opt,
                                gx_error *err);
GX_API void gx_source_close(gx_source *s);

/* A document and where it begins. */
typedef struct gx_source_document {
    gx_document doc; /* title NULL: none. The bytes belong to the source until the next call */
    const char *file;
    uint64_t line; /* from 1 */
} gx_source_document;

/* Point *out to the next document, or to NULL after the last.
 * GX_EINPUT: a document is bad; err begins with "file:line: ". The next call continues behind the
 * document, or behind its file if the rest of the file cannot be read. After GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM or GX_ECANCELLED the only valid call is gx_source_close. */
GX_API gx_status gx_source_next(gx_source *s, const gx_source_document **out, gx_error *err);

typedef struct gx_source_counts {
    uint64_t documents;      /* good documents */
    uint64_t bad;            /* documents refused with GX_EINPUT */
    uint64_t too_long;       /* of these, those longer than max_record */
    uint64_t empty;          /* good documents with nothing but white space in title and text */
    uint64_t files;          /* files opened, each member of an archive being one */
    uint64_t bytes;          /* bytes read, after decompression */
    uint64_t nul_bytes;      /* NUL bytes, read as spaces */
    uint64_t latin1;         /* titles and texts read as Latin-1, by else_latin1 */
    uint64_t replaced;       /* sequences that are not UTF-8, read as U+FFFD */
    uint64_t raw_bytes;      /* bytes read, before decompression */
    uint64_t raw_total;      /* bytes of all files, before decompression; 0: unknown (a pipe) */
    gx_source_format format; /* of the file being read */
} gx_source_counts;
GX_API gx_source_counts gx_source_get_counts(const gx_source *s);

/* How gx_builder_add_source goes on. */
typedef struct gx_feed_options {
    size_t size;
    uint64_t limit; /* most documents that are taken, bad ones included; 0: all */
    /* A document is bad; err begins with "file:line: ". true: go on without it. NULL: stop. */
    bool (*bad)(void *user, const gx_error *err);
    void (*progress)(void *user); /* called now and then; may ask for counts. May be NULL */
    void *user;
} gx_feed_options;
#define GX_FEED_OPTIONS                                                                                                \
    {                                                                                                                  \
        sizeof(gx_feed_options), 0, NULL, NULL, NULL                                                                   \
    }
GX_API void gx_feed_options_init(gx_feed_options *o, size_t size);

/* Add all documents that the source has left, as gx_source_next and gx_builder_add do one after
 * another, with the same file, errors and counts, but for raw_bytes where a file is left early. The
 * builder's threads split files of all formats but smart and csr to documents. Idle ones
 * decompress the next files and members, in up to a quarter of the builder's memory besides it. The
 * functions of opt, which may be NULL, and of the source's options are called on the caller's thread alone.
 * GX_EINPUT: a document is bad, and opt->bad has not said to go on. After a failure, and where a
 * limit has ended the call, the source can only be closed; the builder is as after gx_builder_add.
 * GX_EUSAGE (opt's size), and the statuses of both. */
GX_API gx_status gx_builder_add_source(gx_builder *b, gx_source *s, const gx_feed_options *opt, gx_error *err);

/* ---- filters: expressions over attributes ---- */

/* A filter is a set of documents, given by an expression over the attributes of an index:
 *
 *   year:[2015 TO 2019] AND category:cs.IR AND NOT id:@list.txt AND price:<20 AND has:doi
 *
 * The manual page gpuidx-query(1) describes the syntax. A query may have a filter of its own
 * (gx_query.filter), and one of kind GX_QUERY_BOOLEAN conditions in its text; gx_mask_open makes a
 * mask, for all queries of a call, of a filter's words. A filter does not change: threads may share it. */

typedef struct gx_filter_options {
    size_t size;
    /* Called for each id:@FILE of the expression. It sets the bit of each document whose id the
     * file contains in words[ceil(n_docs / 64)], which are 0 before. If it fails, gx_filter_open
     * returns its status. NULL: gx_filter_open refuses id:@FILE. */
    gx_status (*read_ids)(void *user, const char *file, uint64_t *words, gx_error *err);
    void *user;
} gx_filter_options;
#define GX_FILTER_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_filter_options), NULL, NULL                                                                          \
    }
GX_API void gx_filter_options_init(gx_filter_options *o, size_t size);

/* Read an expression of len bytes. ix must outlive the filter. opt may be NULL. GX_EUSAGE: the
 * message names the column, in characters from 1, and for an unknown attribute the nearest one;
 * parentheses nest more than 64 levels deep, or there are more than 16,384 conditions.
 * GX_ENOMEM. */
GX_API gx_status gx_filter_open(gx_filter **out, const gx_index *ix, const char *text, size_t len,
                                const gx_filter_options *opt, gx_error *err);
GX_API void gx_filter_close(gx_filter *f); /* NULL is fine */

/* The filter in a canonical form, which does not depend on blanks, on quotes, or on parentheses
 * around one operand. Filters of equal texts select the same documents of an index, unless a
 * file of ids changes. [*len] bytes, which belong to the filter. */
GX_API const char *gx_filter_text(const gx_filter *f, size_t *len);

/* The documents that the filter selects: bit d % 64 of words[d / 64] is set for document d, and no
 * bit at n_docs and above. *n receives their number, UINT32_MAX where there are more, and may be NULL.
 * Takes a pass over the column of each condition. GX_ENOMEM. */
GX_API gx_status gx_filter_evaluate(const gx_filter *f, uint64_t *words /* [ceil(n_docs / 64)] */, uint32_t *n,
                                    gx_error *err);

/* ---- facets: the documents that match, counted by an attribute ---- */

/* How the values of an attribute are divided into groups. */
typedef enum gx_facet_grouping {
    GX_FACET_VALUES, /* a group a value, and of a date a group a year */
    GX_FACET_YEARS,  /* of a date, in UTC */
    GX_FACET_MONTHS,
    GX_FACET_DAYS,
    GX_FACET_BINS,  /* of int, float and date: `bins` ranges of the same width, from the least value that a match
                     * has to the greatest; fewer where there are fewer whole numbers between them */
    GX_FACET_WIDTH, /* of int and float: ranges of this width, one of which begins at 0; those that have a match */
    GX_FACET_STORED /* of int, float and date: the bins of the bitmap columns; of an index of one file that has them */
} gx_facet_grouping;

typedef enum gx_facet_order {
    GX_FACET_BY_COUNT, /* the largest count first; of equal counts, the smaller value first */
    GX_FACET_BY_VALUE
} gx_facet_order;

/* What is counted. */
typedef struct gx_facet {
    size_t size;
    const char *name; /* of the attribute; [name_len] bytes */
    size_t name_len;
    uint32_t n; /* most groups that are returned, the first of the order; 0: all */
    gx_facet_grouping grouping;
    gx_facet_order order;
    uint32_t bins; /* of GX_FACET_BINS: 1 to GX_MAX_BINS */
    double width;  /* of GX_FACET_WIDTH: above 0; of int a whole number */
} gx_facet;
#define GX_FACET                                                                                                       \
    {                                                                                                                  \
        sizeof(gx_facet), NULL, 0, 10, GX_FACET_VALUES, GX_FACET_BY_COUNT, 0, 0                                        \
    }

/* Read a facet from a text such as "category", "category:20" or "price:bins=10": the name, and behind
 * colons the number of groups (10), or all; by=year, month or day; bins=1 to GX_MAX_BINS; width=X;
 * bins=stored; order=count or value. bins and width mean all groups, by value, unless the text says
 * otherwise. out->name points into the text. GX_EUSAGE. */
GX_API gx_status gx_facet_read(gx_facet *out, const char *text, gx_error *err);

/* A group and its documents. */
typedef struct gx_facet_group {
    /* [len] bytes, NUL behind them: of a keyword the string, else what stands behind NAME: in a filter that
     * selects the group: 2019, true, 2019-05, [0 TO 9], [0.5 TO 1} */
    const char *text;
    size_t len;
    uint64_t count;
    int64_t first, last; /* of int, date (seconds since 1970) and bool: its values */
    double low, high;    /* of float: its values, without `high` where the text ends with } */
} gx_facet_group;

/* The answer of one facet. */
typedef struct gx_facet_answer {
    const char *name; /* [name_len] bytes */
    size_t name_len;
    gx_attribute_type type;
    uint64_t n_present, n_missing; /* matches that have a value; that have none */
    uint64_t n_groups;             /* all that have a match, and bins without one */
    uint32_t n;                    /* groups that are returned */
    const gx_facet_group *groups;  /* [n] */
} gx_facet_answer;

typedef struct gx_facets gx_facets;

/* Count all documents that match a query, not only the best k, by n facets. What matches is what
 * gx_results.n_matches counts, under the options' mask and the query's filter, without deleted documents.
 * A document of several values is counted once in each group that has one of them. Counts are exact and
 * the same of every engine. The CPU makes one pass over the lists of the query, in which the matches become
 * bits, and for each facet a pass over the values of the matches, or over the attribute's bitmap columns where
 * that takes less time. A GPU's session counts on the GPU where that is expected to take less time. The first
 * facet of an attribute copies it there: 1, 2 or 4 bytes for each value of a document. Where the index is a
 * collection, a facet has more than 2^20 groups or is GX_FACET_BINS of several values a document, or device_memory
 * has no room, the CPU counts. It does not search: k and scorer matter for GX_OP_AND_OR alone. Call gx_search
 * without options.count beside it. Memory while it runs: two bits a document, and 4 bytes for each string of a
 * keyword.
 *
 * The answer has its own copy of all texts, and is closed with gx_facets_close. opt may be NULL.
 * GX_EUSAGE (as gx_search; no such attribute, with the nearest one; a grouping that the type does not
 * have; an engine of a shard), GX_ENOMEM, GX_ECANCELLED, GX_EDEADLINE. */
GX_API gx_status gx_count_facets(gx_facets **out, gx_session *s, const gx_query *query, const gx_query_options *opt,
                                 const gx_facet *facets /* [n] */, uint32_t n, gx_error *err);
/* The same of n queries, each as large as the first says: out[i] is the answer to queries[i]. A GPU takes much less
 * time for many queries together than for one at a time. After a failure all of out[n] are NULL. */
GX_API gx_status gx_count_facets_batch(gx_facets **out /* [n] */, gx_session *s, const gx_query *queries, uint32_t n,
                                       const gx_query_options *opt, const gx_facet *facets /* [n_facets] */,
                                       uint32_t n_facets, gx_error *err);
/* The same of a set of documents of an index: bit d % 64 of words[d / 64] is set for document d, as
 * gx_filter_evaluate sets it. */
GX_API gx_status gx_count_facets_of(gx_facets **out, const gx_index *ix,
                                    const uint64_t *words /* [ceil(n_docs / 64)] */, const gx_facet *facets, uint32_t n,
                                    gx_error *err);
/* Check facets, as gx_count_facets does, before there is a query. */
GX_API gx_status gx_facets_check(const gx_index *ix, const gx_facet *facets, uint32_t n, gx_error *err);
GX_API uint64_t gx_facets_n_matches(const gx_facets *f);
GX_API const gx_facet_answer *gx_facets_get(const gx_facets *f, uint32_t i); /* i < n; it belongs to f */
GX_API void gx_facets_close(gx_facets *f);                                   /* NULL is fine */

/* ---- answers that need not be exact ---- */

/* Set o's approximate, threshold_factor and block_budget as a text says: a number from 0 to 1, which is
 * approximate; or, separated by commas, each at most once and in any order, "terms:X" (approximate, 0 to 1),
 * "threshold:X" (threshold_factor, 1 to GX_MAX_THRESHOLD_FACTOR) and "blocks:N" (block_budget, 1 to 2^32 - 1). What
 * the text does not name is off. GX_EUSAGE: *o is unchanged; o->size does not reach block_budget, or the error says
 * what of the text is wrong. */
GX_API gx_status gx_approximate_read(gx_query_options *o, const char *text, gx_error *err);

#define GX_APPROXIMATE_BYTES 96u
/* Write to text[GX_APPROXIMATE_BYTES], ending with 0, what gx_approximate_read reads: a number where no other than
 * approximate is set, "0" where answers are exact, else those that are set. o is full-sized. */
GX_API void gx_approximate_write(const gx_query_options *o, char *text);

/* ---- what the bytes of an index are used for ---- */

#define GX_MAX_SECTIONS 64u /* most sections of a file */
#define GX_MAX_CODINGS 16u  /* most pairs of codecs in a file */

typedef struct gx_section_size {
    char name[5]; /* "PAYL" */
    bool device;  /* an engine on a GPU copies it to the GPU */
    bool known;   /* false: an optional section that this version of the library skips */
    uint64_t offset, bytes;
} gx_section_size;

/* The lists of one pair of codecs. */
typedef struct gx_coding_size {
    const char *docid_codec, *tf_codec; /* their names; they live as long as the process */
    uint64_t n_lists, n_postings, n_blocks;
    uint64_t docid_bytes, tf_bytes; /* bytes of the payload */
} gx_coding_size;

typedef struct gx_index_sizes {
    uint32_t n_sections, n_codings;
    gx_section_size sections[GX_MAX_SECTIONS]; /* in order of offset */
    gx_coding_size codings[GX_MAX_CODINGS];
    uint64_t header_bytes;  /* header and section table */
    uint64_t padding_bytes; /* between and after sections */
    /* Bits per posting, averaged over the whole index; 0 when it has no postings. Decoding reads
     * all five parts, so the space of the lists is the sum. */
    double docid_bits, tf_bits; /* payload */
    double head_bits;           /* the first docid of each block: 32 bits a block */
    double end_bits;            /* the ends of each block: 64 bits a block */
    double list_bits;           /* the directory: 128 bits a list */
} gx_index_sizes;

/* Measure what the bytes of an open index are used for. Reads the directory once, which takes about
 * 1 ms per million lists. */
GX_API void gx_index_measure(const gx_index *ix, gx_index_sizes *out);

/* The mean of log2(gap) over all postings, where gap is the difference from the docid before in the
 * list, and from -1 for the first. It compares orders of documents independently of codecs. Decodes
 * all docids. 0: ix has no postings. */
GX_API double gx_order_gap_bits(const gx_index *ix);

/* What one list takes. */
typedef struct gx_list_size {
    const char *docid_codec, *tf_codec; /* their names; they live as long as the process */
    uint32_t n_blocks;
    uint64_t docid_bytes, tf_bytes; /* payload */
    uint64_t overhead_bytes;        /* the list's entry in the directory, its heads and its ends */
} gx_list_size;

/* The size of a term's list; zeros where term >= n_terms. */
GX_API void gx_index_list_size(const gx_index *ix, uint32_t term, gx_list_size *out);

/* ---- analysis without an index ---- */

/* Make the terms of a text with the analyzer that the first four name, as gx_builder_options
 * does; *out and *n as of gx_index_analyze. GX_EUSAGE (an unknown name), GX_ENOTFOUND and GX_EIO
 * (the file of stop words), GX_ENOMEM. */
GX_API gx_status gx_analyze_text(const char *analyzer, const char *stemmer, const char *stopwords, const char *fold,
                                 const char *text, size_t len, gx_text_term **out, size_t *n, gx_error *err);

/* ---- codecs ---- */

/* The name of the i-th codec, i from 0, as gx_builder_options.docid_codec takes it; NULL behind the
 * last. "auto" is not among them: it stands for a choice for each list. */
GX_API const char *gx_codec_name(uint32_t i);

/* ---- an index written anew: other codecs, another order, without titles or texts ---- */

/* How the documents of an index are put in order. */
typedef enum gx_order_kind {
    GX_ORDER_KEEP,   /* the present order */
    GX_ORDER_RANDOM, /* a random order, which the seed decides */
    GX_ORDER_BP,     /* recursive graph bisection, which begins with the present order */
    GX_ORDER_ID      /* by external id, in byte order; where ids are URLs, this puts the pages of a site together */
} gx_order_kind;

typedef struct gx_order_options {
    size_t size;
    gx_order_kind kind;
    uint64_t seed;              /* of GX_ORDER_RANDOM */
    uint32_t threads;           /* of GX_ORDER_BP, at most 256; 0: one. The order is the same for any number */
    uint32_t min_df;            /* of GX_ORDER_BP: it ignores terms of fewer documents; 0: 16 */
    uint32_t iterations;        /* of GX_ORDER_BP: most rounds of moves in a range of documents; 0: 20 */
    uint32_t leaf;              /* of GX_ORDER_BP: ranges of at most this many documents are not cut; 0: 16 */
    bool (*cancel)(void *user); /* called now and then, by any of the threads; true: stop. May be NULL */
    /* Receives the progress: `done` of `total` units of work. Any of the threads may call it, but
     * one thread at a time. May be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
} gx_order_options;
#define GX_ORDER_OPTIONS                                                                                               \
    {                                                                                                                  \
        sizeof(gx_order_options), GX_ORDER_KEEP, 0, 0, 0, 0, 0, NULL, NULL, NULL                                       \
    }
GX_API void gx_order_options_init(gx_order_options *o, size_t size);

/* Compute an order, for gx_rewrite_options.new_docids. new_docids[n_docs] receives a permutation:
 * the new docid of each document. opt may be NULL. GX_EUSAGE (opt's size, an unknown kind),
 * GX_ECORRUPT (a list decodes to docids that do not rise or are too large), GX_ECANCELLED,
 * GX_ENOMEM.
 *
 * Memory of GX_ORDER_BP, in bytes, where its terms are those of at least min_df documents:
 *     8   for each posting of its terms
 *    25   for each document
 *     4   for each term of the index
 *    16   for each of its terms and each thread
 * Memory of GX_ORDER_ID: 8 bytes for each document. */
GX_API gx_status gx_order_make(const gx_index *ix, const gx_order_options *opt, uint32_t *new_docids, gx_error *err);

/* Scores that can be kept as impacts. N, df, tf, dl and avgdl are as for BM25, cf is the sum of the
 * list's tfs, C the sum of all document lengths, f = tf / dl (.99999 where that is 1), ln natural
 * and lg the logarithm to base 2. A score below 0 counts as 0. */
typedef enum gx_impact_model {
    GX_IMPACTS_KEEP, /* the lists hold what they held */
    GX_IMPACTS_BM25, /* idf tf / (tf + k1 (1 - b + b dl / avgdl)), idf = ln(1 + (N - df + .5) / (df + .5)) */
    /* ln((N + 1) / (df + .5)) (k1 + 1) (t + delta) / (k1 + t + delta), t = tf / (1 - b + b dl / avgdl)
     * (Lv and Zhai, SIGIR 2011) */
    GX_IMPACTS_BM25L,
    /* (1 - f)^2 / (tf + 1) (tf lg(tf avgdl / dl N / cf) + .5 lg(2 pi tf (1 - f))) (Amati et al., TREC
     * 2007; Terrier) */
    GX_IMPACTS_DPH,
    /* ln(1 + tf / (mu cf / C)) + ln(mu / (dl + mu)) (Zhai and Lafferty, SIGIR 2001; Lucene, PISA) */
    GX_IMPACTS_QL,
    /* (t lg(t / l) + (l - t) lg e + .5 lg(2 pi t)) / (t + 1), t = tf lg(1 + c avgdl / dl), l = cf / N
     * (Amati and van Rijsbergen, TOIS 2002; Terrier) */
    GX_IMPACTS_PL2,
    GX_N_IMPACT_MODELS
} gx_impact_model;

typedef struct gx_impact_options {
    gx_impact_model model;
    uint32_t bits;              /* 4 to 16, as gx_builder_options.vector_bits; 0: 8 */
    bool list_units;            /* as in gx_builder_options */
    double k1, b, delta, mu, c; /* NaN: .9, .4 (of BM25L 1.2, .75); .5; 1000; 1 */
} gx_impact_options;
#define GX_IMPACT_OPTIONS                                                                                              \
    {                                                                                                                  \
        GX_IMPACTS_KEEP, 0, false, NAN, NAN, NAN, NAN, NAN                                                             \
    }

/* Read a model and its parameters, such as "dph" or "ql:mu=1000" or "bm25:k1=1.2,b=0.75", into
 * *out, whose bits and list_units stay. GX_EUSAGE. */
GX_API gx_status gx_impact_options_parse(gx_impact_options *out, const char *text, gx_error *err);

typedef struct gx_rewrite_options {
    size_t size;
    bool force;                 /* replace an existing file */
    const char *docid_codec;    /* a codec's name or "auto"; NULL: as in the index, "auto" where its lists differ */
    const char *tf_codec;       /* NULL: as docid_codec, or as in the index where that is NULL too */
    const uint32_t *new_docids; /* [n_docs] a permutation: the new docid of each old one; NULL: keep the order */
    bool drop_titles, drop_texts;
    const uint8_t *uuid;        /* [16], for reproducible files; NULL: a random one */
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
    gx_impact_options impacts; /* not GX_IMPACTS_KEEP: the lists' tfs become impacts of these scores */
} gx_rewrite_options;
#define GX_REWRITE_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_rewrite_options), false, NULL, NULL, NULL, false, false, NULL, NULL, NULL, GX_IMPACT_OPTIONS         \
    }
GX_API void gx_rewrite_options_init(gx_rewrite_options *o, size_t size);

/* Write ix to a new file at path. Terms, tfs, lengths, ids and the description stay the same, so
 * a query gives the same scores; if docids change, documents of equal score may come in another
 * order. With force, path may be the file of ix itself: the mapping of the old file stays valid.
 * opt may be NULL. Memory: 24 bytes for each posting of the longest list, and 4 bytes for each
 * document if the order changes.
 *
 * With options.impacts the new index holds impacts, for the scorer GX_IMPACT, whose scores are those
 * of the model, rounded to a multiple of the unit; lengths and the description, but for "impacts",
 * stay.
 *
 * GX_EUSAGE (opt's size, an unknown codec, new_docids is no permutation, impacts of an index that
 * holds impacts, a parameter out of its range), GX_ECORRUPT (a list
 * does not decode to rising docids below n_docs), GX_ECANCELLED, GX_EEXISTS, GX_ENOTFOUND (no
 * such directory), GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_index_rewrite(const gx_index *ix, const char *path, const gx_rewrite_options *opt, gx_error *err);

/* ---- collections of other engines ---- */

/* What an import has found in a file of attributes. */
typedef struct gx_import_counts {
    size_t size;
    uint64_t lines;        /* behind the header */
    uint64_t skipped;      /* bad ones among them */
    uint64_t without_line; /* documents that no line, or a bad one, is of: they have no attributes */
} gx_import_counts;

typedef struct gx_import_options {
    size_t size;
    bool force;              /* replace an existing file */
    const char *docid_codec; /* a codec's name or "auto"; NULL: "gpubp128" */
    const char *tf_codec;    /* NULL: as docid_codec */
    /* How the index makes terms of queries, as in gx_builder_options. With analyzer NULL, stemmer,
     * stopwords and fold must be NULL too; gx_ciff_import then chooses as it describes, and
     * gx_ds2i_import takes "whitespace". */
    const char *analyzer, *stemmer, *stopwords;
    bool impacts; /* the tfs are impacts; implied by the description of gpuidx's own exports */
    /* For gx_ds2i_import: files of names. NULL: BASE.terms and BASE.documents if they exist. */
    const char *terms, *documents;
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
    const char *fold; /* as in gx_builder_options */
    /* The documents' attributes, a file as gx_attributes_export writes it: its first line names the columns,
     * as in id<TAB>year:int<TAB>tags:keywords; then a line a document, in any order. It may be compressed;
     * "-" is stdin. A bad line is one with too many or too few fields, a value that is not of its type, an
     * id that no document has, or one that an earlier line has. NULL: no attributes. */
    const char *attributes_file;
    /* [n_attributes] The columns to take, and their types; the header's types do not count then. n_attributes
     * 0: all, each with the type that the header gives. bitmaps: [n_attributes], or NULL. */
    const gx_attribute *attributes;
    const gx_bitmap_options *bitmaps;
    uint32_t n_attributes;
    bool skip_bad;                             /* skip and count bad lines; false: fail */
    void (*say)(void *user, const char *text); /* what is wrong with a line that is skipped. May be NULL */
    gx_import_counts *counts;                  /* written if the import succeeds. May be NULL */
} gx_import_options;
#define GX_IMPORT_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_import_options), false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL,     \
            NULL, NULL, 0, false, NULL, NULL                                                                           \
    }
GX_API void gx_import_options_init(gx_import_options *o, size_t size);

typedef struct gx_export_options {
    size_t size;
    bool force;                 /* replace existing files */
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
} gx_export_options;
#define GX_EXPORT_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_export_options), false, NULL, NULL                                                                   \
    }
GX_API void gx_export_options_init(gx_export_options *o, size_t size);

/* Write the attributes of ix to a file of tab-separated values, which appears at path ("-": standard
 * output) when it is complete. The first line has id and each attribute's name, type and bitmap options,
 * NAME:TYPE[:OPTIONS]; then comes a line a document, with an empty field where it has no value, and commas
 * between several values. In a field \t \n \r \0 \\ and \, stand for a tab, a line end, a carriage
 * return, a NUL, a backslash and a comma. An import gets the same values back: floats to the bit, dates to
 * the second. opt may be NULL. GX_EUSAGE (opt's size; there are no attributes), GX_EINPUT (a document
 * without an id), GX_EEXISTS, GX_ENOTFOUND, GX_EIO, GX_ECORRUPT, GX_ECANCELLED, GX_ENOMEM. */
GX_API gx_status gx_attributes_export(const gx_index *ix, const char *path, const gx_export_options *opt,
                                      gx_error *err);

/* Make an index at path from a file of the Common Index File Format (CIFF; "-": stdin), which
 * may be compressed. The file is read once, from front to back. Lists without postings are left
 * out. Memory: 8 bytes for each posting of the longest list, about 16 bytes a term, and a few
 * MiB.
 *
 * CIFF does not record how the terms were made. The analyzer of the index is the given one; else
 * the one that the description names, if gpuidx wrote the file; else "whitespace".
 *
 * With opt->attributes_file, 24 to 56 bytes of memory a document more, and a temporary file.
 *
 * opt may be NULL. GX_EUSAGE (opt's size; an unknown codec, analyzer, stemmer; bad attributes),
 * GX_ENOTFOUND, GX_EIO, GX_EINPUT (with the file, the byte of the decompressed stream and the reason; of
 * attributes with the file, the line and the reason), GX_EEXISTS, GX_ECANCELLED, GX_ENOMEM. */
GX_API gx_status gx_ciff_import(const char *file, const char *path, const gx_import_options *opt, gx_error *err);

/* Write ix as a CIFF file, which appears at path when it is complete. Titles and texts are left
 * out. Memory: 26 bytes for each posting of the longest list.
 *
 * opt may be NULL. GX_EEXISTS (unless force), GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED,
 * GX_ECORRUPT (a list does not decode to rising docids below n_docs), GX_EUSAGE (opt's size),
 * GX_EINPUT (CIFF cannot hold ix: a name is empty or not UTF-8, or a number is 2^31 or more). */
GX_API gx_status gx_ciff_export(const gx_index *ix, const char *path, const gx_export_options *opt, gx_error *err);

/* The files of ds2i and PISA are sequences of little-endian u32, each with its length before it:
 *
 *   BASE.docs        the sequence {1, n_docs}, then one sequence for each list: its docids
 *   BASE.freqs       one sequence for each list, in the same order: its tfs
 *   BASE.sizes       one sequence: the length of every document
 *   BASE.terms       the names of the lists, one a line, in their order; optional for an import
 *   BASE.documents   the names of the documents, one a line, by docid; optional for an import
 *
 * An index keeps its terms in byte order, so an import may change the order of the lists; their
 * names identify them. Without a file of names, a list or a document is named by its number ("0",
 * "1", ...). */

/* Make an index at path from the files of base. Lists without postings are left out. opt may be
 * NULL. GX_EUSAGE (opt's size; an unknown codec, analyzer, stemmer), GX_ENOTFOUND, GX_EIO,
 * GX_EINPUT (with file, byte and reason), GX_EEXISTS, GX_ECANCELLED, GX_ENOMEM. */
GX_API gx_status gx_ds2i_import(const char *base, const char *path, const gx_import_options *opt, gx_error *err);

/* Write ix as the five files of base, which appear when all are complete; base.docs, without which
 * nothing reads them, is the last, and with force it is removed before the first, so that there is
 * never a readable set of old and new files. Titles and texts are left out. opt may be NULL.
 * GX_EEXISTS (a file exists, unless force), GX_EUSAGE (opt's size; a term or an id contains a line
 * end), GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED. */
GX_API gx_status gx_ds2i_export(const gx_index *ix, const char *base, const gx_export_options *opt, gx_error *err);

/* ---- snippets: the part of a document's text that best shows why it was found ---- */

/* A highlighter holds the terms of one query, each with a weight, which is greater for rarer
 * terms. A snippet is the stretch of about max_words words whose different terms have the
 * greatest sum of weights, and the earliest of several such stretches. Words are separated by
 * white space. They match after the index's own analysis, so "indexing" is marked for "index". */
typedef struct gx_highlighter gx_highlighter; /* of one query; belongs to one thread */

#define GX_MAX_MARKS 64u      /* most words marked in a snippet */
#define GX_SNIPPET_BYTES 480u /* most bytes of one; text without white space is cut between characters */

typedef struct gx_snippet {
    size_t begin, end; /* bytes of the text, at character boundaries where it is valid UTF-8 */
    uint32_t n_marks;
    struct {
        size_t begin, end; /* bytes of the text, inside the snippet, rising */
    } marks[GX_MAX_MARKS];
} gx_snippet;

/* Open the highlighter of a query of any kind; of GX_QUERY_BOOLEAN it takes the words that are not
 * negated. The query is copied. GX_EUSAGE (query's size, the boolean syntax), GX_ENOMEM. */
GX_API gx_status gx_highlighter_open(gx_highlighter **out, const gx_index *ix, const gx_query *query, gx_error *err);
GX_API void gx_highlighter_close(gx_highlighter *h);

/* The number of different terms of the query, and the number of those that the index lacks. */
GX_API uint32_t gx_highlighter_n_terms(const gx_highlighter *h);
GX_API uint32_t gx_highlighter_n_unknown(const gx_highlighter *h);
/* The i-th term that the index lacks, i < n_unknown; NUL-terminated. */
GX_API const char *gx_highlighter_unknown(const gx_highlighter *h, uint32_t i);

/* Find the snippet of a text. max_words >= 1. If no word matches, it is the beginning of the
 * text. */
GX_API gx_status gx_highlighter_snippet(gx_highlighter *h, const char *text, size_t len, uint32_t max_words,
                                        gx_snippet *out, gx_error *err);

/* ---- explanations: the formula of a document's score with its numbers, term by term ---- */

/* The caller's thread reads the numbers from the lists with code that no engine uses. The score is
 * that of gx_search to the bit. */
typedef struct gx_explain_term {
    const char *term; /* the index's bytes */
    size_t term_len;
    uint64_t df;
    double qtf;      /* how often the query contains the term, or the weight that the query gives it */
    uint32_t tf;     /* 0: the document lacks the term */
    double idf;      /* as the preset has it, without qtf; 1 where it has none */
    double unit;     /* of the list's impacts (gx_index_stats.impact_unit); 1 where the index holds tfs */
    double weight;   /* idf, times k1 + 1 where the preset has it, times qtf, times unit */
    uint32_t impact; /* fixed point; 0 if tf is 0 */
    float score;     /* impact * 2^-exponent */
} gx_explain_term;

typedef struct gx_explanation {
    uint64_t docid, n_docs;
    uint32_t dl, counted_dl; /* counted_dl: dl, or what the preset keeps of it */
    double avgdl, k1, b;     /* k1, b: 0 where linear */
    float K;                 /* k1 (1 - b + b counted_dl / avgdl), in single precision as it is used; 0 where linear */
    bool times_k1;           /* the preset multiplies by k1 + 1 */
    bool linear;             /* the preset's score is weight * tf: it has no k1, b and K */
    const char *preset, *formula;
    int exponent;
    uint32_t n_unknown; /* different terms of the query that the index lacks */
    uint32_t n_terms;
    gx_explain_term *terms; /* [n_terms], by rising df */
    uint32_t sum;           /* of the impacts */
    float score;            /* sum * 2^-exponent: what gx_search returns */
} gx_explanation;

/* Explain the score of a document for a query. docid < n_docs. The function does not test
 * whether the document matches under opt->op. Free with gx_explanation_free. GX_EUSAGE as
 * gx_search, GX_ENOMEM. */
GX_API gx_status gx_explain(gx_explanation *out, const gx_index *ix, const gx_query *query, const gx_query_options *opt,
                            uint64_t docid, gx_error *err);
GX_API void gx_explanation_free(gx_explanation *e); /* accepts a zeroed one */

/* ---- relevance feedback: a query with the terms of its best documents added ---- */

/* RM3, as Anserini defines it. Let q be the query, lambda its weight.
 *
 *   1. gx_search finds the fb_docs best documents d of q, with their scores.
 *   2. The terms of d are those of its title and text, analysed as the build did. Left out are
 *      terms of fewer than 2 or more than 20 bytes, terms with other characters than a to z and
 *      0 to 9, and terms that more than a tenth of all documents contain. The fb_terms of
 *      greatest tf are kept; p(t|d) is tf / (sum of their tfs).
 *   3. The weight of t is the sum over d of p(t|d) score(d). The fb_terms heaviest terms are
 *      kept, and their weights are divided by their sum.
 *   4. The expanded query gives t the weight
 *      lambda (how often q contains t) / (terms of q) + (1 - lambda) (weight of t).
 *
 * Of terms with equal tfs or weights, those first in byte order are kept. (Anserini computes in
 * single precision and leaves that order to a hash table; this computes in double precision.) */
typedef struct gx_rm3_options {
    size_t size;
    uint32_t fb_docs;  /* feedback documents, 1 to GX_RM3_MAX_DOCS */
    uint32_t fb_terms; /* feedback terms, 1 to GX_MAX_TERMS */
    double weight;     /* lambda, 0 to 1: how much the original query counts */
} gx_rm3_options;
#define GX_RM3_MAX_DOCS 1000u
#define GX_RM3_OPTIONS                                                                                                 \
    {                                                                                                                  \
        sizeof(gx_rm3_options), 10, 10, 0.5                                                                            \
    }
GX_API void gx_rm3_options_init(gx_rm3_options *o, size_t size);

/* Expand a query of kind GX_QUERY_TEXT or GX_QUERY_TERMS. The session belongs to an engine on
 * ix. opt are the options of the first search, mask and cancel function included; its k is
 * ignored. *out receives an array of *n terms by falling weight, with their bytes in the same
 * allocation, which the caller frees with free(*out). Search for it with a query of kind
 * GX_QUERY_TERMS and GX_OP_OR. Both engines give the same terms and weights. opt and rm3 may be
 * NULL. GX_EUSAGE; GX_ENOTFOUND: the index does not store the texts, or not all that it indexed;
 * GX_ENOMEM, and what gx_search returns. */
GX_API gx_status gx_rm3_expand(gx_weighted_term **out, uint32_t *n, gx_session *s, const gx_index *ix,
                               const gx_query *query, const gx_query_options *opt, const gx_rm3_options *rm3,
                               gx_error *err);

/* ---- what the searches of a session did ---- */

/* The steps of Ding et al.'s algorithms. */
typedef enum gx_step {
    GX_STEP_INITIALIZE,
    GX_STEP_DECOMPRESS,
    GX_STEP_INTERSECT,
    GX_STEP_SCORE,
    GX_STEP_TOP_K,
    GX_N_STEPS
} gx_step;

/* The stages of a search. */
typedef enum gx_search_stage {
    GX_SEARCH_COPY_IN, /* plan, and copy the plans to the GPU */
    GX_SEARCH_SCORE,
    GX_SEARCH_SELECT, /* of the scored documents, the best k */
    GX_SEARCH_COPY_OUT,
    GX_N_SEARCH_STAGES
} gx_search_stage;

/* What searches did: counts and times, summed over their queries. */
typedef struct gx_search_stats {
    uint64_t postings; /* sum of the plans' dfs: what an exhaustive engine touches */
    uint64_t blocks;   /* sum of the plans' blocks */
    /* How often docids of a block were decoded; small batches on a GPU are not counted. An engine
     * can decode a block again later, so this can be greater than blocks. */
    uint64_t blocks_decoded;
    uint64_t lookups;        /* exact look-ups of a docid in a list */
    uint64_t and_fell_to_or; /* AND-then-OR queries that needed OR */
    /* With a GPU. parts: sub-batches, each of which is copied to the GPU, searched and copied back
     * by itself. waits: how often the host waited for the GPU, normally once for each sub-batch.
     * allocations: how often device or pinned memory was allocated or freed during searches. */
    uint64_t parts, waits, allocations;
    /* Queries answered from the result cache (gx_engine_options); nothing else here counts them. */
    uint64_t cached;
    uint64_t linger_hits; /* single queries answered by a kernel that lingered after an earlier query */
    /* By gx_search_stage; 0 if not measured, as for small batches on a GPU. Sub-batches overlap
     * on a GPU, so the stages can add up to more than the time that passed. */
    double seconds[GX_N_SEARCH_STAGES];
    double steps[GX_N_STEPS]; /* seconds by gx_step; 0 for a search by GX_ALGORITHM_AUTO that prunes */
    /* Searches under a mask or filter, by what came first: the documents that it allows, which were
     * looked up in the lists; or the lists, of which candidates were looked up in a mask, or tested by
     * a filter's values. */
    uint64_t driven, masked, tested;
    uint64_t binned; /* of all these, those that first looked postings up in a map of a range of values (GPU) */
    /* With a GPU engine whose payload is in host memory (gx_engine_options.resident_memory), else 0: the
     * lists of the queries and their bytes; those of them that were in GPU memory; and queries whose
     * lists were all there. */
    uint64_t lists, resident_lists, list_bytes, resident_bytes, resident_queries;
} gx_search_stats;

/* What the session's searches did, summed since it was opened. The struct belongs to the session
 * and lives as long. It changes during a search, so only the session's thread may read it. */
GX_API const gx_search_stats *gx_session_stats(const gx_session *s);

/* ---- query logs, and the latencies of their queries ---- */

/* The distribution of values, such as latencies in ns, with three significant digits. The layout is
 * HdrHistogram's: each value below 1024 has a bucket of its own; above, every power of two has 512
 * buckets of equal width. Count, least and greatest value are exact. */
#define GX_HISTOGRAM_HALF 512u
#define GX_HISTOGRAM_BUCKETS ((64u - 9u + 1u) * GX_HISTOGRAM_HALF)

typedef struct gx_histogram {
    uint64_t n, min, max;
    double sum;
    uint64_t buckets[GX_HISTOGRAM_BUCKETS];
} gx_histogram; /* all zero: empty */

/* The least value v such that a share p (0 to 1) of all values is <= v, rounded up to the end of
 * v's bucket but not above the greatest value; 0 when the histogram is empty. */
GX_API uint64_t gx_histogram_quantile(const gx_histogram *h, double p);

/* The mean; 0 when the histogram is empty. */
GX_API double gx_histogram_mean(const gx_histogram *h);

/* The form of a query log. The manual page gpuidx-replay(1) shows a line of each. */
typedef enum gx_log_form {
    GX_LOG_GUESS, /* decided by the first 64 KiB of the file */
    GX_LOG_EFFICIENCY,
    GX_LOG_MILLION,
    GX_LOG_TSV,
    GX_LOG_LINES,
    GX_LOG_JSONL,
    GX_LOG_TOPICS,
    GX_LOG_DOCS,
    GX_LOG_SMART,
    GX_LOG_VECTORS, /* queries are terms with weights, as the corpora GX_SOURCE_VECTORS, */
    GX_LOG_CSR,     /* and GX_SOURCE_CSR */
    GX_LOG_N_FORMS
} gx_log_form;

typedef enum gx_log_encoding {
    GX_LOG_AUTO,  /* a line is UTF-8 if it is valid UTF-8, else Latin-1 */
    GX_LOG_UTF8,  /* UTF-8; invalid bytes become U+FFFD */
    GX_LOG_LATIN1 /* Latin-1 */
} gx_log_encoding;

/* Find a form by its name ("guess", "efficiency", "tsv", ...), or an encoding ("auto", "utf-8",
 * "latin1"). false: there is none of that name. */
GX_API bool gx_log_form_find(const char *name, gx_log_form *out);
GX_API const char *gx_log_form_name(gx_log_form form);
GX_API bool gx_log_encoding_find(const char *name, gx_log_encoding *out);

typedef struct gx_log_counts {
    uint64_t queries, empty, bad; /* empty: queries without text; bad: refused lines */
    uint64_t blank;               /* lines of white space that were skipped, except those between topics */
    uint64_t comments;            /* comments that were skipped */
    uint64_t header;              /* 1: the first line named the columns */
    uint64_t more_columns;        /* lines whose columns behind the second were left out */
    uint64_t latin1;              /* lines (of docs and smart: texts) converted from Latin-1 */
    uint64_t invalid;             /* lines in which invalid UTF-8 was replaced */
    uint64_t nuls;                /* NUL bytes read as blanks */
    uint64_t repeated_ids;        /* queries whose id one of the first GX_LOG_KEPT_IDS has; 0 where unique is set */
    uint64_t filtered;            /* queries with a filter of their own */
} gx_log_counts;

#define GX_LOG_KEPT_IDS 65536u /* ids that are kept, in 1 MiB, to count repeated ones */

typedef struct gx_log_options {
    gx_log_form form;
    gx_log_encoding encoding;
    /* The columns of tsv, such as "-,id,text,filter"; "text" may be repeated; "filter" is the
     * query's own filter. NULL: those that the first line names, else id,text. */
    const char *columns;
    const char *topic_fields; /* the text of topics: title, desc and narr, in any order. NULL: "title" */
    bool unique;              /* refuse a query whose id an earlier one has; takes 16 to 32 bytes a query */
    /* The members of vectors, such as "id=qid,vector=weights", as gx_source_options.fields has them. A log whose
     * form is guessed is of vectors then, unless it is a matrix. NULL: the usual ones. */
    const char *fields;
} gx_log_options;

#define GX_LOG_MAX_LINE (1u << 20) /* most bytes of a line or topic */
#define GX_LOG_MAX_ID 255u         /* most bytes of an id */

/* Read the queries of a log, and fill the GPU memory of an engine's lists (gx_engine_options.resident_memory)
 * with those that the residency policy keeps for such queries. opt may be NULL. *n_queries, which may
 * be NULL, receives the number of queries. Where all lists are in the memory that the engine searches,
 * nothing changes. Lines of the log that are bad are passed over. Searches may go on meanwhile.
 * Statuses of reading, GX_ENOMEM, GX_ECUDA. */
GX_API gx_status gx_engine_warm(gx_engine *en, const char *log, const gx_log_options *opt, uint64_t *n_queries,
                                gx_error *err);

/* A buffer that grows. All zero: empty; free(p) in the end. */
typedef struct gx_log_text {
    char *p; /* [n], and a NUL */
    size_t n, cap;
} gx_log_text;

/* Convert a line of n bytes to UTF-8 in b, as the lines of a log are converted, and count the
 * changes in counts. GX_ENOMEM. */
GX_API gx_status gx_log_convert(gx_log_text *b, const char *line, size_t n, gx_log_encoding encoding,
                                gx_log_counts *counts, gx_error *err);

/* ---- what queries cost: a model that is measured once and predicts ---- */

typedef enum gx_cost_kind {
    GX_COST_CPU,       /* a query on the CPU engine, by one thread */
    GX_COST_GPU_ALONE, /* a query alone on a GPU */
    GX_COST_GPU_BATCH, /* a batch on a GPU */
    GX_N_COST_KINDS
} gx_cost_kind;
GX_API const char *gx_cost_kind_name(gx_cost_kind kind); /* "cpu", "gpu_alone", "gpu_batch" */

/* What a cost is predicted from. */
typedef enum gx_cost_feature {
    GX_COST_FEATURE_SHORTEST,  /* postings of the query's shortest list, */
    GX_COST_FEATURE_SECOND,    /* of its second shortest, */
    GX_COST_FEATURE_LONGEST,   /* of its longest, */
    GX_COST_FEATURE_SUM,       /* and of all its lists */
    GX_COST_FEATURE_CAPPED,    /* the same, with at most so many of each list */
    GX_COST_FEATURE_ESSENTIAL, /* postings of the lists that a search has to read whole */
    GX_COST_FEATURE_TERMS,     /* the number of lists */
    GX_COST_FEATURE_K,
    GX_COST_FEATURE_OPERATOR,
    GX_COST_FEATURE_MISSING, /* bytes of lists that are not in the GPU's memory */
    GX_COST_FEATURE_BATCH,   /* queries of the batch */
    GX_N_COST_FEATURES
} gx_cost_feature;
GX_API const char *gx_cost_feature_name(gx_cost_feature f);

#define GX_N_COST_CAPS 3
typedef struct gx_query_features {
    double shortest, second, longest, sum; /* postings; 0 where there is no such list */
    double capped[GX_N_COST_CAPS];         /* sums of the lists' lengths, of each at most 128, 1,000 and 10,000 */
    /* Postings of the first lists, by rising length, until those that are left cannot reach 0.8 times the greatest
     * weight of a list of k postings or more: about what MaxScore reads of its essential lists. */
    double essential;
    double missing; /* bytes of the lists that are not in the GPU's memory */
    uint32_t n_terms, k;
    gx_op op;
} gx_query_features;

/* Linear models of a kind: by operator, k, number of terms and lengths; of batches by operator, k, and whether a
 * query has more than 6 lists, else size. */
#define GX_COST_LEAVES 288u
#define GX_COST_TERMS 23u /* weights of a linear model */

/* A cost model. gx_cost_profile_init sets the library's own, of one NVIDIA H200 and a core of its
 * host. */
typedef struct gx_cost_profile {
    double weights[GX_N_COST_KINDS][GX_COST_LEAVES][GX_COST_TERMS]; /* ns; of batches >= 0 */
    bool measured[GX_N_COST_KINDS];                                 /* by gx_calibrate; false: the library's own */
} gx_cost_profile;
GX_API void gx_cost_profile_init(gx_cost_profile *p);

/* The function of the features that weight i of a kind's models multiplies: "sqrt(sum)"; NULL: there is no such
 * weight. The models of batches are linear in the predicted times of their queries alone. */
GX_API const char *gx_cost_term_name(gx_cost_kind kind, uint32_t i);

/* The predicted ns of a query (n = 1), or of a batch of n >= 1 queries for GX_COST_GPU_BATCH. The
 * queries of a batch have one operator and k. */
GX_API double gx_cost_predict(const gx_cost_profile *p, gx_cost_kind kind, const gx_query_features *f, uint32_t n);

/* A profile as a JSON file. Kinds that were not measured are left out, and those that the file
 * lacks are the library's own. Reading: GX_ENOTFOUND, GX_EIO, GX_EINPUT (with the file and what is
 * wrong), GX_ENOMEM. Writing: as gx_write_file. */
GX_API gx_status gx_cost_profile_read(gx_cost_profile *out, const char *path, gx_error *err);
GX_API gx_status gx_cost_profile_write(const gx_cost_profile *p, const char *path, bool force, gx_error *err);

typedef struct gx_calibrate_options {
    size_t size;
    const char *log;            /* the log whose queries the model is fitted to */
    const char *test;           /* the log on which its errors are measured; NULL: every second query of `log` */
    gx_log_options read;        /* of both logs */
    uint32_t n_queries;         /* most queries taken of each log, >= 1 */
    uint32_t runs;              /* each is timed so often, and the median counts; >= 1 */
    uint32_t small_k, large_k;  /* the two values of k that are measured */
    uint64_t seed;              /* of the batches */
    bool ablate;                /* also measure the errors without each feature */
    bool (*cancel)(void *user); /* true: stop, GX_ECANCELLED. May be NULL */
    void (*progress)(void *user, const char *doing, uint64_t n_done);
    void *user;
    const char *costs; /* a file for all measured costs, tab-separated with a first line of names; NULL: none */
} gx_calibrate_options;
#define GX_CALIBRATE_OPTIONS                                                                                           \
    {                                                                                                                  \
        sizeof(gx_calibrate_options), NULL, NULL, {GX_LOG_GUESS, GX_LOG_AUTO, NULL, NULL, false, NULL}, 3000, 5, 10,   \
            1000, 1, false, NULL, NULL, NULL, NULL                                                                     \
    }
GX_API void gx_calibrate_options_init(gx_calibrate_options *o, size_t size);

/* Relative errors: |predicted / measured - 1|. */
typedef struct gx_cost_error {
    uint64_t n; /* costs compared; 0: none, and the rest is 0 */
    double mean, median, p90;
} gx_cost_error;

#define GX_N_BATCH_SIZES 10
typedef struct gx_calibration {
    gx_cost_error fitted[GX_N_COST_KINDS];                      /* on the costs that the model was fitted to */
    gx_cost_error held_out[GX_N_COST_KINDS];                    /* on those of `test` */
    gx_cost_error by_op[GX_N_COST_KINDS][3];                    /* the same for each operator */
    gx_cost_error by_size[GX_N_BATCH_SIZES];                    /* the same for batches of 2, 4, .. 1,024 queries */
    gx_cost_error without[GX_N_COST_KINDS][GX_N_COST_FEATURES]; /* held out, with a feature taken out */
    uint64_t n_fitted, n_held_out;                              /* queries */
    double seconds;
} gx_calibration;

/* Measure what queries cost, by one thread on each engine, and fit a model of it. Each engine may
 * be NULL: what it costs is not measured then. Both are of one index. Every query is asked by each
 * operator and k. Queries that cannot be planned are left out. GX_EUSAGE (opt, or no engine),
 * GX_EINPUT (a log: with file and line, or it has no query with a known term), GX_ENOMEM, GX_ECUDA,
 * GX_ECANCELLED. */
GX_API gx_status gx_calibrate(gx_cost_profile *out, gx_calibration *report, gx_engine *cpu, gx_engine *gpu,
                              const gx_calibrate_options *opt, gx_error *err);

/* ---- a service: both engines answer queries that arrive one by one ---- */

typedef enum gx_processor { GX_PROCESSOR_CPU, GX_PROCESSOR_GPU, GX_N_PROCESSORS } gx_processor;

/* A service holds threads that answer queries on the CPU and in batches on the GPU, and a scheduler
 * that chooses for each query. Both give the same answers, to the bit (but for queries with
 * gx_query_options.threshold_factor or block_budget, which the GPU answers exactly).
 *
 *   gx_service_submit --> three queues --> threads of the CPU     --> callback or ticket
 *                                      '-> batches for the GPU   '
 *
 * Eight and more queries of one submission pass the scheduler by, where there are both engines, the GPU
 * has their lists, and no decisions are logged: the GPU gets them in the order in which they come, whatever
 * their deadlines, and CPU threads help where a whole batch waits or the GPU has failed.
 *
 * Any number of threads may submit, wait and cancel. */
typedef struct gx_service gx_service;
typedef struct gx_ticket gx_ticket; /* the answer to one query, once it is there */

typedef struct gx_service_answer {
    uint64_t number; /* of the query: they are counted from 0 in the order of submission */
    void *user;      /* gx_submission.users */
    gx_status status;
    const char *error;        /* what went wrong; "" for GX_OK */
    uint32_t n_hits;          /* 0 without GX_OK */
    const uint32_t *docids;   /* [n_hits] as gx_results has them; NULL: the collection is wide */
    const double *scores;     /* [n_hits] the exact ones */
    gx_processor by;          /* what answered it */
    bool fell_back;           /* the CPU answered it because the GPU failed on it */
    double seconds;           /* from its arrival to its answer */
    const uint64_t *docids64; /* [n_hits] of a wide collection; else NULL */
} gx_service_answer;

typedef struct gx_service_options {
    size_t size;
    gx_engine *cpu, *gpu; /* on one index; at least one is not NULL. They outlive the service */
    uint32_t cpu_threads; /* that answer on the CPU, >= 1 */
    uint32_t gpu_threads; /* batches under way on the GPU at once, a thread each, >= 1 */
    uint32_t bound;       /* most queries that wait; then gx_service_submit returns GX_EBUSY */
    uint32_t batch;       /* most queries of a batch for the GPU, >= 1 */
    double batch_seconds; /* after which a batch that is not full starts, if another one is under way; */
                          /* where none is, it starts at once */
    /* A processor's own queue gets the queries that it answers this many times as fast as the
     * other; above 1. The third queue gets the rest, and the first processor that is free takes
     * from it. */
    double threshold;
    bool adapt;      /* the threshold moves towards the processor with less to do */
    double urgent;   /* the share of the time to its deadline after which a query goes first; 0 to 1 */
    double patience; /* seconds to the deadline of a query that has none; > 0 */
    double spin;     /* seconds that idle threads, two of each processor, poll before they sleep */
    double retry;    /* seconds after a failure of the GPU until it is tried again; doubled each time, to 10 s */
    const gx_cost_profile *profile; /* copied; NULL: the library's own */
    const char *decisions;          /* a file for a log of all decisions; NULL: none */
    /* Called for each answer to a query without a ticket, from a thread of the service, or from that
     * which cancels or closes or is one of `callers`; what the answer points to lives until the
     * callback returns. It may submit. May be NULL. */
    void (*answer)(void *user, const gx_service_answer *answer);
    void *user;
    /* Seconds that a batch may take on the GPU; > 0. Then the GPU counts as lost: the CPU answers the
     * batch, and the GPU is used again once that call has returned. Batches with masks or filters, and
     * those of collections, may take any time. */
    double hang;
    /* Most threads that at once answer queries that they submit, on the CPU and before
     * gx_service_submit returns; 0: none does. They do so where they submit up to four queries, none
     * waits, the CPU is to answer them, and they are predicted to take no longer than caller_seconds
     * together. Then no other thread has to wake up and fetch them, which takes some microseconds. Of
     * eight and more queries, where there are both engines, a thread leaves the dearest to the GPU and
     * answers for up to caller_seconds the cheapest; where two whole batches wait for the GPU, it goes
     * on until fewer do, for up to ten times as long. `answer` is called by the thread that submits. */
    uint32_t callers;
    double caller_seconds; /* >= 0 */
} gx_service_options;
#define GX_SERVICE_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_service_options), NULL, NULL, 1, 2, 65536, 1024, 25e-6, 2, true, 0.5, 0.05, 1e-3, 0.1, NULL, NULL,   \
            NULL, NULL, 10, 0, 50e-6                                                                                   \
    }
GX_API void gx_service_options_init(gx_service_options *o, size_t size);

/* Start the threads. GX_EUSAGE (no engine, engines of different indexes, a value out of its range),
 * GX_ENOMEM, GX_ECUDA, and for the file of decisions GX_EIO and its like. */
GX_API gx_status gx_service_open(gx_service **out, const gx_service_options *opt, gx_error *err);

/* Answer what waits with GX_ECANCELLED, wait for what is under way, end the threads. Tickets stay
 * until they are closed. No other call on the service is under way. NULL is fine. A thread that the
 * GPU keeps for longer than gx_service_options.hang once more is left behind with its memory; to
 * close the GPU engine may take forever then. */
GX_API void gx_service_close(gx_service *s);

typedef struct gx_submission {
    size_t size;
    const gx_query *queries; /* [n], all of one size; filters stay open until the answers are there */
    uint32_t n;
    const gx_query_options *options; /* of all; NULL: the defaults. `count` and `seconds` mean nothing here */
    /* options->mask is of the CPU engine, or, where there is none, of the GPU engine. Where there
     * are both, this is the same mask on the GPU engine; NULL: queries with a mask are answered by
     * the CPU. Masks stay open until the answers are there. */
    const gx_mask *gpu_mask;
    double deadline;    /* seconds from now until which each should be answered; later ones are answered too. 0: none */
    void *const *users; /* [n], or NULL */
    gx_ticket **tickets; /* [n] out: a ticket each, which the caller closes; NULL: the callback gets the answers */
} gx_submission;
#define GX_SUBMISSION(queries, n, options)                                                                             \
    {                                                                                                                  \
        sizeof(gx_submission), (queries), (n), (options), NULL, 0, NULL, NULL                                          \
    }

/* Plan the queries in the calling thread and submit them: all of them, or none. *first, which may be
 * NULL, receives the number of the first. GX_EBUSY: as many queries wait as may; try again later.
 * GX_EUSAGE (as gx_search), GX_ENOMEM. */
GX_API gx_status gx_service_submit(gx_service *s, const gx_submission *submission, uint64_t *first, gx_error *err);

/* Wait for an answer, at most that many seconds (below 0: without a limit). GX_OK: *answer is
 * written, and what it points to lives until the ticket is closed. GX_EDEADLINE: it is not there. */
GX_API gx_status gx_ticket_wait(gx_ticket *t, double seconds, gx_service_answer *answer);
/* Close a ticket, before or after its answer. NULL is fine. */
GX_API void gx_ticket_close(gx_ticket *t);

/* Take a query that waits out of its queue, and answer it with GX_ECANCELLED. false: it is under
 * way or answered, or never was. Takes a pass over the queue. */
GX_API bool gx_service_cancel(gx_service *s, uint64_t number);

/* Wait until all queries that have been submitted are answered. Others may be submitted
 * meanwhile, and are waited for too. */
GX_API void gx_service_drain(gx_service *s);

typedef struct gx_service_counts {
    uint64_t submitted, answered, cancelled, refused; /* queries; refused: GX_EBUSY */
    uint64_t by[GX_N_PROCESSORS];                     /* answered by each */
    uint64_t batches;                                 /* of the GPU */
    uint64_t urgent, stolen;                          /* queries taken because of their deadline, or from the other */
    uint64_t fell_back;                               /* queries that the GPU failed on and the CPU answered */
    uint64_t gpu_failures, gpu_returns;               /* times that the GPU failed, and was used again */
    uint64_t gpu_hung;                                /* of gpu_failures, those in which it did not answer in time */
} gx_service_counts;
GX_API void gx_service_get_counts(gx_service *s, gx_service_counts *out);

/* Make the decisions of a log (gx_service_options.decisions) again, from what the log says came in,
 * and compare them with those in the log. *n receives their number. GX_OK: they are the same;
 * GX_EINTERNAL: one is not, with file and line. GX_EINPUT (a malformed log, with file and line),
 * GX_ENOTFOUND, GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_decisions_repeat(const char *path, uint64_t *n, gx_error *err);

/* ---- replay: a query log through an engine, timed ---- */

/* When the queries of a replay arrive in an open loop, in which a query does not wait for the
 * answers to those before it. */
typedef enum gx_arrivals {
    GX_ARRIVALS_FIXED,   /* at equal distances */
    GX_ARRIVALS_POISSON, /* a Poisson process, as the requests of many independent users are */
    GX_ARRIVALS_TRACE    /* at the times that a file contains */
} gx_arrivals;

typedef struct gx_replay_options {
    size_t size;
    const char *log;     /* a path; "-" (stdin) can be read only once: one run, no warm-up, no verifying */
    gx_log_options read; /* unique is set when a run is written: one with an id twice cannot be evaluated */
    gx_query_options query;
    gx_query_kind kind;            /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    uint32_t batch, threads, runs; /* each >= 1 */
    uint64_t warmup;               /* queries to warm up with */
    double rate;                   /* queries that arrive a second; 0: the next as soon as a thread is free */
    bool skip_bad;                 /* skip malformed lines and impossible queries; false: fail */
    const char *run_path, *tag;    /* the TREC run to write, and its last column; run_path NULL: none */
    bool force;                    /* replace a run that exists */
    uint64_t verify_every;         /* n: verify every n-th query; 0: none */
    gx_engine *other;              /* another engine on the same index to verify with, or NULL */
    const gx_mask *other_mask;     /* the documents of query.mask, for `other`; NULL if query.mask is NULL */
    /* Called under a lock, from any thread; each may be NULL. say receives a message: a refused
     * query, a difference, or an engine's message. progress receives the kind of pass and the
     * number of queries that it has answered. */
    void (*say)(void *user, const char *text);
    void (*progress)(void *user, const char *doing, uint64_t n_queries);
    void *user;
    const gx_rm3_options *rm3; /* expand each query; kind is GX_QUERY_TEXT then. NULL: do not */
    gx_arrivals arrivals;      /* how the queries of a rate follow each other; a trace needs no rate */
    /* The file of arrival times of GX_ARRIVALS_TRACE, else NULL: seconds, a number a line, not
     * falling. The first query arrives at once, whatever its time. If there is a rate, the times
     * are stretched so that the whole trace has this rate. */
    const char *trace;
    uint64_t seed;   /* of GX_ARRIVALS_POISSON */
    double deadline; /* seconds: count the queries whose latency is longer. 0: count none */
    /* Answer by a service of these options, which gx_replay opens; its CPU engine, or where it has
     * none its GPU engine, is the replay's. The threads then read, plan and submit. NULL: the
     * threads answer. */
    const gx_service_options *service;
    const gx_mask *service_mask; /* query.mask on the service's GPU engine, or NULL */
    /* Read the log into memory before the runs. Reading it is then no part of them, and no limit to
     * what many threads answer. It is always done with a rate or a trace. A log that is larger than
     * 1 GiB, has vectors or a malformed line, or is standard input, is read as the queries are
     * answered all the same. */
    bool in_memory;
    /* Queries of a run, from memory: the log begins again where it has fewer. GX_EUSAGE where the
     * log cannot be kept in memory, or a run is written and the log has fewer. 0: those of the log. */
    uint64_t queries;
    /* How id:@FILE is read in a query's own filter, and in the text of GX_QUERY_BOOLEAN, by any thread.
     * NULL: it is refused. */
    const gx_filter_options *filter_options;
} gx_replay_options;
#define GX_REPLAY_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_replay_options), NULL, {GX_LOG_GUESS, GX_LOG_AUTO, NULL, NULL, false, NULL}, GX_QUERY_OPTIONS,       \
            GX_QUERY_TEXT, 1, 1, 1, 0, 0, false, NULL, "gpuidx", false, 0, NULL, NULL, NULL, NULL, NULL, NULL,         \
            GX_ARRIVALS_FIXED, NULL, 0, 0, NULL, NULL, false, 0, NULL                                                  \
    }
GX_API void gx_replay_options_init(gx_replay_options *o, size_t size);

/* Seconds of the stages, summed over threads. */
typedef struct gx_replay_stages {
    double read, plan, search, write;
    double wait; /* until a query is due (open loop), another thread has read, or earlier batches are written */
} gx_replay_stages;

typedef struct gx_replay_report {
    uint64_t queries;         /* queries answered in all measured runs */
    uint64_t results;         /* documents in all answers */
    uint64_t without_results; /* queries without results */
    uint64_t impossible;      /* queries skipped because no plan can be made of them */
    gx_log_counts log;        /* of one run */
    gx_log_form form;
    uint32_t batch;          /* queries a batch, which is less than asked for when k is large */
    double seconds;          /* of all measured runs, reading and writing included */
    double fastest, slowest; /* seconds of the fastest and the slowest run */
    double cpu_seconds;      /* CPU time of the process in all measured runs */
    gx_replay_stages stages;
    gx_search_stats work;                       /* the sessions' own counts and times */
    gx_session_memory memory;                   /* of the session that took most, before verifying */
    gx_histogram latency;                       /* ns */
    uint64_t late;                              /* queries whose latency is longer than the deadline */
    uint64_t verified;                          /* queries answered again */
    uint64_t other_differs, exhaustive_differs; /* queries whose docids, score bits or number of results differ */
    gx_service_counts service;                  /* of the measured runs; zero without a service */
    /* Where query does not ask for exact answers, of the queries verified: the results of exact answers, and
     * how many results are as good, which are those with at least the last one's score; their
     * quotient is the recall. exhaustive_differs counts answers of which a score is not exact. */
    uint64_t exact_results, found_results;
} gx_replay_report;

/* Answer the queries of a log and time them. *out takes a quarter of a MiB, too much for many
 * stacks. Several replays may share the engine. opt->query.cancel is also called between
 * batches. GX_EUSAGE (opt's size or values), GX_EINPUT (with file and line, or for a log without
 * any query), and the statuses of reading, searching and writing. */
GX_API gx_status gx_replay(gx_engine *en, const gx_replay_options *opt, gx_replay_report *out, gx_error *err);

/* ---- outputs ---- */

/* Write the n bytes to a file that appears whole or not at all; "-" is standard output, and a
 * device or FIFO is written through. GX_EEXISTS (a file is there, unless force), GX_ENOTFOUND,
 * GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_write_file(const char *path, const void *bytes, size_t n, bool force, gx_error *err);

/* Unlink the temporary files of this process that have a name: for signal handlers that end the
 * process. Safe in them. Outputs that are being written fail afterwards. */
GX_API void gx_temporary_names_unlink(void);

/* For a caller that writes the index again in another order. Call gx_builder_keep_unnamed before
 * the first document. The builder checks options.path as always, but gx_builder_finish does not
 * write there: the index remains a file without a name. Until gx_builder_abort it can be opened
 * at gx_builder_unnamed_path. The caller frees that path; NULL: no memory. */
GX_API void gx_builder_keep_unnamed(gx_builder *b);
GX_API char *gx_builder_unnamed_path(const gx_builder *b);

/* ---- judgements, runs and measures, by the definitions of trec_eval ---- */

typedef enum gx_trec_kind { GX_TREC_QRELS, GX_TREC_RUN } gx_trec_kind;

typedef struct gx_trec_row {
    const char *qid, *docno; /* NUL-terminated; the strings belong to the table */
    float value;             /* the relevance, an integer of at most 2^24 in magnitude, or the score */
    uint32_t line;           /* the line in the file, from 1 */
} gx_trec_row;

typedef struct gx_trec_topic {
    const char *qid;
    size_t first, n; /* rows [first, first + n), n >= 1 */
} gx_trec_topic;

typedef struct gx_trec_table {
    gx_trec_row *rows;     /* [n_rows] by qid, then docno; no pair (qid, docno) occurs twice */
    gx_trec_topic *topics; /* [n_topics] by qid */
    size_t n_rows, n_topics;
    char *text; /* the bytes of the file, cut into fields; rows point into it */
} gx_trec_table;

/* Read the file at path ("-": stdin). An empty file gives an empty table. Free it with
 * gx_trec_free. GX_EINPUT, with "path:line: reason": a line has too few or too many fields, a
 * relevance or a score is not a number, or a query names a document twice. GX_ENOTFOUND, GX_EIO,
 * GX_ENOMEM. */
GX_API gx_status gx_trec_read(gx_trec_table *out, const char *path, gx_trec_kind kind, gx_error *err);
GX_API void gx_trec_free(gx_trec_table *t);

/* One measure. The manual page gpuidx-eval(1) defines each. */
typedef struct gx_measure {
    const struct gx_measure_kind *kind;
    uint32_t cutoff; /* at least 1; of iprec_at_recall, recall in hundredths; UINT32_MAX: no cutoff */
    char name[32];   /* trec_eval's: "map", "P_10", "ndcg_cut_10" */
} gx_measure;

/* Parse a list of measures, such as "map,ndcg@10,recall@100". The spellings of trec_eval are
 * understood too: "P_5", "P.5,10,20", "ndcg_cut.10", "ndcg_cut_10"; so are "num_q" and "official",
 * which stands for trec_eval's usual measures. A measure that needs a cutoff and has none gets
 * those of trec_eval: 5, 10, 15, 20, 30, 100, 200, 500, 1000. *out receives an array of *n
 * measures, which the caller frees. GX_EUSAGE, GX_ENOMEM. */
GX_API gx_status gx_measures_parse(gx_measure **out, size_t *n, const char *list, gx_error *err);

/* Whether a measure is an integer that is summed, not averaged, over queries. */
GX_API bool gx_measure_is_count(const gx_measure *m);

/* Whether a measure has a meaning for one query; gm_map and num_q have none. */
GX_API bool gx_measure_is_of_one_query(const gx_measure *m);

/* The measures of a run: for every query, and over all queries. */
typedef struct gx_evaluation {
    size_t n_measures, n_queries;
    const char **qids; /* [n_queries] in byte order; the strings belong to the table of qrels */
    double *values;    /* [n_queries * n_measures] */
    double *all;       /* [n_measures] means (of gm_map the geometric one), or sums for counts */
    size_t n_missing;  /* queries that are in the qrels but not in the run */
    size_t n_unjudged; /* queries that are in the run but not in the qrels; they are left out */
} gx_evaluation;

/* Evaluate a run. With complete true, the means are over all queries of the qrels, and a query
 * without answers counts as 0. Else they are over the queries that both qrels and run have. A
 * document is relevant if its judgement is at least `level`. qrels outlives the evaluation; free
 * with gx_evaluation_free. GX_ENOMEM. */
GX_API gx_status gx_evaluate(gx_evaluation *out, const gx_trec_table *qrels, const gx_trec_table *run,
                             const gx_measure *measures, size_t n_measures, int32_t level, bool complete,
                             gx_error *err);
GX_API void gx_evaluation_free(gx_evaluation *ev);

/* ---- runs compared ---- */

/* The tests of one run against the first, two-sided and paired by query; d is a query's value in
 * the run less its value in the first run. The second is Fisher's randomisation test of the
 * means. */
typedef struct gx_paired_test {
    size_t better, worse; /* queries with d > 0, d < 0 */
    double t, t_p;        /* NaN for fewer than two queries; where every d is 0, t is 0 and p is 1 */
    double random_p;
    bool exact; /* random_p is of all assignments */
} gx_paired_test;

typedef struct gx_comparison {
    size_t n_runs, n_queries, n_measures;
    const char **qids;     /* [n_queries] in byte order; the strings belong to the table of qrels */
    double *values;        /* [n_runs][n_queries][n_measures] */
    double *all;           /* [n_runs][n_measures] */
    gx_paired_test *tests; /* [n_runs][n_measures]; those of run 0 are zero */
} gx_comparison;

/* Compare n_runs >= 1 evaluations of the same qrels and measures over the queries that all of them
 * have. Without such a query n_queries is 0 and nothing is tested. seed and trials, at least 1, are
 * of the randomisation test. Free with gx_comparison_free. GX_ENOMEM. */
GX_API gx_status gx_compare(gx_comparison *out, const gx_evaluation *runs, size_t n_runs, const gx_measure *measures,
                            uint64_t seed, uint64_t trials, gx_error *err);
GX_API void gx_comparison_free(gx_comparison *c);

/* ---- sweep: the judged queries of a log by several scorers and parameters ---- */

typedef struct gx_sweep_setting {
    gx_preset preset;
    float k1, b; /* NaN: the preset's own */
} gx_sweep_setting;

/* The members without a default in GX_SWEEP_OPTIONS are set by the caller. */
typedef struct gx_sweep_options {
    size_t size;
    const char *log;
    gx_log_options read;
    const gx_trec_table *qrels;
    const gx_measure *measures; /* [n_measures] */
    size_t n_measures;
    int32_t level; /* the least judgement of a relevant document; default 1 */
    /* true: judged queries that the log lacks, or that have no answers, count as 0; false: they are
     * left out. */
    bool complete;
    gx_query_options query;           /* preset, k1 and b are ignored */
    gx_query_kind kind;               /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    const gx_sweep_setting *settings; /* [n_settings] */
    size_t n_settings;
    uint32_t threads; /* >= 1; default 1 */
    /* Called under a lock, from any thread, with the number of settings that are done. May be
     * NULL. */
    void (*progress)(void *user, size_t n_done);
    void *user;
} gx_sweep_options;
#define GX_SWEEP_OPTIONS                                                                                               \
    {                                                                                                                  \
        sizeof(gx_sweep_options), NULL, {GX_LOG_GUESS, GX_LOG_AUTO, NULL, NULL, false, NULL}, NULL, NULL, 0, 1, false, \
            GX_QUERY_OPTIONS, GX_QUERY_TEXT, NULL, 0, 1, NULL, NULL                                                    \
    }
GX_API void gx_sweep_options_init(gx_sweep_options *o, size_t size);

typedef struct gx_sweep_report {
    double *values;      /* [n_settings][n_measures], over all queries */
    size_t *n_evaluated; /* [n_settings] queries that the values are over */
    size_t n_searched;   /* queries of the log that are judged */
    size_t n_unjudged;   /* queries of the log that are not, and are not searched */
    size_t n_missing;    /* judged queries that the log lacks */
} gx_sweep_report;

/* Search the judged queries of the log by each setting and evaluate the answers. Free *out with
 * gx_sweep_report_free. GX_EUSAGE (opt's size, no threads, bad options), GX_EINPUT (the log: a bad
 * line, a query id that occurs twice, a query that cannot be searched; each with file and line),
 * GX_ENOMEM, and what gx_search returns. */
GX_API gx_status gx_sweep(gx_sweep_report *out, gx_engine *en, const gx_sweep_options *opt, gx_error *err);
GX_API void gx_sweep_report_free(gx_sweep_report *r);

#ifdef __cplusplus
}
#endif
#endif
