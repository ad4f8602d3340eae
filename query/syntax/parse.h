/* parse.h: the boolean syntax of queries: text to a tree. Nothing is analysed here, and only the names
 * of attributes are looked up.
 *
 *   query    = { clause } | "*"                clauses stand side by side, which binds least; * alone is all
 *   clause   = ["+" | "-"] or
 *   or       = and { "OR" and }
 *   and      = unary { "AND" unary }
 *   unary    = { "NOT" | "-" } boosted
 *   boosted  = primary ["^" number]
 *   primary  = word | pattern | phrase | window | "(" query ")" | condition
 *   phrase   = '"' words '"' [ "~" number ]                 the last word may end with *
 *   window   = ( "NEAR" | "ONEAR" ) "/" number "(" words ")"
 *   pattern  = a word with ? or * in it | word "~" ["0" | "1" | "2"] | "/" regular expression "/"
 *
 * AND, OR and NOT are operators in capitals only. A word ends at white space or at one of ( ) " ^ ; + and - are
 * signs only at its beginning; a backslash takes the next character as it is. "+" and "-" bind to one operand:
 * where such a clause goes on with AND or OR, "+" is an error and "-" means NOT. Each further NOT or "-" negates
 * what the one before it says; "+-" is an error. A quoted phrase of one word is that word. A phrase of several
 * is found where they stand in a row, or with ~n within n places more; NEAR/n finds words within n places, in
 * any order, ONEAR/n words in order, each at most n behind the one before (query/phrase/phrase.h). What stands
 * in quotes is a text, in which signs mean nothing, but for a * behind the last of several words; a window has words
 * alone. A word with a colon in it, that no backslash precedes, is a condition (condition.h): year:2019,
 * year:[2015 TO 2019]. It has no weight. In a view of fields title:word and title:(a b) are words in this field alone.
 * Refused: names that no attribute has, because an index stores no fields; a * behind another word of a phrase than the
 * last; and signs that mean something in other engines only (signs.h).
 */
#ifndef GX_QUERY_SYNTAX_PARSE_H
#define GX_QUERY_SYNTAX_PARSE_H

#include "engine/api/gpuidx_expansion.h"
#include "query/syntax/condition.h"

#define GX_PARSE_MAX_DEPTH 64u   /* parentheses, NOTs and signs, each inside the one before */
#define GX_PARSE_MAX_NODES 8192u /* words, groups and operators of one query */

typedef enum gx_node_kind {
    GX_NODE_WORD,
    GX_NODE_PHRASE,  /* a phrase of several words, or a window */
    GX_NODE_PATTERN, /* a word that stands for several */
    GX_NODE_CONDITION,
    GX_NODE_CLAUSES, /* side by side; each child has an occurrence */
    GX_NODE_AND,
    GX_NODE_OR,
    GX_NODE_NOT /* of one child */
} gx_node_kind;

typedef enum gx_occur { GX_OPTIONAL, GX_REQUIRED, GX_EXCLUDED } gx_occur;

#define GX_NO_NODE UINT32_MAX

typedef struct gx_node {
    gx_node_kind kind;
    gx_occur occur;       /* of a child of GX_NODE_CLAUSES; else GX_OPTIONAL */
    float boost;          /* of this node alone, finite and above 0; 1 where none is given */
    uint32_t column;      /* in characters, from 1 */
    uint32_t first, next; /* first child, next sibling; GX_NO_NODE: none */
    size_t word, len; /* GX_NODE_WORD, GX_NODE_PHRASE: its bytes, without backslashes, at gx_query_tree.words + word */
    char window;      /* GX_NODE_PHRASE: '"', or 'N' and 'O' of NEAR and ONEAR */
    uint32_t slop;    /* GX_NODE_PHRASE: the number */
    size_t prefix;    /* GX_NODE_PHRASE: so many bytes at its end are the beginning of the last word; 0: it is whole */
    uint32_t condition; /* GX_NODE_CONDITION: its number */
    uint32_t field;     /* of a view of fields (index/fields/view.h): 1 + the one field that counts; 0: all do */
    /* GX_NODE_PATTERN: its text is that of gx_index_expand, at gx_query_tree.words + word */
    gx_pattern_kind pattern;
    uint32_t distance;
} gx_node;

typedef struct gx_query_tree {
    gx_node *nodes; /* [n_nodes]; the root is a GX_NODE_CLAUSES */
    uint32_t n_nodes, root;
    char *words;
    gx_condition *conditions; /* [n_conditions] */
    uint32_t n_conditions;
    gx_bytes values; /* of the conditions */
    bool all;        /* the query is "*" alone, and the root has no clauses */
} gx_query_tree;

/* ix: the index whose attributes conditions name; NULL: names are not looked up. GX_EUSAGE: the message
 * names the column and what is expected there. GX_ENOMEM. */
gx_status gx_query_parse(gx_query_tree *out, const gx_index *ix, const char *text, size_t len, gx_error *err);
/* The same with names of fields: those of `fields` (NULL: there are none). */
gx_status gx_query_parse_fields(gx_query_tree *out, const gx_index *ix, const gx_index *fields, const char *text,
                                size_t len, gx_error *err);
void gx_query_tree_free(gx_query_tree *t);

#endif
