/* filter.c: an expression to a tree. */
#include "query/filter.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/collection.h"
#include "query/scanner.h"

#define NONE GX_NOT_SCANNED
#define DELIMITERS "()[]{}\""

typedef struct buffer {
    char *p;
    size_t n, max;
} buffer;

typedef struct parser {
    const gx_filter_options *opt;
    const gx_live *live; /* the documents that an id may mean */
    gx_scanner in;
    uint32_t depth;
    size_t max_nodes; /* of the tree: its capacity */
    gx_filter *f;
    buffer texts;
    buffer value; /* the value that was read last */
} parser;

static uint32_t no_memory(parser *p)
{
    if (p->in.st == GX_OK)
        p->in.st = gx_fail(p->in.err, GX_ENOMEM, "no memory for a filter");
    return NONE;
}

static void append(parser *p, buffer *b, const char *bytes, size_t n)
{
    if (p->in.st != GX_OK)
        return;
    if (!gx_reserve(&b->p, &b->max, b->n + n, 1)) {
        no_memory(p);
        return;
    }
    if (n)
        memcpy(b->p + b->n, bytes, n);
    b->n += n;
}

static void append_text(parser *p, buffer *b, const char *text)
{
    append(p, b, text, strlen(text));
}

/* In double quotes, so that it is read as the same value again. */
static void append_quoted(parser *p, buffer *b, const char *bytes, size_t n)
{
    append(p, b, "\"", 1);
    for (size_t i = 0; i < n; ++i) {
        if (bytes[i] == '"' || bytes[i] == '\\')
            append(p, b, "\\", 1);
        append(p, b, &bytes[i], 1);
    }
    append(p, b, "\"", 1);
}

/* ---- nodes ---- */

static uint32_t add_node(parser *p, gx_filter_node node)
{
    gx_filter *f = p->f;
    if (p->in.st != GX_OK)
        return NONE;
    if (f->n_nodes == GX_FILTER_MAX_NODES)
        return gx_scan_refuse(&p->in, p->in.column,
                              "more than %u conditions and operators; put ids into a file, and write id:@FILE",
                              GX_FILTER_MAX_NODES);
    if (!gx_reserve(&f->nodes, &p->max_nodes, f->n_nodes + (size_t)1, sizeof *f->nodes))
        return no_memory(p);
    node.next = NONE;
    f->nodes[f->n_nodes] = node;
    return f->n_nodes++;
}

/* ---- attributes ---- */

/* The attribute of that name, or NONE after refusing it. */
static uint32_t find_attribute(parser *p, const char *name, size_t n, uint32_t column)
{
    char why[GX_NO_ATTRIBUTE_TEXT];
    const uint32_t i = gx_column_find(p->f->ix, name, n, why);
    return i != UINT32_MAX ? i : gx_scan_refuse(&p->in, column, "%s", why);
}

/* ---- values ---- */

/* A word or a quoted string, into p->value. false: refused. */
static bool read_value(parser *p, const char *what)
{
    const uint32_t column = p->in.column;
    p->value.n = 0;
    if (gx_scan_take(&p->in, '"')) {
        while (!gx_scan_is_end(&p->in) && gx_scan_peek(&p->in) != '"') {
            if (gx_scan_peek(&p->in) == '\\' && p->in.at + 1 < p->in.len)
                gx_scan_step(&p->in);
            append(p, &p->value, &p->in.text[p->in.at], 1);
            gx_scan_step(&p->in);
        }
        if (!gx_scan_take(&p->in, '"'))
            gx_scan_refuse(&p->in, column, "a quote is opened and never closed");
        return p->in.st == GX_OK;
    }
    const size_t begin = p->in.at;
    while (!gx_scan_is_word_end(&p->in)) {
        if (gx_scan_peek(&p->in) == '\\' && p->in.at + 1 < p->in.len)
            gx_scan_step(&p->in);
        append(p, &p->value, &p->in.text[p->in.at], 1);
        gx_scan_step(&p->in);
    }
    if (p->in.at == begin)
        gx_scan_refuse(&p->in, column, "%s is expected", what);
    return p->in.st == GX_OK;
}

/* All values that a text stands for, as the index orders them: whole numbers of int, date and bool,
 * doubles of float, ordinals of keywords. */
typedef struct span {
    int64_t first, last; /* first > last: none; of keywords, first is where the string would be */
    double x;
} span;

/* The ordinal of the first string that is not below the value. */
static uint32_t lower_bound(const gx_index *ix, const gx_column *c, const char *p, size_t n, bool *equal)
{
    uint32_t low = 0, high = c->n_strings;
    *equal = false;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        size_t len;
        const char *s = gx_column_string(ix, c, middle, &len);
        const int common = memcmp(s, p, len < n ? len : n), order = common ? common : (len > n) - (len < n);
        *equal = *equal || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The value that was read last, which stands at `column`, as a value of the attribute. */
static bool read_span(parser *p, const gx_column *c, uint32_t column, span *out)
{
    const char *text = p->value.n ? p->value.p : "", *fault = NULL;
    const size_t n = p->value.n;
    bool truth = false;
    *out = (span){0, 0, 0};
    switch (c->type) {
    case GX_ATTRIBUTE_INT:
        fault = gx_parse_int(text, n, &out->first);
        out->last = out->first;
        break;
    case GX_ATTRIBUTE_DATE:
        fault = gx_parse_date(text, n, &out->first, &out->last);
        break;
    case GX_ATTRIBUTE_FLOAT:
        fault = gx_parse_float(text, n, &out->x);
        break;
    case GX_ATTRIBUTE_BOOL:
        fault = gx_parse_bool(text, n, &truth);
        out->first = out->last = truth;
        break;
    default:
        out->first = lower_bound(p->f->ix, c, text, n, &truth);
        out->last = out->first - !truth;
    }
    if (fault)
        gx_scan_refuse(&p->in, column, "%.*s is of type %s, and '%.*s' %s", (int)c->name_len, c->name,
                       gx_attribute_type_name(c->type), (int)(n < 60 ? n : 60), text, fault);
    return fault == NULL;
}

/* Bounds of a range, before and after it is known what they mean in the column. */
typedef struct bounds {
    bool any_low, any_high, open_low, open_high; /* any: no bound; open: without the bound itself */
    span low, high;
} bounds;

static void set_float_range(gx_filter_node *node, const bounds *b)
{
    double low = b->any_low ? -DBL_MAX : b->low.x, high = b->any_high ? DBL_MAX : b->high.x;
    if (b->open_low && !b->any_low)
        low = nextafter(low, INFINITY);
    if (b->open_high && !b->any_high)
        high = nextafter(high, -INFINITY);
    node->none = !(low <= high);
    memcpy(&node->low, &low, sizeof low);
    memcpy(&node->high, &high, sizeof high);
}

static void set_range(gx_filter_node *node, const gx_column *c, const bounds *b)
{
    int64_t low = b->any_low ? INT64_MIN : b->low.first, high = b->any_high ? INT64_MAX : b->high.last;
    if (c->type == GX_ATTRIBUTE_FLOAT) {
        set_float_range(node, b);
        return;
    }
    if (b->open_low && !b->any_low) {
        node->none = b->low.last == INT64_MAX;
        low = node->none ? INT64_MAX : b->low.last + 1;
    }
    if (b->open_high && !b->any_high) {
        node->none = node->none || b->high.first == INT64_MIN;
        high = b->high.first == INT64_MIN ? INT64_MIN : b->high.first - 1;
    }
    /* Offsets from the base; there is nothing below it. */
    node->none = node->none || low > high || high < c->base;
    node->low = low <= c->base ? 0 : (uint64_t)low - (uint64_t)c->base;
    node->high = (uint64_t)high - (uint64_t)c->base;
}

/* ---- conditions ---- */

static bool read_bound(parser *p, const gx_column *c, bool *any, span *out, bool *quoted)
{
    gx_scan_skip_blanks(&p->in);
    const uint32_t column = p->in.column;
    *quoted = gx_scan_is_next(&p->in, '"');
    if (!read_value(p, "a bound, or *,"))
        return false;
    *any = !*quoted && p->value.n == 1 && p->value.p[0] == '*';
    return *any || read_span(p, c, column, out);
}

static void append_bound(parser *p, bool any)
{
    if (any)
        append_text(p, &p->texts, "*");
    else
        append_quoted(p, &p->texts, p->value.n ? p->value.p : "", p->value.n);
}

/* "[a TO b]" behind the colon. */
static bool read_brackets(parser *p, const gx_column *c, bounds *b)
{
    bool quoted;
    b->open_low = !gx_scan_take(&p->in, '[');
    if (b->open_low)
        gx_scan_take(&p->in, '{');
    append_text(p, &p->texts, b->open_low ? "{" : "[");
    if (!read_bound(p, c, &b->any_low, &b->low, &quoted))
        return false;
    append_bound(p, b->any_low);
    if (!gx_scan_take_word(&p->in, "TO")) {
        gx_scan_refuse(&p->in, p->in.column, "TO is expected, as in [2015 TO 2019]");
        return false;
    }
    append_text(p, &p->texts, " TO ");
    if (!read_bound(p, c, &b->any_high, &b->high, &quoted))
        return false;
    append_bound(p, b->any_high);
    gx_scan_skip_blanks(&p->in);
    b->open_high = !gx_scan_take(&p->in, ']');
    if (b->open_high && !gx_scan_take(&p->in, '}')) {
        gx_scan_refuse(&p->in, p->in.column, "] or } is expected, which ends the range");
        return false;
    }
    append_text(p, &p->texts, b->open_high ? "}" : "]");
    return true;
}

static bool read_comparison(parser *p, const gx_column *c, bounds *b)
{
    const bool below = gx_scan_take(&p->in, '<'), above = !below && gx_scan_take(&p->in, '>'),
               equal = (below || above) && gx_scan_take(&p->in, '=');
    const uint32_t column = p->in.column;
    append_text(p, &p->texts, below ? "<" : above ? ">" : "");
    append_text(p, &p->texts, equal ? "=" : "");
    if (!read_value(p, "a value") || !read_span(p, c, column, &b->low))
        return false;
    append_bound(p, false);
    b->high = b->low;
    b->any_low = below;
    b->any_high = above;
    b->open_low = above && !equal;
    b->open_high = below && !equal;
    return true;
}

static bool read_range(parser *p, gx_filter_node *node)
{
    const gx_column *c = &p->f->ix->columns[node->column];
    const char next = gx_scan_peek(&p->in);
    const uint32_t column = p->in.column;
    const bool range = next && strchr("[{<>", next);
    bounds b = {.any_low = false};
    if (range && c->type == GX_ATTRIBUTE_BOOL) {
        gx_scan_refuse(&p->in, column, "%.*s is true or false, and has no ranges", (int)c->name_len, c->name);
        return false;
    }
    if (!(next == '[' || next == '{' ? read_brackets(p, c, &b) : read_comparison(p, c, &b)))
        return false;
    if (!range && gx_is_keyword(c->type) && b.low.first > b.low.last) { /* no such string */
        node->none = true;
        return true;
    }
    set_range(node, c, &b);
    return true;
}

#define FEW_OF 32u /* of so many documents one in a list takes no more memory than the bits of all */

/* Sets the node's documents to those of the bits; it keeps them, or frees them. */
static void keep_ids(parser *p, gx_filter_node *node, uint64_t *bits)
{
    const uint32_t n_docs = p->f->ix->n_docs;
    const size_t n_words = ((size_t)n_docs + 63) / 64;
    uint32_t n = 0;
    for (size_t w = 0; w < n_words; ++w)
        node->n_ids += (uint32_t)__builtin_popcountll(bits[w]);
    if (node->n_ids <= n_docs / FEW_OF && !(node->docids = malloc((node->n_ids + 1ull) * sizeof *node->docids)))
        no_memory(p);
    for (size_t w = 0; w < n_words && node->docids; ++w)
        for (uint64_t left = bits[w]; left; left &= left - 1)
            node->docids[n++] = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(left);
    if (node->docids || p->in.st != GX_OK)
        free(bits);
    else
        node->ids = bits;
}

static void read_ids_of_file(parser *p, gx_filter_node *node)
{
    uint64_t *bits = calloc(((size_t)p->f->ix->n_docs + 63) / 64 + 1, sizeof *bits);
    if (!bits) {
        no_memory(p);
        return;
    }
    p->in.st = p->opt->read_ids(p->opt->user, p->value.p, bits, p->in.err);
    if (p->in.st == GX_OK)
        keep_ids(p, node, bits);
    else
        free(bits);
}

static bool read_ids(parser *p, gx_filter_node *node)
{
    const uint32_t column = p->in.column;
    const bool file = gx_scan_take(&p->in, '@');
    append_text(p, &p->texts, file ? "@" : "");
    if (!read_value(p, file ? "the name of a file" : "an id, or @ and the name of a file,"))
        return false;
    append_bound(p, false);
    append(p, &p->value, "", 1);
    p->f->reads_files |= file;
    if (p->in.st != GX_OK)
        return false;
    if (file && !p->opt->read_ids) {
        gx_scan_refuse(&p->in, column, "files of ids cannot be read here");
    } else if (file) {
        read_ids_of_file(p, node);
    } else if (!(node->docids = malloc(sizeof *node->docids))) {
        no_memory(p);
    } else {
        node->docids[0] = gx_index_find_live_doc(p->f->ix, p->live, p->value.p, p->value.n - 1);
        node->n_ids = node->docids[0] != UINT32_MAX;
    }
    return p->in.st == GX_OK;
}

static uint32_t read_condition(parser *p)
{
    const size_t begin = p->in.at;
    const uint32_t column = p->in.column;
    gx_filter_node node = {.kind = GX_FILTER_RANGE, .first = NONE, .text = p->texts.n};
    while (!gx_scan_is_word_end(&p->in) && gx_scan_peek(&p->in) != ':')
        gx_scan_step(&p->in);
    const char *name = p->in.text + begin;
    const size_t n = p->in.at - begin;
    if (n == 0)
        return gx_scan_refuse(&p->in, column, "a condition is expected, as in year:2019, or NOT or (");
    append(p, &p->texts, name, n);
    if (!gx_scan_take(&p->in, ':'))
        return gx_scan_refuse(&p->in, p->in.column, "a colon is expected behind '%.*s', as in year:2019",
                              (int)(n < 60 ? n : 60), name);
    append_text(p, &p->texts, ":");
    bool good = true;
    if (n == 2 && memcmp(name, "id", 2) == 0) {
        node.kind = GX_FILTER_IDS;
        good = read_ids(p, &node);
    } else if (n == 3 && memcmp(name, "has", 3) == 0) {
        const uint32_t at = p->in.column;
        node.kind = GX_FILTER_HAS;
        good = read_value(p, "the name of an attribute");
        if (good) {
            append(p, &p->texts, p->value.p, p->value.n);
            node.column = find_attribute(p, p->value.n ? p->value.p : "", p->value.n, at);
        }
    } else if ((node.column = find_attribute(p, name, n, column)) != NONE) {
        good = read_range(p, &node);
    }
    node.len = p->texts.n - node.text;
    const uint32_t i = good && p->in.st == GX_OK ? add_node(p, node) : NONE;
    if (i == NONE) {
        free(node.docids);
        free(node.ids);
    }
    return i;
}

/* ---- operators ---- */

static uint32_t read_or(parser *p);

static uint32_t read_operand(parser *p)
{
    gx_scan_skip_blanks(&p->in);
    const uint32_t column = p->in.column;
    const bool negated = gx_scan_take_word(&p->in, "NOT");
    if (!negated && !gx_scan_is_next(&p->in, '('))
        return read_condition(p);
    if (++p->depth > GX_FILTER_MAX_DEPTH)
        return gx_scan_refuse(&p->in, column, "parentheses and NOTs nest deeper than %u levels", GX_FILTER_MAX_DEPTH);
    uint32_t node;
    if (negated) {
        node = read_operand(p);
        if (p->in.st == GX_OK)
            node = add_node(p, (gx_filter_node){.kind = GX_FILTER_NOT, .first = node});
    } else {
        gx_scan_take(&p->in, '(');
        node = read_or(p);
        gx_scan_skip_blanks(&p->in);
        if (p->in.st == GX_OK && !gx_scan_take(&p->in, ')'))
            gx_scan_refuse(&p->in, p->in.column, "AND, OR or the ) to the ( at column %u is expected", column);
    }
    --p->depth;
    return p->in.st == GX_OK ? node : NONE;
}

/* Operands with one operator between. */
static uint32_t read_series(parser *p, const char *word, gx_filter_kind kind, uint32_t (*operand)(parser *p))
{
    uint32_t first = operand(p), last = first, node = first;
    while (p->in.st == GX_OK && gx_scan_take_word(&p->in, word)) {
        const uint32_t next = operand(p);
        if (p->in.st != GX_OK)
            break;
        if (node == first) {
            node = add_node(p, (gx_filter_node){.kind = kind, .first = first});
            if (p->in.st != GX_OK)
                break;
        }
        p->f->nodes[last].next = next;
        last = next;
    }
    return p->in.st == GX_OK ? node : NONE;
}

static uint32_t read_and(parser *p)
{
    return read_series(p, "AND", GX_FILTER_AND, read_operand);
}

static uint32_t read_or(parser *p)
{
    return read_series(p, "OR", GX_FILTER_OR, read_and);
}

/* ---- the filter as text ---- */

/* parent: what the node is an operand of; GX_FILTER_RANGE: of nothing. */
static void append_node(parser *p, buffer *b, uint32_t i, gx_filter_kind parent)
{
    const gx_filter_node *n = &p->f->nodes[i];
    if (n->kind == GX_FILTER_NOT) {
        append_text(p, b, "NOT ");
        append_node(p, b, n->first, GX_FILTER_NOT);
    } else if (n->kind == GX_FILTER_AND || n->kind == GX_FILTER_OR) {
        const bool bare = parent == GX_FILTER_RANGE || (n->kind == GX_FILTER_AND && parent == GX_FILTER_OR);
        append_text(p, b, bare ? "" : "(");
        for (uint32_t c = n->first; c != NONE; c = p->f->nodes[c].next) {
            append_text(p, b, c == n->first ? "" : n->kind == GX_FILTER_AND ? " AND " : " OR ");
            append_node(p, b, c, n->kind);
        }
        append_text(p, b, bare ? "" : ")");
    } else {
        append(p, b, p->texts.p + n->text, n->len);
    }
}

/* An expression. */
typedef struct filter_text {
    const char *p;
    size_t len;
} filter_text;

/* The filter of one file, of which some documents may be deleted. */
static gx_status open_file(gx_filter **out, const gx_index *ix, const gx_deletes *deletes, const filter_text *text,
                           const gx_filter_options *opt, gx_error *err)
{
    *out = NULL;
    gx_filter *f = calloc(1, sizeof *f);
    if (!f)
        return gx_fail(err, GX_ENOMEM, "no memory for a filter");
    const gx_live live = {deletes, NULL, 0};
    const gx_scanner in = {text->p, text->len, .column = 1, .delimiters = DELIMITERS, .prefix = "filter, ", .err = err};
    parser p = {.opt = opt, .live = &live, .in = in, .f = f};
    buffer whole = {0};
    f->ix = ix;
    f->root = read_or(&p);
    gx_scan_skip_blanks(&p.in);
    if (p.in.st == GX_OK && !gx_scan_is_end(&p.in))
        gx_scan_refuse(&p.in, p.in.column,
                       gx_scan_peek(&p.in) == ')' ? "a ) without a (" : "AND or OR is expected between two conditions");
    if (p.in.st == GX_OK)
        append_node(&p, &whole, f->root, GX_FILTER_RANGE);
    free(p.value.p);
    free(p.texts.p);
    f->text = whole.p;
    f->text_len = whole.n;
    if (p.in.st == GX_OK)
        *out = f;
    else
        gx_filter_close(f);
    return p.in.st;
}

/* read_ids for one part: the caller's sets bits of the collection's documents. */
typedef struct ids_of_part {
    const gx_filter_options *opt;
    const gx_index *collection;
    const gx_part *part;
} ids_of_part;

static gx_status read_ids_of_part(void *user, const char *file, uint64_t *words, gx_error *err)
{
    const ids_of_part *r = user;
    uint64_t *whole = calloc((size_t)r->collection->n_docs / 64 + 1, sizeof *whole);
    if (!whole)
        return gx_fail(err, GX_ENOMEM, "no memory for a filter");
    const gx_status st = r->opt->read_ids(r->opt->user, file, whole, err);
    if (st == GX_OK)
        gx_part_scatter(r->part, whole, words);
    free(whole);
    return st;
}

static gx_status open_parts(gx_filter **out, const gx_index *ix, const filter_text *text, const gx_filter_options *opt,
                            gx_error *err)
{
    gx_status st = GX_OK;
    gx_filter *f = calloc(1, sizeof *f);
    if (f)
        f->parts = calloc(ix->parts->n, sizeof(gx_filter *));
    if (!f || !f->parts) {
        free(f);
        return gx_fail(err, GX_ENOMEM, "no memory for a filter");
    }
    f->ix = ix;
    for (uint32_t i = 0; i < ix->parts->n && st == GX_OK; ++i) {
        ids_of_part r = {opt, ix, &ix->parts->parts[i]};
        gx_filter_options own = GX_FILTER_OPTIONS;
        own.read_ids = opt->read_ids ? read_ids_of_part : NULL;
        own.user = &r;
        st = open_file(&f->parts[i], r.part->ix, r.part->deletes, text, &own, err);
        f->reads_files |= st == GX_OK && f->parts[i]->reads_files;
    }
    if (st == GX_OK) { /* the same of all parts */
        f->text_len = f->parts[0]->text_len;
        f->text = malloc(f->text_len + 1);
        if (f->text)
            memcpy(f->text, f->parts[0]->text, f->text_len);
        else
            st = gx_fail(err, GX_ENOMEM, "no memory for a filter");
    }
    if (st == GX_OK)
        *out = f;
    else
        gx_filter_close(f);
    return st;
}

gx_status gx_filter_open(gx_filter **out, const gx_index *ix, const char *text, size_t len,
                         const gx_filter_options *opt, gx_error *err)
{
    gx_filter_options o = GX_FILTER_OPTIONS;
    const filter_text whole = {text, len};
    *out = NULL;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_filter_options, user), "gx_filter_options", err);
    if (st != GX_OK)
        return st;
    return ix->parts ? open_parts(out, ix, &whole, &o, err) : open_file(out, ix, NULL, &whole, &o, err);
}

void gx_filter_close(gx_filter *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->parts && i < f->ix->parts->n; ++i)
        gx_filter_close(f->parts[i]);
    free(f->parts);
    for (uint32_t i = 0; i < f->n_nodes; ++i) {
        free(f->nodes[i].docids);
        free(f->nodes[i].ids);
    }
    free(f->nodes);
    free(f->text);
    free(f);
}

const char *gx_filter_text(const gx_filter *f, size_t *len)
{
    *len = f->text_len;
    return f->text;
}
