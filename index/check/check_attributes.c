/* check_attributes.c: bind the sections of attributes and check them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "index/attributes/types.h"
#include "index/check/check_parts.h"

#define ULL(x) ((unsigned long long)(x))

/* Check one entry, whose column must begin at byte *at of the values and whose strings at *string,
 * and go on behind both. */
static gx_status bind_column(gx_index *ix, uint32_t i, const gx_column_entry *e, const gx_section *values, uint64_t *at,
                             uint64_t *string, gx_error *err)
{
    static const uint8_t zeros[24];
    gx_column *c = &ix->columns[i];
    const gx_type *type = gx_type_of(e->type);
    if (!type)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u has type %u, which is not known", i, e->type);
    const bool keyword = type->is_string, several = type->is_set || e->several, number = !keyword && !type->width;
    const bool width_ok = type->width ? e->width == type->width
                                      : e->width == 1 || e->width == 2 || e->width == 4 || (e->width == 8 && number);
    if (!width_ok)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u has values of %u bytes", i, e->width);
    if (memcmp(e->reserved, zeros, sizeof e->reserved) != 0 || e->reserved0)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u: reserved bytes are not zero", i);
    if (e->several > !keyword)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u: 'several' is %u, which its type does not have", i,
                          e->several);
    if (e->n_present > ix->n_docs || (several ? e->n_values > UINT32_MAX : e->n_values != ix->n_docs) ||
        (e->several && e->n_values <= e->n_present))
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u has %llu values in %u of %u documents", i,
                          ULL(e->n_values), e->n_present, ix->n_docs);
    if (!number && e->base != 0)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u has a base, which its type does not have", i);
    if (e->first_string != (keyword ? *string : 0) || (!keyword && e->n_strings))
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "the strings of attribute %u begin with string %u, not %llu", i,
                          e->first_string, ULL(keyword ? *string : 0));
    if (e->values != *at)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTES, "attribute %u begins at byte %llu, not %llu", i, ULL(e->values),
                          ULL(*at));
    const uint64_t more = several                     ? gx_column_padded(((uint64_t)ix->n_docs + 1) * 4)
                          : e->n_present < ix->n_docs ? ((uint64_t)ix->n_docs + 63) / 64 * 8
                                                      : 0;
    const uint64_t own = gx_column_padded(e->n_values * e->width);
    if (own + more > values->bytes - *at) /* both are below 2^36 */
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES, "attribute %u reaches past the section's end", i);
    const uint8_t *p = ix->file + values->offset + *at;
    *c = (gx_column){.type = (gx_attribute_type)e->type,
                     .width = e->width,
                     .base = e->base,
                     .values = p,
                     .n_values = e->n_values,
                     .n_present = e->n_present,
                     .first_string = e->first_string,
                     .n_strings = e->n_strings};
    if (several)
        c->starts = (const uint32_t *)(const void *)(p + own);
    else if (more)
        c->present = (const uint64_t *)(const void *)(p + own);
    *at += own + more;
    *string += e->n_strings;
    return GX_OK;
}

static gx_status bind_strings(gx_index *ix, const gx_section *s, uint64_t n, gx_error *err)
{
    if (s->param != 4 && s->param != 8)
        return gx_corrupt(err, ix, s->kind, "offsets of %llu bytes, not 4 or 8", ULL(s->param));
    if (n >= UINT32_MAX || s->bytes < (n + 1) * s->param)
        return gx_corrupt(err, ix, s->kind, "it has %llu bytes, too few for the offsets of %llu strings", ULL(s->bytes),
                          ULL(n));
    ix->column_strings = (gx_strings){.offsets = ix->file + s->offset,
                                      .bytes = (const char *)ix->file + s->offset + (n + 1) * s->param,
                                      .n = (uint32_t)n,
                                      .width = (uint32_t)s->param};
    return GX_OK;
}

gx_status gx_columns_bind(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, GX_SEC_ATTRIBUTES),
                     *values = gx_index_section(ix, GX_SEC_ATTRIBUTE_VALUES),
                     *strings = gx_index_section(ix, GX_SEC_ATTRIBUTE_STRINGS);
    if (!s && !values && !strings)
        return GX_OK;
    if (!s || !values || !strings)
        return gx_corrupt(err, ix,
                          !s        ? GX_SEC_ATTRIBUTES
                          : !values ? GX_SEC_ATTRIBUTE_VALUES
                                    : GX_SEC_ATTRIBUTE_STRINGS,
                          "it is missing");
    if (s->param == 0 || s->param > GX_MAX_ATTRIBUTES || s->bytes != s->param * sizeof(gx_column_entry))
        return gx_corrupt(err, ix, s->kind, "it has %llu bytes, for %llu attributes", ULL(s->bytes), ULL(s->param));
    const gx_column_entry *entries = (const gx_column_entry *)(const void *)(ix->file + s->offset);
    uint64_t at = 0, string = s->param;
    if (!(ix->columns = calloc((size_t)s->param, sizeof *ix->columns)))
        return gx_fail(err, GX_ENOMEM, "out of memory");
    ix->n_columns = (uint32_t)s->param;
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        const gx_status st = bind_column(ix, i, &entries[i], values, &at, &string, err);
        if (st != GX_OK)
            return st;
    }
    if (at != values->bytes)
        return gx_corrupt(err, ix, values->kind, "it has %llu bytes, the attributes take %llu", ULL(values->bytes),
                          ULL(at));
    return bind_strings(ix, strings, string, err);
}

/* ---- structure ---- */

static gx_status check_starts(const gx_index *ix, const gx_column *c, uint32_t i, gx_error *err)
{
    for (uint32_t d = 0; d < ix->n_docs; ++d)
        if (c->starts[d + 1] < c->starts[d])
            return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES,
                              "attribute %u: the values of document %u end at %u, before they begin, at %u", i, d,
                              c->starts[d + 1], c->starts[d]);
    if (c->starts[0] != 0 || c->starts[ix->n_docs] != c->n_values)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES,
                          "attribute %u: values %u to %u have a document, not 0 to %llu", i, c->starts[0],
                          c->starts[ix->n_docs], ULL(c->n_values));
    return GX_OK;
}

gx_status gx_columns_check_structure(const gx_index *ix, gx_error *err)
{
    for (uint32_t i = 0; i < ix->n_columns; ++i) {
        gx_column *c = &ix->columns[i];
        c->name = gx_strings_get(&ix->column_strings, i, &c->name_len);
        const char *fault = gx_attribute_name_fault(c->name, c->name_len);
        if (fault)
            return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_STRINGS, "the name of attribute %u %s", i, fault);
        for (uint32_t j = 0; j < i; ++j)
            if (ix->columns[j].name_len == c->name_len && memcmp(ix->columns[j].name, c->name, c->name_len) == 0)
                return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_STRINGS, "attributes %u and %u have the same name", j, i);
        const gx_status st = c->starts ? check_starts(ix, c, i, err) : GX_OK;
        if (st != GX_OK)
            return st;
    }
    return GX_OK;
}

/* ---- contents ---- */

static gx_status check_dictionary(const gx_index *ix, const gx_column *c, gx_error *err)
{
    const char *last = "";
    size_t last_len = 0;
    for (uint32_t s = 0; s < c->n_strings; ++s) {
        size_t len;
        const char *p = gx_column_string(ix, c, s, &len);
        const int order = memcmp(last, p, len < last_len ? len : last_len);
        if (order > 0 || (order == 0 && last_len >= len)) /* the first one is not empty, either */
            return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_STRINGS,
                              "attribute %.*s: string %u is not above the one before it", (int)c->name_len, c->name, s);
        last = p;
        last_len = len;
    }
    return GX_OK;
}

static gx_status check_presence(const gx_index *ix, const gx_column *c, gx_error *err)
{
    uint64_t n = c->present || c->starts ? 0 : ix->n_docs;
    for (uint64_t w = 0; c->present && w < ((uint64_t)ix->n_docs + 63) / 64; ++w)
        n += (uint64_t)__builtin_popcountll(c->present[w]);
    for (uint32_t d = 0; c->starts && d < ix->n_docs; ++d)
        n += c->starts[d] < c->starts[d + 1];
    if (n != c->n_present)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES, "attribute %.*s: %llu documents have a value, not %u",
                          (int)c->name_len, c->name, ULL(n), c->n_present);
    if (c->present && ix->n_docs % 64 && c->present[ix->n_docs / 64] >> ix->n_docs % 64)
        return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES, "attribute %.*s: a document past the last has a value",
                          (int)c->name_len, c->name);
    return GX_OK;
}

/* What is wrong with a value, or NULL. */
static const char *value_fault(const gx_column *c, uint64_t raw)
{
    const gx_type *type = gx_type_of(c->type);
    if (type->is_string)
        return raw >= c->n_strings ? "is none of the attribute's strings" : NULL;
    if (!type->width && raw > (uint64_t)INT64_MAX - (uint64_t)c->base)
        return "is above the range of 64 bits";
    return type->fault ? type->fault((int64_t)((uint64_t)c->base + raw)) : NULL;
}

static gx_status check_padding(const gx_index *ix, const gx_column *c, const void *part, uint64_t bytes, gx_error *err)
{
    const uint8_t *p = (const uint8_t *)part;
    for (uint64_t i = bytes; i < gx_column_padded(bytes); ++i)
        if (p[i])
            return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES, "attribute %.*s: the padding is not zero",
                              (int)c->name_len, c->name);
    return GX_OK;
}

static gx_status check_column(const gx_index *ix, const gx_column *c, gx_error *err)
{
    gx_status st;
    if ((st = check_dictionary(ix, c, err)) != GX_OK || (st = check_presence(ix, c, err)) != GX_OK ||
        (st = check_padding(ix, c, c->values, c->n_values * c->width, err)) != GX_OK ||
        (c->starts && (st = check_padding(ix, c, c->starts, ((uint64_t)ix->n_docs + 1) * 4, err)) != GX_OK))
        return st;
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        const gx_value_span v = gx_column_values(c, d);
        for (uint64_t i = v.begin; i < v.end; ++i) {
            const uint64_t raw = gx_column_raw(c, i), key = gx_sort_key(c->type, raw);
            const char *fault = gx_column_has(c, d) ? value_fault(c, raw) : raw ? "is missing, but not 0" : NULL;
            if (!fault && i > v.begin && key <= gx_sort_key(c->type, gx_column_raw(c, i - 1)))
                fault = "is not above the one before it";
            if (fault)
                return gx_corrupt(err, ix, GX_SEC_ATTRIBUTE_VALUES, "attribute %.*s: a value of document %u, %llu, %s",
                                  (int)c->name_len, c->name, d, ULL(raw), fault);
        }
    }
    return GX_OK;
}

gx_status gx_columns_check_contents(const gx_index *ix, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint32_t i = 0; i < ix->n_columns && st == GX_OK; ++i)
        st = check_column(ix, &ix->columns[i], err);
    return st;
}
