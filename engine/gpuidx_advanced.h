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

/* ---- codecs ---- */

/* The name of the i-th codec, i from 0, as gx_builder_options.docid_codec takes it; NULL behind the
 * last. "auto" is not among them: it stands for a choice for each list. */
GX_API const char *gx_codec_name(uint32_t i);

/* ---- an index written anew: other codecs, another order of documents, without titles or texts ---- */

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
} gx_rewrite_options;
#define GX_REWRITE_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_rewrite_options), false, NULL, NULL, NULL, false, false, NULL, NULL, NULL                            \
    }
GX_API void gx_rewrite_options_init(gx_rewrite_options *o, size_t size);

/* Write ix to a new file at path. Terms, tfs, lengths, ids and the description stay the same, so a
 * query gives the same scores; if docids change, documents of equal score may come in another order.
 * With force, path may be the file of ix itself: the mapping of the old file stays valid. opt may be
 * NULL. Memory: 24 bytes for each posting of the longest list, and 4 bytes for each document if the
 * order changes.
 *
 * GX_EUSAGE (opt's size, an unknown codec, new_docids is no permutation), GX_ECORRUPT (a list does
 * not decode to rising docids below n_docs), GX_ECANCELLED, GX_EEXISTS, GX_ENOTFOUND (no such
 * directory), GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_index_rewrite(const gx_index *ix, const char *path, const gx_rewrite_options *opt, gx_error *err);

/* ---- collections of other engines ---- */

typedef struct gx_import_options {
    size_t size;
    bool force;              /* replace an existing file */
    const char *docid_codec; /* a codec's name or "auto"; NULL: "gpubp128" */
    const char *tf_codec;    /* NULL: as docid_codec */
    /* How the index makes terms of queries, as in gx_builder_options. analyzer NULL: what
     * gx_ciff_import says, or "whitespace" for gx_ds2i_import; then the other two are NULL, too. */
    const char *analyzer, *stemmer, *stopwords;
    bool impacts; /* the tfs are impacts; implied by the description of gpuidx's own exports */
    const char *terms,
        *documents;             /* gx_ds2i_import: files of names; NULL: BASE.terms and BASE.documents if they exist */
    bool (*cancel)(void *user); /* called now and then; true: stop. May be NULL */
    void *user;
} gx_import_options;
#define GX_IMPORT_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_import_options), false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL                  \
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

/* Make an index at path from a file of the Common Index File Format (CIFF; "-": stdin), which may be
 * compressed. The file is read once, from front to back. Lists without postings are left out.
 * Memory: 8 bytes for each posting of the longest list, about 16 bytes a term, and a few MiB.
 *
 * CIFF does not record how the terms were made. The analyzer of the index is the given one; else
 * the one that the description names, if gpuidx wrote the file; else "whitespace".
 *
 * opt may be NULL. GX_EUSAGE (opt's size; an unknown codec, analyzer, stemmer), GX_ENOTFOUND,
 * GX_EIO, GX_EINPUT (with the file, the byte of the decompressed stream and the reason),
 * GX_EEXISTS, GX_ECANCELLED, GX_ENOMEM. */
GX_API gx_status gx_ciff_import(const char *file, const char *path, const gx_import_options *opt, gx_error *err);

/* Write ix as a CIFF file, which appears at path when it is complete. Titles and texts are left out.
 * Memory: 26 bytes for each posting of the longest list.
 *
 * opt may be NULL. GX_EEXISTS (unless force), GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED,
 * GX_ECORRUPT (a list does not decode to rising docids below n_docs), GX_EUSAGE (opt's size; CIFF
 * cannot hold ix: a name is empty or not UTF-8, or a number is 2^31 or more). */
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
 * NULL. GX_EUSAGE (opt's size; an unknown codec, analyzer, stemmer), GX_ENOTFOUND, GX_EIO, GX_EINPUT
 * (with file, byte and reason), GX_EEXISTS, GX_ECANCELLED, GX_ENOMEM. */
GX_API gx_status gx_ds2i_import(const char *base, const char *path, const gx_import_options *opt, gx_error *err);

/* Write ix as the five files of base, which appear when all are complete. Titles and texts are left
 * out. opt may be NULL. GX_EEXISTS (a file exists, unless force), GX_EUSAGE (opt's size; a term or
 * an id contains a line end), GX_ENOTFOUND, GX_EIO, GX_ENOMEM, GX_ECANCELLED. */
GX_API gx_status gx_ds2i_export(const gx_index *ix, const char *base, const gx_export_options *opt, gx_error *err);

/* ---- snippets: the part of a document's text that shows best why it was found ---- */

/* A highlighter holds the terms of one query, each with a weight: the rarer the heavier. A snippet
 * is the stretch of about max_words words in which the different terms weigh most; the earliest of
 * equals. Words are what lies between white space. They are matched after the index's own analysis,
 * so "indexing" is marked for "index". */
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

/* Different terms of the query, and of those, the ones that the index lacks. */
GX_API uint32_t gx_highlighter_n_terms(const gx_highlighter *h);
GX_API uint32_t gx_highlighter_n_unknown(const gx_highlighter *h);
/* The i-th term that the index lacks, i < n_unknown; NUL-terminated. */
GX_API const char *gx_highlighter_unknown(const gx_highlighter *h, uint32_t i);

/* max_words >= 1. Where no word matches, the text's beginning. */
GX_API gx_status gx_highlighter_snippet(gx_highlighter *h, const char *text, size_t len, uint32_t max_words,
                                        gx_snippet *out, gx_error *err);

/* ---- explanations: the formula of a document's score with its numbers, term by term ---- */

/* The numbers are read from the lists themselves, on the caller's thread, by none of the engines' ways through the
 * lists. The score is the one of gx_search to the bit. */
typedef struct gx_explain_term {
    const char *term; /* the index's bytes */
    size_t term_len;
    uint32_t df;
    double qtf;      /* how often the query says it, or the weight that it gives */
    uint32_t tf;     /* 0: the document lacks the term */
    double idf;      /* as the preset has it, without qtf; 1 where it has none */
    double weight;   /* idf, times k1 + 1 where the preset has it, times qtf */
    uint32_t impact; /* fixed point; 0 where tf is */
    float score;     /* impact * 2^-exponent */
} gx_explain_term;

typedef struct gx_explanation {
    uint32_t docid, n_docs, dl, counted_dl; /* counted_dl: dl, or what the preset keeps of it */
    double avgdl, k1, b;                    /* k1, b: 0 where linear */
    float K;       /* k1 (1 - b + b counted_dl / avgdl), in single precision as it is used; 0 where linear */
    bool times_k1; /* the preset multiplies by k1 + 1 */
    bool linear;   /* the preset's score is weight * tf: it has no k1, b and K */
    const char *preset, *formula;
    int exponent;
    uint32_t n_unknown; /* different terms of the query that the index lacks */
    uint32_t n_terms;
    gx_explain_term *terms; /* [n_terms], by rising df */
    uint32_t sum;           /* of the impacts */
    float score;            /* sum * 2^-exponent: what gx_search returns */
} gx_explanation;

/* Explain what the query gives to the document. docid < n_docs. Whether the document matches under
 * opt->op is not asked. Free with gx_explanation_free. GX_EUSAGE as gx_search, GX_ENOMEM. */
GX_API gx_status gx_explain(gx_explanation *out, const gx_index *ix, const gx_query *query, const gx_query_options *opt,
                            uint32_t docid, gx_error *err);
GX_API void gx_explanation_free(gx_explanation *e); /* accepts a zeroed one */

#ifdef __cplusplus
}
#endif
#endif
