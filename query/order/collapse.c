#include "query/order/collapse.h"

#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/memory/grow.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/facet/sort_keys.h"
#include "query/filter/filter_tree.h"

#define NONE GX_NOT_SCANNED
#define LEAST_SLOTS 64u

/* ---- what is asked ---- */

static const gx_index *file_at(const gx_index *ix, uint32_t i)
{
    return ix->parts ? ix->parts->parts[i].ix : ix;
}

static gx_status check_values(const gx_collapse *by, const gx_index *ix, gx_error *err)
{
    for (uint32_t i = 0; i < (ix->parts ? ix->parts->n : 1); ++i) {
        const gx_column *c = &file_at(ix, i)->columns[by->level.column];
        if (c->type == GX_ATTRIBUTE_KEYWORDS || (c->starts && c->type != GX_ATTRIBUTE_KEYWORD))
            return gx_fail(err, GX_EUSAGE,
                           "collapse: a document may have several values of %.*s, and a group has those documents that "
                           "have one value; give an attribute of which a document has one",
                           (int)c->name_len, c->name);
    }
    return GX_OK;
}

static gx_status read_most(gx_collapse *by, const char *text, size_t len, gx_error *err)
{
    uint32_t most = 0;
    bool good = len > 0 && len < 9;
    for (size_t i = 0; i < len && good; ++i) {
        good = text[i] >= '0' && text[i] <= '9';
        most = 10 * most + (uint32_t)(text[i] - '0');
    }
    if (!good || most < 1 || most > GX_MAX_GROUP_DOCUMENTS)
        return gx_fail(err, GX_EUSAGE, "collapse: '%.*s' is no number of documents of a group: 1 to %u",
                       (int)(len < 60 ? len : 60), text, GX_MAX_GROUP_DOCUMENTS);
    by->most = most;
    return GX_OK;
}

gx_status gx_collapse_read(gx_collapse *out, const gx_index *ix, const char *text, size_t len, gx_error *err)
{
    gx_collapse by = {.any = len > 0, .most = 1};
    const char *colon = len ? memchr(text, ':', len) : NULL;
    const size_t name = colon ? (size_t)(colon - text) : len;
    gx_error why = {0};
    gx_status st = GX_OK;
    if (!len) {
        *out = by;
        return GX_OK;
    }
    if (name == 0)
        return gx_fail(err, GX_EUSAGE, "collapse: the name of an attribute is expected");
    if (gx_index_find_attribute(ix, text, name, &by.level.column, &why) != GX_OK)
        return gx_fail(err, GX_EUSAGE, "collapse: %.900s", why.text);
    by.level.type = file_at(ix, 0)->columns[by.level.column].type;
    if (colon)
        st = read_most(&by, colon + 1, len - name - 1, err);
    if (st == GX_OK)
        st = check_values(&by, ix, err);
    if (st == GX_OK)
        *out = by;
    return st;
}

/* ---- values ---- */

gx_sort_value gx_collapse_value_in(const gx_index *file, const gx_collapse *by, uint32_t docid)
{
    gx_sort_value v = gx_sort_value_of(file, &by->level, docid);
    if (by->level.type == GX_ATTRIBUTE_FLOAT && v.key == GX_KEY_SIGN - 1)
        v.key = GX_KEY_SIGN; /* -0.0 */
    return v;
}

gx_sort_value gx_collapse_value(const gx_index *ix, const gx_collapse *by, uint64_t docid)
{
    uint32_t local = (uint32_t)docid;
    const gx_index *file = ix->parts ? gx_parts_find(ix->parts, docid, &local)->ix : ix;
    return gx_collapse_value_in(file, by, local);
}

static size_t slot_of(const gx_value_table *t, const gx_collapse *by, const gx_sort_value *v)
{
    const uint64_t hash = v->missing                      ? 0
                          : gx_is_keyword(by->level.type) ? gx_hash(v->text, v->len)
                                                          : v->key * UINT64_C(0x9E3779B97F4A7C15);
    return (hash ^ hash >> 32) & (t->n_slots - 1);
}

size_t gx_value_table_find(const gx_value_table *t, const gx_head *heads, const gx_collapse *by,
                           const gx_sort_value *value)
{
    if (!t->n_slots)
        return SIZE_MAX;
    for (size_t s = slot_of(t, by, value); t->slots[s]; s = (s + 1) & (t->n_slots - 1)) {
        const gx_sort_value *v = &heads[t->slots[s] - 1].value;
        if (v->missing == value->missing && (v->missing || gx_sort_compare(&by->level, v, value) == 0))
            return t->slots[s] - 1;
    }
    return SIZE_MAX;
}

static void put(gx_value_table *t, const gx_head *heads, size_t i, const gx_collapse *by)
{
    size_t s = slot_of(t, by, &heads[i].value);
    while (t->slots[s])
        s = (s + 1) & (t->n_slots - 1);
    t->slots[s] = (uint32_t)i + 1;
}

bool gx_value_table_add(gx_value_table *t, const gx_head *heads, size_t n, const gx_collapse *by)
{
    if (2 * n <= t->n_slots) {
        put(t, heads, n - 1, by);
        return true;
    }
    const size_t n_slots = t->n_slots ? 4 * t->n_slots : LEAST_SLOTS;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return false;
    free(t->slots);
    *t = (gx_value_table){slots, n_slots};
    for (size_t i = 0; i < n; ++i)
        put(t, heads, i, by);
    return true;
}

/* ---- filters ---- */

typedef struct making {
    const gx_column *column;
    gx_attribute_type type;
    uint32_t attribute;
    gx_filter_item *items; /* [n_items] */
    gx_condition *conditions;
    uint32_t n_items, n_conditions, last; /* last: the operand before */
    gx_bytes values;
    bool failed;
} making;

/* A value's text, with a 0 behind it. */
static gx_condition_value add_text(making *m, const char *text, size_t len)
{
    const gx_condition_value v = {.at = m->values.n, .len = len};
    m->failed = m->failed || !gx_bytes_append(&m->values, text, len) || !gx_bytes_append(&m->values, "", 1);
    return v;
}

static gx_condition_value add_value(making *m, const gx_sort_value *v)
{
    gx_text text = {0};
    gx_value value = {0};
    if (gx_is_keyword(m->type))
        return add_text(m, v->text, v->len);
    if (m->type == GX_ATTRIBUTE_FLOAT)
        value.real = gx_key_float(v->key);
    else
        value.number = gx_key_number(v->key);
    gx_text_add_value(&text, m->type, &value);
    if (m->type == GX_ATTRIBUTE_DATE && !text.failed && !memchr(text.bytes, 'T', text.len))
        gx_text_add_string(&text, "T00:00:00Z"); /* a day alone would mean all of it */
    m->failed = m->failed || text.failed;
    const gx_condition_value at = add_text(m, text.bytes ? text.bytes : "", text.len);
    free(text.bytes);
    return at;
}

/* Operands of an OR come one after another. */
static void add_item(making *m, gx_filter_item item)
{
    m->items[m->n_items] = item;
    if (m->last != NONE)
        m->items[m->last].next = m->n_items;
    m->last = m->n_items++;
}

static void add_operand(making *m, const gx_sort_value *v)
{
    gx_condition *c = &m->conditions[m->n_conditions];
    *c = (gx_condition){
        .kind = v->missing ? GX_CONDITION_HAS : GX_CONDITION_VALUES, .form = '=', .attribute = m->attribute};
    if (v->missing) {
        c->name = add_text(m, "has", 3);
        c->low = add_text(m, m->column->name, m->column->name_len);
        m->items[m->n_items] = (gx_filter_item){GX_FILTER_RANGE, NONE, NONE, m->n_conditions++};
        ++m->n_items;
        add_item(m, (gx_filter_item){GX_FILTER_NOT, m->n_items - 1, NONE, 0});
        return;
    }
    c->name = add_text(m, m->column->name, m->column->name_len);
    c->low = c->high = add_value(m, v);
    add_item(m, (gx_filter_item){GX_FILTER_RANGE, NONE, NONE, m->n_conditions++});
}

/* The items of the filter; returns the number of the root. */
static uint32_t add_operands(making *m, const gx_head *heads, size_t n, const uint8_t *keep, bool except)
{
    uint32_t first = NONE, n_operands = 0, root;
    for (size_t i = 0; i < n; ++i) {
        if (keep && !keep[i])
            continue;
        add_operand(m, &heads[i].value);
        first = n_operands++ ? first : m->last;
    }
    root = first;
    if (n_operands > 1) {
        m->items[m->n_items] = (gx_filter_item){GX_FILTER_OR, first, NONE, 0};
        root = m->n_items++;
    }
    if (except) {
        m->items[m->n_items] = (gx_filter_item){GX_FILTER_NOT, root, NONE, 0};
        root = m->n_items++;
    }
    return root;
}

gx_status gx_collapse_filter(gx_filter **out, const gx_index *ix, const gx_collapse *by, const gx_head *heads, size_t n,
                             const uint8_t *keep, bool except, const gx_filter *also, gx_error *err)
{
    const gx_filter_options none = GX_FILTER_OPTIONS;
    making m = {.column = &file_at(ix, 0)->columns[by->level.column],
                .type = by->level.type,
                .attribute = by->level.column,
                .items = malloc((2 * n + 3) * sizeof *m.items),
                .conditions = malloc((n + 1) * sizeof *m.conditions),
                .last = NONE};
    gx_filter *own = NULL;
    gx_status st = GX_ENOMEM;
    *out = NULL;
    if (m.items && m.conditions) {
        const uint32_t root = add_operands(&m, heads, n, keep, except);
        const gx_filter_tree tree = {m.items, m.n_items, root, m.conditions, m.values.p};
        st = m.failed ? GX_ENOMEM : gx_filter_make(&own, ix, &tree, "", &none, err);
    }
    if (st == GX_OK && also)
        st = gx_filter_both(out, also, own, err);
    else if (st == GX_OK)
        *out = own;
    free(m.items);
    free(m.conditions);
    free(m.values.p);
    return st == GX_ENOMEM ? gx_fail(err, st, "no memory for a filter of %zu values", n) : st;
}
