/* filter.c: an expression to a tree, and the tree to the filter of an index. */
#include "query/filter/filter_tree.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/read/collection.h"

#define NONE GX_NOT_SCANNED
#define FEW 4u         /* conditions of most filters, */
#define FEW_BYTES 200u /* and bytes of their texts */

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for a filter");
}

/* ---- an expression to a tree ---- */

typedef struct parser {
    const gx_index *ix;
    gx_scanner in;
    uint32_t depth;
    gx_filter_item *items;
    gx_condition *conditions;
    uint32_t n_items, n_conditions;
    size_t max_items, max_conditions;
    gx_bytes values;
} parser;

static uint32_t add_item(parser *p, gx_filter_item item)
{
    if (p->in.st != GX_OK)
        return NONE;
    if (p->n_items == GX_FILTER_MAX_NODES)
        return gx_scan_refuse(&p->in, p->in.column,
                              "more than %u conditions and operators; put ids into a file, and write id:@FILE",
                              GX_FILTER_MAX_NODES);
    if (!gx_reserve(&p->items, &p->max_items, p->n_items + (size_t)1, sizeof *p->items)) {
        p->in.st = no_memory(p->in.err);
        return NONE;
    }
    item.next = NONE;
    p->items[p->n_items] = item;
    return p->n_items++;
}

static uint32_t read_condition(parser *p)
{
    gx_condition c;
    if (!gx_scan_condition(&p->in, p->ix, "", &c, &p->values))
        return NONE;
    if (!gx_reserve(&p->conditions, &p->max_conditions, p->n_conditions + (size_t)1, sizeof *p->conditions)) {
        p->in.st = no_memory(p->in.err);
        return NONE;
    }
    p->conditions[p->n_conditions] = c;
    return add_item(p, (gx_filter_item){GX_FILTER_RANGE, NONE, NONE, p->n_conditions++});
}

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
            node = add_item(p, (gx_filter_item){.kind = GX_FILTER_NOT, .first = node});
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
            node = add_item(p, (gx_filter_item){.kind = kind, .first = first});
            if (p->in.st != GX_OK)
                break;
        }
        p->items[last].next = next;
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

/* Whether `n` stands in its parent without parentheses. parent: GX_FILTER_RANGE: there is none. */
static bool is_bare(gx_filter_kind kind, gx_filter_kind parent)
{
    return parent == GX_FILTER_RANGE || (kind == GX_FILTER_AND && parent == GX_FILTER_OR);
}

static bool append_item(gx_bytes *out, const gx_filter_tree *t, uint32_t i, gx_filter_kind parent)
{
    const gx_filter_item *n = &t->items[i];
    if (n->kind == GX_FILTER_NOT)
        return gx_bytes_append_text(out, "NOT ") && append_item(out, t, n->first, GX_FILTER_NOT);
    if (n->kind != GX_FILTER_AND && n->kind != GX_FILTER_OR)
        return gx_condition_append(out, &t->conditions[n->condition], t->values);
    const bool bare = is_bare(n->kind, parent);
    bool good = gx_bytes_append_text(out, bare ? "" : "(");
    for (uint32_t c = n->first; c != NONE && good; c = t->items[c].next)
        good = gx_bytes_append_text(out, c == n->first              ? ""
                                         : n->kind == GX_FILTER_AND ? " AND "
                                                                    : " OR ") &&
               append_item(out, t, c, n->kind);
    return good && gx_bytes_append_text(out, bare ? "" : ")");
}

gx_status gx_filter_write(gx_filter *f, const gx_filter_tree *t, gx_error *err)
{
    gx_bytes text = {0};
    const bool good =
        gx_reserve(&text.p, &text.max, FEW_BYTES / 2, 1) && append_item(&text, t, t->root, GX_FILTER_RANGE);
    f->text = text.p;
    f->text_len = text.n;
    return good ? GX_OK : no_memory(err);
}

/* ---- a tree to the filter of an index ---- */

/* Where the tree's messages go. */
typedef struct making {
    const gx_filter_tree *tree;
    const char *prefix;
    gx_error *err;
} making;

/* The filter of one file, of which some documents may be deleted. */
static gx_status make_of_file(gx_filter **out, const gx_index *ix, const gx_deletes *deletes, const making *m,
                              const gx_filter_options *opt)
{
    const gx_filter_tree *const t = m->tree;
    const gx_live live = {deletes, NULL, 0};
    gx_scanner refused = {.delimiters = "", .prefix = m->prefix, .err = m->err};
    *out = NULL;
    gx_filter *f = calloc(1, sizeof *f);
    if (f)
        f->nodes = malloc((t->n + 1ull) * sizeof *f->nodes);
    if (!f || !f->nodes) {
        free(f);
        return no_memory(m->err);
    }
    f->ix = ix;
    f->root = t->root;
    for (uint32_t i = 0; i < t->n && refused.st == GX_OK; ++i) {
        const gx_filter_item *item = &t->items[i];
        gx_filter_node *node = &f->nodes[f->n_nodes++];
        *node = (gx_filter_node){.kind = item->kind};
        if (item->kind == GX_FILTER_RANGE) {
            const gx_condition *c = &t->conditions[item->condition];
            f->reads_files |= c->kind == GX_CONDITION_FILE;
            gx_filter_resolve(node, ix, &live, c, t->values, opt, &refused);
        }
        node->first = item->first;
        node->next = item->next;
    }
    if (refused.st == GX_OK)
        refused.st = gx_filter_write(f, t, m->err);
    if (refused.st == GX_OK)
        *out = f;
    else
        gx_filter_close(f);
    return refused.st;
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
    uint64_t *whole = calloc(gx_index_n_words(r->collection) + 1, sizeof *whole);
    if (!whole)
        return gx_fail(err, GX_ENOMEM, "no memory for a filter");
    const gx_status st = r->opt->read_ids(r->opt->user, file, whole, err);
    if (st == GX_OK)
        gx_part_scatter(r->part, whole, words);
    free(whole);
    return st;
}

/* A filter of a collection, without those of its parts. GX_ENOMEM. */
static gx_status open_whole(gx_filter **out, const gx_index *ix, gx_error *err)
{
    gx_filter *f = *out = calloc(1, sizeof *f);
    if (f && (f->parts = calloc(ix->parts->n, sizeof(gx_filter *)))) {
        f->ix = ix;
        return GX_OK;
    }
    free(f);
    *out = NULL;
    return no_memory(err);
}

static gx_status make_of_parts(gx_filter **out, const gx_index *ix, const making *m, const gx_filter_options *opt)
{
    gx_filter *f;
    gx_status st = open_whole(&f, ix, m->err);
    *out = NULL;
    for (uint32_t i = 0; st == GX_OK && i < ix->parts->n; ++i) {
        ids_of_part r = {opt, ix, &ix->parts->parts[i]};
        gx_filter_options own = GX_FILTER_OPTIONS;
        own.read_ids = opt->read_ids ? read_ids_of_part : NULL;
        own.user = &r;
        st = make_of_file(&f->parts[i], r.part->ix, r.part->deletes, m, &own);
        f->reads_files |= st == GX_OK && f->parts[i]->reads_files;
    }
    if (st == GX_OK)
        st = gx_filter_write(f, m->tree, m->err);
    if (st == GX_OK)
        *out = f;
    else
        gx_filter_close(f);
    return st;
}

gx_status gx_filter_make(gx_filter **out, const gx_index *ix, const gx_filter_tree *tree, const char *prefix,
                         const gx_filter_options *opt, gx_error *err)
{
    const making m = {tree, prefix, err};
    return ix->parts ? make_of_parts(out, ix, &m, opt) : make_of_file(out, ix, NULL, &m, opt);
}

void gx_filter_tree_free(gx_filter_tree *t)
{
    free((void *)t->items);
    free((void *)t->conditions);
    free((char *)t->values);
    *t = (gx_filter_tree){0};
}

#define PREFIX "filter, "

gx_status gx_filter_parse(gx_filter_tree *out, const gx_index *ix, const char *text, size_t len, gx_error *err)
{
    parser p = {.ix = ix,
                .in = {text, len, .column = 1, .delimiters = GX_CONDITION_DELIMITERS, .prefix = PREFIX, .err = err}};
    /* what most filters need, at once */
    if (!gx_reserve(&p.values.p, &p.values.max, len < FEW_BYTES ? len : FEW_BYTES, 1) ||
        !gx_resize(&p.conditions, p.max_conditions = FEW, sizeof *p.conditions))
        p.in.st = no_memory(err);
    const uint32_t root = read_or(&p);
    gx_scan_skip_blanks(&p.in);
    if (p.in.st == GX_OK && !gx_scan_is_end(&p.in))
        gx_scan_refuse(&p.in, p.in.column,
                       gx_scan_peek(&p.in) == ')' ? "a ) without a (" : "AND or OR is expected between two conditions");
    *out = (gx_filter_tree){p.items, p.n_items, root, p.conditions, p.values.p};
    if (p.in.st != GX_OK)
        gx_filter_tree_free(out);
    return p.in.st;
}

gx_status gx_filter_open(gx_filter **out, const gx_index *ix, const char *text, size_t len,
                         const gx_filter_options *opt, gx_error *err)
{
    gx_filter_options o = GX_FILTER_OPTIONS;
    gx_filter_tree tree;
    *out = NULL;
    gx_status st = gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_filter_options, user), "gx_filter_options", err);
    if (st != GX_OK || (st = gx_filter_parse(&tree, ix, text, len, err)) != GX_OK)
        return st;
    st = gx_filter_make(out, ix, &tree, PREFIX, &o, err);
    gx_filter_tree_free(&tree);
    return st;
}

/* ---- two filters as one ---- */

/* The text of a filter as an operand of AND. */
static bool append_operand(gx_bytes *out, const gx_filter *f, gx_filter_kind root)
{
    const bool group = root == GX_FILTER_OR;
    return gx_bytes_append_text(out, group ? "(" : "") && gx_bytes_append(out, f->text, f->text_len) &&
           gx_bytes_append_text(out, group ? ")" : "");
}

/* Its first operand of AND, which is the root itself where that is no AND; nodes begin at `at`. */
static uint32_t first_operand(const gx_filter_node *nodes, uint32_t at, uint32_t root)
{
    return nodes[root].kind == GX_FILTER_AND ? nodes[root].first + at : root + at;
}

static void copy_nodes(gx_filter_node *to, const gx_filter *f, uint32_t at)
{
    for (uint32_t i = 0; i < f->n_nodes; ++i) {
        to[at + i] = f->nodes[i];
        to[at + i].first += f->nodes[i].first == NONE ? 0 : at;
        to[at + i].next += f->nodes[i].next == NONE ? 0 : at;
    }
}

/* Of one file: `own` gets the other's nodes before its own, and an AND of both behind them. */
static gx_status add_other(gx_filter *own, const gx_filter *other, gx_error *err)
{
    const uint32_t n = other->n_nodes + own->n_nodes, first = first_operand(other->nodes, 0, other->root),
                   second = first_operand(own->nodes, other->n_nodes, own->root);
    gx_filter_node *nodes = malloc((n + 1ull) * sizeof *nodes);
    gx_bytes text = {0};
    const bool good = nodes && append_operand(&text, other, other->nodes[other->root].kind) &&
                      gx_bytes_append_text(&text, " AND ") && append_operand(&text, own, own->nodes[own->root].kind);
    if (!good) {
        free(nodes);
        free(text.p);
        return no_memory(err);
    }
    copy_nodes(nodes, other, 0);
    copy_nodes(nodes, own, other->n_nodes);
    uint32_t last = first;
    while (nodes[last].next != NONE)
        last = nodes[last].next;
    nodes[last].next = second;
    nodes[n] = (gx_filter_node){.kind = GX_FILTER_AND, .first = first, .next = NONE};
    free(own->nodes);
    free(own->text);
    own->nodes = nodes;
    own->n_nodes = n + 1;
    own->n_borrowed = other->n_nodes;
    own->root = n;
    own->text = text.p;
    own->text_len = text.n;
    own->reads_files |= other->reads_files;
    return GX_OK;
}

gx_status gx_filter_both(gx_filter **out, const gx_filter *other, gx_filter *own, gx_error *err)
{
    gx_status st = own->parts ? GX_OK : add_other(own, other, err);
    *out = NULL;
    for (uint32_t i = 0; own->parts && i < own->ix->parts->n && st == GX_OK; ++i)
        st = add_other(own->parts[i], other->parts[i], err);
    if (st == GX_OK && own->parts && own->ix->parts->n) { /* the same of all parts */
        const gx_filter *part = own->parts[0];
        gx_bytes text = {0};
        if (gx_bytes_append(&text, part->text, part->text_len)) {
            free(own->text);
            own->text = text.p;
            own->text_len = text.n;
            own->reads_files |= other->reads_files;
        } else {
            st = no_memory(err);
        }
    }
    if (st == GX_OK)
        *out = own;
    else
        gx_filter_close(own);
    return st;
}

void gx_filter_close(gx_filter *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->parts && i < f->ix->parts->n; ++i)
        gx_filter_close(f->parts[i]);
    free(f->parts);
    for (uint32_t i = f->n_borrowed; i < f->n_nodes; ++i) {
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
