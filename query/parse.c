#include "query/parse.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grow.h"
#include "engine/status.h"

typedef struct parser {
    const char *text;
    size_t len, at;
    uint32_t column; /* of text[at] */
    uint32_t depth;
    size_t max_nodes; /* of the tree: its capacity */
    size_t n_word_bytes;
    gx_query_tree tree;
    gx_status st;
    gx_error *err;
} parser;

/* The first error stands; parsing goes no further. */
__attribute__((format(printf, 3, 4))) static uint32_t refuse_at(parser *p, uint32_t column, const char *format, ...)
{
    char what[400];
    va_list list;
    if (p->st != GX_OK)
        return GX_NO_NODE;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    p->st = gx_fail(p->err, GX_EUSAGE, "column %u: %s", column, what);
    return GX_NO_NODE;
}

/* ---- characters ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == 0;
}

static bool ends_word(char c)
{
    return is_blank(c) || c == '(' || c == ')' || c == '"' || c == '^';
}

static bool at_end(const parser *p)
{
    return p->at == p->len;
}

static void step(parser *p)
{
    ++p->at;
    p->column += at_end(p) || ((unsigned char)p->text[p->at] & 0xc0) != 0x80; /* characters of UTF-8 */
}

static void skip_blanks(parser *p)
{
    while (!at_end(p) && is_blank(p->text[p->at]))
        step(p);
}

static bool is_next(const parser *p, char c)
{
    return !at_end(p) && p->text[p->at] == c;
}

/* Whether the next word is this operator. */
static bool sees(const parser *p, const char *word)
{
    const size_t n = strlen(word), left = p->len - p->at;
    return left >= n && memcmp(p->text + p->at, word, n) == 0 && (left == n || ends_word(p->text[p->at + n]));
}

static bool accept(parser *p, const char *word)
{
    skip_blanks(p);
    if (!sees(p, word))
        return false;
    for (size_t i = strlen(word); i; --i)
        step(p);
    return true;
}

/* ---- nodes ---- */

static uint32_t add_node(parser *p, gx_node_kind kind, uint32_t column)
{
    gx_query_tree *t = &p->tree;
    if (p->st != GX_OK)
        return GX_NO_NODE;
    if (t->n_nodes == GX_PARSE_MAX_NODES)
        return refuse_at(p, column, "the query has more than %u words, groups and operators; shorten it",
                         GX_PARSE_MAX_NODES);
    if (!gx_reserve(&t->nodes, &p->max_nodes, t->n_nodes + (size_t)1, sizeof *t->nodes)) {
        p->st = gx_fail(p->err, GX_ENOMEM, "no memory for a query of %u nodes", t->n_nodes + 1);
        return GX_NO_NODE;
    }
    t->nodes[t->n_nodes] =
        (gx_node){.kind = kind, .boost = 1, .column = column, .first = GX_NO_NODE, .next = GX_NO_NODE};
    return t->n_nodes++;
}

static bool enter(parser *p, uint32_t column)
{
    if (++p->depth <= GX_PARSE_MAX_DEPTH)
        return true;
    refuse_at(p, column, "the query is nested deeper than %u levels", GX_PARSE_MAX_DEPTH);
    return false;
}

/* ---- the grammar ---- */

static uint32_t parse_clauses(parser *p, uint32_t open);

/* Bytes up to the word's end, without backslashes. False: refused. */
static bool read_word(parser *p, uint32_t node, bool quoted)
{
    gx_node *n = &p->tree.nodes[node];
    n->word = p->n_word_bytes;
    while (!at_end(p) && (quoted ? p->text[p->at] != '"' && !is_blank(p->text[p->at]) : !ends_word(p->text[p->at]))) {
        if (is_next(p, '\\')) {
            const uint32_t column = p->column;
            step(p);
            if (at_end(p)) {
                refuse_at(p, column, "a character is expected after the backslash");
                return false;
            }
        } else if (!quoted && is_next(p, ':') && p->n_word_bytes > n->word && p->at + 1 < p->len &&
                   !is_blank(p->text[p->at + 1])) {
            refuse_at(p, n->column,
                      "fields cannot be searched: this index format has one text for each document; write "
                      "\\: for a colon");
            return false;
        }
        do { /* a whole character */
            p->tree.words[p->n_word_bytes++] = p->text[p->at];
            step(p);
        } while (!at_end(p) && ((unsigned char)p->text[p->at] & 0xc0) == 0x80);
    }
    n->len = p->n_word_bytes - n->word;
    return true;
}

/* At the opening quote. */
static uint32_t parse_phrase(parser *p)
{
    const uint32_t column = p->column, node = add_node(p, GX_NODE_WORD, column);
    if (node == GX_NO_NODE)
        return node;
    step(p);
    skip_blanks(p);
    if (!read_word(p, node, true))
        return GX_NO_NODE;
    skip_blanks(p);
    if (at_end(p))
        return refuse_at(p, column, "this quote is not closed; a second \" is expected");
    if (!is_next(p, '"'))
        return refuse_at(p, column, "phrases need positions, which this index format does not store");
    if (p->tree.nodes[node].len == 0)
        return refuse_at(p, column, "a word is expected between the quotes");
    step(p);
    return node;
}

static uint32_t parse_primary(parser *p)
{
    skip_blanks(p);
    const uint32_t column = p->column;
    if (at_end(p))
        return refuse_at(p, column, "a word or ( is expected, and the query ends");
    if (sees(p, "AND") || sees(p, "OR") || sees(p, "NOT"))
        return refuse_at(p, column, "a word or ( is expected before %s; to search for the word write it small",
                         sees(p, "AND")  ? "AND"
                         : sees(p, "OR") ? "OR"
                                         : "NOT");
    switch (p->text[p->at]) {
    case '"':
        return parse_phrase(p);
    case '(':
        step(p);
        return parse_clauses(p, column);
    case ')':
    case '^':
    case '+':
        return refuse_at(p, column, "a word or ( is expected, not %c", p->text[p->at]);
    default: {
        const uint32_t node = add_node(p, GX_NODE_WORD, column);
        return node != GX_NO_NODE && read_word(p, node, false) ? node : GX_NO_NODE;
    }
    }
}

static uint32_t parse_boosted(parser *p)
{
    const uint32_t node = parse_primary(p);
    if (p->st != GX_OK || !is_next(p, '^'))
        return node;
    step(p);
    const uint32_t column = p->column;
    char digits[40];
    size_t n = 0;
    while (!at_end(p) && !ends_word(p->text[p->at]) && n + 1 < sizeof digits) {
        digits[n++] = p->text[p->at];
        step(p);
    }
    digits[n] = 0;
    char *end;
    const float boost = strtof(digits, &end);
    if (n == 0 || strspn(digits, "0123456789.eE+-") != n || *end || (!at_end(p) && !ends_word(p->text[p->at])) ||
        !isfinite(boost) || !(boost > 0))
        return refuse_at(p, column, "a finite number above 0 is expected after ^");
    if (is_next(p, '^'))
        return refuse_at(p, p->column, "a blank is expected after the weight, not ^");
    p->tree.nodes[node].boost = boost;
    return node;
}

static uint32_t parse_unary(parser *p)
{
    skip_blanks(p);
    const uint32_t column = p->column;
    const bool word = sees(p, "NOT"), sign = !word && is_next(p, '-');
    if (!word && !sign)
        return parse_boosted(p);
    if (word)
        accept(p, "NOT");
    else
        step(p);
    if (sign && (at_end(p) || is_blank(p->text[p->at])))
        return refuse_at(p, column, "a word or ( is expected right after -; write \\- for a dash");
    const uint32_t node = add_node(p, GX_NODE_NOT, column);
    if (node == GX_NO_NODE || !enter(p, column))
        return GX_NO_NODE;
    const uint32_t child = parse_unary(p);
    --p->depth;
    if (p->st == GX_OK)
        p->tree.nodes[node].first = child;
    return node;
}

/* Operands with the operator between, or the one operand. */
static uint32_t parse_operands(parser *p, gx_node_kind kind)
{
    const char *name = kind == GX_NODE_AND ? "AND" : "OR";
    uint32_t node = kind == GX_NODE_AND ? parse_unary(p) : parse_operands(p, GX_NODE_AND), last = node;
    while (p->st == GX_OK && accept(p, name)) {
        if (node == last) {
            node = add_node(p, kind, p->tree.nodes[last].column);
            if (node == GX_NO_NODE)
                return node;
            p->tree.nodes[node].first = last;
        }
        const uint32_t next = kind == GX_NODE_AND ? parse_unary(p) : parse_operands(p, GX_NODE_AND);
        if (p->st == GX_OK)
            p->tree.nodes[last].next = next;
        last = next;
    }
    return node;
}

/* One clause; a + before AND or OR would bind less than it looks. */
static uint32_t parse_clause(parser *p)
{
    const uint32_t column = p->column;
    const bool required = is_next(p, '+');
    if (required) {
        step(p);
        if (at_end(p) || is_blank(p->text[p->at]))
            return refuse_at(p, column, "a word or ( is expected right after +; write \\+ for a plus");
    }
    uint32_t node = required ? parse_boosted(p) : parse_operands(p, GX_NODE_OR);
    if (p->st != GX_OK)
        return GX_NO_NODE;
    skip_blanks(p);
    if (required && (sees(p, "AND") || sees(p, "OR")))
        return refuse_at(p, column, "+ cannot be combined with AND and OR; put parentheses around what is required");
    gx_node *n = &p->tree.nodes[node];
    if (required) {
        n->occur = GX_REQUIRED;
    } else if (n->kind == GX_NODE_NOT) { /* as a clause it excludes; the node that is left over is harmless */
        node = n->first;
        if (p->tree.nodes[node].kind == GX_NODE_NOT) /* NOT NOT stays what it is */
            return node = (uint32_t)(n - p->tree.nodes);
        p->tree.nodes[node].occur = GX_EXCLUDED;
    }
    return node;
}

/* Clauses up to the end, or up to the parenthesis that closes the one in column open (0: none). */
static uint32_t parse_clauses(parser *p, uint32_t open)
{
    const uint32_t node = add_node(p, GX_NODE_CLAUSES, open ? open : 1);
    uint32_t last = GX_NO_NODE;
    if (node == GX_NO_NODE || (open && !enter(p, open)))
        return GX_NO_NODE;
    for (skip_blanks(p); p->st == GX_OK && !at_end(p) && !(open && is_next(p, ')')); skip_blanks(p)) {
        const uint32_t clause = parse_clause(p);
        if (p->st != GX_OK)
            return GX_NO_NODE;
        if (last == GX_NO_NODE)
            p->tree.nodes[node].first = clause;
        else
            p->tree.nodes[last].next = clause;
        last = clause;
    }
    if (p->st != GX_OK || !open)
        return node;
    if (at_end(p))
        return refuse_at(p, open, "this ( is not closed; ) is expected");
    if (last == GX_NO_NODE)
        return refuse_at(p, p->column, "a word is expected between the parentheses");
    step(p);
    --p->depth;
    gx_node *only = &p->tree.nodes[last];
    if (p->tree.nodes[node].first != last || only->occur != GX_OPTIONAL || only->boost != 1 ||
        only->kind == GX_NODE_NOT)
        return node;
    only->column = only->kind == GX_NODE_WORD ? only->column : open;
    return last;
}

gx_status gx_query_parse(gx_query_tree *out, const char *text, size_t len, gx_error *err)
{
    parser p = {.text = text, .len = len, .column = 1, .err = err};
    p.tree.words = malloc(len + 1);
    if (!p.tree.words)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", len);
    p.tree.root = parse_clauses(&p, 0);
    if (p.st != GX_OK)
        gx_query_tree_free(&p.tree);
    else
        *out = p.tree;
    return p.st;
}

void gx_query_tree_free(gx_query_tree *t)
{
    free(t->nodes);
    free(t->words);
    *t = (gx_query_tree){0};
}

/* ---- back to text ---- */

static void put_word(FILE *out, const char *word, size_t len)
{
    static const char *const operators[] = {"AND", "OR", "NOT"};
    for (int i = 0; i < 3; ++i) {
        if (strlen(operators[i]) == len && memcmp(word, operators[i], len) == 0)
            putc('\\', out);
    }
    for (size_t i = 0; i < len; ++i) {
        if (ends_word(word[i]) || strchr("\\+-:", word[i]))
            putc('\\', out);
        putc(word[i], out);
    }
}

static void put_node(FILE *out, const gx_query_tree *t, uint32_t node, bool root)
{
    const gx_node *n = &t->nodes[node];
    const char *between = n->kind == GX_NODE_AND ? " AND " : n->kind == GX_NODE_OR ? " OR " : " ";
    const bool group = !root && n->kind != GX_NODE_WORD && n->kind != GX_NODE_NOT;
    if (n->kind == GX_NODE_WORD)
        put_word(out, t->words + n->word, n->len);
    fputs(n->kind == GX_NODE_NOT ? "NOT " : group ? "(" : "", out);
    for (uint32_t c = n->first; c != GX_NO_NODE; c = t->nodes[c].next) {
        fputs(c == n->first ? "" : between, out);
        fputs(t->nodes[c].occur == GX_REQUIRED ? "+" : t->nodes[c].occur == GX_EXCLUDED ? "-" : "", out);
        put_node(out, t, c, false);
    }
    fputs(group ? ")" : "", out);
    if (n->boost != 1)
        fprintf(out, "^%.9g", n->boost);
}

char *gx_query_tree_text(const gx_query_tree *t, size_t *len)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, len);
    if (!out)
        return NULL;
    put_node(out, t, t->root, true);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
