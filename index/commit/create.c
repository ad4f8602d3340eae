/* create.c: a collection without documents, to which documents are added as a build would take them. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "codecs/codec.h"
#include "engine/api/gpuidx_advanced.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "index/analysis/analyzer.h"
#include "index/attributes/attributes.h"
#include "index/commit/files.h"
#include "index/commit/new_folder.h"
#include "index/fields/fields.h"
#include "index/inversion/builder.h"
#include "index/positions.h"
#include "index/read/collection.h"

/* An index file without documents. */
static gx_status build_empty(gx_index **out, const gx_builder_options *given, const char *path, const gx_place *place,
                             gx_error *err)
{
    gx_builder_options o = *given;
    gx_builder *b = NULL;
    o.path = path;
    *out = NULL;
    if (o.fixed_weights)
        return gx_fail(err, GX_EUSAGE, "a collection has no fixed weights of fields");
    gx_status st = gx_builder_open_like(&b, &o, NULL, place, err);
    if (st == GX_OK)
        st = gx_builder_finish(b, err);
    if (st == GX_OK)
        st = gx_index_open_in(out, place->dir_fd, path, GX_CHECK_STRUCTURE, GX_LOAD_MAP, err);
    gx_builder_abort(b);
    return st;
}

static gx_status fill_with_nothing(gx_new_folder *to, const void *user, gx_error *err)
{
    gx_manifest_part part = {.file = {0}};
    gx_manifest m = {.commit = 1, .next = 2, .n_parts = 1, .parts = &part};
    gx_index *ix = NULL;
    bool placed;
    snprintf(part.file, sizeof part.file, GX_PART_NAME, 1ull);
    char *path = gx_path_in(to->aside, part.file);
    gx_status st = path && getrandom(m.uuid, sizeof m.uuid, 0) == sizeof m.uuid
                       ? build_empty(&ix, user, path, &to->place, err)
                       : gx_fail(err, GX_ENOMEM, "no memory for a manifest");
    if (st == GX_OK) {
        memcpy(part.uuid, ix->header->uuid, sizeof part.uuid);
        part.bytes = ix->file_bytes;
        st = gx_manifest_write(&m, &to->place, to->path, false, &placed, err);
    }
    gx_index_close(ix);
    free(path);
    return st;
}

static gx_status compare_analysis(const gx_index *ix, const gx_builder_options *o, gx_error *err)
{
    const char *name = o->analyzer ? o->analyzer : o->vector_bits ? "whitespace" : NULL;
    const gx_analyzer_options how = {name, o->stemmer, o->stopwords, o->fold, o->ngrams};
    gx_analyzer *an = NULL;
    gx_status st = gx_analyzer_open(&an, &how, err);
    char *there = gx_analyzer_json(ix->analyzer), *asked = an ? gx_analyzer_json(an) : NULL;
    if (st == GX_OK && (!there || !asked))
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK && strcmp(there, asked) != 0)
        st = gx_fail(err, GX_EUSAGE,
                     "%s makes terms of text in another way: another analyzer, stemmer, stop words, fold or n-grams",
                     ix->path);
    free(there);
    free(asked);
    gx_analyzer_close(an);
    return st;
}

static gx_status compare_attributes(const gx_index *ix, const gx_builder_options *o, gx_error *err)
{
    bool same = ix->n_columns == o->n_attributes;
    for (uint32_t i = 0; same && i < ix->n_columns; ++i)
        same = ix->columns[i].type == o->attributes[i].type &&
               strlen(o->attributes[i].name) == ix->columns[i].name_len &&
               memcmp(o->attributes[i].name, ix->columns[i].name, ix->columns[i].name_len) == 0;
    if (!same)
        return gx_fail(err, GX_EUSAGE, "%s has other attributes", ix->path);
    same = (ix->fields ? ix->fields->n : 0) == o->n_fields;
    for (uint32_t f = 0; same && f < o->n_fields; ++f)
        same = strcmp(ix->fields->names[f], o->fields[f].name) == 0;
    return same ? GX_OK : gx_fail(err, GX_EUSAGE, "%s has other fields", ix->path);
}

/* What a collection that is there does otherwise than one that these options make. */
static gx_status compare(const gx_index *ix, const gx_builder_options *o, gx_error *err)
{
    const gx_codec *docids, *tfs;
    gx_status st = gx_codec_find_pair(&docids, &tfs, o->docid_codec, o->tf_codec, err);
    if (st == GX_OK && !ix->parts)
        return gx_fail(err, GX_EEXISTS, "%s exists, and is no collection", ix->path);
    if (st == GX_OK && ix->impacts != (o->vector_bits != 0))
        return gx_fail(err, GX_EUSAGE, "%s holds %s", ix->path, ix->impacts ? "impacts, of vectors" : "texts");
    if (st == GX_OK && ix->impacts && (float)o->unit != (float)ix->impact_unit)
        return gx_fail(err, GX_EUSAGE, "the impacts of %s have the unit %g, and %g is asked for", ix->path,
                       ix->impact_unit, o->unit);
    if (st == GX_OK)
        st = compare_analysis(ix, o, err);
    if (st == GX_OK)
        st = compare_attributes(ix, o, err);
    if (st == GX_OK && docids->block_len != ix->block_len)
        st = gx_fail(err, GX_EUSAGE, "%s has blocks of %u postings, and these codecs of %u", ix->path, ix->block_len,
                     docids->block_len);
    if (st == GX_OK && !ix->text != !o->store_text)
        st = gx_fail(err, GX_EUSAGE, "%s stores %s", ix->path, ix->text ? "texts" : "no texts");
    if (st == GX_OK && gx_index_has_positions(ix) != o->positions)
        st = gx_fail(err, GX_EUSAGE, "%s has %s", ix->path, o->positions ? "no positions" : "positions");
    if (st == GX_OK && gx_index_stores_titles(ix) != o->store_titles)
        st = gx_fail(err, GX_EUSAGE, "%s stores %s", ix->path, o->store_titles ? "no titles" : "titles");
    return st;
}

gx_status gx_collection_create(const char *path, const gx_builder_options *opt, bool *made, gx_error *err)
{
    gx_builder_options o = GX_BUILDER_OPTIONS;
    struct stat s;
    *made = false;
    gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_builder_options, threads), "gx_builder_options", err);
    if (st == GX_OK && o.vector_bits && !(o.unit > 0))
        st = gx_fail(err, GX_EUSAGE, "%s: a collection of weights that is empty has no unit but one that is given",
                     path);
    if (st != GX_OK)
        return st;
    if (stat(path, &s) != 0) {
        st = gx_new_folder_make(path, fill_with_nothing, &o, err);
        *made = st == GX_OK;
        if (st != GX_EEXISTS)
            return st;
    }
    const gx_index_options light = {sizeof light, GX_CHECK_STRUCTURE, GX_LOAD_MAP};
    gx_index *ix;
    if (!opt || (st = gx_index_open(&ix, path, &light, err)) != GX_OK)
        return st == GX_EEXISTS ? GX_OK : st;
    st = compare(ix, &o, err);
    gx_index_close(ix);
    return st;
}
