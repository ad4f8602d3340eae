#include "query/order/sort.h"

#include <string.h>

#include "engine/status.h"
#include "index/parts.h"

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* What stands between two colons. `seen` has a bit for each of the two choices that have been made. */
static gx_status read_word(gx_sort_level *l, unsigned *seen, const char *text, size_t len, gx_error *err)
{
    static const char *const words[4] = {"asc", "desc", "missing-last", "missing-first"};
    int i = 0;
    while (i < 4 && !is_word(text, len, words[i]))
        ++i;
    if (i == 4)
        return gx_fail(err, GX_EUSAGE, "sort: '%.*s' is none of asc, desc, missing-first, missing-last",
                       (int)(len < 60 ? len : 60), text);
    if (*seen >> i / 2 & 1)
        return gx_fail(err, GX_EUSAGE, "sort: '%s' contradicts or repeats a word before it", words[i]);
    *seen |= 1u << i / 2;
    l->falling = i < 2 ? i == 1 : l->falling;
    l->missing_first = i < 2 ? l->missing_first : i == 3;
    return GX_OK;
}

static const gx_index *first_file(const gx_index *ix)
{
    return ix->parts ? ix->parts->parts[0].ix : ix;
}

static gx_status read_level(gx_sort *s, const gx_index *ix, const char *text, size_t len, gx_error *err)
{
    const char *colon = memchr(text, ':', len), *end = text + len;
    const size_t name = colon ? (size_t)(colon - text) : len;
    gx_sort_level l = {0};
    unsigned seen = 0;
    gx_error why = {0};
    if (s->n == GX_MAX_SORT_KEYS)
        return gx_fail(err, GX_EUSAGE, "sort: at most %u attributes may be given", GX_MAX_SORT_KEYS);
    if (name == 0)
        return gx_fail(err, GX_EUSAGE, "sort: the name of an attribute is expected");
    if (gx_index_find_attribute(ix, text, name, &l.column, &why) != GX_OK)
        return gx_fail(err, GX_EUSAGE, "sort: %.900s", why.text);
    for (uint32_t i = 0; i < s->n; ++i)
        if (s->levels[i].column == l.column)
            return gx_fail(err, GX_EUSAGE, "sort: the attribute %.*s is named twice", (int)name, text);
    l.type = first_file(ix)->columns[l.column].type;
    gx_status st = GX_OK;
    for (text += name; st == GX_OK && text < end;) {
        const char *next = memchr(text + 1, ':', (size_t)(end - text - 1));
        const size_t n = (size_t)((next ? next : end) - text) - 1;
        st = read_word(&l, &seen, text + 1, n, err);
        text += n + 1;
    }
    if (st == GX_OK)
        s->levels[s->n++] = l;
    return st;
}

gx_status gx_sort_read(gx_sort *out, const gx_index *ix, const char *text, size_t len, gx_error *err)
{
    gx_sort s = {0};
    gx_status st = GX_OK;
    for (const char *end = text + len; len && st == GX_OK;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        st = read_level(&s, ix, text, (size_t)((comma ? comma : end) - text), err);
        if (!comma)
            break;
        text = comma + 1;
    }
    if (st == GX_OK)
        *out = s;
    return st;
}

/* ---- values ---- */

gx_sort_value gx_sort_value_of(const gx_index *file, const gx_sort_level *level, uint32_t docid)
{
    const gx_column *c = &file->columns[level->column];
    gx_sort_value v = {.missing = !gx_column_has(c, docid)};
    if (v.missing)
        return v;
    const uint64_t key = gx_sort_local_key(level, c, docid);
    v.key = level->falling ? ~key : key;
    if (!gx_is_keyword(c->type))
        return v;
    const uint64_t ordinal = v.key / 2; /* a damaged one has no text */
    v.text = ordinal < c->n_strings ? gx_column_string(file, c, (uint32_t)ordinal, &v.len) : "";
    return v;
}

static int compare_texts(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const size_t common = a_len < b_len ? a_len : b_len;
    const int order = common ? memcmp(a, b, common) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

int gx_sort_compare(const gx_sort_level *level, const gx_sort_value *a, const gx_sort_value *b)
{
    if (a->missing || b->missing)
        return a->missing == b->missing ? 0 : a->missing == level->missing_first ? -1 : 1;
    const int order = gx_is_keyword(level->type) ? compare_texts(a->text, a->len, b->text, b->len)
                                                 : (a->key > b->key) - (a->key < b->key);
    return level->falling ? -order : order;
}

uint64_t gx_sort_key_of_value(const gx_index *file, const gx_sort_level *level, const gx_sort_value *value)
{
    const gx_column *c = &file->columns[level->column];
    uint64_t key = value->key;
    if (gx_is_keyword(c->type)) {
        uint32_t low = 0, high = c->n_strings;
        bool equal = false;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            size_t len;
            const char *text = gx_column_string(file, c, middle, &len);
            const int order = compare_texts(text, len, value->text, value->len);
            equal = equal || order == 0;
            if (order < 0)
                low = middle + 1;
            else
                high = middle;
        }
        key = 2 * (uint64_t)low + equal;
    }
    return level->falling ? ~key : key;
}
