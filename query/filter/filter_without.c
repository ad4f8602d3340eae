/* filter_without.c: a filter without its conditions on one attribute.
 *
 *   brand:sony AND (price:<20 OR has:sale) AND NOT brand:acme    without brand:    price:<20 OR has:sale
 */
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/read/collection.h"
#include "query/filter/filter_tree.h"

#define NONE GX_NOT_SCANNED

typedef struct stripping {
    gx_filter_tree tree;
    gx_filter_item *items; /* the tree's */
    const gx_index *ix;
    uint32_t attribute;
    uint32_t n_left_out;
    gx_status st;
    gx_error *err;
} stripping;

/* Whether an operand names the attribute, and whether it has other conditions. */
typedef struct names {
    bool own, others;
} names;

static names names_of(const stripping *s, uint32_t i)
{
    const gx_filter_item *item = &s->items[i];
    names n = {false, false};
    if (item->kind == GX_FILTER_RANGE) {
        const gx_condition *c = &s->tree.conditions[item->condition];
        n.own = (c->kind == GX_CONDITION_VALUES || c->kind == GX_CONDITION_HAS) && c->attribute == s->attribute;
        n.others = !n.own;
        return n;
    }
    for (uint32_t c = item->first; c != NONE; c = s->items[c].next) {
        const names of = names_of(s, c);
        n.own |= of.own;
        n.others |= of.others;
    }
    return n;
}

/* What is left of an operand: its number, that of its only operand that is left, or NONE. */
static uint32_t strip(stripping *s, uint32_t i)
{
    gx_filter_item *item = &s->items[i];
    const names n = names_of(s, i);
    if (!n.own)
        return i;
    if (!n.others) {
        ++s->n_left_out;
        return NONE;
    }
    if (item->kind != GX_FILTER_AND) {
        const gx_column *c = &s->ix->columns[s->attribute];
        s->st = gx_fail(s->err, GX_EUSAGE,
                        "facet: exclude-own: an OR or NOT of the filter names %.*s beside other attributes, so that "
                        "its conditions on %.*s cannot be left out",
                        (int)c->name_len, c->name, (int)c->name_len, c->name);
        return i;
    }
    uint32_t first = NONE, last = NONE;
    for (uint32_t c = item->first, next; c != NONE && s->st == GX_OK; c = next) {
        next = s->items[c].next;
        const uint32_t left = strip(s, c);
        if (left == NONE)
            continue;
        if (first == NONE)
            first = left;
        else
            s->items[last].next = left;
        s->items[left].next = NONE;
        last = left;
    }
    item->first = first;
    return first == last ? first : i;
}

/* The filter of one file whose nodes are those of `f`, linked as the tree is. */
static gx_status make(gx_filter **out, const gx_filter *f, const stripping *s, uint32_t root)
{
    gx_filter *made = *out = calloc(1, sizeof *made);
    if (!made || !(made->nodes = malloc((f->n_nodes + 1ull) * sizeof *made->nodes)))
        return gx_fail(s->err, GX_ENOMEM, "no memory for a filter");
    made->ix = f->ix;
    made->root = root;
    made->reads_files = f->reads_files;
    made->n_nodes = made->n_borrowed = f->n_nodes;
    memcpy(made->nodes, f->nodes, f->n_nodes * sizeof *made->nodes);
    for (uint32_t i = 0; i < made->n_nodes; ++i) {
        made->nodes[i].first = s->items[i].first;
        made->nodes[i].next = s->items[i].next;
    }
    made->nodes[root].next = NONE;
    return gx_filter_write(made, &s->tree, s->err);
}

static gx_status make_all(gx_filter **out, const gx_filter *f, const stripping *s, uint32_t root)
{
    if (!f->parts)
        return make(out, f, s, root);
    gx_filter *made = *out = calloc(1, sizeof *made);
    if (!made || !(made->parts = calloc(f->ix->parts->n + 1ull, sizeof(gx_filter *))))
        return gx_fail(s->err, GX_ENOMEM, "no memory for a filter");
    made->ix = f->ix;
    made->reads_files = f->reads_files;
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < f->ix->parts->n && st == GX_OK; ++i)
        st = make(&made->parts[i], f->parts[i], s, root);
    return st == GX_OK ? gx_filter_write(made, &s->tree, s->err) : st;
}

gx_status gx_filter_without(gx_filter **out, bool *same, const gx_filter *f, uint32_t attribute, gx_error *err)
{
    stripping s = {.ix = f->ix, .attribute = attribute, .err = err};
    *out = NULL;
    *same = true;
    gx_clear_error(err);
    s.st = gx_filter_parse(&s.tree, f->ix, f->text, f->text_len, err);
    if (s.st != GX_OK)
        return s.st;
    s.items = (gx_filter_item *)s.tree.items;
    const uint32_t root = strip(&s, s.tree.root);
    s.tree.root = root;
    *same = s.n_left_out == 0;
    if (s.st == GX_OK && !*same && root != NONE)
        s.st = make_all(out, f, &s, root);
    if (s.st != GX_OK) {
        gx_filter_close(*out);
        *out = NULL;
    }
    gx_filter_tree_free(&s.tree);
    return s.st;
}
