#include "index/convert/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/sized.h"
#include "engine/status.h"

gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, const char *path, gx_error *err)
{
    *out = (gx_import_setup){.options = GX_IMPORT_OPTIONS, .writer = GX_WRITER_OPTIONS};
    gx_import_options *o = &out->options;
    gx_status st = gx_sized_read(o, sizeof *o, opt, GX_SIZE_THROUGH(gx_import_options, user), "gx_import_options", err);
    if (st == GX_OK)
        st = gx_codec_find_pair(&out->writer.docids, &out->writer.tfs, o->docid_codec, o->tf_codec, err);
    if (st != GX_OK)
        return st;
    if (!o->analyzer && (o->stemmer || o->stopwords || o->fold || o->ngrams))
        return gx_fail(err, GX_EUSAGE, "gx_import_options names %s, but no analyzer that they belong to",
                       o->stemmer     ? "a stemmer"
                       : o->stopwords ? "stop words"
                       : o->fold      ? "a fold"
                                      : "n-grams");
    out->writer.force = o->force;
    out->writer.impacts = o->impacts;
    const gx_analyzer_options analysis = {o->analyzer, o->stemmer, o->stopwords, o->fold, o->ngrams};
    if (o->analyzer)
        st = gx_analyzer_open(&out->analyzer, &analysis, err);
    if (st == GX_OK && o->attributes_file)
        st = gx_attribute_file_open(&out->attributes, o, path, err);
    if (st == GX_OK && out->attributes)
        out->writer.columns = gx_attribute_file_columns(out->attributes);
    if (st == GX_OK && !gx_external_ids_open(&out->ids))
        st = gx_fail(err, GX_ENOMEM, "out of memory for the ids of documents");
    return st;
}

void gx_import_setup_close(gx_import_setup *s)
{
    gx_external_ids_close(&s->ids);
    gx_analyzer_close(s->analyzer);
    gx_attribute_file_close(s->attributes);
}

void gx_import_warn(const gx_import_setup *s, const char *format, ...)
{
    gx_error text;
    va_list args;
    va_start(args, format);
    vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    if (s->options.warn)
        s->options.warn(s->options.user, text.text);
}

/* Whether runs and judgements cannot hold the id: a build refuses such, but an import may not be able to change them.
 * */
static bool is_odd(const char *id, size_t len)
{
    if (len >= 3 && memcmp(id, "\xEF\xBB\xBF", 3) == 0)
        return true;
    for (size_t i = 0; i < len; ++i)
        if ((unsigned char)id[i] <= ' ' || id[i] == 127)
            return true;
    return false;
}

static void keep_first(uint32_t *n, char first[64], const char *id, size_t len)
{
    if ((*n)++ == 0)
        snprintf(first, 64, "%.*s%s", (int)(len < 60 ? len : 60), id, len > 60 ? "..." : "");
}

gx_status gx_import_add_document(gx_import_setup *s, const char *id, size_t len, gx_error *err)
{
    const uint32_t docid = s->n_docs++;
    uint32_t *place = gx_external_ids_insert(&s->ids, gx_external_ids_key(&s->ids, id, len));
    if (!place)
        return gx_fail(err, GX_ENOMEM, "out of memory for the ids of documents");
    if (*place == UINT32_MAX)
        *place = docid;
    else if (s->options.keep_duplicates)
        keep_first(&s->n_again, s->again, id, len);
    else
        return gx_fail(err, GX_EINPUT,
                       "%s: documents %u and %u have the same id, \"%.*s\", and no run could tell them apart",
                       s->source, *place, docid, (int)(len < 200 ? len : 200), id);
    if (is_odd(id, len))
        keep_first(&s->n_odd, s->odd, id, len);
    return s->attributes ? gx_attribute_file_add_document(s->attributes, id, len, err) : GX_OK;
}

gx_status gx_import_end_documents(const gx_import_setup *s, gx_error *err)
{
    if (s->n_again)
        gx_import_warn(s, "%u document%s an id that an earlier one has, the first \"%s\"; no run can tell them apart",
                       s->n_again, s->n_again == 1 ? " has" : "s have", s->again);
    if (s->n_odd)
        gx_import_warn(s,
                       "%u document%s an id with white space, a control character or a byte order mark, the first "
                       "\"%s\"; runs and judgements cannot hold %s",
                       s->n_odd, s->n_odd == 1 ? " has" : "s have", s->odd, s->n_odd == 1 ? "it" : "them");
    return s->attributes ? gx_attribute_file_read(s->attributes, err) : GX_OK;
}
