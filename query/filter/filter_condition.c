/* filter_condition.c: what a condition means in an index. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/attributes/types.h"
#include "query/filter/filter_tree.h"

typedef struct resolving {
    const gx_index *ix;
    const gx_live *live; /* the documents that an id may mean */
    const gx_filter_options *opt;
    const char *values;  /* of conditions */
    gx_scanner *refused; /* keeps the error */
} resolving;

static bool no_memory(const resolving *r)
{
    if (r->refused->st == GX_OK)
        r->refused->st = gx_fail(r->refused->err, GX_ENOMEM, "no memory for a filter");
    return false;
}

/* ---- values ---- */

/* All values that a text stands for (types.h), of keywords their ordinals. */
typedef struct span {
    int64_t first, last; /* first > last: none; of keywords, first is where the string would be */
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

/* The ordinal behind the last string that begins with the text, from `first` on. */
static uint32_t prefix_end(const gx_index *ix, const gx_column *c, uint32_t first, const char *p, size_t n)
{
    uint32_t low = first, high = c->n_strings;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        size_t len;
        const char *s = gx_column_string(ix, c, middle, &len);
        if (len >= n && memcmp(s, p, n) == 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A condition's value as a value of the attribute. */
static bool read_span(const resolving *r, const gx_column *c, const gx_condition_value *v, span *out)
{
    const char *text = r->values + v->at;
    const size_t n = v->len;
    *out = (span){0, 0};
    if (gx_is_keyword(c->type)) {
        bool found = false;
        out->first = lower_bound(r->ix, c, text, n, &found);
        out->last = out->first - !found;
        return true;
    }
    const char *fault = gx_type_of(c->type)->parse(text, n, true, &out->first, &out->last);
    if (fault)
        gx_scan_refuse(r->refused, v->column, "%.*s is of type %s, and '%.*s' %s", (int)c->name_len, c->name,
                       gx_attribute_type_name(c->type), (int)(n < 60 ? n : 60), text, fault);
    return fault == NULL;
}

/* What the bounds of a range mean in the column. */
typedef struct bounds {
    bool any_low, any_high, open_low, open_high; /* any: no bound; open: without the bound itself */
    span low, high;
} bounds;

static void set_float_range(gx_filter_node *node, const bounds *b)
{
    double low = b->any_low ? -DBL_MAX : gx_value_of_bits(GX_ATTRIBUTE_FLOAT, b->low.first).real,
           high = b->any_high ? DBL_MAX : gx_value_of_bits(GX_ATTRIBUTE_FLOAT, b->high.first).real;
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

/* The keywords that begin with a text. */
static bool read_beginning(const resolving *r, const gx_condition *c, gx_filter_node *node)
{
    const gx_column *column = &r->ix->columns[node->column];
    const char *text = r->values + c->low.at;
    bool equal;
    if (!gx_is_keyword(column->type)) {
        gx_scan_refuse(r->refused, c->low.star, "%.*s is of type %s; * stands for letters of keywords alone",
                       (int)column->name_len, column->name, gx_attribute_type_name(column->type));
        return false;
    }
    const uint32_t first = lower_bound(r->ix, column, text, c->low.len, &equal),
                   end = prefix_end(r->ix, column, first, text, c->low.len);
    const bounds b = {.low = {first, first}, .high = {(int64_t)end - 1, (int64_t)end - 1}};
    if (first == end)
        node->none = true;
    else
        set_range(node, column, &b);
    return true;
}

static bool read_range(const resolving *r, const gx_condition *c, gx_filter_node *node)
{
    const gx_column *column = &r->ix->columns[node->column];
    const bool range = c->form != '=';
    bounds b = {.any_low = c->low.any, .any_high = c->high.any, .open_low = c->low.open, .open_high = c->high.open};
    if (range && gx_type_of(column->type)->has_no_range) {
        gx_scan_refuse(r->refused, c->behind, "%.*s is true or false, and has no ranges", (int)column->name_len,
                       column->name);
        return false;
    }
    if ((!b.any_low && !read_span(r, column, &c->low, &b.low)) ||
        (!b.any_high && !read_span(r, column, &c->high, &b.high)))
        return false;
    if (!range && gx_is_keyword(column->type) && b.low.first > b.low.last) { /* no such string */
        node->none = true;
        return true;
    }
    set_range(node, column, &b);
    return true;
}

#define FEW_OF 32u /* of so many documents one in a list takes no more memory than the bits of all */

/* Sets the node's documents to those of the bits; it keeps them, or frees them. */
static bool keep_ids(const resolving *r, gx_filter_node *node, uint64_t *bits)
{
    const uint32_t n_docs = r->ix->n_docs;
    const size_t n_words = ((size_t)n_docs + 63) / 64;
    uint32_t n = 0;
    for (size_t w = 0; w < n_words; ++w)
        node->n_ids += (uint32_t)__builtin_popcountll(bits[w]);
    const bool few = node->n_ids <= n_docs / FEW_OF;
    if (!few) {
        node->ids = bits;
        return true;
    }
    node->docids = malloc((node->n_ids + 1ull) * sizeof *node->docids);
    for (size_t w = 0; w < n_words && node->docids; ++w)
        for (uint64_t left = bits[w]; left; left &= left - 1)
            node->docids[n++] = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(left);
    free(bits);
    return node->docids || no_memory(r);
}

static bool read_file(const resolving *r, const gx_condition *c, gx_filter_node *node)
{
    if (!r->opt->read_ids) {
        gx_scan_refuse(r->refused, c->behind, "files of ids cannot be read here");
        return false;
    }
    uint64_t *bits = calloc(((size_t)r->ix->n_docs + 63) / 64 + 1, sizeof *bits);
    if (!bits)
        return no_memory(r);
    r->refused->st = r->opt->read_ids(r->opt->user, r->values + c->low.at, bits, r->refused->err);
    if (r->refused->st == GX_OK)
        return keep_ids(r, node, bits);
    free(bits);
    if (r->refused->st == GX_EUSAGE && r->refused->err) { /* the caller's reason, at the condition's place */
        const gx_error reason = *r->refused->err;
        r->refused->st = GX_OK;
        gx_scan_refuse(r->refused, c->low.column, "%s", reason.text);
    }
    return false;
}

static bool read_id(const resolving *r, const gx_condition *c, gx_filter_node *node)
{
    if (!(node->docids = malloc(sizeof *node->docids)))
        return no_memory(r);
    node->docids[0] = gx_index_find_live_doc(r->ix, r->live, r->values + c->low.at, c->low.len);
    node->n_ids = node->docids[0] != UINT32_MAX;
    return true;
}

bool gx_filter_resolve(gx_filter_node *out, const gx_index *ix, const gx_live *live, const gx_condition *c,
                       const char *values, const gx_filter_options *opt, gx_scanner *refused)
{
    const resolving r = {ix, live, opt, values, refused};
    gx_filter_node node = {.kind = GX_FILTER_RANGE, .first = UINT32_MAX, .next = UINT32_MAX, .column = c->attribute};
    bool good = true;
    switch (c->kind) {
    case GX_CONDITION_VALUES:
        good = c->form == '*' ? read_beginning(&r, c, &node) : read_range(&r, c, &node);
        break;
    case GX_CONDITION_HAS:
        node.kind = GX_FILTER_HAS;
        break;
    case GX_CONDITION_ID:
        node.kind = GX_FILTER_IDS;
        good = read_id(&r, c, &node);
        break;
    case GX_CONDITION_FILE:
        node.kind = GX_FILTER_IDS;
        good = read_file(&r, c, &node);
    }
    *out = node;
    return good;
}
