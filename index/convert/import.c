#include "index/convert/import.h"

#include "engine/sized.h"
#include "engine/status.h"

gx_status gx_import_setup_open(gx_import_setup *out, const gx_import_options *opt, gx_error *err)
{
    *out = (gx_import_setup){GX_IMPORT_OPTIONS, GX_WRITER_OPTIONS, NULL};
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
    return o->analyzer ? gx_analyzer_open(&out->analyzer, &analysis, err) : GX_OK;
}

void gx_import_setup_close(gx_import_setup *s)
{
    gx_analyzer_close(s->analyzer);
}
