/* source_fields.c: the fields of documents: title, text, and members or columns that are read as attributes are. */
#include "index/corpus/source_reader.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"

static bool is_own(const char *field)
{
    return strcmp(field, "title") != 0 && strcmp(field, "text") != 0;
}

static uint32_t count_own(const gx_source_options *o)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < o->n_fields; ++f)
        n += is_own(o->fields[f]);
    return n;
}

uint32_t gx_source_first_field(const gx_source *s)
{
    return s->opt.n_attributes - (s->with_fields ? count_own(&s->opt) : 0);
}

gx_status gx_source_open_fields(gx_source *s, gx_error *err)
{
    const uint32_t n = s->opt.n_attributes, own = count_own(&s->opt);
    if (own == 0)
        return GX_OK;
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t f = 0; f < s->opt.n_fields; ++f)
            if (strcmp(s->opt.attributes[i].name, s->opt.fields[f]) == 0)
                return gx_fail(err, GX_EUSAGE, "'%.80s' is a field and an attribute; give one of them another name",
                               s->opt.fields[f]);
    if (!(s->with_fields = calloc((size_t)n + own, sizeof *s->with_fields)))
        return gx_fail(err, GX_ENOMEM, "no memory to read the corpus");
    if (n)
        memcpy(s->with_fields, s->opt.attributes, n * sizeof *s->with_fields);
    for (uint32_t f = 0, at = n; f < s->opt.n_fields; ++f)
        if (is_own(s->opt.fields[f]))
            s->with_fields[at++] = (gx_attribute){s->opt.fields[f], GX_ATTRIBUTE_KEYWORD};
    s->opt.attributes = s->with_fields;
    s->opt.n_attributes = n + own;
    return GX_OK;
}

/* A field's text; a separator in it becomes a space. */
static bool add(gx_scratch *to, gx_span text, bool space)
{
    const size_t from = to->n + space;
    if ((space && !gx_scratch_add(to, " ", 1)) || (text.n && !gx_scratch_add(to, text.p, text.n)))
        return false;
    for (char *p = to->p + from, *const end = to->p + to->n;
         text.n && (p = memchr(p, GX_FIELD_SEPARATOR, (size_t)(end - p))); ++p)
        *p = ' ';
    return true;
}

/* The values of attribute number i, one behind another. */
static bool add_values(gx_source *s, uint32_t i)
{
    bool any = false;
    for (uint32_t v = 0; v < s->n_values; ++v) {
        const gx_attribute_value *x = &s->values[v];
        if (x->attribute != i)
            continue;
        if (!add(&s->composed, (gx_span){(char *)(uintptr_t)x->text, x->len}, any))
            return false;
        any = true;
    }
    return true;
}

bool gx_source_compose_fields(gx_source *s)
{
    const uint32_t n = s->opt.n_attributes - count_own(&s->opt);
    gx_record *r = &s->rec;
    uint32_t kept = 0;
    if (s->opt.n_fields == 0)
        return true;
    s->composed.n = 0;
    for (uint32_t f = 0, own = n; f < s->opt.n_fields; ++f) {
        const char separator = GX_FIELD_SEPARATOR, *name = s->opt.fields[f];
        if (f && !gx_scratch_add(&s->composed, &separator, 1))
            return false;
        const bool good = is_own(name)                 ? add_values(s, own++)
                          : strcmp(name, "title") == 0 ? add(&s->composed, r->title, false)
                                                       : add(&s->composed, r->text, false);
        if (!good)
            return false;
    }
    for (uint32_t v = 0; v < s->n_values; ++v)
        if (s->values[v].attribute < n)
            s->values[kept++] = s->values[v];
    s->n_values = kept;
    r->text = s->composed.p ? (gx_span){s->composed.p, s->composed.n} : (gx_span){(char *)"", 0};
    return true;
}
