/* gpuidx_answers.h: text that grows, and the answer to a query as JSON. Part of gpuidx_advanced.h. */
#ifndef GPUIDX_ANSWERS_H
#define GPUIDX_ANSWERS_H

#include "gpuidx.h"
#include "gpuidx_searching.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- text that grows ---- */

/* A text to which functions add bytes at the end. Begin with all zero; free(bytes) at the end. Where memory lacks,
 * `failed` is set and nothing is added from then on, so that one test after the last call is enough. */
typedef struct gx_text {
    char *bytes; /* [len], not NUL-terminated; NULL: nothing was added */
    size_t len, cap;
    bool failed;
} gx_text;

GX_API void gx_text_add(gx_text *t, const char *bytes, size_t len);
GX_API void gx_text_add_string(gx_text *t, const char *string); /* NUL-terminated */
GX_API void gx_text_add_number(gx_text *t, uint64_t number);    /* in decimal */
GX_API void gx_text_add_format(gx_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Make room for n bytes at the end, and return its address, or NULL. The caller writes up to n bytes there and adds
 * their number to len. */
GX_API char *gx_text_room(gx_text *t, size_t n);
/* A score in decimal, with up to 11 digits, one more than tells the scores of a query apart: as "%.11g" prints it. */
GX_API void gx_text_add_score(gx_text *t, double score);
/* A JSON string, quotes included. Control characters are escaped; invalid UTF-8 becomes U+FFFD. */
GX_API void gx_text_add_json(gx_text *t, const char *bytes, size_t len);

/* The bytes of the UTF-8 character at text[0, len), len >= 1; 0 if there is none that is valid. */
GX_API size_t gx_utf8_length(const char *text, size_t len);
/* Whether the character of n bytes is a C0 or C1 control or DEL, which a terminal might obey. */
GX_API bool gx_utf8_is_control(const char *c, size_t n);
/* Whether it is one of U+202A to U+202E and U+2066 to U+2069, which turn the direction of what follows, so that a text
 * may look like another. */
GX_API bool gx_utf8_turns(const char *c, size_t n);

/* ---- the answer to a query as JSON ---- */

/* What an answer shows. All of it belongs to the caller. */
typedef struct gx_answer {
    const gx_index *ix;
    const char *qid, *query; /* bytes of any kind */
    size_t qid_len, query_len;
    uint32_t n_hits;
    const uint64_t *docids; /* [n_hits] */
    const double *scores;   /* [n_hits] */
    bool counted;           /* n_matches is known */
    uint64_t n_matches;
    const gx_facets *facets; /* n_facets of them */
    uint32_t n_facets;
    double seconds;
    const char *engine;               /* "cpu" or "gpu" */
    gx_highlighter *marks;            /* of the query; NULL: neither unknown terms nor snippets are shown */
    bool snippets;                    /* show them, where texts are stored */
    uint32_t n_suggested;             /* most words that are suggested for a term that the index lacks */
    const gx_weighted_term *expanded; /* [n_expanded] the query's terms where it was expanded, or NULL */
    uint32_t n_expanded;
    const gx_explanation *explanations; /* [n_hits], or NULL: why each hit has its score */
    uint64_t first;                     /* results that come before the first hit: ranks begin behind them */
    bool marked;                        /* also say which characters of a snippet are words of the query */
    bool texts;                         /* also show the stored texts, whole */
    const uint32_t *shown; /* [n_shown] numbers of the attributes whose values a hit has in `attributes`, or NULL */
    uint32_t n_shown;
    const char *cursor; /* [cursor_len] gx_page_end.next, or NULL: not shown */
    size_t cursor_len;
    bool moved;                     /* gx_page_end.moved */
    const struct gx_groups *groups; /* gx_page_end.groups (gpuidx_pages.h), of which each hit is one; or NULL */
} gx_answer;

#define GX_SNIPPET_WORDS 30u /* of the snippets of an answer */

/* Add the answer to t: a JSON object on one line, without a line end. Its members are described in gpuidx-query(1);
 * new versions only add some. GX_ENOMEM, or what reading a stored text says; t ends anywhere then. */
GX_API gx_status gx_answer_write_json(gx_text *t, const gx_answer *a, gx_error *err);

/* Add the answer to t as lines of a TREC run, "qid Q0 id rank score tag", the same bytes that a replay of the index
 * writes. Scores are those that searches give. GX_ENOMEM. */
GX_API gx_status gx_answer_write_run(gx_text *t, const gx_answer *a, const char *tag, gx_error *err);

/* The stretch of a hit's stored text that is shown for it, in *text, a text of its own that is overwritten and that
 * the caller frees. *len is 0 where the answer shows none. */
GX_API gx_status gx_answer_snippet(const gx_answer *a, uint64_t docid, char **text, size_t *cap, size_t *len,
                                   gx_snippet *snippet, gx_error *err);

#ifdef __cplusplus
}
#endif
#endif
