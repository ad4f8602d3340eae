#include "index/convert/import.h"

#include "engine/sized.h"
#include "engine/status.h"

gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, const char *path, gx_error *err)
{
    *out = (gx_import_setup){GX_IMPORT_OPTIONS, GX_WRITER_OPTIONS, NULL, NULL};
    gx_import_options *o = &out->options;
    gx_status st = gx_sized_read(o, sizeof *o, opt, GX_SIZE_THROUGH(gx_import_options, user), "gx_import_options", err);
    if (st == GX_OK)
        st = gx_codec_find_pair(&out->writer.docids, &out->writer.tfs, o->docid_codec, o->tf_codec, err);
    if (st != GX_OK)
        return st;
    if (!o->analyzer && (o->stemmer || o->stopwords || o->fold))
        return gx_fail(err, GX_EUSAGE, "gx_import_options names %s, but no analyzer that they belong to",
                       o->stemmer     ? "a stemmer"
                       : o->stopwords ? "stop words"
                                      : "a fold");
    out->writer.force = o->force;
    out->writer.impacts = o->impacts;
    const gx_analyzer_options analysis = {o->analyzer, o->stemmer, o->stopwords, o->fold};
    if (o->analyzer)
        st = gx_analyzer_open(&out->analyzer, &analysis, err);
    if (st == GX_OK && o->attributes_file)
        st = gx_attribute_file_open(&out->attributes, o, path, err);
    if (st == GX_OK && out->attributes)
        out->writer.columns = gx_attribute_file_columns(out->attributes);
    return st;
}

void gx_import_setup_close(gx_import_setup *s)
{
    gx_analyzer_close(s->analyzer);
    gx_attribute_file_close(s->attributes);
}

gx_status gx_import_add_document(const gx_import_setup *s, const char *id, size_t len, gx_error *err)
{
    return s->attributes ? gx_attribute_file_add_document(s->attributes, id, len, err) : GX_OK;
}

gx_status gx_import_read_attributes(const gx_import_setup *s, gx_error *err)
{
    return s->attributes ? gx_attribute_file_read(s->attributes, err) : GX_OK;
}
