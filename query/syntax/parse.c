#include "query/syntax/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/c_locale.h"
#include "index/fields/view.h"
#include "query/syntax/signs.h"

#define DELIMITERS "()\"^" /* and blanks */
#define MAX_SLOP 10000u    /* as GX_MAX_SLOP */
#define NO_FIELDS "fields cannot be searched; write \\: for a colon in a word"

typedef struct parser {
    const gx_index *ix, *fields;
    gx_scanner in;
    uint32_t depth, field;            /* field: gx_node.field of the nodes that are added */
    size_t max_nodes, max_conditions; /* of the tree: capacities */
    size_t n_word_bytes;
    gx_query_tree tree;
} parser;

/* ---- nodes ---- */

static uint32_t add_node(parser *p, gx_node_kind kind, uint32_t column)
{
    gx_query_tree *t = &p->tree;
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    if (t->n_nodes == GX_PARSE_MAX_NODES)
        return gx_scan_refuse(&p->in, column, "the query has more than %u words, groups and operators; shorten it",
                              GX_PARSE_MAX_NODES);
    if (!gx_reserve(&t->nodes, &p->max_nodes, t->n_nodes + (size_t)1, sizeof *t->nodes)) {
        p->in.st = gx_fail(p->in.err, GX_ENOMEM, "no memory for a query of %u nodes", t->n_nodes + 1);
        return GX_NO_NODE;
    }
    t->nodes[t->n_nodes] = (gx_node){
        .kind = kind, .boost = 1, .column = column, .first = GX_NO_NODE, .next = GX_NO_NODE, .field = p->field};
    return t->n_nodes++;
}

static bool enter(parser *p, uint32_t column)
{
    if (++p->depth <= GX_PARSE_MAX_DEPTH)
        return true;
    gx_scan_refuse(&p->in, column, "the query is nested deeper than %u levels", GX_PARSE_MAX_DEPTH);
    return false;
}

/* ---- the grammar ---- */

static uint32_t parse_clauses(parser *p, uint32_t open);

/* Bytes up to the word's end, without backslashes unless `raw`. False: refused. */
static bool read_bytes(parser *p, uint32_t node, bool quoted, bool raw)
{
    gx_node *n = &p->tree.nodes[node];
    n->word = p->n_word_bytes;
    while (quoted ? !gx_is_blank(gx_scan_peek(&p->in)) && !gx_scan_is_next(&p->in, '"')
                  : !gx_scan_is_word_end(&p->in)) {
        if (gx_scan_is_next(&p->in, '\\')) {
            const uint32_t column = p->in.column;
            if (raw)
                p->tree.words[p->n_word_bytes++] = '\\';
            gx_scan_step(&p->in);
            if (gx_scan_is_end(&p->in)) {
                gx_scan_refuse(&p->in, column, "a character is expected after the backslash");
                return false;
            }
        }
        do { /* a whole character */
            p->tree.words[p->n_word_bytes++] = gx_scan_peek(&p->in);
            gx_scan_step(&p->in);
        } while (!gx_scan_is_end(&p->in) && ((unsigned char)gx_scan_peek(&p->in) & 0xc0) == 0x80);
    }
    n->len = p->n_word_bytes - n->word;
    return true;
}

static bool read_word(parser *p, uint32_t node, bool quoted)
{
    return read_bytes(p, node, quoted, false);
}

/* ---- words that stand for several ---- */

static uint32_t parse_wildcard(parser *p)
{
    const uint32_t node = add_node(p, GX_NODE_PATTERN, p->in.column);
    if (node == GX_NO_NODE || !read_bytes(p, node, false, true))
        return GX_NO_NODE;
    p->tree.nodes[node].pattern = GX_PATTERN_WILDCARD;
    return node;
}

/* A word, ~ and a number up to 2, which may be left out. */
static uint32_t parse_fuzzy(parser *p, gx_word_sign sign)
{
    const uint32_t node = add_node(p, GX_NODE_PATTERN, p->in.column);
    const size_t len = p->in.len;
    if (node == GX_NO_NODE)
        return node;
    p->in.len = sign.at;
    const bool good = read_word(p, node, false);
    p->in.len = len;
    if (!good)
        return GX_NO_NODE;
    gx_node *n = &p->tree.nodes[node];
    n->pattern = GX_PATTERN_FUZZY;
    gx_scan_step(&p->in);
    n->distance = gx_scan_is_word_end(&p->in) ? GX_DISTANCE_AUTO : (uint32_t)(gx_scan_peek(&p->in) - '0');
    while (!gx_scan_is_word_end(&p->in))
        gx_scan_step(&p->in);
    return node;
}

/* At the opening slash. */
static uint32_t parse_regex(parser *p)
{
    const uint32_t column = p->in.column, node = add_node(p, GX_NODE_PATTERN, column);
    if (node == GX_NO_NODE)
        return node;
    gx_node *n = &p->tree.nodes[node];
    n->pattern = GX_PATTERN_REGEX;
    n->word = p->n_word_bytes;
    for (gx_scan_step(&p->in); !gx_scan_is_end(&p->in) && !gx_scan_is_next(&p->in, '/'); gx_scan_step(&p->in)) {
        if (gx_scan_is_next(&p->in, '\\') && p->in.at + 1 < p->in.len) {
            gx_scan_step(&p->in);
            if (!gx_scan_is_next(&p->in, '/'))
                p->tree.words[p->n_word_bytes++] = '\\';
        }
        p->tree.words[p->n_word_bytes++] = gx_scan_peek(&p->in);
    }
    n->len = p->n_word_bytes - n->word;
    if (!gx_scan_take(&p->in, '/'))
        return gx_scan_refuse(&p->in, column, "a second / is expected, which ends a regular expression" GX_OR_QUOTES);
    if (n->len == 0)
        return gx_scan_refuse(&p->in, column, "a regular expression is expected between the slashes" GX_OR_QUOTES);
    if (!gx_scan_is_word_end(&p->in))
        return gx_scan_refuse(
            &p->in, p->in.column,
            "a blank is expected behind the regular expression; write \\/ for a slash in it" GX_OR_QUOTES);
    return node;
}

static uint32_t parse_condition(parser *p)
{
    gx_query_tree *t = &p->tree;
    const uint32_t node = add_node(p, GX_NODE_CONDITION, p->in.column);
    if (node == GX_NO_NODE)
        return node;
    if (!gx_reserve(&t->conditions, &p->max_conditions, t->n_conditions + (size_t)1, sizeof *t->conditions)) {
        p->in.st = gx_fail(p->in.err, GX_ENOMEM, "no memory for a query of %u conditions", t->n_conditions + 1);
        return GX_NO_NODE;
    }
    p->in.delimiters = GX_CONDITION_DELIMITERS "^";
    const bool good = gx_scan_condition(&p->in, p->ix, " (" NO_FIELDS ")", &t->conditions[t->n_conditions], &t->values);
    p->in.delimiters = DELIMITERS;
    if (good && gx_scan_is_next(&p->in, '^'))
        gx_scan_refuse(&p->in, p->in.column, "a condition adds nothing to the score, and has no weight");
    t->nodes[node].condition = t->n_conditions++;
    return p->in.st == GX_OK ? node : GX_NO_NODE;
}

/* The number of `what`, from `least` on; column: where it stands. */
static uint32_t read_slop(parser *p, const char *what, uint32_t least)
{
    const uint32_t column = p->in.column;
    uint32_t n = 0, digits = 0;
    for (char c; (c = gx_scan_peek(&p->in)) >= '0' && c <= '9' && n <= MAX_SLOP; ++digits) {
        n = 10 * n + (uint32_t)(c - '0');
        gx_scan_step(&p->in);
    }
    if (digits == 0 || n > MAX_SLOP || n < least)
        gx_scan_refuse(&p->in, column, "a whole number from %u to %u is expected after %s", least, MAX_SLOP, what);
    return n;
}

/* Whether the word that has been read, of n bytes, ends with a star that would stand for letters elsewhere. */
static bool has_star(const parser *p, size_t n)
{
    const char *end = p->in.text + p->in.at;
    return n > 1 && end[-1] == '*' && end[-2] != '\\';
}

/* The words of a phrase, up to `close`, with blanks between. Returns their number. */
static uint32_t read_phrase(parser *p, uint32_t node, char close)
{
    const size_t begin = p->n_word_bytes;
    uint32_t n_words = 0, star = 0;
    size_t last = begin;
    gx_word_sign sign = {0};
    for (gx_scan_skip_blanks(&p->in); !gx_scan_is_end(&p->in) && !gx_scan_is_next(&p->in, close);
         gx_scan_skip_blanks(&p->in)) {
        if (close == ')' && strchr("+-(\"^", gx_scan_peek(&p->in)))
            return gx_scan_refuse(&p->in, p->in.column, "only words stand in a window, not %c", gx_scan_peek(&p->in));
        if (close == ')' && (gx_scan_signs(&p->in, &sign) || p->in.st != GX_OK))
            return gx_scan_refuse(&p->in, p->in.column, "only words stand in a window, no conditions");
        if (close == ')' && (sign.kind || gx_scan_is_next(&p->in, '/')))
            return gx_scan_refuse(&p->in, p->in.column,
                                  "a word in a window stands for itself alone, without *, ?, ~ and /");
        if (star)
            return gx_scan_refuse(
                &p->in, star, "* stands for letters in the last word of a phrase alone; write \\* for the character");
        if (n_words++)
            p->tree.words[p->n_word_bytes++] = ' ';
        last = p->n_word_bytes;
        if (!read_word(p, node, close == '"'))
            return 0;
        star = has_star(p, p->tree.nodes[node].len) ? p->in.column - 1 : 0;
        p->tree.nodes[node].len = p->n_word_bytes - begin;
        p->tree.nodes[node].word = begin;
    }
    if (star && n_words > 1) { /* the sign goes; of one word in quotes it is a character */
        --p->n_word_bytes;
        --p->tree.nodes[node].len;
        p->tree.nodes[node].prefix = p->n_word_bytes - last;
    }
    return n_words;
}

/* At the opening quote. */
static uint32_t parse_phrase(parser *p)
{
    const uint32_t column = p->in.column, node = add_node(p, GX_NODE_WORD, column);
    if (node == GX_NO_NODE)
        return node;
    gx_scan_step(&p->in);
    const uint32_t n_words = read_phrase(p, node, '"');
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    if (gx_scan_is_end(&p->in))
        return gx_scan_refuse(&p->in, column, "this quote is not closed; a second \" is expected");
    if (n_words == 0)
        return gx_scan_refuse(&p->in, column, "a word is expected between the quotes");
    gx_scan_step(&p->in);
    gx_node *n = &p->tree.nodes[node];
    n->kind = n_words > 1 ? GX_NODE_PHRASE : GX_NODE_WORD;
    n->window = '"';
    if (gx_scan_is_next(&p->in, '~')) {
        if (n->prefix)
            return gx_scan_refuse(&p->in, p->in.column, "~ and * do not go together in a phrase");
        if (n_words == 1)
            return gx_scan_refuse(&p->in, p->in.column, "~ needs a phrase of at least two words before it");
        gx_scan_step(&p->in);
        n->slop = read_slop(p, "~", 0);
    }
    return p->in.st == GX_OK ? node : GX_NO_NODE;
}

/* Whether NEAR/ or ONEAR/ is next. */
static bool sees_window(const parser *p)
{
    const size_t left = p->in.len - p->in.at;
    const char *text = p->in.text + p->in.at;
    return (left > 5 && memcmp(text, "NEAR/", 5) == 0) || (left > 6 && memcmp(text, "ONEAR/", 6) == 0);
}

/* At NEAR/ or ONEAR/. */
static uint32_t parse_window(parser *p)
{
    const uint32_t column = p->in.column, node = add_node(p, GX_NODE_PHRASE, column);
    if (node == GX_NO_NODE)
        return node;
    p->tree.nodes[node].window = gx_scan_peek(&p->in);
    while (!gx_scan_take(&p->in, '/'))
        gx_scan_step(&p->in);
    p->tree.nodes[node].slop = read_slop(p, p->tree.nodes[node].window == 'N' ? "NEAR/" : "ONEAR/", 1);
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    if (!gx_scan_is_next(&p->in, '('))
        return gx_scan_refuse(&p->in, p->in.column, "( and words are expected, as in NEAR/5(new york)");
    const uint32_t open = p->in.column;
    gx_scan_step(&p->in);
    const uint32_t n_words = read_phrase(p, node, ')');
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    if (gx_scan_is_end(&p->in))
        return gx_scan_refuse(&p->in, open, "this ( is not closed; ) is expected");
    if (n_words < 2)
        return gx_scan_refuse(&p->in, p->in.column, "a window needs at least two words");
    gx_scan_step(&p->in);
    return node;
}

static uint32_t parse_primary(parser *p);

/* The number of the field of a view that is named before the colon; UINT32_MAX: it names none. */
static uint32_t find_field(parser *p, size_t *colon)
{
    const char *const name = p->in.text + p->in.at, *const end = p->in.text + p->in.len;
    const char *behind = name;
    while (behind < end && (gx_is_letter_or_digit(*behind) || *behind == '_'))
        ++behind;
    *colon = (size_t)(behind - p->in.text);
    const bool names_one = p->fields && p->fields->fields && behind < end && *behind == ':';
    const uint32_t f = names_one ? gx_fields_find(p->fields->fields, name, (size_t)(behind - name)) : UINT32_MAX;
    if (f != UINT32_MAX && !gx_view_of(p->fields))
        gx_scan_refuse(&p->in, p->in.column,
                       "%s is a field, and the search has none: name fields and weights (--fields)",
                       p->fields->fields->names[f]);
    return f;
}

/* title:word, title:(a b). */
static uint32_t parse_field(parser *p, uint32_t field, size_t colon)
{
    const uint32_t column = p->in.column;
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    if (p->field)
        return gx_scan_refuse(&p->in, column, "a field inside of a field");
    while (p->in.at <= colon)
        gx_scan_step(&p->in);
    const char next = gx_scan_is_end(&p->in) ? ' ' : gx_scan_peek(&p->in);
    if (next == ' ' || next == '/')
        return gx_scan_refuse(&p->in, p->in.column,
                              "a word, \" or ( is expected behind %s:", p->fields->fields->names[field]);
    p->field = field + 1;
    const uint32_t node = parse_primary(p);
    p->field = 0;
    return node;
}

static uint32_t parse_primary(parser *p)
{
    gx_scan_skip_blanks(&p->in);
    const uint32_t column = p->in.column;
    if (gx_scan_is_end(&p->in))
        return gx_scan_refuse(&p->in, column, "a word or ( is expected, and the query ends");
    if (gx_scan_sees(&p->in, "AND") || gx_scan_sees(&p->in, "OR") || gx_scan_sees(&p->in, "NOT"))
        return gx_scan_refuse(&p->in, column,
                              "a word or ( is expected before %s; to search for the word write it small",
                              gx_scan_sees(&p->in, "AND")  ? "AND"
                              : gx_scan_sees(&p->in, "OR") ? "OR"
                                                           : "NOT");
    switch (gx_scan_peek(&p->in)) {
    case '"':
        return parse_phrase(p);
    case '(':
        gx_scan_step(&p->in);
        return parse_clauses(p, column);
    case ')':
    case '^':
    case '+':
        return gx_scan_refuse(&p->in, column, "a word or ( is expected, not %c", gx_scan_peek(&p->in));
    case '/':
        return parse_regex(p);
    default: {
        gx_word_sign sign;
        if (sees_window(p))
            return parse_window(p);
        size_t field_colon;
        const uint32_t field = find_field(p, &field_colon);
        if (field != UINT32_MAX)
            return parse_field(p, field, field_colon);
        const size_t colon = gx_scan_signs(&p->in, &sign);
        if (p->in.st != GX_OK)
            return GX_NO_NODE;
        if (!colon && sign.kind)
            return sign.kind == '~' ? parse_fuzzy(p, sign) : parse_wildcard(p);
        if (colon && memchr(p->in.text + p->in.at, '\\', colon - p->in.at))
            return gx_scan_refuse(&p->in, column, "%s", NO_FIELDS);
        if (colon)
            return parse_condition(p);
        const uint32_t node = add_node(p, GX_NODE_WORD, column);
        return node != GX_NO_NODE && read_word(p, node, false) ? node : GX_NO_NODE;
    }
    }
}

static uint32_t parse_boosted(parser *p)
{
    const uint32_t node = parse_primary(p);
    if (p->in.st != GX_OK || !gx_scan_is_next(&p->in, '^'))
        return node;
    gx_scan_step(&p->in);
    const uint32_t column = p->in.column;
    char digits[40];
    size_t n = 0;
    while (!gx_scan_is_word_end(&p->in) && n + 1 < sizeof digits) {
        digits[n++] = gx_scan_peek(&p->in);
        gx_scan_step(&p->in);
    }
    digits[n] = 0;
    char *end;
    const float boost = gx_strtof(digits, &end);
    if (n == 0 || strspn(digits, "0123456789.eE+-") != n || *end || (!gx_scan_is_word_end(&p->in)) ||
        !isfinite(boost) || !(boost > 0))
        return gx_scan_refuse(&p->in, column, "a finite number above 0 is expected after ^");
    if (gx_scan_is_next(&p->in, '^'))
        return gx_scan_refuse(&p->in, p->in.column, "a blank is expected after the weight, not ^");
    p->tree.nodes[node].boost = boost;
    return node;
}

static uint32_t parse_unary(parser *p)
{
    gx_scan_skip_blanks(&p->in);
    const uint32_t column = p->in.column;
    const bool word = gx_scan_sees(&p->in, "NOT"), sign = !word && gx_scan_is_next(&p->in, '-');
    if (!word && !sign)
        return parse_boosted(p);
    if (word)
        gx_scan_take_word(&p->in, "NOT");
    else
        gx_scan_step(&p->in);
    if (sign && gx_is_blank(gx_scan_peek(&p->in)))
        return gx_scan_refuse(&p->in, column, "a word or ( is expected right after -; write \\- for a dash");
    const uint32_t node = add_node(p, GX_NODE_NOT, column);
    if (node == GX_NO_NODE || !enter(p, column))
        return GX_NO_NODE;
    const uint32_t child = parse_unary(p);
    --p->depth;
    if (p->in.st == GX_OK)
        p->tree.nodes[node].first = child;
    return node;
}

/* Operands with the operator between, or the one operand. */
static uint32_t parse_operands(parser *p, gx_node_kind kind)
{
    const char *name = kind == GX_NODE_AND ? "AND" : "OR";
    uint32_t node = kind == GX_NODE_AND ? parse_unary(p) : parse_operands(p, GX_NODE_AND), last = node;
    while (p->in.st == GX_OK && gx_scan_take_word(&p->in, name)) {
        if (node == last) {
            node = add_node(p, kind, p->tree.nodes[last].column);
            if (node == GX_NO_NODE)
                return node;
            p->tree.nodes[node].first = last;
        }
        const uint32_t next = kind == GX_NODE_AND ? parse_unary(p) : parse_operands(p, GX_NODE_AND);
        if (p->in.st == GX_OK)
            p->tree.nodes[last].next = next;
        last = next;
    }
    return node;
}

/* One clause; a + before AND or OR would bind less than it looks. */
static uint32_t parse_clause(parser *p)
{
    const uint32_t column = p->in.column;
    const bool required = gx_scan_is_next(&p->in, '+');
    if (required) {
        gx_scan_step(&p->in);
        if (gx_is_blank(gx_scan_peek(&p->in)))
            return gx_scan_refuse(&p->in, column, "a word or ( is expected right after +; write \\+ for a plus");
        if (gx_scan_is_next(&p->in, '-'))
            return gx_scan_refuse(&p->in, p->in.column,
                                  "a word or ( is expected right after +, not -; write -word to exclude a word, or "
                                  "\\- for a dash");
    }
    uint32_t node = required ? parse_boosted(p) : parse_operands(p, GX_NODE_OR);
    if (p->in.st != GX_OK)
        return GX_NO_NODE;
    gx_scan_skip_blanks(&p->in);
    if (required && (gx_scan_sees(&p->in, "AND") || gx_scan_sees(&p->in, "OR")))
        return gx_scan_refuse(&p->in, column,
                              "+ cannot be combined with AND and OR; put parentheses around what is required");
    gx_node *n = &p->tree.nodes[node];
    if (required) {
        n->occur = GX_REQUIRED;
    } else if (n->kind == GX_NODE_NOT) { /* as a clause it excludes; the node that is left over is harmless */
        node = n->first;
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
    for (gx_scan_skip_blanks(&p->in);
         p->in.st == GX_OK && !gx_scan_is_end(&p->in) && !(open && gx_scan_is_next(&p->in, ')'));
         gx_scan_skip_blanks(&p->in)) {
        const uint32_t clause = parse_clause(p);
        if (p->in.st != GX_OK)
            return GX_NO_NODE;
        if (last == GX_NO_NODE)
            p->tree.nodes[node].first = clause;
        else
            p->tree.nodes[last].next = clause;
        last = clause;
    }
    if (p->in.st != GX_OK || !open)
        return node;
    if (gx_scan_is_end(&p->in))
        return gx_scan_refuse(&p->in, open, "this ( is not closed; ) is expected");
    if (last == GX_NO_NODE)
        return gx_scan_refuse(&p->in, p->in.column, "a word is expected between the parentheses");
    gx_scan_step(&p->in);
    --p->depth;
    gx_node *only = &p->tree.nodes[last];
    if (p->tree.nodes[node].first != last || only->occur != GX_OPTIONAL || only->boost != 1 ||
        only->kind == GX_NODE_NOT || (only->kind == GX_NODE_CONDITION && gx_scan_is_next(&p->in, '^')))
        return node;
    only->column = only->kind == GX_NODE_WORD || only->kind == GX_NODE_CONDITION ? only->column : open;
    return last;
}

/* Whether the text is * alone, which selects all documents; it is passed then. */
static bool take_all(parser *p)
{
    gx_scanner in = p->in;
    gx_scan_skip_blanks(&in);
    const bool star = gx_scan_take(&in, '*');
    gx_scan_skip_blanks(&in);
    if (!star || !gx_scan_is_end(&in))
        return false;
    p->in = in;
    return true;
}

gx_status gx_query_parse(gx_query_tree *out, const gx_index *ix, const char *text, size_t len, gx_error *err)
{
    return gx_query_parse_fields(out, ix, ix, text, len, err);
}

gx_status gx_query_parse_fields(gx_query_tree *out, const gx_index *ix, const gx_index *fields, const char *text,
                                size_t len, gx_error *err)
{
    parser p = {
        .ix = ix, .fields = fields, .in = {text, len, .column = 1, .delimiters = DELIMITERS, .prefix = "", .err = err}};
    p.tree.words = malloc(len + 1);
    if (!p.tree.words)
        return gx_fail(err, GX_ENOMEM, "no memory for a query of %zu bytes", len);
    p.tree.all = take_all(&p);
    p.tree.root = parse_clauses(&p, 0);
    if (p.in.st != GX_OK)
        gx_query_tree_free(&p.tree);
    else
        *out = p.tree;
    return p.in.st;
}

void gx_query_tree_free(gx_query_tree *t)
{
    free(t->nodes);
    free(t->words);
    free(t->conditions);
    free(t->values.p);
    *t = (gx_query_tree){0};
}
