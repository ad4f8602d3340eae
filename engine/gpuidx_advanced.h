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

/* GX_ENOMEM, or what analysis says. */
GX_API gx_status gx_highlighter_open(gx_highlighter **out, const gx_index *ix, const char *query, size_t len,
                                     gx_error *err);
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
