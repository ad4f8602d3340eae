/* gpuidx_files.h: index files checked, measured, written anew, and made of those of other engines. Part of
 * gpuidx_advanced.h. */
#ifndef GPUIDX_FILES_H
#define GPUIDX_FILES_H

#include "gpuidx.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Make the terms of a text with the analyzer that the first five name, as gx_builder_options
 * does; *out and *n as of gx_index_analyze. GX_EUSAGE (an unknown name), GX_ENOTFOUND and GX_EIO
 * (the file of stop words), GX_ENOMEM. */
GX_API gx_status gx_analyze_text(const char *analyzer, const char *stemmer, const char *stopwords, const char *fold,
                                 const char *ngrams, const char *text, size_t len, gx_text_term **out, size_t *n,
                                 gx_error *err);

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
    bool drop_positions;       /* positions are kept where the index has them, but not with impacts */
} gx_rewrite_options;
#define GX_REWRITE_OPTIONS                                                                                             \
    {                                                                                                                  \
        sizeof(gx_rewrite_options), false, NULL, NULL, NULL, false, false, NULL, NULL, NULL, GX_IMPACT_OPTIONS, false  \
    }
GX_API void gx_rewrite_options_init(gx_rewrite_options *o, size_t size);

/* Write ix to a new file at path. Terms, tfs, lengths, ids and the description stay the same, so
 * a query gives the same scores; if docids change, documents of equal score may come in another
 * order. With force, path may be the file of ix itself: the mapping of the old file stays valid.
 * opt may be NULL. Memory: 24 bytes for each posting of the longest list, and 4 bytes for each
 * document if the order changes; where there are positions, also 8 bytes for each of that list, and 8 a posting.
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
    /* An id that several documents have, which no run can tell apart: import them all; false: fail. */
    bool keep_duplicates;
    void (*warn)(void *user, const char *text); /* what is imported although it is odd. May be NULL */
    const char *ngrams;                         /* as in gx_builder_options */
} gx_import_options;
#define GX_IMPORT_OPTIONS                                                                                              \
    {                                                                                                                  \
        sizeof(gx_import_options), false, NULL, NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL,     \
            NULL, NULL, 0, false, NULL, NULL, false, NULL, NULL                                                        \
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
 * out. Memory: 8 bytes for each posting of the longest list, about 16 bytes a term, 16 to 40 bytes a
 * document, and a few MiB. An id that comes twice is bad input, unless opt says that such documents are
 * kept. Ids with white space, and lists whose cf is not the sum of their tfs, are warned of.
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

/* ---- outputs ---- */

/* Write the n bytes to a file that appears whole or not at all; "-" is standard output, and a
 * device or FIFO is written through. GX_EEXISTS (a file is there, unless force), GX_ENOTFOUND,
 * GX_EIO, GX_ENOMEM. */
GX_API gx_status gx_write_file(const char *path, const void *bytes, size_t n, bool force, gx_error *err);

/* Unlink the temporary files of this process that have a name: for signal handlers that end the
 * process. Safe in them. Outputs that are being written fail afterwards. */
GX_API void gx_temporary_names_unlink(void);

#ifdef __cplusplus
}
#endif
#endif
