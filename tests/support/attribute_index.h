/* attribute_index.h: an index file of documents that have attributes and nothing else, for golden files. */
#ifndef GX_TESTS_SUPPORT_ATTRIBUTE_INDEX_H
#define GX_TESTS_SUPPORT_ATTRIBUTE_INDEX_H

#include <stdio.h>
#include <stdlib.h>

#include "index/write/columns.h"
#include "index/write/writer.h"
#include "tests/support/collection.h"
#include "tests/support/test.h"

typedef struct attribute_index {
    const gx_attribute *attributes;   /* [n] */
    const gx_bitmap_options *bitmaps; /* [n] or NULL */
    uint32_t n, n_docs;
    gx_status (*set)(gx_columns *c, uint32_t d, gx_error *err); /* gives columns the values of document d */
} attribute_index;

static inline void write_attribute_index(const char *path, const attribute_index *x)
{
    gx_writer_options opt = GX_WRITER_OPTIONS;
    gx_writer *w;
    gx_error err = {0};
    const uint32_t docids[] = {0}, tfs[] = {1};
    opt.force = true;
    opt.docids = gx_codec_by_name("gpubp128");
    opt.uuid = collection_uuid;
    assert_int_equal(gx_columns_open(&opt.columns, x->attributes, x->bitmaps, x->n, "/tmp", &err), GX_OK);
    assert_int_equal(gx_writer_open(&w, path, &opt, &err), GX_OK);
    for (uint32_t d = 0; d < x->n_docs; ++d) {
        char id[16];
        const int n = snprintf(id, sizeof id, "d%u", d);
        assert_int_equal(x->set(opt.columns, d, &err), GX_OK);
        assert_int_equal(gx_columns_add(opt.columns, &err), GX_OK);
        assert_int_equal(gx_writer_add_document(w, &(gx_document){.id = id, .id_len = (size_t)n}, d == 0, &err), GX_OK);
    }
    assert_int_equal(gx_writer_add_list(w, "one", 3, 1, docids, tfs, &err), GX_OK);
    if (gx_writer_finish(w, META, &err) != GX_OK)
        fail_msg("%s", err.text);
    gx_writer_close(w);
    gx_columns_close(opt.columns);
}

/* Where the golden file of that name lies; valid until the next call. */
static inline const char *golden_file(const char *name)
{
    static char path[512];
    const char *folder = getenv("GX_TEST_DATA");
    if (!folder)
        fail_msg("GX_TEST_DATA does not name the folder of golden files; meson test sets it");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

#endif
