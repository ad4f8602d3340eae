#include "index/write/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codecs/auto_codec.h"
#include "engine/files/temporary_file.h"
#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/write/writer_state.h"

gx_status gx_writer_repeat_failure(gx_writer *w, gx_error *err)
{
    return gx_fail(err, w->failed.status, "%s", w->failed.text);
}

gx_status gx_writer_record_failure(gx_writer *w, gx_status st, const gx_error *words, gx_error *err)
{
    if (st == GX_OK)
        return GX_OK;
    w->failed = *words;
    w->failed.status = st;
    return gx_writer_repeat_failure(w, err);
}

/* ---- open and close ---- */

/* The codec of the same family as tfs whose blocks are as long as docids', or docids itself. */
static const gx_codec *matching_codec(const gx_codec *docids, const gx_codec *tfs)
{
    const size_t stem = strcspn(tfs->name, "0123456789");
    for (const gx_codec *const *c = gx_codecs; *c; ++c)
        if ((*c)->block_len == docids->block_len && strncmp((*c)->name, tfs->name, stem) == 0)
            return *c;
    return docids;
}

static gx_status check_options(const gx_writer_options *opt, const char *path, gx_error *err)
{
    if (!opt || !opt->docids)
        return gx_fail(err, GX_EUSAGE, "cannot write %s: no codec is given", path);
    const gx_codec *docids = opt->docids, *tfs = opt->tfs ? opt->tfs : docids;
    if (docids->block_len != tfs->block_len)
        return gx_fail(err, GX_EUSAGE,
                       "cannot write %s: codec %s has blocks of %u postings, %s of %u; both must be equal: use %s for "
                       "the frequencies",
                       path, docids->name, docids->block_len, tfs->name, tfs->block_len,
                       matching_codec(docids, tfs)->name);
    if (opt->positions && opt->impacts)
        return gx_fail(err, GX_EUSAGE, "cannot write %s: an index of impacts has no positions", path);
    if (opt->n_fields > GX_MAX_FIELDS || (opt->n_fields && opt->impacts))
        return gx_fail(err, GX_EUSAGE, "cannot write %s: %u fields%s", path, opt->n_fields,
                       opt->impacts ? " of impacts" : "");
    return GX_OK;
}

static gx_status fill_uuid(uint8_t uuid[16], const uint8_t *given, gx_error *err)
{
    if (given) {
        memcpy(uuid, given, 16);
        return GX_OK;
    }
    if (getrandom(uuid, 16, 0) != 16)
        return gx_fail(err, GX_EIO, "the system gave no random bytes: %s", strerror(errno));
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40); /* version 4 */
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80); /* variant 1 */
    return GX_OK;
}

#define N_SPOOLS 20u

static void list_spools(gx_writer *w, gx_spool *spools[N_SPOOLS])
{
    gx_spool *const all[] = {
        &w->lists,       &w->heads,        &w->docid_ends,    &w->tf_ends,       &w->doc_lens,       &w->terms.lens,
        &w->terms.bytes, &w->doc_ids.lens, &w->doc_ids.bytes, &w->titles.lens,   &w->titles.bytes,   &w->text_frames,
        &w->text,        &w->units,        &w->positions,     &w->position_ends, &w->title_positions,
        &w->field_ends,  &w->field_wraps,  &w->field_tfs};
    _Static_assert(sizeof all / sizeof *all == N_SPOOLS, "all spools");
    memcpy(spools, all, sizeof all);
}

gx_status gx_writer_open(gx_writer **out, const char *path, const gx_writer_options *opt, gx_error *err)
{
    *out = NULL;
    gx_status st = check_options(opt, path, err);
    if (st != GX_OK)
        return st;
    gx_writer *w = calloc(1, sizeof *w);
    if (!w)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    w->path = strdup(path);
    w->dir = gx_directory_of(path);
    gx_spool *spools[N_SPOOLS];
    list_spools(w, spools);
    for (size_t i = 0; i < N_SPOOLS; ++i)
        *spools[i] = gx_spool_make(w->dir);
    w->counts = (gx_writer_totals){0};
    w->store_text = opt->store_text;
    w->impacts = opt->impacts;
    w->list_units = opt->list_units;
    w->with_positions = opt->positions;
    w->unnamed = opt->unnamed;
    w->threads = opt->threads ? opt->threads : 1;
    w->unit = 1;
    w->docids = opt->docids;
    w->tfs = opt->tfs ? opt->tfs : opt->docids;
    w->block_len = w->docids->block_len;
    w->n_docs_announced = opt->n_docs;
    w->columns = opt->columns;
    w->n_fields = opt->n_fields;
    w->fields_in_texts = opt->fields_in_texts;
    gx_list_encoder_open(&w->encoder, w->docids, w->tfs, 0);
    w->encoder.with_positions = w->with_positions;
    w->encoder.n_fields = w->n_fields;
    if (w->docids != &gx_codec_auto && w->tfs != &gx_codec_auto)
        w->codings[w->n_codings++] = (gx_coding){w->docids->id, w->tfs->id};
    if (!w->path || !w->dir)
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK)
        st = fill_uuid(w->uuid, opt->uuid, err);
    if (st == GX_OK)
        st = gx_section_writer_open(&w->sections, w->path, opt->place,
                                    (opt->force ? GX_ATOMIC_FILE_FORCE : 0u) |
                                        (opt->unnamed ? GX_ATOMIC_FILE_UNNAMED : 0u),
                                    (w->columns ? 16 : 12) + 4 * gx_writer_has_many_sections(w), err);
    if (st == GX_OK)
        st = gx_section_writer_begin(w->sections, GX_SEC_PAYLOAD, 0, err);
    if (st == GX_OK && w->store_text && !(w->frame.zstd = ZSTD_createCCtx()))
        st = gx_fail(err, GX_ENOMEM, "out of memory for zstd");
    if (st == GX_OK)
        *out = w;
    else
        gx_writer_close(w);
    return st;
}

void gx_writer_close(gx_writer *w)
{
    if (!w)
        return;
    gx_spool *spools[N_SPOOLS];
    list_spools(w, spools);
    for (size_t i = 0; i < N_SPOOLS; ++i)
        gx_spool_free(spools[i]);
    gx_section_writer_close(w->sections);
    ZSTD_freeCCtx(w->frame.zstd);
    free(w->frame.ends);
    free(w->frame.bytes);
    free(atomic_load(&w->field_lens));
    free(w->field_positions);
    free(w->term_hashes);
    free(w->position_wraps);
    free(w->last_term);
    gx_list_encoder_close(&w->encoder);
    free(w->path);
    free(w->dir);
    free(w);
}

/* ---- the end ---- */

static gx_status check_meta(const char *meta, gx_error *err)
{
    json_error_t why;
    errno = 0; /* jansson does not tell, but malloc does, if memory is short */
    json_t *root = gx_json_load(meta, strlen(meta), JSON_REJECT_DUPLICATES, &why);
    gx_status st = GX_OK;
    if (!root && errno == ENOMEM)
        st = gx_fail(err, GX_ENOMEM, "no memory for the description");
    else if (!root)
        st = gx_fail(err, GX_EUSAGE, "the description for META is no JSON: %s (byte %d)", why.text, why.position);
    else if (!json_is_object(json_object_get(root, "analyzer")))
        st = gx_fail(err, GX_EUSAGE, "the description for META has no object \"analyzer\"");
    json_decref(root);
    return st;
}

gx_status gx_writer_finish(gx_writer *w, const char *meta, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return gx_writer_repeat_failure(w, err);
    gx_status st = check_meta(meta, &words);
    if (st == GX_OK && w->n_docs_announced && w->counts.n_docs < w->n_docs_announced)
        st = gx_fail(&words, GX_EUSAGE, "%s was to have %u documents; %u were added", w->path, w->n_docs_announced,
                     w->counts.n_docs);
    if (st == GX_OK)
        st = gx_writer_write_sections(w->sections, w, meta, &words);
    if (st == GX_OK) {
        gx_header h = {.block_len = w->block_len,
                       .n_docs = w->counts.n_docs,
                       .n_terms = w->counts.n_terms,
                       .n_postings = w->counts.n_postings,
                       .n_tokens = w->counts.n_tokens,
                       .sum_tfs = w->sum_tfs,
                       .n_blocks = w->counts.n_blocks,
                       .flags = (w->impacts ? GX_HEADER_IMPACTS : 0u) | (w->with_positions ? GX_HEADER_POSITIONS : 0u) |
                                (w->n_fields ? GX_HEADER_FIELDS : 0u)};
        if (w->impacts && !w->list_units && w->unit != 1) {
            h.flags |= GX_HEADER_UNIT;
            h.impact_unit = w->unit;
        }
        if (w->n_codings == 0) /* no list has chosen */
            w->codings[w->n_codings++] = (gx_coding){GX_CODEC_GPUBP128, GX_CODEC_GPUBP128};
        memcpy(h.codings, w->codings, w->n_codings * sizeof *w->codings);
        memcpy(h.uuid, w->uuid, sizeof h.uuid);
        st = gx_section_writer_finish(w->sections, &h, w->unnamed, &words);
    }
    if (st == GX_OK) /* a second call finds this */
        gx_fail(&w->failed, GX_EUSAGE, "%s is finished already", w->path);
    return st == GX_OK ? GX_OK : gx_writer_record_failure(w, st, &words, err);
}

gx_status gx_writer_finish_with(gx_writer *w, const gx_analyzer *an, gx_error *err)
{
    static const gx_analyzer_options whitespace = {.name = "whitespace"};
    gx_analyzer *made = NULL;
    gx_error words;
    gx_status st = an ? GX_OK : gx_analyzer_open(&made, &whitespace, &words);
    if (st != GX_OK)
        return gx_writer_record_failure(w, st, &words, err);
    char *json = gx_analyzer_json(an ? an : made), *meta = NULL;
    gx_analyzer_close(made);
    if (json && asprintf(&meta, "{\"analyzer\":%s}", json) < 0)
        meta = NULL;
    if (!meta)
        st = gx_writer_record_failure(w, gx_fail(&words, GX_ENOMEM, "out of memory"), &words, err);
    else
        st = gx_writer_finish(w, meta, err);
    free(json);
    free(meta);
    return st;
}

void gx_writer_keep_unnamed(gx_writer *w)
{
    w->unnamed = true;
}

char *gx_writer_unnamed_path(const gx_writer *w)
{
    return gx_section_writer_unnamed_path(w->sections);
}
