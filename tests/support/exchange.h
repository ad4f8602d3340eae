/* exchange.h: what the tests of the formats of other engines share. */
#ifndef GX_TESTS_SUPPORT_EXCHANGE_H
#define GX_TESTS_SUPPORT_EXCHANGE_H

#include "engine/api/gpuidx_advanced.h"
#include "tests/support/collection.h"
#include "tests/support/indexes.h"

static inline gx_import_options with_codec(void)
{
    gx_import_options opt = GX_IMPORT_OPTIONS;
    opt.docid_codec = "gpubp128";
    opt.force = true;
    return opt;
}

static inline gx_export_options replacing(void)
{
    gx_export_options opt = GX_EXPORT_OPTIONS;
    opt.force = true;
    return opt;
}

/* Collections made by chance, exported to x in the scratch folder and imported again, have the same
 * postings. */
static inline void
assert_comes_back(gx_status (*give)(const gx_index *, const char *, const gx_export_options *, gx_error *),
                  gx_status (*take)(const char *, const char *, const gx_import_options *, gx_error *))
{
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        collection *c = collection_make(seed, (uint32_t)(seed * 400), 50);
        gx_error err = {0};
        const gx_import_options opt = with_codec();
        const gx_export_options to = replacing();
        assert_int_equal(collection_write(c, in_dir("a.gx"), gx_codec_by_name("gpubp128"), NULL, &err), GX_OK);
        gx_index *a = open_index("a.gx");
        if (give(a, in_dir("x"), &to, &err) || take(in_dir("x"), in_dir("b.gx"), &opt, &err))
            fail_msg("seed %d: %s", (int)seed, err.text);
        gx_index *b = open_index("b.gx");
        assert_same_postings(a, b);
        gx_index_close(a);
        gx_index_close(b);
        collection_free(c);
    }
}

#endif
