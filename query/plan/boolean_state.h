/* boolean_state.h: a boolean query as boolean.c makes it, for boolean_match.c. */
#ifndef GX_QUERY_PLAN_BOOLEAN_STATE_H
#define GX_QUERY_PLAN_BOOLEAN_STATE_H

#include "query/filter/filter_tree.h"
#include "query/phrase/phrase.h"
#include "query/plan/boolean.h"
#include "query/syntax/parse.h"

typedef enum gx_match_kind {
    GX_MATCH_TERM,
    GX_MATCH_PHRASE,
    GX_MATCH_CONDITION,
    GX_MATCH_FILTER, /* in the place of conditions */
    GX_MATCH_AND,
    GX_MATCH_OR,
    GX_MATCH_NOT
} gx_match_kind;

typedef struct gx_match {
    gx_match_kind kind;
    uint32_t list;        /* of a term; UINT32_MAX: the index lacks it. Of a phrase, condition or filter: its number */
    bool pure;            /* made of conditions alone */
    uint32_t first, last; /* children */
    uint32_t next;
} gx_match;

typedef struct gx_scored_word {
    size_t at, len; /* bytes[at, at + len) */
    float weight;
    uint32_t position; /* in its piece of a plain text */
} gx_scored_word;

/* A phrase or window. */
typedef struct gx_read_phrase {
    gx_phrase_kind kind; /* a group has places of any number of words */
    uint32_t slop, first, n; /* words [first, first + n) of gx_boolean.words */
    float weight;
    bool negated;
} gx_read_phrase;

typedef struct gx_read_word {
    size_t at, len;          /* bytes[at, at + len) */
    gx_phrase_word in_index; /* its list is UINT32_MAX also where ix is a collection */
} gx_read_word;

/* The words that a pattern of the query stands for. */
typedef struct gx_expanded_node {
    uint32_t node; /* of the tree */
    gx_expansion *words;
} gx_expanded_node;

/* Conditions that are one filter: items [begin, begin + n) of gx_boolean.items. */
typedef struct gx_piece {
    uint32_t begin, n;
} gx_piece;

struct gx_boolean {
    const gx_index *ix;
    gx_op op; /* asked for; of a query that is flat, its own */
    gx_query_tree tree;
    gx_match *nodes;
    size_t max_nodes, max_scored, max_bytes; /* capacities of nodes, scored and bytes */
    uint32_t n_nodes, n_leaves, root;        /* root: without the conditions that all results must meet */
    bool flat;
    bool selects; /* there is a condition that is not negated */
    bool fill;    /* documents without a term that scores match, too */
    gx_filter_item *items;
    size_t max_items, max_pieces;
    uint32_t n_items, n_pieces;
    gx_piece *pieces;    /* [n_pieces] */
    uint32_t required;   /* the piece that all results must meet; UINT32_MAX: there is none */
    gx_filter **filters; /* [n_pieces], without the required one; NULL until they are made */
    bool only_scores;    /* some terms add to scores and are not needed to match */
    bool negated;        /* there are terms that do not score */
    gx_scored_word *scored;
    uint32_t n_scored;
    gx_read_phrase *phrases;
    gx_read_word *words; /* of the phrases */
    size_t max_phrases, max_words;
    uint32_t n_phrases, n_words;
    char *bytes;
    size_t n_bytes;
    gx_query_expansion options;
    const gx_synonyms *synonyms;
    bool (*cancel)(void *user);
    void *cancel_user;
    gx_expanded_node *expanded; /* [n_expanded] by rising node; `whole` has those of its parts */
    size_t max_expanded;
    uint32_t n_expanded;
    const gx_boolean *whole; /* the same query on the whole collection, or NULL */
};

#endif
