#include "tools/shell/vector_query.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/ascii.h"

/* No query of words begins so. */
static bool begins_object(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len && gx_is_space(text[i]))
        ++i;
    if (i == len || text[i] != '{')
        return false;
    do
        ++i;
    while (i < len && gx_is_space(text[i]));
    return i < len && (text[i] == '"' || text[i] == '}');
}

void vector_query_free(vector_query *v)
{
    json_decref(v->object);
    free(v->terms);
    *v = (vector_query){0};
}

gx_status vector_query_read(vector_query *v, const char *text, size_t len, gx_error *err)
{
    json_error_t why;
    const char *term;
    json_t *weight;
    vector_query_free(v);
    if (!begins_object(text, len))
        return GX_OK;
    err->status = GX_EUSAGE;
    v->object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!v->object) {
        snprintf(err->text, sizeof err->text, "the query is no JSON vector: %s (byte %d)", why.text, why.position);
        return err->status;
    }
    v->terms = calloc(json_object_size(v->object) + 1, sizeof *v->terms);
    if (!v->terms) {
        *err = (gx_error){GX_ENOMEM, "no memory for the query"};
        return err->status;
    }
    json_object_foreach(v->object, term, weight)
    {
        const size_t n = strlen(term);
        if (!json_is_number(weight)) {
            snprintf(err->text, sizeof err->text, "the query is a JSON vector, and the weight of \"%.*s\" is no number",
                     (int)(n < 64 ? n : 64), term);
            return err->status;
        }
        v->terms[v->n++] = (gx_weighted_term){term, n, (float)json_number_value(weight)};
    }
    return GX_OK;
}
