/* gpuidx_options.h: the options of a search by name and text. Part of gpuidx_advanced.h.
 *
 * One table says which options there are, what their values look like and where they go. Whatever gives options as text
 * reads it: the flags of the command line, the commands of the shell, the members of a server's requests. */
#ifndef GPUIDX_OPTIONS_H
#define GPUIDX_OPTIONS_H

#include "gpuidx.h"
#include "gpuidx_searching.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The words of options with a choice, as their enumerations count them. */
#define GX_OP_WORDS "or|and|and-or"
#define GX_PRESET_WORDS "bm25|bm25:lucene|bm25:pisa|bm25:atire|bm25:robertson|bm25:lucene-lossy|impact"
#define GX_ALGORITHM_WORDS "auto|pmf|taat|block-max|daat"
#define GX_SYNTAX_WORDS "plain|boolean"
#define GX_QUOTES_WORDS_LIST "phrase|words"
#define GX_EXPANSION_SCORING_WORDS "each|one|constant"

/* What the options of a search set. */
typedef struct gx_search_setup {
    size_t size;
    gx_query_kind kind; /* GX_QUERY_TEXT or GX_QUERY_BOOLEAN */
    gx_query_options options;
    gx_rm3_options rm3; /* fb_docs 0: queries are not expanded */
    bool scorer_given;  /* else gx_search_setup_settle chooses */
} gx_search_setup;
/* Set the defaults. */
GX_API void gx_search_setup_init(gx_search_setup *s, size_t size);

typedef enum gx_option_kind {
    GX_OPTION_COUNT,  /* a whole number */
    GX_OPTION_NUMBER, /* a finite number */
    GX_OPTION_CHOICE, /* one of `words` */
    GX_OPTION_SWITCH, /* on or true, off or false */
    GX_OPTION_TEXT    /* a form of its own, which `help` names */
} gx_option_kind;

typedef struct gx_search_option {
    const char *name; /* "k", "op", "k1" */
    gx_option_kind kind;
    const char *words; /* of GX_OPTION_CHOICE, with | between; else NULL */
    double min, max;   /* of counts and numbers, both allowed */
    const char *help;  /* one line, in lower case, no full stop */
} gx_search_option;

/* The table: *n options. */
GX_API const gx_search_option *gx_search_options(size_t *n);
/* NULL: there is none of this name. */
GX_API const gx_search_option *gx_search_option_find(const char *name, size_t len);

/* Set the option of a name from a text. Of those whose default is no number (k1, b, query-k1, query-b), "default" is a
 * value.
 * GX_ENOTFOUND: there is no such option; GX_EUSAGE: that is no value of it; the message does
 * not begin with its name. Then *s is unchanged. */
GX_API gx_status gx_search_setup_set(gx_search_setup *s, const char *name, size_t name_len, const char *value,
                                     size_t value_len, gx_error *err);
/* Set the options of a text such as "k=100 op=and k1=1.2": pairs with white space between. Statuses as above; messages
 * name the option. */
GX_API gx_status gx_search_setup_read(gx_search_setup *s, const char *text, gx_error *err);

#define GX_OPTION_VALUE_BYTES 192u
/* Write the value of an option of the table to text[GX_OPTION_VALUE_BYTES], ending with 0, as it is read. */
GX_API void gx_search_setup_get(const gx_search_setup *s, const gx_search_option *option, char *text);

/* Fit the options to an index: where it holds impacts and no scorer was set, the scorer is GX_IMPACT. GX_EUSAGE: rm3
 * with the boolean syntax; GX_ENOTFOUND: rm3, and the index stores no texts. */
GX_API gx_status gx_search_setup_settle(gx_search_setup *s, const gx_index *ix, gx_error *err);

/* The number of a word among words with | between; -1: it is none of them. */
GX_API int gx_word_index(const char *words, const char *word, size_t len);

#ifdef __cplusplus
}
#endif
#endif
