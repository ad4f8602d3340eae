/* gpuidx.h: the public interface of libgpuidx, whole.
 *
 *   corpus
 *      |  gx_builder_open, gx_builder_add, gx_builder_finish
 *   index file
 *      |  gx_index_open
 *   gx_index      the file, mapped or read; immutable, shared by any number of threads
 *      |  gx_engine_open
 *   gx_engine     the index on the CPU or in the memory of GPUs; shared by any number of threads
 *      |  gx_session_open
 *   gx_session    one thread's workspace; gx_search runs batches of queries in it
 *
 * Rules that hold everywhere
 *   - Every function that can fail returns a gx_status. Where it takes a gx_error, the words go
 *     there (NULL: not wanted). Out parameters are written on success only; pointers become NULL on
 *     failure.
 *   - Whoever opens closes. Every close accepts NULL.
 *   - The library prints nothing, never exits and installs no signal handlers. It keeps no state
 *     outside the objects that it returns, but for one: on first use it chooses the processor's
 *     instruction set for the whole process. The environment variable GX_CPU ("portable", "avx2",
 *     "avx512", "neon"; for tests and measurements) restricts that choice.
 *   - Structs that may grow begin with their size in bytes. Set it to sizeof, or let the struct's
 *     init function set it. Every function returns GX_EUSAGE, and writes nothing, where the size is
 *     below that of the struct's first version or above 4,096. Members beyond the caller's size
 *     have their defaults.
 *   - Text is bytes, normally UTF-8; lengths are in bytes. Docids are dense numbers from 0. Numbers in text have a
 *     point, whatever locale the program has set.
 *   - A file has at most 2^32 - 2 documents, a collection (gpuidx_advanced.h) as many as its files. One of more than
 *     2^32 - 2 documents is wide: its docids need 64 bits, and gx_search writes them to gx_results.docids64.
 *
 * ABI: structs grow at their end only, and enumerators keep their values, while the major version
 * stays and is above 0. A minor version 0.x may break both.
 *
 * Usage (compile with `pkg-config --cflags --libs gpuidx`):
 *
 *   gx_index *index = NULL;
 *   gx_engine *engine = NULL;
 *   gx_session *session = NULL;
 *   gx_error err = {0};
 *   uint32_t docids[10], n_hits = 0;
 *   float scores[10];
 *   gx_query query;
 *   gx_query_options options;
 *   gx_query_init(&query, sizeof query, "inverted index", 14);
 *   gx_query_options_init(&options, sizeof options);    // OR, BM25, the best 10
 *   gx_results results = GX_RESULTS(docids, scores, &n_hits);
 *   if (gx_index_open(&index, "index.gx", NULL, &err) ||
 *       gx_engine_open(&engine, index, NULL, &err) ||
 *       gx_session_open(&session, engine, &err) ||
 *       gx_search(session, &query, 1, &options, &results, &err))
 *       fprintf(stderr, "%s\n", err.text);
 *   for (uint32_t i = 0; i < n_hits; ++i) {
 *       size_t len;
 *       const char *id = gx_index_doc_id(index, docids[i], &len);
 *       printf("%.*s %.4f\n", (int)len, id, scores[i]);
 *   }
 *   gx_session_close(session);
 *   gx_engine_close(engine);
 *   gx_index_close(index);
 */
#ifndef GPUIDX_H
#define GPUIDX_H

#include <math.h> /* NAN */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The initializer of a struct that the library fills in, all 0 but its size:
 * gx_index_stats stats = GX_SIZED(gx_index_stats); */
#ifdef __cplusplus
#define GX_SIZED(type)                                                                                                 \
    ([]() {                                                                                                            \
        type sized_ = type();                                                                                          \
        sized_.size = sizeof(type);                                                                                    \
        return sized_;                                                                                                 \
    }())
#else
#define GX_SIZED(type)                                                                                                 \
    {                                                                                                                  \
        .size = sizeof(type)                                                                                           \
    }
#endif

/* The version of this header. gx_version tells the library's. */
#define GPUIDX_VERSION_MAJOR 0
#define GPUIDX_VERSION_MINOR 1
#define GPUIDX_VERSION_PATCH 0

#define GX_API __attribute__((visibility("default")))

/* What went wrong, by kind. gx_status_exit gives the program's exit code of each. */
typedef enum gx_status {
    GX_OK = 0,
    GX_EUSAGE,     /* an argument is out of its range */
    GX_EINPUT,     /* a corpus, query log, qrels or run is malformed */
    GX_ECORRUPT,   /* an index is damaged, truncated or of an unknown version */
    GX_EIO,        /* the system refused to open, read or write */
    GX_EEXISTS,    /* the output exists already */
    GX_ENOTFOUND,  /* a file, or a named thing, is not there */
    GX_ENOMEM,     /* no host memory */
    GX_ENOGPU,     /* a GPU is required and none can be used */
    GX_ECUDA,      /* the GPU failed, was lost, or is too small */
    GX_ECANCELLED, /* the caller's cancel function said so */
    GX_EDEADLINE,  /* the caller's deadline passed */
    GX_EINTERNAL,  /* a defect of this library */
    GX_EBUSY       /* as much waits as may; try again later */
} gx_status;

typedef struct gx_error {
    gx_status status;
    char text[1020]; /* what, where, why, and what to do; no newline at the end */
} gx_error;          /* 1,024 bytes, which never change */

GX_API const char *gx_status_name(gx_status st); /* "corrupt index", "usage", ...; never NULL */
GX_API int gx_status_exit(gx_status st);         /* 0 to 9; 70 for a defect; 75 for GX_EBUSY */
GX_API const char *gx_version(void);             /* "0.1.0" */

/* How the library was built, a JSON object on one line: schema (1), gpuidx (the version), commit ("" where it was not
 * built from a git repository), architecture (of the CPU), compiler, gpu (an array: "sm_90", or "compute_80" for PTX;
 * empty without the GPU engine), cuda (nvcc's version, or null), and libraries: an object of names and the versions
 * that were compiled against, or null. It lives as long as the process. */
GX_API const char *gx_build_description(void);

typedef struct gx_index gx_index;
typedef struct gx_engine gx_engine;
typedef struct gx_session gx_session;
typedef struct gx_mask gx_mask;
typedef struct gx_filter gx_filter; /* gpuidx_advanced.h */
struct gx_filter_options;           /* gpuidx_advanced.h */

/* ---- the index ---- */

/* How much of a file is verified before it is used. Each includes those before it. */
typedef enum gx_check {
    GX_CHECK_HEADER,    /* magic, version, sizes, section table and their checksum */
    GX_CHECK_STRUCTURE, /* and everything that later reads rely on: offsets, counts, bounds. The least that opens. */
    GX_CHECK_CHECKSUM,  /* and every section's checksum (the default) */
    GX_CHECK_FULL       /* and every list decoded: docids rise and are < n_docs, tfs add up to the lengths */
} gx_check;

/* How the file comes into memory. */
typedef enum gx_load {
    GX_LOAD_MAP, /* it is mapped: pages are read when they are first used, and processes share them (the default) */
    GX_LOAD_READ /* it is read whole into memory of the process, and is not needed afterwards */
} gx_load;

typedef struct gx_index_options {
    size_t size;
    gx_check check; /* default GX_CHECK_CHECKSUM */
    gx_load load;   /* default GX_LOAD_MAP */
} gx_index_options;
/* GX_INDEX_OPTIONS, and its like for other options, initialises a variable where it is declared.
 * The init function writes the same defaults into an existing struct of `size` bytes (sizeof). */
#define GX_INDEX_OPTIONS                                                                                               \
    {                                                                                                                  \
        sizeof(gx_index_options), GX_CHECK_CHECKSUM, GX_LOAD_MAP                                                       \
    }
GX_API void gx_index_options_init(gx_index_options *o, size_t size);

/* Map the file, or read it with GX_LOAD_READ, and verify it; or open the collection (see
 * gpuidx_advanced.h) in the folder of that path. While an index that is mapped is open,
 * its file must not be truncated or overwritten in place: reading a part that is gone raises
 * SIGBUS. An index that was read is safe from that; a file that shrinks while it is read is
 * GX_ECORRUPT. To replace an index, rename a new file to its path, as the builder does; a process
 * that has the old file open keeps it. opt may be NULL. GX_EUSAGE (opt), GX_ENOTFOUND, GX_EIO,
 * GX_ECORRUPT, GX_ENOMEM. */
GX_API gx_status gx_index_open(gx_index **out, const char *path, const gx_index_options *opt, gx_error *err);
GX_API void gx_index_close(gx_index *ix);

typedef struct gx_index_stats {
    size_t size;
    uint32_t n_docs, n_terms;      /* n_docs: UINT32_MAX of a wide collection; n_documents below has all */
    uint64_t n_postings, n_tokens; /* n_tokens: the sum of all document lengths */
    uint32_t block_len;            /* most postings of a block */
    uint64_t file_bytes, device_bytes;
    bool impacts;       /* the lists hold impacts instead of tfs: the scorer is GX_IMPACT */
    bool titles, texts; /* the index stores titles; it stores texts */
    double avgdl;       /* n_tokens / n_docs; 1 when there are no documents or tokens */
    uint32_t min_doc_len, max_doc_len;
    uint32_t version; /* of the file's format */
    uint8_t uuid[16]; /* of the file, which its builder chose */
    /* What an impact of 1 adds to a score: weights were divided by it when they were made whole
     * numbers. 1: nothing was divided, or the index holds tfs. 0: each list has its own unit. */
    double impact_unit;
    uint64_t n_documents; /* all, of a wide collection too */
    bool positions;       /* the index has the positions of terms, which phrases need */
} gx_index_stats;
/* Write the statistics into *st, whose size the caller has set. GX_EUSAGE: that size is too small,
 * and nothing is written. */
GX_API gx_status gx_index_get_stats(const gx_index *ix, gx_index_stats *st);

/* What the file says about itself: a JSON object, with the analyzer under "analyzer". [*len] bytes,
 * which belong to the index and are not NUL-terminated. */
GX_API const char *gx_index_meta(const gx_index *ix, size_t *len);

/* ---- its documents ---- */

/* A document's external id and its title. The bytes belong to the index and are not NUL-terminated.
 * NULL, and *len = 0, where there is none, or where docid >= n_docs. */
GX_API const char *gx_index_doc_id(const gx_index *ix, uint64_t docid, size_t *len);
GX_API const char *gx_index_doc_title(const gx_index *ix, uint64_t docid, size_t *len);

/* Copy the external ids of n documents to buf, a line end behind each: ids hold none. Returns the
 * bytes that they take together. Where that is more than size, buf has the first size of them; buf
 * may be NULL where size is 0. A docid >= n_docs, and a document without an id, give an empty line.
 * For languages to which a call for each document is dear. Thread-safe. */
GX_API size_t gx_index_join_doc_ids(const gx_index *ix, const uint32_t *docids /* [n] */, size_t n, char *buf,
                                    size_t size);
/* The same with docids of 64 bits, which those of a wide collection are. */
GX_API size_t gx_index_join_doc_ids64(const gx_index *ix, const uint64_t *docids /* [n] */, size_t n, char *buf,
                                      size_t size);

/* A document's length: the number of its terms, repeated ones included; 0 where docid >= n_docs. */
GX_API uint32_t gx_index_doc_len(const gx_index *ix, uint64_t docid);

/* Decompress a document's stored text into *buf, and set *len to its bytes. The function
 * enlarges *buf with realloc where *cap, its size, is too small; begin with NULL and 0. The
 * caller frees *buf with free(). GX_ENOTFOUND (the index stores no texts, or docid >= n_docs),
 * GX_ECORRUPT, GX_ENOMEM. */
GX_API gx_status gx_index_doc_text(const gx_index *ix, uint64_t docid, char **buf, size_t *cap, size_t *len,
                                   gx_error *err);

/* An attribute is a typed value of a document, by which searches can be filtered. A document has any
 * number of different values of an attribute, or none; of GX_ATTRIBUTE_KEYWORD it has one at most. A
 * condition of a filter holds if any of them meets it. */
typedef enum gx_attribute_type {
    GX_ATTRIBUTE_INT = 1,  /* a whole number of 64 bits: -12, 2019 */
    GX_ATTRIBUTE_FLOAT,    /* a finite number: 3.5, -1e9 */
    GX_ATTRIBUTE_DATE,     /* ISO 8601, years 0000 to 9999 in UTC, which it is unless it says otherwise, to the second:
                            * 2019-05-31T12:30:00+02:00, 2019-05-31, 2019-05, 2019 (the first second of them) */
    GX_ATTRIBUTE_KEYWORD,  /* a string, compared byte by byte */
    GX_ATTRIBUTE_KEYWORDS, /* any number of strings */
    GX_ATTRIBUTE_BOOL      /* true or 1, false or 0 */
} gx_attribute_type;

#define GX_MAX_ATTRIBUTES 64u /* most attributes of an index */

/* name: up to 64 letters, digits, '_', '-' and '.', of which the first is a letter or '_'. The
 * names id, title, text, has, AND, OR, NOT and TO mean something else and are refused. */
typedef struct gx_attribute {
    const char *name; /* NUL-terminated */
    gx_attribute_type type;
} gx_attribute;

/* "int", "float", "date", "keyword", "keywords", "bool". false: there is no such type. */
GX_API bool gx_attribute_type_find(const char *name, gx_attribute_type *out);
GX_API const char *gx_attribute_type_name(gx_attribute_type t); /* "unknown" for any other number */

/* Bitmap columns, stored beside an attribute's values: filters read them instead of all values. The
 * documents that have a value are divided into bins by it, and a column has a bit a document. They
 * change the time that a filter takes and the size of the file, never an answer: the values decide
 * where a filter cuts a bin. */
typedef enum gx_bitmap_encoding {
    GX_BITMAPS_AUTO,     /* columns where they are small beside the values and many documents are there */
    GX_BITMAPS_NONE,     /* no columns */
    GX_BITMAPS_EQUALITY, /* a column has the documents of one bin */
    GX_BITMAPS_RANGE     /* a column has the documents of one bin and of all below it; not for keyword and keywords.
                          * Where a document has several values, GX_BITMAPS_EQUALITY takes its place */
} gx_bitmap_encoding;

typedef enum gx_binning {
    GX_BINS_QUANTILES, /* about as many documents in each bin */
    GX_BINS_WIDTH,     /* the range of the values, in equal parts */
    GX_BINS_LLOYD      /* by Lloyd's algorithm: the least squared distance to the means of the bins */
} gx_binning;

#define GX_MAX_BINS 4096u

/* bins: 0 chooses; a bin a value where there are no more different values. A keyword has a bin a
 * string, and `bins` and `binning` are 0. All zero: automatic. */
typedef struct gx_bitmap_options {
    gx_bitmap_encoding encoding;
    gx_binning binning;
    uint32_t bins;
} gx_bitmap_options;

/* Read options from a text such as "bins=25:by=lloyd": bitmaps=auto, none, equality or range; bins=1 to
 * GX_MAX_BINS; by=quantiles, width or lloyd. Bins without an encoding mean GX_BITMAPS_RANGE. The empty
 * text: automatic. GX_EUSAGE. */
GX_API gx_status gx_bitmap_options_read(gx_bitmap_options *out, const char *text, gx_error *err);

/* "auto", "none", "equality", "range"; "unknown" for any other number. */
GX_API const char *gx_bitmap_encoding_name(gx_bitmap_encoding e);

/* What an index has of one attribute. */
typedef struct gx_attribute_info {
    size_t size;
    const char *name; /* [name_len] bytes, not NUL-terminated; they belong to the index */
    size_t name_len;
    gx_attribute_type type;
    uint32_t n_present;          /* documents that have a value; UINT32_MAX where there are more */
    uint64_t n_values;           /* values of all documents; more than n_present where one has several */
    uint32_t n_distinct;         /* different strings; of keywords alone */
    uint64_t bytes;              /* that it takes in the file, strings included */
    int64_t min_int, max_int;    /* of int, date (seconds since 1970) and bool, where n_present > 0 */
    double min_float, max_float; /* of float, where n_present > 0 */
    gx_bitmap_encoding encoding; /* of its bitmap columns, or GX_BITMAPS_NONE; of a collection's first file */
    uint32_t n_bins;             /* of the same */
    uint64_t bitmap_bytes;       /* that they take, a part of `bytes` */
    uint64_t n_documents;        /* all documents that have a value */
} gx_attribute_info;

/* How many attributes an index has, and what it has of attribute number i. The caller sets
 * info->size. Reads all values of the attribute. GX_EUSAGE (the size), GX_ENOTFOUND (i is not below
 * the number of attributes). */
GX_API uint32_t gx_index_n_attributes(const gx_index *ix);
GX_API gx_status gx_index_get_attribute(const gx_index *ix, uint32_t i, gx_attribute_info *info);

/* The docid of an external id, or UINT32_MAX if no document has it. The first two dozen calls read
 * through all ids. The next call makes a hash table, of 6 to 12 bytes a document, and later calls
 * look in that. A docid of a wide collection that does not fit is UINT32_MAX, too. Thread-safe. */
GX_API uint32_t gx_index_find_doc(const gx_index *ix, const char *id, size_t len);
/* The same with a docid of 64 bits; UINT64_MAX if no document has the id. */
GX_API uint64_t gx_index_find_doc64(const gx_index *ix, const char *id, size_t len);

/* ---- its terms and their lists ---- */

/* A term is what analysis makes of a word: "index" of "Indexing". The terms of an index are
 * numbered from 0 to n_terms - 1 in byte order. The list of a term holds a posting for each
 * document that contains it: the docid, and the tf, which is how often the document contains it (or
 * the impact, where gx_index_stats.impacts is true). */

/* The number of a term, or UINT32_MAX if the index does not have it. The bytes are looked up as
 * they are; gx_index_analyze makes terms of words. Thread-safe. */
GX_API uint32_t gx_index_find_term(const gx_index *ix, const char *term, size_t len);

/* The bytes of term number `term`. They belong to the index and are not NUL-terminated. NULL, and
 * *len = 0, where term >= n_terms. */
GX_API const char *gx_index_term(const gx_index *ix, uint32_t term, size_t *len);

/* The number of documents that contain the term; 0 where term >= n_terms. */
GX_API uint64_t gx_index_df(const gx_index *ix, uint32_t term);

/* The sum of the term's tfs over all documents; 0 where term >= n_terms. The file does not store
 * it: the call decodes the tfs of the whole list. Thread-safe. */
GX_API uint64_t gx_index_cf(const gx_index *ix, uint32_t term);

/* One term of a text, and the bytes [begin, end) of the text of which it was made. In an index with
 * a fold, terms that one character became share its bytes. */
typedef struct gx_text_term {
    const char *term; /* NUL-terminated */
    size_t len, begin, end;
    uint32_t position; /* of its word in the text, from 0; stop words leave gaps, and terms of one word may share it */
} gx_text_term;

/* Make the terms of a text with the index's analyzer, as a build does. *out receives an array of
 * *n terms, in the order of the text; their bytes are part of the same allocation, which the
 * caller frees with free(*out). Thread-safe. GX_ENOMEM. */
GX_API gx_status gx_index_analyze(const gx_index *ix, const char *text, size_t len, gx_text_term **out, size_t *n,
                                  gx_error *err);

/* The same as a query of kind GX_QUERY_TEXT does: without the terms that stand in documents for shorter queries alone,
 * such as the single characters of a longer run of Han. */
GX_API gx_status gx_index_analyze_query(const gx_index *ix, const char *text, size_t len, gx_text_term **out, size_t *n,
                                        gx_error *err);

/* Whether this program makes the same terms of text as the one that built the index, where the index tells. Terms of
 * Snowball's stemmers depend on the version of libstemmer, those of a fold and of emoji on utf8proc's, words of Thai,
 * Lao, Khmer and Burmese of the analyzer multilingual on ICU's. */
typedef enum gx_analysis_change {
    GX_ANALYSIS_SAME,
    GX_ANALYSIS_UNICODE, /* Unicode's version is another: characters that are new in one may not be found */
    GX_ANALYSIS_STEMMER /* the stemmer is that of another version: words may not be found; add is refused */,
    GX_ANALYSIS_DICTIONARY /* words of Thai, Lao, Khmer and Burmese were found by a dictionary that this program lacks:
                              they are not found; add is refused */
} gx_analysis_change;

/* *what, which may be NULL, receives the difference in words. */
GX_API gx_analysis_change gx_index_analysis_change(const gx_index *ix, gx_error *what);

/* A walk along one list, from its beginning to its end. It belongs to one thread; any number of
 * walks may share the index, which must outlive them. */
typedef struct gx_postings gx_postings;

/* Stand before the first posting of a term's list. GX_EUSAGE (term >= n_terms), GX_ENOMEM. */
GX_API gx_status gx_postings_open(gx_postings **out, const gx_index *ix, uint32_t term, gx_error *err);

/* Decode the next block of the list: *n postings, at most gx_index_stats.block_len, with rising
 * docids. *docids and *tfs point to [*n] integers each, which stay until the next call or the
 * close. tfs may be NULL: the tfs are not decoded then. After the last block, *n is 0.
 * GX_ECORRUPT: the block does not decode to rising docids below n_docs. */
GX_API gx_status gx_postings_next(gx_postings *p, const uint32_t **docids, const uint32_t **tfs, uint32_t *n,
                                  gx_error *err);
/* What is to be added to the docids of the block that gx_postings_next has given last: 0, but in a wide collection,
 * where those are counted from the first document of a part. */
GX_API uint64_t gx_postings_base(const gx_postings *p);
/* The positions of the postings that gx_postings_next gave last: of each posting its tf positions, rising, posting by
 * posting; *n in all, valid until the next call. A position counts the words of a document, title and text, from 0,
 * stop words among them. GX_EUSAGE (the index has no positions), GX_ECORRUPT, GX_ENOMEM. */
GX_API gx_status gx_postings_positions(gx_postings *p, const uint32_t **positions, size_t *n, gx_error *err);
GX_API void gx_postings_close(gx_postings *p);

/* ---- building an index ---- */

/* A builder takes documents one after another and writes one index file. The file appears at
 * options.path when gx_builder_finish succeeds, not before.
 *
 * Threads: a builder serves one thread at a time. It starts options.threads - 1 threads of its
 * own. The file does not depend on their number. They block all signals, call no function of the
 * caller, and have ended when gx_builder_finish or gx_builder_abort returns.
 *
 * Memory: the inversion takes options.memory. Besides, a builder holds
 *   - the longest document;
 *   - for each document, up to 64 bytes for its id;
 *   - for each attribute of type keyword or keywords, its different strings and one bit a
 *     document;
 *   - at the end, for one attribute after another, 64 MB or one of its bitmap columns, and 40 bytes a
 *     bin or string;
 *   - at the end, up to 24 bytes for each term, and in each thread 8 to 16 bytes for each
 *     posting of the longest list that the thread merges, and with options.positions 4 to 8 for
 *     each of its positions.
 *
 * Disk: postings beyond options.memory, and the values of attributes (8 bytes each, and 8 more a
 * document that has several), go through temporary files without a name in the directory of
 * options.path. Together with the unfinished index these take up to four times the bytes of the
 * text: a third of the text for English prose, more where most terms are rare. store_text adds twice
 * the bytes of the compressed texts, and positions some 4 bytes a word. */
typedef struct gx_builder gx_builder;

/* What the builder does with a document whose id an earlier document has. */
typedef enum gx_duplicates {
    GX_DUPLICATES_FAIL,  /* gx_builder_add returns GX_EINPUT and does not add the document */
    GX_DUPLICATES_FIRST, /* the builder keeps the earlier document; it skips and counts the later one */
    GX_DUPLICATES_LAST   /* the builder keeps the later document; it removes and counts the earlier one */
} gx_duplicates;

/* A field of documents. */
typedef struct gx_field {
    const char *name; /* of letters, digits and _, at most 64 */
    uint32_t weight;  /* with gx_builder_options.fixed_weights: 1 to 1,000; else 0 */
} gx_field;
#define GX_FIELD_SEPARATOR '\x1e'
#define GX_MAX_INDEX_FIELDS 32u

typedef struct gx_builder_options {
    size_t size;
    const char *path; /* the index file */
    bool force;       /* replace an existing file; false: GX_EEXISTS where one exists */
    gx_duplicates duplicates;
    const char *docid_codec; /* a codec's name, or "auto", which chooses one for each list; NULL: "gpubp128" */
    const char *tf_codec;    /* the same, for term frequencies */
    const char *analyzer;    /* "english" (NULL), "simple", "whitespace", "multilingual", "code" or a language's name */
    const char *stemmer;     /* NULL: the analyzer's own; "none", "porter", or any of Snowball's */
    const char *stopwords; /* NULL: the analyzer's own; "none", "lucene", or the path of a file with one word a line */
    bool store_titles, store_text;
    uint64_t memory;    /* bytes for the inversion; at least 1 MiB, and 32 GiB at most are used; 0: 512 MiB */
    const char *source; /* where the documents come from; the file's description records it. May be NULL */
    uint32_t threads;   /* including the caller's; 0: 1. At most 256, and one for each MiB of memory, are used */
    const gx_attribute *attributes; /* [n_attributes] with different names; gx_document.values has their values */
    uint32_t n_attributes;
    /* "unicode": different spellings of the same text become equal before it is divided into words:
     * NFKC, case folding, diacritics, soft hyphens and zero-width joiners removed, all apostrophes
     * alike. Queries are folded in the same way. "none": text is used unchanged. NULL: "unicode" with
     * the analyzer multilingual, else "none". */
    const char *fold;
    /* 0: documents are texts. 4 to 16: they are vectors (gx_document.vector), and the index holds
     * impacts: their weights as whole numbers of this many bits, each times a unit
     * (gx_index_stats.impact_unit). Weights that are such numbers already, all of them, are kept;
     * else an impact is the weight divided by the unit, which is the greatest weight divided by
     * 2^vector_bits - 1, and rounded, at least 1. Nothing is rounded before all documents are known.
     * The analyzer is of queries alone; NULL is "whitespace" then. */
    uint32_t vector_bits;
    bool list_units;                  /* with vector_bits: each term has a unit, by its own greatest weight */
    const gx_bitmap_options *bitmaps; /* [n_attributes] the bitmap columns of each; NULL: all automatic */
    bool positions; /* keep the positions of terms in documents, for phrases; not with vector_bits or fixed_weights */
    /* Words are divided into n-grams of characters: "edge:2-15": their first 2 to 15, so that the begin of a word finds
     * it; "3": all that stand side by side, so that what stands inside a word finds it. The analyzer has neither
     * stemmer nor stop words then. NULL or "none": words stay whole. */
    const char *ngrams;
    /* The documents' fields, which gx_index_open_view (gpuidx_advanced.h) searches and weighs one by one; all else
     * searches them as one text. gx_document.text then has the texts of all, in this order, with GX_FIELD_SEPARATOR
     * between them, and the title is only stored. Not with vectors. 0: documents have none. */
    const gx_field *fields; /* [n_fields] at most GX_MAX_INDEX_FIELDS, of different names */
    uint32_t n_fields;
    /* The weights of the fields count now, for good: a word of a field of weight 3 counts 3 times, in tfs and lengths,
     * and the index has no fields. That is BM25F with one b for all fields, at the speed of any other index. */
    bool fixed_weights;
    /* With vector_bits: the unit of the impacts, a number that a float holds; it is rounded to one. Indexes of one unit
     * can be the parts of a collection. An impact may then have more than vector_bits bits, up to 16: a weight of more
     * than GX_MAX_IMPACT times the unit is GX_EINPUT. Not with list_units. 0: the weights decide, as above. */
    double unit;
} gx_builder_options;
#define GX_MAX_IMPACT 65535u
#define GX_BUILDER_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_builder_options), NULL, false, GX_DUPLICATES_FAIL, NULL, NULL, NULL, NULL, NULL, true, false, 0,     \
            NULL, 0, NULL, 0, NULL, 0, false, NULL, false, NULL, NULL, 0, false, 0                                     \
    }
GX_API void gx_builder_options_init(gx_builder_options *o, size_t size);

/* Begin a build. The builder copies the strings of opt. GX_EUSAGE, GX_EEXISTS, GX_ENOTFOUND (the
 * file of stop words), GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_builder_open(gx_builder **out, const gx_builder_options *opt, gx_error *err);

/* A document. The builder indexes the title, a space and the text as one string; the document's
 * length is the number of terms that analysis makes of it. The builder copies the bytes. title
 * may be NULL. The id must not be empty nor contain white space or control characters. */
typedef struct gx_document {
    size_t size;
    const char *id, *title, *text;
    size_t id_len, title_len, text_len;
    const struct gx_attribute_value *values; /* [n_values], in any order; may be NULL */
    uint32_t n_values;
    /* With gx_builder_options.vector_bits: the document's terms [n_vector] and their weights. No
     * term occurs twice or is empty; a weight is above 0 and at most GX_MAX_WEIGHT. Title and text
     * are only stored, and the document's length is n_vector. */
    const struct gx_weighted_term *vector;
    uint32_t n_vector;
} gx_document;
#define GX_MAX_WEIGHT 0x1p96f     /* about 7.9e28 */
#define GX_MAX_VECTOR_TERM 65535u /* most bytes of a term of a vector */

/* One value of a document, as text in the form that gx_attribute_type gives for its type. A value
 * with len = 0 is ignored, and so is one that the document has already. A document without a value of an
 * attribute lacks that attribute. */
typedef struct gx_attribute_value {
    uint32_t attribute; /* index in gx_builder_options.attributes */
    const char *text;
    size_t len;
} gx_attribute_value;

/* Add a document. GX_EINPUT (a duplicate, a bad id, a value that is not of its attribute's type,
 * a second one of GX_ATTRIBUTE_KEYWORD, a bad vector): the builder does not add this document and
 * accepts the next one. After any other failure the only valid call is gx_builder_abort; with several
 * threads, a document added earlier may be its cause. */
GX_API gx_status gx_builder_add(gx_builder *b, const gx_document *doc, gx_error *err);

/* Add n documents in their order, as one call of gx_builder_add for each does, up to the first that
 * fails. *n_added receives the number of documents before that one, which are added; n if all are.
 * The status and the text are the failed document's. All docs have the same size; else GX_EUSAGE,
 * and none is added. For languages to which a call for each document is dear. */
GX_API gx_status gx_builder_add_many(gx_builder *b, const gx_document *docs /* [n] */, size_t n, size_t *n_added,
                                     gx_error *err);

/* Stages of a build. */
typedef enum gx_builder_stage {
    GX_STAGE_ANALYSE,   /* split texts into terms */
    GX_STAGE_INVERT,    /* sort the terms' postings */
    GX_STAGE_MERGE,     /* merge the postings of temporary files */
    GX_STAGE_LISTS,     /* encode and write the lists */
    GX_STAGE_DOCUMENTS, /* write titles, texts and the rest of the file */
    GX_N_STAGES
} gx_builder_stage;

typedef struct gx_builder_counts {
    size_t size;
    uint64_t documents;          /* in the index */
    uint64_t empty;              /* documents in the index that have no term */
    uint64_t duplicates;         /* documents skipped or removed because of their ids */
    uint64_t text_bytes;         /* bytes of titles and texts added */
    uint64_t tokens;             /* terms after analysis: the sum of document lengths */
    uint64_t postings, terms;    /* final only after gx_builder_finish */
    uint64_t dropped_tokens;     /* tokens longer than the analyzer's limit */
    uint64_t replaced_bytes;     /* bytes that are not UTF-8 */
    uint64_t memory_bytes;       /* that the inversion holds now, without documents in the threads' queues */
    uint32_t spills;             /* times that postings were written to a temporary file */
    double adding;               /* seconds that the caller's thread spent in gx_builder_add */
    double seconds[GX_N_STAGES]; /* of each gx_builder_stage, summed over threads */
    double reading;              /* seconds that gx_builder_add_source read a source, summed over threads */
} gx_builder_counts;
/* The caller sets counts->size. GX_EUSAGE: it is too small, and nothing is written. */
GX_API gx_status gx_builder_get_counts(const gx_builder *b, gx_builder_counts *counts);

/* Write the index, sync it, and let it appear at options.path. The counts are final then.
 * Whether it succeeds or fails, the caller then frees the builder with gx_builder_abort. GX_EIO,
 * GX_ENOMEM. */
GX_API gx_status gx_builder_finish(gx_builder *b, gx_error *err);
/* Free the builder. Where gx_builder_finish has not succeeded, no file remains. NULL is fine. */
GX_API void gx_builder_abort(gx_builder *b);

/* ---- an index on an engine ---- */

typedef enum gx_engine_kind {
    GX_ENGINE_AUTO, /* a GPU if one can be used and has room for the index, if not for its lists; else the CPU */
    GX_ENGINE_CPU,
    GX_ENGINE_GPU
} gx_engine_kind;

typedef enum gx_join {
    GX_JOIN_AUTO,  /* on a GPU, where there is room for the file: its memory gets a copy of the lists in any case. On
                    * the CPU small parts, when an engine is opened again on a later commit (gx_engine_reopen). The
                    * parts of a wide collection are not joined */
    GX_JOIN_NEVER, /* part by part: opened at once, and no file is made */
    GX_JOIN_ALWAYS /* on the CPU too; without room for the file no engine is opened: GX_EIO, GX_ENOTFOUND. Of a wide
                    * collection: GX_EUSAGE */
} gx_join;

#define GX_MAX_DEVICES 16u /* most GPUs of an engine */

typedef enum gx_spread {
    GX_SPREAD_COPIES, /* each GPU holds the whole index */
    GX_SPREAD_PARTS   /* each GPU holds some parts of a collection, about as many bytes as the others */
} gx_spread;

/* Which lists lie in the memory of a GPU that has no room for all (gx_engine_options). GDSF learns from
 * the queries: it weighs how often and how lately a list is used against its bytes, and a list that is missed
 * takes the place of those that weigh least. STATIC: the most uses a byte by gx_engine_warm, else the shortest lists;
 * they stay. */
typedef enum gx_residency_policy {
    GX_RESIDENCY_GDSF, /* Greedy Dual Size with frequency */
    GX_RESIDENCY_STATIC,
    GX_N_RESIDENCY_POLICIES
} gx_residency_policy;

typedef struct gx_engine_options {
    size_t size;
    gx_engine_kind kind;
    int device; /* CUDA's number of the GPU */
    /* Most bytes of GPU memory that the engine takes: the index, the tables derived from it,
     * masks and all sessions together. 0: the free memory less a reserve. A session to which
     * little is left searches in smaller batches; a search that does not fit fails with
     * GX_ECUDA. */
    uint64_t device_memory;
    /* Most bytes for maps, which are tables derived from the longest lists and make searches
     * faster, and, of what the maps leave, for the tables of GX_ALGORITHM_BLOCK_MAX. They are in
     * the memory that the engine searches: the host's or the GPU's. On the CPU half of what the
     * maps leave is for copies of lists without documents that are deleted, of parts of which one
     * document in 64 or more is. UINT64_MAX: no limit. */
    uint64_t map_memory;
    /* After answering a single query the search kernel of a GPU stays resident and polls this many
     * microseconds (at most a second) for the session's next query, which then skips the launch
     * (about 4 us). It occupies the GPU meanwhile; any other call on this engine stops it, and it
     * never runs longer than 10 ms without yielding. 0: off. */
    uint32_t linger_us;
    /* Most bytes of host memory for a cache of results, which all sessions of the engine share. A
     * query that was answered lately is answered from there, with the same results. Searches with
     * prune false do not use it. 0: no cache. */
    uint64_t result_cache;
    /* Most bytes for masks of filters that queries have (gx_query.filter), kept for later queries
     * with the same filter: a bit a document each, in the memory that the engine searches. One mask
     * is made even where it does not fit. A GPU tests the values of documents itself, without a mask, if
     * a filter has few conditions and none on ids, floats, several values a document, or numbers that
     * span more than 32 bits. */
    uint64_t filter_memory;
    /* Of a collection: how its parts are searched. A search of many parts costs more than one of
     * one file, by about 2 us a part and query. Parts that are joined make one index, without the
     * documents deleted, which lies in a file without a name in $TMPDIR or /tmp and is as large as
     * their lists. Answers are the same. */
    gx_join join;
    const struct gx_shard *shard; /* of a collection: the parts to search; gpuidx_advanced.h. NULL: all */
    /* Several GPUs, by CUDA's numbers, in place of `device`; device_memory and map_memory are of
     * each. A GPU listed twice, or more GPUs than GX_MAX_DEVICES: GX_EUSAGE. One that cannot be used
     * or has too little memory: as where `device` cannot. 0: `device` alone. */
    uint32_t n_devices;
    int devices[GX_MAX_DEVICES]; /* [n_devices] */
    /* What each of several GPUs holds. Answers are the same.
     *
     * With GX_SPREAD_COPIES a session uses the GPU that has the fewest sessions when it is opened;
     * GPUs without a session take a share of other sessions' batches of 256 queries and more.
     *
     * With GX_SPREAD_PARTS a collection may be larger than the memory of one GPU. A session's batch
     * is searched on one GPU after the other, so that it takes several sessions to keep all GPUs
     * busy. GX_JOIN_AUTO and GX_JOIN_ALWAYS join the parts to an index for each GPU, where there are
     * more parts than GPUs. For an index of one file: GX_EUSAGE. */
    gx_spread spread;
    /* Most bytes, and the greatest share (0 to 1), of the lists' payload in GPU memory; the lesser of
     * both counts. UINT64_MAX and 1: all, where it fits. What does not fit, or more than this, stays
     * in host memory, which is pinned, and the GPU reads the blocks that a search needs from there,
     * over PCIe. All else of the index is in GPU memory: heads, ends, document lengths, tables, maps.
     * A cache keeps the lists that queries use most in the payload's GPU memory; residency_policy
     * says which. Answers are the same. Where not even all else fits: GX_ENOGPU. */
    uint64_t resident_memory;
    double resident_share;
    gx_residency_policy residency_policy;
} gx_engine_options;
#define GX_DEFAULT_LINGER 100
#define GX_DEFAULT_FILTER_MEMORY (UINT64_C(256) << 20)
#define GX_ENGINE_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_engine_options), GX_ENGINE_AUTO, 0, 0, UINT64_MAX, GX_DEFAULT_LINGER, 0, GX_DEFAULT_FILTER_MEMORY,   \
            GX_JOIN_AUTO, NULL, 0, {0}, GX_SPREAD_COPIES, UINT64_MAX, 1, GX_RESIDENCY_GDSF                             \
    }
GX_API void gx_engine_options_init(gx_engine_options *o, size_t size);

/* Open an engine on an index, which must outlive it. Any number of threads may share the engine.
 * With GX_ENGINE_AUTO the call opens a CPU engine where no GPU can be used;
 * gx_engine_get_fallback then gives the reason. opt may be NULL. */
GX_API gx_status gx_engine_open(gx_engine **out, const gx_index *ix, const gx_engine_options *opt, gx_error *err);
GX_API void gx_engine_close(gx_engine *en);
GX_API gx_engine_kind gx_engine_get_kind(const gx_engine *en); /* as opened: CPU or GPU */
GX_API const char *gx_engine_describe(const gx_engine *en);    /* "CPU (AVX-512)", "GPU 0: NVIDIA H200, GPU 1: ..." */

/* Why an engine opened with GX_ENGINE_AUTO searches on the CPU. Either no GPU could be used when
 * it was opened, or its GPU failed later: then the CPU answers from that search on, although
 * gx_engine_get_kind remains GX_ENGINE_GPU. Returns the failure's status, such as GX_ENOGPU or
 * GX_ECUDA, and writes it with its text to *why (may be NULL). GX_OK, with an empty text: the
 * engine has not fallen back. A later search may change the result. Thread-safe. */
GX_API gx_status gx_engine_get_fallback(gx_engine *en, gx_error *why);

/* A mask is the set of documents that a search may return (gx_query_options.mask). It belongs to
 * the engine that it was opened on; any number of its sessions and threads may share it. It
 * takes one bit of host memory for each document and, with a GPU engine, as much GPU memory.
 * Scores do not depend on it: term statistics are those of the whole index.
 *
 * words: bit d % 64 of words[d / 64] is set where the search may return document d. Bits at
 * n_docs and above do not count. The words are copied; words is NULL only where the index has no
 * documents. GX_EUSAGE, GX_ENOMEM, GX_ECUDA. */
GX_API gx_status gx_mask_open(gx_mask **out, gx_engine *en, const uint64_t *words /* [ceil(n_docs / 64)] */,
                              gx_error *err);
/* Close a mask after the last search that uses it has returned, and before its engine is closed.
 * NULL is fine. */
GX_API void gx_mask_close(gx_mask *m);

/* ---- searching ---- */

typedef enum gx_op {
    GX_OP_OR,    /* documents that contain any term of the query */
    GX_OP_AND,   /* documents that contain every term; none if the index lacks a term */
    GX_OP_AND_OR /* the answer of AND if it has k results, else the answer of OR (Ding et al. 2009, section 5) */
} gx_op;

/* Scorers. Their names, formulas and parameters are in the manual page gpuidx-query(1), too. */
typedef enum gx_preset {
    GX_BM25,              /* idf tf / (tf + K), idf = ln(1 + (N - df + .5) / (df + .5)); k1 .9, b .4 */
    GX_BM25_LUCENE,       /* the same with k1 1.2, b .75 */
    GX_BM25_PISA,         /* max(1e-6, ln((N - df + .5) / (df + .5))) (k1 + 1) tf / (tf + K); .9, .4 */
    GX_BM25_ATIRE,        /* ln(N / df) (k1 + 1) tf / (tf + K); .9, .4 */
    GX_BM25_ROBERTSON,    /* max(0, ln((N - df + .5) / (df + .5))) (k1 + 1) tf / (tf + K); 1.2, .75 */
    GX_BM25_LUCENE_LOSSY, /* GX_BM25 with Lucene's one-byte document lengths */
    GX_IMPACT,            /* tf: the sum of the stored impacts, each times its unit, or of tfs; no k1, no b */
    GX_N_PRESETS
} gx_preset;

/* name: "bm25", "bm25:lucene", ...; false if there is no such preset. */
GX_API bool gx_preset_find(const char *name, gx_preset *out);
GX_API const char *gx_preset_name(gx_preset p);
/* The preset's own k1 and b; both NaN where it has none. p < GX_N_PRESETS. */
GX_API void gx_preset_parameters(gx_preset p, float *k1, float *b);

/* How a search finds the answer. All algorithms give the same answer. GX_ALGORITHM_PMF, GX_ALGORITHM_TAAT and
 * GX_ALGORITHM_DAAT are those of Ding, He, Yan and Suel (WWW 2009). */
typedef enum gx_algorithm {
    /* The engine's own, the fastest: list at a time with a rising threshold, bounds and maps. On the
     * CPU, an OR of many terms adds the impacts of its lists up, the shortest first, or takes
     * GX_ALGORITHM_BLOCK_MAX where a sample of the ranges tells that this is faster; on a GPU that
     * is for many terms, or fewer learned weights where it is likely to be faster. */
    GX_ALGORITHM_AUTO,
    /* AND: Parallel Merge Find intersects the shortest list with the others, and skips blocks into
     * which no candidate falls. OR: as GX_ALGORITHM_TAAT. */
    GX_ALGORITHM_PMF,
    /* Term at a time into direct-mapped accumulators, one for each document. Scores every
     * posting. */
    GX_ALGORITHM_TAAT,
    /* OR: bounds of ranges of documents, the most promising ranges first (Mallia, Suel and
     * Tonellotto, SIGIR 2024); of 8 documents on the CPU, of 16,384 on a GPU, which scores them in
     * shared memory. It derives tables within the engine's map_memory: on the CPU of the query's
     * lists, up to 3 bytes a posting for most of them; on a GPU 5 bytes a range for every list that
     * has postings in half of the ranges. All other searches, those for whose tables the memory does
     * not suffice, and on a GPU those of more than 67,108,864 documents: as GX_ALGORITHM_AUTO
     * without it. */
    GX_ALGORITHM_BLOCK_MAX,
    /* Document at a time, on the CPU: a pointer into each list, moved by forward seeks over blocks, of which only those
     * are decoded where a pointer stands. Scores every document found. On a GPU, whose counterpart it is: as
     * GX_ALGORITHM_PMF. */
    GX_ALGORITHM_DAAT,
    GX_N_ALGORITHMS
} gx_algorithm;

#define GX_MAX_RECURSION 4u /* most levels of Parallel Merge Find */

#define GX_MAX_TERMS 1024u /* most different terms of one query */

/* A number of each document that is part of its score, as pagerank is, whatever the query: Ding et al.'s global score.
 * Let x be the document's value of an attribute of type int or float, of several the greatest. The form says what it
 * adds, times `weight`:
 *
 *   GX_PRIOR_LOG     ln(1 + x)
 *   GX_PRIOR_SAT     x / (x + half)
 *   GX_PRIOR_LINEAR  x
 *
 * No value and one below 0 add nothing. What is added is computed in double precision and rounded to a whole number of
 * the units 2^-e of the query's scores (gx_results), half to even, of at most 2^52 units. So the score is an integer
 * below 2^53 times 2^-e, and the same on every engine, in every batch and for any number of segments. */
typedef enum gx_prior_form { GX_PRIOR_LOG, GX_PRIOR_SAT, GX_PRIOR_LINEAR } gx_prior_form;
#define GX_PRIOR_NAME_BYTES 72u
typedef struct gx_prior {
    char name[GX_PRIOR_NAME_BYTES]; /* of the attribute; NUL-terminated */
    gx_prior_form form;
    double weight; /* above 0; 0: there is no prior */
    double half;   /* of GX_PRIOR_SAT: the value that adds half the weight; above 0 */
} gx_prior;

/* Words that stand for several in the boolean syntax: neutrin*, n?utrino, neutrino~1, /neutrin[os]+/. They become the
 * words of the index that match, those of greatest df (gx_index_expand in gpuidx_advanced.h). Scores of a document are
 *
 *   GX_EXPANSION_EACH  the sum over those words as if the query had them, each with its own idf; a word at a distance d
 *                      (of typing errors) has the weight 1 / (1 + d)
 *   GX_EXPANSION_ONE   that of one word, which stands wherever one of those does: its tf is the sum of theirs, its
 *                      df the greatest of theirs. Distances count for nothing
 *   GX_EXPANSION_CONSTANT  1, or the weight that the query gives, of each document that has one of those words
 *
 * The last two need term frequencies: they are refused where an index holds impacts, and in a view of fields. In
 * "new yor*", a phrase whose last word is a prefix, yor* always is one word of that df.
 */
typedef enum gx_expansion_scoring { GX_EXPANSION_EACH, GX_EXPANSION_ONE, GX_EXPANSION_CONSTANT } gx_expansion_scoring;
typedef struct gx_query_expansion {
    uint32_t max_words;    /* of one word of the query; 1 to GX_MAX_TERMS */
    uint32_t fixed_prefix; /* of word~: so many characters at the beginning must be the same */
    gx_expansion_scoring scoring;
} gx_query_expansion;

/* Words that mean the same (gpuidx_expansion.h). */
typedef struct gx_synonyms gx_synonyms;

/* What quotes mean in GX_QUERY_TEXT, of an index with positions. */
typedef enum gx_quotes {
    GX_QUOTES_PHRASE, /* "new york" and "new york"~3 are phrases, as in GX_QUERY_BOOLEAN */
    GX_QUOTES_WORDS   /* nothing */
} gx_quotes;

/* The sequential dependence model of Metzler and Croft: words that stand next to each other in a text query are sought
 * as pairs, too. With S(x) for the score that x has as a query of its own (of a phrase or window GX_QUERY_BOOLEAN's),
 * the score of a document is
 *
 *   words * sum of S(a)  +  ordered * sum of S("a b")  +  unordered * sum of S(NEAR/8(a b))
 *
 * over all words a, and all pairs a b of a word and the next one. Words that stop words part are a pair: "a b" then
 * asks for the same distance, as in quotes. What GX_QUOTES_PHRASE makes a phrase counts as a word, and is in no pair.
 * Pairs add to scores alone: which documents match is as without them. */
typedef struct gx_sdm {
    float words, ordered, unordered; /* finite, at least 0; words above 0. All 0: there are no pairs */
} gx_sdm;
#define GX_SDM_WINDOW 8u /* the n of NEAR/n */

typedef struct gx_query_options {
    size_t size;
    gx_op op;
    uint32_t k; /* most results, >= 1 */
    gx_preset preset;
    float k1, b; /* k1 finite and >= 0, b in [0, 1]; NaN: the preset's own */
    bool prune;  /* false: score every posting, with the same answer */
    bool count;  /* also count the matching documents, exactly; takes a pass over the lists */
    /* Called now and then during a search, of an engine on several GPUs perhaps by another thread
     * than the caller's, never by two at once. true: stop, GX_ECANCELLED. May be NULL. */
    bool (*cancel)(void *user);
    void *user;             /* passed to cancel */
    double seconds;         /* most seconds that a call may take before GX_EDEADLINE; 0: no limit */
    gx_algorithm algorithm; /* used if prune is true */
    /* Of Parallel Merge Find: levels at which it splits a list before it looks up every docid;
     * at most GX_MAX_RECURSION. */
    uint32_t recursion;
    /* Only documents of the mask are results and are counted; NULL: all documents. The mask must
     * belong to the session's engine. */
    const gx_mask *mask;
    /* Give up some of the answer for speed, from 0 (nothing: the answer is exact) to 1. An OR first
     * leaves out its lightest terms, as many as have at most this share of the weight of all its
     * terms, and finds its best 2 k + 40 documents without them. Of these it returns the best k by
     * all terms. Scores are exact, and all engines give the same answer. Nothing is promised of how
     * many of the k best are found: gx_replay tells. AND, AND-then-OR and prune = false are exact. An OR
     * whose first pass finds fewer than k documents is searched by all its terms, as the option
     * below says. It is meant for the CPU engine: of a GPU's answers a thread of the host ranks the
     * documents found, which takes longer than exact answers. */
    float approximate;
    /* Another way to give up some of the answer of an OR for speed, on the CPU engine; it combines with approximate,
     * whose first pass is then searched so. The engine knows upper bounds of the scores of 256 neighbouring documents
     * (a block). block_budget, 0 (exact) or at most 2^32 - 1: only so many blocks are searched, those with the greatest
     * bounds; of equal ones those of smaller docids. Blocks without a document that mask and filter allow do not count.
     * The answer is the exact best k of these blocks, so it has fewer results where they hold fewer. In a collection
     * each part that is searched by itself has its share of the budget, by its documents, and a threshold of its own.
     *
     * Scores are exact, and answers do not depend on threads, batches or instruction sets. Answers are exact all the
     * same on a GPU, for AND and AND-then-OR, with prune = false, GX_ALGORITHM_PMF, _TAAT or _DAAT, and where
     * map_memory does not suffice for the tables of GX_ALGORITHM_BLOCK_MAX, which searches here. */
    uint64_t block_budget;
    /* A prior is taken by gx_search, gx_search_page and gx_explain; what else takes options refuses it or, as counting
     * does, has no use for it. The search finds more than k documents by the query alone, until no other one can be
     * among the best k, which it knows by the greatest value of the attribute. approximate and block_budget are refused
     * beside it. */
    gx_prior prior;
    gx_query_expansion expansion; /* of GX_QUERY_BOOLEAN */
    gx_quotes quotes;
    /* Of GX_QUERY_TEXT, with GX_OP_OR and GX_OP_AND; GX_EUSAGE for other queries, for an index without positions, and
     * for scorers that are not BM25. */
    gx_sdm sdm;
    /* Query-side BM25, of GX_QUERY_TEXT: a term that the query has qtf times, among qlen terms in all, has the weight
     * idf * qtf / (qtf + query_k1 * (1 - query_b + query_b * qlen / avgdl)) instead of qtf, with the idf and the avgdl
     * of the documents. Its score holds the idf twice, therefore. Quotes mean nothing then. NaN: 0.9 and 0.4; both NaN:
     * off. */
    float query_k1, query_b;
    const gx_synonyms *synonyms; /* of GX_QUERY_TEXT and GX_QUERY_BOOLEAN; it lives as long as the search. NULL: none */
} gx_query_options;
#define GX_QUERY_OPTIONS                                                                                               \
    {                                                                                                                  \
        sizeof(gx_query_options), GX_OP_OR, 10, GX_BM25, NAN, NAN, true, false, NULL, NULL, 0, GX_ALGORITHM_AUTO, 0,   \
            NULL, 0, 0, {"", GX_PRIOR_LOG, 0, 1},                                                                      \
        {                                                                                                              \
            50, 0, GX_EXPANSION_EACH                                                                                   \
        },                                                                                                             \
            GX_QUOTES_PHRASE,                                                                                          \
        {                                                                                                              \
            0, 0, 0                                                                                                    \
        },                                                                                                             \
            NAN, NAN, NULL                                                                                             \
    }
GX_API void gx_query_options_init(gx_query_options *o, size_t size);

/* Run an OR query for each pair of the n_lists longest lists (of all lists, if the index has
 * fewer), and keep the score of its k-th result as the threshold of the pair. From then on an OR
 * query that contains both terms starts with that threshold, if it has the same preset, k1 and
 * b, no greater k, and no mask. It finds the same answer sooner.
 *
 * opt gives preset, k1, b and k; its op, prune, algorithm, mask and seconds are ignored. opt may
 * be NULL. The call runs about n_lists^2 / 2 queries on up to n_threads sessions, and keeps 4
 * bytes for each pair. All its threads call opt->cancel. Thresholds known already are not
 * computed again. Thread-safe; other threads may search meanwhile. GX_EUSAGE (n_lists is above
 * GX_MAX_PAIRED, or calls differ in more than 64 combinations of preset, k1, b, k and n_lists),
 * GX_ENOMEM, GX_ECUDA, GX_ECANCELLED; without GX_OK the engine is unchanged. */
#define GX_MAX_PAIRED 4096u
GX_API gx_status gx_engine_precompute_pair_thresholds(gx_engine *en, const gx_query_options *opt, uint32_t n_lists,
                                                      uint32_t n_threads, gx_error *err);

/* A term in the form in which the index stores it. The search does not analyse it again. */
typedef struct gx_weighted_term {
    const char *term; /* [len] bytes */
    size_t len;
    float weight; /* the term's score is multiplied by it; finite, above 0 */
} gx_weighted_term;

typedef enum gx_query_kind {
    GX_QUERY_TEXT,  /* text, analysed with the index's own analyzer; a term repeated n times has weight n */
    GX_QUERY_TERMS, /* terms with weights, looked up unchanged; weights of equal terms add up */
    /* Text in the boolean syntax, such as +must -not (a OR b) term^2.5 year:[2015 TO 2019]. The
     * manual page gpuidx-query(1) describes it. Conditions on attributes are those of filters
     * (gx_filter_open in gpuidx_advanced.h): they select documents and add nothing to scores. A document
     * that matches without holding any term that scores has score 0, and comes behind all others.
     * GX_EUSAGE: the text of the error names the column. A * alone is GX_QUERY_ALL. */
    GX_QUERY_BOOLEAN,
    /* No words: all documents match that the filter and the options' mask allow. Each has score 0, and they come
     * by rising docid. A GPU engine leaves these queries to a thread of the host, which finds the same. A text of
     * another kind that is empty, or of which analysis leaves nothing, finds nothing. */
    GX_QUERY_ALL
} gx_query_kind;

/* One query. All queries of a batch have the same size; else GX_EUSAGE.
 *
 * The greatest possible score is the sum of the terms' weights times idf (times k1 + 1 where the
 * scorer has that factor). It must not be above FLT_MAX. A search scales it to between 2^29 and
 * 2^30 and rounds each term's part of a score to an integer of that scale, at least 1. A term
 * that weighs less than 2^-30 of the sum therefore adds 1, however little it weighs. */
typedef struct gx_query {
    size_t size;
    gx_query_kind kind;
    const char *text; /* of GX_QUERY_TEXT and GX_QUERY_BOOLEAN: [len] bytes */
    size_t len;
    const gx_weighted_term *terms; /* of GX_QUERY_TERMS: [n_terms] */
    uint32_t n_terms;
    /* Only documents that the filter selects are results and are counted; where the options have a
     * mask, only documents of both. It is a filter of the engine's index, any number of queries may
     * share it, and it must stay open until the search returns. NULL: no filter of its own. */
    const gx_filter *filter;
    /* Of GX_QUERY_BOOLEAN: how a condition id:@FILE is read, which the search does on the caller's
     * thread. NULL: such a condition is refused. */
    const struct gx_filter_options *filter_options;
} gx_query;
#define GX_TEXT_QUERY(text, len)                                                                                       \
    {                                                                                                                  \
        sizeof(gx_query), GX_QUERY_TEXT, (text), (len), NULL, 0, NULL, NULL                                            \
    }
/* Make *q, of `size` bytes (sizeof), a query of that text. The text is not copied and must
 * outlive *q. */
GX_API void gx_query_init(gx_query *q, size_t size, const char *text, size_t len);

/* The arrays that receive the answers of n queries; the caller owns them. The answer of query i
 * is at [i * k, i * k + n_hits[i]) of docids, scores and exact_scores, by falling score and then
 * by rising docid. scores, exact_scores and n_matches may be NULL.
 *
 * A score is an integer below 2^31 times a power of two that is the query's (see gx_query). A
 * double holds it exactly; a float rounds it to 24 bits, so different scores can become equal
 * floats.
 *
 * docids64 gets the same docids as docids; of the two, one may be NULL. Of a wide collection docids must be NULL. */
typedef struct gx_results {
    size_t size;
    uint32_t *docids;     /* [n * k] */
    float *scores;        /* [n * k] */
    uint32_t *n_hits;     /* [n] */
    uint64_t *n_matches;  /* [n]; written only if options.count is true */
    double *exact_scores; /* [n * k] */
    uint64_t *docids64;   /* [n * k] */
} gx_results;
/* With the three arrays that most programs want, and none of the others. */
#define GX_RESULTS(docids, scores, n_hits)                                                                             \
    {                                                                                                                  \
        sizeof(gx_results), (docids), (scores), (n_hits), NULL, NULL, NULL                                             \
    }

/* Open a session on an engine, which must outlive it. */
GX_API gx_status gx_session_open(gx_session **out, gx_engine *en, gx_error *err);
GX_API void gx_session_close(gx_session *s);

/* The bytes that a session of a GPU engine holds; 0 on the CPU. They grow with the batch and k.
 * device and pinned together stay below 1e8 bytes on each GPU, unless a query needs more: one with k
 * far above 1,000, with GX_ALGORITHM_PMF, _TAAT or _DAAT, or with prune = false. */
typedef struct gx_session_memory {
    size_t size;
    uint64_t device; /* GPU memory */
    uint64_t pinned; /* host memory that the GPU reads and writes */
} gx_session_memory;

/* The caller sets out->size. GX_EUSAGE: it is too small, and nothing is written. */
GX_API gx_status gx_session_get_memory(const gx_session *s, gx_session_memory *out);

/* Run a batch of n queries; one query is a batch with n = 1. A session serves one thread at a
 * time. When the GPU of an engine opened with GX_ENGINE_AUTO fails, the CPU answers this batch
 * and all later ones; gx_engine_get_fallback gives the reason. GX_EUSAGE (k = 0, a query of more
 * than GX_MAX_TERMS terms, bad k1 or b, a preset other than GX_IMPACT where
 * gx_index_stats.impacts is true, an unknown algorithm, a mask of another engine, results
 * without docids or n_hits, docids of 32 bits of a wide collection), GX_ENOMEM, GX_ECUDA,
 * GX_ECANCELLED, GX_EDEADLINE; without GX_OK the results are undefined. */
GX_API gx_status gx_search(gx_session *s, const gx_query *queries, uint32_t n, const gx_query_options *opt,
                           const gx_results *out, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
