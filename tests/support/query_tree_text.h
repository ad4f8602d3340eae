/* query_tree_text.h: a parsed query as text in the same syntax, with all parentheses; parsing it gives the same text
 * again. The caller frees. NULL: no memory. */
#ifndef GX_TESTS_QUERY_TREE_TEXT_H
#define GX_TESTS_QUERY_TREE_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/text/c_locale.h"
#include "query/syntax/parse.h"
#include "query/syntax/signs.h"

static inline void put_word(FILE *out, const char *word, size_t len)
{
    static const char *const operators[] = {"AND", "OR", "NOT"};
    for (int i = 0; i < 3; ++i) {
        if (strlen(operators[i]) == len && memcmp(word, operators[i], len) == 0)
            putc('\\', out);
    }
    for (size_t i = 0; i < len; ++i) {
        if (gx_ends_word("()\"^", word[i]) || strchr("\\+-", word[i]) || gx_is_sign(word, i, len))
            putc('\\', out);
        putc(word[i], out);
    }
}

static inline void put_pattern(FILE *out, const gx_query_tree *t, const gx_node *n)
{
    const char *p = t->words + n->word;
    const bool regex = n->pattern == GX_PATTERN_REGEX;
    if (n->pattern == GX_PATTERN_FUZZY) {
        put_word(out, p, n->len);
        fputs(n->distance == GX_DISTANCE_AUTO ? "~" : (const char *[]){"~0", "~1", "~2"}[n->distance], out);
        return;
    }
    fputs(regex ? "/" : "", out);
    for (size_t i = 0; i < n->len; ++i) {
        const bool escape = p[i] == '\\' && i + 1 < n->len;
        if (regex && p[i] == '/')
            putc('\\', out);
        putc(p[i], out);
        if (escape && !(regex && p[i + 1] == '/'))
            putc(p[++i], out);
    }
    fputs(regex ? "/" : "", out);
}

static inline void put_condition(FILE *out, const gx_query_tree *t, const gx_condition *c)
{
    gx_bytes text = {0};
    if (gx_condition_append(&text, c, t->values.p))
        fwrite(text.p, 1, text.n, out);
    free(text.p);
}

static inline void put_weight(FILE *out, float weight)
{
    char text[32];
    gx_print(text, sizeof text, "^%.9g", weight);
    fputs(text, out);
}

static inline void put_phrase(FILE *out, const gx_query_tree *t, const gx_node *n)
{
    const char *word = t->words + n->word, *const end = word + n->len;
    if (n->window != '"')
        fprintf(out, "%s/%u(", n->window == 'N' ? "NEAR" : "ONEAR", n->slop);
    else
        putc('"', out);
    const char *between = "";
    for (const char *blank; word < end; word = blank + 1) {
        blank = memchr(word, ' ', (size_t)(end - word));
        blank = blank ? blank : end;
        if (blank == word)
            continue; /* of a blank behind a backslash: one blank parts words as well as two */
        fputs(between, out);
        put_word(out, word, (size_t)(blank - word));
        between = " ";
    }
    putc(n->window == '"' ? '"' : ')', out);
    if (n->window == '"' && n->slop)
        fprintf(out, "~%u", n->slop);
}

static inline void put_node(FILE *out, const gx_query_tree *t, uint32_t node, bool root)
{
    const gx_node *n = &t->nodes[node];
    const char *between = n->kind == GX_NODE_AND ? " AND " : n->kind == GX_NODE_OR ? " OR " : " ";
    const bool leaf = n->kind == GX_NODE_WORD || n->kind == GX_NODE_PATTERN || n->kind == GX_NODE_PHRASE ||
                      n->kind == GX_NODE_CONDITION;
    const bool group = !root && !leaf && n->kind != GX_NODE_NOT;
    if (n->kind == GX_NODE_WORD)
        put_word(out, t->words + n->word, n->len);
    else if (n->kind == GX_NODE_PHRASE)
        put_phrase(out, t, n);
    else if (n->kind == GX_NODE_PATTERN)
        put_pattern(out, t, n);
    else if (n->kind == GX_NODE_CONDITION)
        put_condition(out, t, &t->conditions[n->condition]);
    fputs(n->kind == GX_NODE_NOT ? "NOT " : group ? "(" : "", out);
    for (uint32_t c = n->first; c != GX_NO_NODE; c = t->nodes[c].next) {
        fputs(c == n->first ? "" : between, out);
        fputs(t->nodes[c].occur == GX_REQUIRED ? "+" : t->nodes[c].occur == GX_EXCLUDED ? "-" : "", out);
        put_node(out, t, c, false);
    }
    fputs(group ? ")" : "", out);
    if (n->boost != 1)
        put_weight(out, n->boost);
}

static inline char *query_tree_text(const gx_query_tree *t, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    if (!out)
        return NULL;
    fputs(t->all ? "*" : "", out);
    put_node(out, t, t->root, true);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

#endif
