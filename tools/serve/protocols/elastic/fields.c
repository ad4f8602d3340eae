/* fields.c: by which fields a request's words are searched, on an index that has fields.
 *
 *   match of a field                     the words in this field alone: title:(a b)
 *   multi_match, combined_fields         the words in all of their fields, by weights, as a view of the index has them
 *   match of _all, contents              the words of all fields as of one text
 *
 * One request has one set of fields and weights, so that what would need two is refused. */
#include <stdlib.h>
#include <string.h>

#include "tools/serve/protocols/elastic/elastic.h"

bool elastic_has_fields(const gx_index *ix)
{
    return gx_index_field(ix, 0, NULL) != NULL;
}

bool elastic_is_field(const gx_index *ix, const char *name)
{
    const char *field;
    for (uint32_t i = 0; (field = gx_index_field(ix, i, NULL)); ++i)
        if (strcmp(field, name) == 0)
            return true;
    return false;
}

bool dsl_use_text(reader *r, dsl_fields *f)
{
    if (f->kind == DSL_FIELDS_SET)
        return reader_fail(r,
                           "words of all text stand beside words by weighted fields; a request has one kind of them");
    f->whole = true;
    return true;
}

bool dsl_use_each(reader *r, dsl_fields *f)
{
    if (f->kind == DSL_FIELDS_SET)
        return reader_fail(r, "words of a field stand beside words by weighted fields; a request has one kind of them");
    f->kind = DSL_FIELDS_EACH;
    return true;
}

bool dsl_use_set(reader *r, dsl_fields *f, const char *set, gx_field_scoring scoring)
{
    if (f->kind == DSL_FIELDS_EACH || f->whole)
        return reader_fail(r, "words by weighted fields stand beside others; a request has one kind of them");
    if (f->kind == DSL_FIELDS_SET && (strcmp(f->set, set) || f->scoring != scoring))
        return reader_fail(r, "a request has one set of fields, with one weight and one type");
    if (strlen(set) >= sizeof f->set)
        return reader_fail(r, "the fields are more than %zu bytes of text", sizeof f->set - 1);
    f->kind = DSL_FIELDS_SET;
    f->scoring = scoring;
    strcpy(f->set, set);
    return true;
}

bool dsl_open_fields(reader *r, exchange *x, const dsl_fields *f, plan *p)
{
    gx_error err = {0};
    if (f->kind == DSL_FIELDS_NONE)
        return true;
    const bool set = f->kind == DSL_FIELDS_SET;
    const gx_status st = native_view(x, p, set ? f->set : "all", set ? f->scoring : GX_FIELDS_BM25F, &err);
    if (st == GX_EUSAGE)
        return reader_fail(r, "%s", err.text);
    return st == GX_OK || fault_set(r->fault, http_status(st), "%s", err.text);
}

/* ---- "fields" and "type" ---- */

static bool read_one(reader *r, const json_t *value, void *to)
{
    multi_fields *m = to;
    const char *name;
    size_t len;
    if (!reader_string(r, value, &name, &len))
        return false;
    const size_t n = strcspn(name, "^");
    if (len == 0 || n == 0)
        return reader_fail(r, "a field's name is expected");
    if (!elastic_has_fields(m->ix))
        return elastic_is_text(name) || reader_fail(r,
                                                    "'%.60s' is no name of the text, which is text, title, contents or "
                                                    "_all without a weight",
                                                    name);
    if (strcmp(name, "*") == 0) {
        for (uint32_t i = 0; (name = gx_index_field(m->ix, i, NULL)); ++i) {
            gx_text_add_format(&m->set, "%s%s", m->n ? "," : "", name);
            ++m->n;
        }
        return true;
    }
    for (size_t i = 0; i < len; ++i)
        if (strchr(",:*", name[i]) || !name[i])
            return reader_fail(r, "'%.60s' is no field; write a name, or a name and a weight: title^3", name);
    gx_text_add_string(&m->set, m->n++ ? "," : "");
    gx_text_add(&m->set, name, len);
    return true;
}

bool multi_read_fields(reader *r, const json_t *value, void *to)
{
    return reader_array(r, value, read_one, to);
}

bool multi_read_type(reader *r, const json_t *value, void *to)
{
    static const gx_field_scoring scorings[] = {GX_FIELDS_BEST, GX_FIELDS_SUM, GX_FIELDS_BM25F};
    multi_fields *m = to;
    const char *text;
    size_t len;
    if (!reader_string(r, value, &text, &len))
        return false;
    const int i = gx_word_index("best_fields|most_fields|cross_fields", text, len);
    if (i < 0)
        return reader_fail(r, "'%.40s' is not available; there are best_fields, most_fields and cross_fields", text);
    m->scoring = scorings[i];
    return true;
}

bool multi_read_breaker(reader *r, const json_t *value, void *to)
{
    multi_fields *m = to;
    return reader_number(r, value, &m->breaker) &&
           (m->breaker == 0 || m->breaker == 1 ||
            reader_fail(r, "only 0, the greatest of the fields' scores, and 1, their sum, are available"));
}

bool multi_settle(reader *r, multi_fields *m, gx_op op)
{
    if (m->scoring != GX_FIELDS_BM25F && m->breaker >= 0)
        m->scoring = m->breaker == 1 ? GX_FIELDS_SUM : GX_FIELDS_BEST;
    if (m->set.failed)
        return reader_fail(r, "no memory for the fields");
    for (uint32_t i = 0; m->n == 0 && elastic_has_fields(m->ix); ++i) {
        const char *name = gx_index_field(m->ix, i, NULL);
        if (!name)
            break;
        gx_text_add_format(&m->set, "%s%s", i ? "," : "", name);
    }
    if (op == GX_OP_AND && m->n != 1 && m->scoring != GX_FIELDS_BM25F && elastic_has_fields(m->ix))
        return reader_fail(r, "that all words stand in one field is not available; cross_fields and combined_fields "
                              "want each word in one of the fields");
    gx_text_add(&m->set, "", 1);
    return true;
}
