#include "index/build/writer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "codecs/auto_codec.h"
#include "engine/grow.h"
#include "engine/parallel.h"
#include "engine/spool.h"
#include "engine/status.h"
#include "engine/temporary_file.h"
#include "index/build/list_encoder.h"
#include "index/build/section_writer.h"
#include "index/format.h"

#define FRAME_BYTES (64u << 10) /* of texts, before compression */
#define TEXT_LEVEL 3            /* zstd's */
#define ENTRIES_AT_ONCE 1024u   /* of lists */

/* Strings on their way into a strings section. */
typedef struct spooled_strings {
    gx_spool lens, bytes;
} spooled_strings;

/* Texts of the frame that is being filled. */
typedef struct frame {
    uint32_t *ends;
    char *bytes;
    size_t n, max_ends, n_bytes, max_bytes;
    uint32_t first_doc;
    ZSTD_CCtx *zstd;
} frame;

typedef struct totals {
    uint32_t n_docs, n_terms;
    uint64_t n_postings, n_tokens, n_blocks;
} totals;

struct gx_writer {
    char *path, *dir;
    bool unnamed, store_text, impacts, list_units, any_title, finished;
    uint32_t threads;
    double unit;
    const gx_codec *docids, *tfs; /* gx_codec_auto: a list's own */
    gx_coding codings[GX_MAX_CODINGS];
    uint32_t n_codings, block_len;
    uint32_t n_docs_announced; /* 0: lists come after all documents */
    uint8_t uuid[16];
    totals counts; /* so far */
    uint64_t sum_tfs;

    gx_columns *columns;         /* not the writer's own */
    gx_section_writer *sections; /* the output; the payload goes there at once, the rest is spooled until finish */
    gx_spool lists, heads, docid_ends, tf_ends, doc_lens, units;
    spooled_strings terms, doc_ids, titles;
    gx_spool text_frames, text;
    frame frame;

    uint32_t *term_hashes; /* [n_terms] low halves */
    size_t max_term_hashes;
    char *last_term;
    size_t last_term_len, max_last_term;
    gx_list_encoder encoder; /* a list that is given by itself */

    gx_error failed; /* the first failure's words, status GX_OK: none yet */
};

static gx_status repeat_failure(gx_writer *w, gx_error *err)
{
    return gx_fail(err, w->failed.status, "%s", w->failed.text);
}

/* Every failing path of the public functions ends here: the first failure is kept. */
static gx_status record_failure(gx_writer *w, gx_status st, const gx_error *words, gx_error *err)
{
    if (st == GX_OK)
        return GX_OK;
    w->failed = *words;
    w->failed.status = st;
    return repeat_failure(w, err);
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

/* A file with units and texts has a section table that is so long that the sections behind it begin
 * 256 bytes later. Whether there are titles and bitmap columns is not known when the first of them
 * begins, so such a file always has a section of titles and, with attributes, one of bitmaps. */
static bool many_sections(const gx_writer *w)
{
    return w->list_units && w->store_text;
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
    gx_spool *const spools[] = {&w->lists,        &w->heads,       &w->docid_ends,   &w->tf_ends,       &w->doc_lens,
                                &w->terms.lens,   &w->terms.bytes, &w->doc_ids.lens, &w->doc_ids.bytes, &w->titles.lens,
                                &w->titles.bytes, &w->text_frames, &w->text,         &w->units};
    for (size_t i = 0; i < sizeof spools / sizeof *spools; ++i)
        *spools[i] = gx_spool_make(w->dir);
    w->counts = (totals){0};
    w->store_text = opt->store_text;
    w->impacts = opt->impacts;
    w->list_units = opt->list_units;
    w->threads = opt->threads ? opt->threads : 1;
    w->unit = 1;
    w->docids = opt->docids;
    w->tfs = opt->tfs ? opt->tfs : opt->docids;
    w->block_len = w->docids->block_len;
    w->n_docs_announced = opt->n_docs;
    w->columns = opt->columns;
    gx_list_encoder_open(&w->encoder, w->docids, w->tfs, 0);
    if (w->docids != &gx_codec_auto && w->tfs != &gx_codec_auto)
        w->codings[w->n_codings++] = (gx_coding){w->docids->id, w->tfs->id};
    if (!w->path || !w->dir)
        st = gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK)
        st = fill_uuid(w->uuid, opt->uuid, err);
    if (st == GX_OK)
        st = gx_section_writer_open(&w->sections, w->path, opt->force, (w->columns ? 16 : 12) + 4 * many_sections(w),
                                    err);
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
    gx_spool *const spools[] = {&w->lists,        &w->heads,       &w->docid_ends,   &w->tf_ends,       &w->doc_lens,
                                &w->terms.lens,   &w->terms.bytes, &w->doc_ids.lens, &w->doc_ids.bytes, &w->titles.lens,
                                &w->titles.bytes, &w->text_frames, &w->text,         &w->units};
    for (size_t i = 0; i < sizeof spools / sizeof *spools; ++i)
        gx_spool_free(spools[i]);
    gx_section_writer_close(w->sections);
    ZSTD_freeCCtx(w->frame.zstd);
    free(w->frame.ends);
    free(w->frame.bytes);
    free(w->term_hashes);
    free(w->last_term);
    gx_list_encoder_close(&w->encoder);
    free(w->path);
    free(w->dir);
    free(w);
}

/* ---- documents ---- */

/* What docids are below while lists are added. */
static uint32_t n_docs(const gx_writer *w)
{
    return w->n_docs_announced ? w->n_docs_announced : w->counts.n_docs;
}

static gx_status add_string(spooled_strings *p, const char *bytes, size_t len, gx_error *err)
{
    const gx_status st = gx_spool_u32(&p->lens, (uint32_t)len, err);
    return st == GX_OK ? gx_spool_add(&p->bytes, bytes, len, err) : st;
}

/* Compress the frame and begin the next. */
static gx_status end_frame(gx_writer *w, gx_error *err)
{
    frame *f = &w->frame;
    if (f->n == 0)
        return GX_OK;
    const size_t raw = f->n * sizeof *f->ends + f->n_bytes;
    const gx_text_frame entry = {gx_spool_bytes(&w->text), f->first_doc, (uint32_t)raw};
    char *whole = malloc(raw);
    if (!whole)
        return gx_fail(err, GX_ENOMEM, "out of memory: %zu bytes of text", raw);
    memcpy(whole, f->ends, f->n * sizeof *f->ends);
    if (f->n_bytes)
        memcpy(whole + f->n * sizeof *f->ends, f->bytes, f->n_bytes);
    uint8_t *room;
    const size_t bound = ZSTD_compressBound(raw);
    gx_status st = gx_spool_add(&w->text_frames, &entry, sizeof entry, err);
    if (st == GX_OK)
        st = gx_spool_reserve(&w->text, bound, &room, err);
    if (st == GX_OK) {
        const size_t n = ZSTD_compressCCtx(f->zstd, room, bound, whole, raw, TEXT_LEVEL);
        if (ZSTD_isError(n))
            st = gx_fail(err, GX_ENOMEM, "cannot compress %zu bytes of text: %s", raw, ZSTD_getErrorName(n));
        else
            gx_spool_commit(&w->text, n);
    }
    free(whole);
    f->n = f->n_bytes = 0;
    return st;
}

static gx_status add_text(gx_writer *w, const char *text, size_t len, gx_error *err)
{
    frame *f = &w->frame;
    if (len > GX_MAX_TEXT)
        return gx_fail(err, GX_EUSAGE, "document %u has a text of %zu bytes; the most that is stored is %u",
                       w->counts.n_docs, len, GX_MAX_TEXT);
    if (f->n == 0)
        f->first_doc = w->counts.n_docs;
    gx_status st = gx_grow(&f->ends, &f->max_ends, f->n + 1, sizeof *f->ends, err);
    if (st == GX_OK)
        st = gx_grow(&f->bytes, &f->max_bytes, f->n_bytes + len, 1, err);
    if (st != GX_OK)
        return st;
    if (len)
        memcpy(f->bytes + f->n_bytes, text, len);
    f->n_bytes += len;
    f->ends[f->n++] = (uint32_t)f->n_bytes;
    return f->n * sizeof *f->ends + f->n_bytes >= FRAME_BYTES ? end_frame(w, err) : GX_OK;
}

static gx_status add_document(gx_writer *w, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    const uint32_t docid = w->counts.n_docs;
    if (w->counts.n_terms && !w->n_docs_announced)
        return gx_fail(err, GX_EUSAGE, "a document is added after the first list");
    if (w->n_docs_announced && docid == w->n_docs_announced)
        return gx_fail(err, GX_EUSAGE, "%s was to have %u documents; another is added", w->path, w->n_docs_announced);
    if (docid == UINT32_MAX - 1)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u documents", w->path, UINT32_MAX - 1);
    if (doc->id_len > GX_MAX_STRING || doc->title_len > GX_MAX_STRING)
        return gx_fail(err, GX_EUSAGE, "document %u has %s of %zu bytes; the most is %u", docid,
                       doc->id_len > GX_MAX_STRING ? "an id" : "a title",
                       doc->id_len > GX_MAX_STRING ? doc->id_len : doc->title_len, GX_MAX_STRING);
    gx_status st = add_string(&w->doc_ids, doc->id, doc->id_len, err);
    if (st == GX_OK)
        st = add_string(&w->titles, doc->title, doc->title_len, err);
    if (st == GX_OK && w->store_text)
        st = add_text(w, doc->text, doc->text_len, err);
    if (st == GX_OK)
        st = gx_spool_u32(&w->doc_lens, n_tokens, err);
    if (st != GX_OK)
        return st;
    w->any_title |= doc->title_len > 0;
    w->counts.n_tokens += n_tokens;
    w->counts.n_docs = docid + 1;
    return GX_OK;
}

gx_status gx_writer_add_document(gx_writer *w, const gx_document *doc, uint32_t n_tokens, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return repeat_failure(w, err);
    return record_failure(w, add_document(w, doc, n_tokens, &words), &words, err);
}

static bool append_string(char **strings, size_t *n, size_t *max, const char *p, size_t len)
{
    if (!gx_reserve(strings, max, *n + len + 1, 1))
        return false;
    if (len)
        memcpy(*strings + *n, p, len);
    *n += len;
    return true;
}

bool gx_document_pack_add(gx_document_pack *p, const gx_document *doc, uint32_t n_tokens)
{
    if (!gx_reserve(&p->id_lens, &p->max_id_lens, p->n + (size_t)1, sizeof *p->id_lens) ||
        !gx_reserve(&p->title_lens, &p->max_title_lens, p->n + (size_t)1, sizeof *p->title_lens) ||
        !gx_reserve(&p->n_tokens, &p->max_n_tokens, p->n + (size_t)1, sizeof *p->n_tokens) ||
        !append_string(&p->ids, &p->n_ids, &p->max_ids, doc->id, doc->id_len) ||
        !append_string(&p->titles, &p->n_titles, &p->max_titles, doc->title, doc->title_len))
        return false;
    p->id_lens[p->n] = (uint32_t)doc->id_len;
    p->title_lens[p->n] = (uint32_t)doc->title_len;
    p->n_tokens[p->n++] = n_tokens;
    p->sum_tokens += n_tokens;
    return true;
}

void gx_document_pack_clear(gx_document_pack *p)
{
    p->n = 0;
    p->n_ids = p->n_titles = 0;
    p->sum_tokens = 0;
}

void gx_document_pack_free(gx_document_pack *p)
{
    free(p->id_lens);
    free(p->title_lens);
    free(p->n_tokens);
    free(p->ids);
    free(p->titles);
    *p = (gx_document_pack){0};
}

static gx_status add_strings(spooled_strings *to, const uint32_t *lens, uint32_t n, const char *bytes, size_t n_bytes,
                             gx_error *err)
{
    const gx_status st = gx_spool_add(&to->lens, lens, n * sizeof *lens, err);
    return st == GX_OK ? gx_spool_add(&to->bytes, bytes, n_bytes, err) : st;
}

static gx_status add_pack(gx_writer *w, const gx_document_pack *p, gx_error *err)
{
    assert(!w->store_text && !w->n_docs_announced);
    if (w->counts.n_terms)
        return gx_fail(err, GX_EUSAGE, "documents are added after the first list");
    if (p->n > UINT32_MAX - 1 - w->counts.n_docs)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u documents", w->path, UINT32_MAX - 1);
    gx_status st = add_strings(&w->doc_ids, p->id_lens, p->n, p->ids, p->n_ids, err);
    if (st == GX_OK)
        st = add_strings(&w->titles, p->title_lens, p->n, p->titles, p->n_titles, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->doc_lens, p->n_tokens, p->n * sizeof *p->n_tokens, err);
    if (st != GX_OK)
        return st;
    w->any_title |= p->n_titles > 0;
    w->counts.n_tokens += p->sum_tokens;
    w->counts.n_docs += p->n;
    return GX_OK;
}

gx_status gx_writer_add_pack(gx_writer *w, const gx_document_pack *p, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return repeat_failure(w, err);
    return record_failure(w, add_pack(w, p, &words), &words, err);
}

/* ---- lists ---- */

/* The place of a pair of codecs in the header's table, which takes it up if it is new. */
static uint8_t coding_of(gx_writer *w, const gx_codec *docids, const gx_codec *tfs)
{
    _Static_assert(GX_MAX_CHOICES * GX_MAX_CHOICES <= GX_MAX_CODINGS, "every pair of candidates has a place");
    uint32_t i = 0;
    while (i < w->n_codings && (w->codings[i].docids != docids->id || w->codings[i].tfs != tfs->id))
        ++i;
    if (i == w->n_codings)
        w->codings[w->n_codings++] = (gx_coding){docids->id, tfs->id};
    return (uint8_t)i;
}

static gx_status fail_order(const char *last, size_t last_len, const char *term, size_t len, gx_error *err)
{
    char a[64], b[64];
    return gx_fail(err, GX_EUSAGE, "terms out of order: '%s' after '%s'", gx_show_term(term, len, a),
                   gx_show_term(last, last_len, b));
}

/* Check that the encoder's terms rise, and come behind those that the file has. */
static gx_status check_order(const gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    const size_t len = c->lists[0].term_len;
    if (w->counts.n_terms && !gx_terms_rise(w->last_term, w->last_term_len, c->terms, len))
        return fail_order(w->last_term, w->last_term_len, c->terms, len, err);
    if (c->fall == 0)
        return GX_OK;
    const char *last = c->terms;
    for (size_t i = 0; i + 1 < c->fall; ++i)
        last += c->lists[i].term_len;
    const size_t last_len = c->lists[c->fall - 1].term_len;
    return fail_order(last, last_len, last + last_len, c->lists[c->fall].term_len, err);
}

/* Whether the file can take the encoder's lists. */
static gx_status check_lists(const gx_writer *w, const gx_list_encoder *c, uint64_t payload, gx_error *err)
{
    if (c->n_lists > UINT32_MAX / 2 - w->counts.n_terms)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u terms", w->path, UINT32_MAX / 2);
    if (w->counts.n_blocks + c->n_blocks > UINT32_MAX || (payload + c->n_words) >> 40)
        return gx_fail(err, GX_EUSAGE, "%s would have more than 2^32 blocks or 2^40 words", w->path);
    return check_order(w, c, err);
}

/* Keep the last of the encoder's terms, and the hashes of all. */
static gx_status keep_terms(gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    const size_t len = c->lists[c->n_lists - 1].term_len, n_terms = w->counts.n_terms;
    gx_status st = gx_grow(&w->last_term, &w->max_last_term, len + 1, 1, err);
    if (st == GX_OK)
        st = gx_grow(&w->term_hashes, &w->max_term_hashes, n_terms + c->n_lists, sizeof *w->term_hashes, err);
    if (st != GX_OK)
        return st;
    if (len) /* the first term may be empty, and the terms NULL */
        memcpy(w->last_term, c->terms + c->n_terms - len, len);
    w->last_term_len = len;
    memcpy(w->term_hashes + n_terms, c->hashes, c->n_lists * sizeof *c->hashes);
    return gx_spool_add(&w->terms.bytes, c->terms, c->n_terms, err);
}

/* Write the entries of lists[n] to the spools; *payload and the counts go on. */
static gx_status add_entries(gx_writer *w, const gx_encoded_list *lists, size_t n, uint64_t *payload, gx_error *err)
{
    uint8_t *entries, *lens;
    gx_status st = gx_spool_reserve(&w->lists, n * sizeof(gx_list_entry), &entries, err);
    if (st == GX_OK)
        st = gx_spool_reserve(&w->terms.lens, n * sizeof(uint32_t), &lens, err);
    for (size_t i = 0; i < n && st == GX_OK; ++i) {
        const gx_encoded_list *l = &lists[i];
        const gx_list_entry entry = {.df = l->df,
                                     .first_block = (uint32_t)w->counts.n_blocks,
                                     .payload_lo = (uint32_t)*payload,
                                     .payload_hi = (uint8_t)(*payload >> 32),
                                     .coding = coding_of(w, l->docids, l->tfs),
                                     .docid_param = l->docid_param,
                                     .tf_param = l->tf_param};
        memcpy(entries + i * sizeof entry, &entry, sizeof entry);
        memcpy(lens + i * sizeof l->term_len, &l->term_len, sizeof l->term_len);
        const float unit = l->unit > 0 ? l->unit : 1;
        if (w->list_units)
            st = gx_spool_add(&w->units, &unit, sizeof unit, err);
        *payload += l->n_words;
        w->counts.n_blocks += ((uint64_t)l->df + w->block_len - 1) / w->block_len;
        w->counts.n_postings += l->df;
        w->sum_tfs += l->sum_tfs;
    }
    if (st != GX_OK)
        return st;
    gx_spool_commit(&w->lists, n * sizeof(gx_list_entry));
    gx_spool_commit(&w->terms.lens, n * sizeof(uint32_t));
    w->counts.n_terms += (uint32_t)n;
    return GX_OK;
}

static gx_status add_encoded_lists(gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    uint64_t payload = gx_section_writer_section_bytes(w->sections) / sizeof(uint32_t);
    if (c->n_lists == 0)
        return GX_OK;
    gx_status st = check_lists(w, c, payload, err);
    if (st == GX_OK)
        st = keep_terms(w, c, err);
    for (size_t i = 0, some; i < c->n_lists && st == GX_OK; i += some) {
        some = c->n_lists - i < ENTRIES_AT_ONCE ? c->n_lists - i : ENTRIES_AT_ONCE;
        st = add_entries(w, c->lists + i, some, &payload, err);
    }
    if (st == GX_OK)
        st = gx_section_writer_add(w->sections, c->words, c->n_words * sizeof *c->words, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->heads, c->heads, c->n_blocks * sizeof *c->heads, err);
    if (st == GX_OK)
        st = gx_spool_add(&w->docid_ends, c->docid_ends, c->n_blocks * sizeof *c->docid_ends, err);
    return st == GX_OK ? gx_spool_add(&w->tf_ends, c->tf_ends, c->n_blocks * sizeof *c->tf_ends, err) : st;
}

void gx_writer_open_encoded(const gx_writer *w, gx_list_encoder *c)
{
    gx_list_encoder_open(c, w->docids, w->tfs, n_docs(w));
}

gx_status gx_writer_add_encoded(gx_writer *w, gx_list_encoder *c, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return repeat_failure(w, err);
    const gx_status st = add_encoded_lists(w, c, &words);
    gx_list_encoder_clear(c);
    return record_failure(w, st, &words, err);
}

gx_status gx_writer_add_postings(gx_writer *w, const gx_term_postings *list, gx_error *err)
{
    gx_error words;
    if (w->failed.status != GX_OK)
        return repeat_failure(w, err);
    w->encoder.n_docs = n_docs(w);
    gx_status st = gx_list_encoder_add(&w->encoder, list, &words);
    if (st == GX_OK)
        st = add_encoded_lists(w, &w->encoder, &words);
    gx_list_encoder_clear(&w->encoder);
    return record_failure(w, st, &words, err);
}

gx_status gx_writer_add_list(gx_writer *w, const char *term, size_t len, uint32_t df, const uint32_t *docids,
                             const uint32_t *tfs, gx_error *err)
{
    const gx_term_postings list = {.term = term, .len = len, .df = df, .docids = docids, .tfs = tfs};
    return gx_writer_add_postings(w, &list, err);
}

void gx_writer_set_unit(gx_writer *w, double unit)
{
    w->unit = unit;
}

/* ---- the sections, put together ---- */

/* A section behind the payload: a head, and then what a spool holds. */
typedef struct section_job {
    gx_writer *w;
    uint32_t kind;
    uint64_t param, head_bytes;
    const gx_spool *tail;           /* or NULL */
    const spooled_strings *strings; /* whose ends are the head; NULL: the head is by the kind */
    const char *meta;               /* of GX_SEC_META */
    gx_section *section;
} section_job;

/* What a thread does of a section. */
typedef struct section_task {
    const section_job *job;
    gx_section_part part;
    bool head;
    uint64_t from, n; /* of the tail */
    gx_status st;
    gx_error err;
} section_task;

static uint64_t count_strings(const spooled_strings *p)
{
    return gx_spool_bytes(&p->lens) / sizeof(uint32_t);
}

static uint32_t width_of(const spooled_strings *p)
{
    return gx_spool_bytes(&p->bytes) > UINT32_MAX ? 8 : 4;
}

static section_job spool_job(uint32_t kind, const gx_spool *spool)
{
    return (section_job){.kind = kind, .tail = spool};
}

static section_job strings_job(uint32_t kind, const spooled_strings *p)
{
    const uint32_t width = width_of(p);
    return (section_job){
        .kind = kind, .param = width, .head_bytes = (count_strings(p) + 1) * width, .tail = &p->bytes, .strings = p};
}

static uint64_t tail_bytes(const section_job *j)
{
    return j->tail ? gx_spool_bytes(j->tail) : 0;
}

#define LENGTHS_AT_ONCE 8192u
_Static_assert(LENGTHS_AT_ONCE * sizeof(uint64_t) <= GX_SECTION_WRITER_RESERVE, "their ends are reserved at once");

/* Write where each string ends. */
static gx_status write_ends(gx_section_writer *s, const spooled_strings *p, gx_error *err)
{
    const uint64_t n = count_strings(p);
    const uint32_t width = width_of(p);
    uint32_t lens[LENGTHS_AT_ONCE];
    uint64_t end = 0;
    gx_status st = gx_section_writer_add(s, &end, width, err);
    for (uint64_t at = 0; at < n && st == GX_OK;) {
        const size_t some = n - at < LENGTHS_AT_ONCE ? (size_t)(n - at) : LENGTHS_AT_ONCE;
        uint8_t *room;
        st = gx_spool_read(&p->lens, at * sizeof *lens, lens, some * sizeof *lens, err);
        if (st == GX_OK)
            st = gx_section_writer_reserve(s, some * width, &room, err);
        for (size_t i = 0; i < some && st == GX_OK; ++i) {
            end += lens[i];
            memcpy(room + i * width, &end, width); /* little-endian: the low bytes come first */
        }
        if (st == GX_OK)
            gx_section_writer_commit(s, some * width);
        at += some;
    }
    return st;
}

/* Which slots of the lexicon's table are taken: level 0 has a bit a slot, a level above a bit for
 * each word below whose bits are all set. With it a free slot is found in a few steps, however many
 * terms have the same hash. */
#define SLOT_LEVELS 6

typedef struct taken_slots {
    uint64_t *levels[SLOT_LEVELS], n_words[SLOT_LEVELS];
    uint32_t n;
} taken_slots;

static bool open_taken_slots(taken_slots *t, uint64_t slots)
{
    *t = (taken_slots){.n = 0};
    for (uint64_t bits = slots, words; t->n == 0 || bits > 1; bits = words) {
        words = (bits + 63) / 64;
        uint64_t *level = t->levels[t->n] = calloc(words, sizeof *level);
        if (!level)
            return false;
        if (bits % 64) /* bits of nothing count as taken */
            level[words - 1] = UINT64_MAX << bits % 64;
        t->n_words[t->n++] = words;
    }
    return true;
}

static void close_taken_slots(taken_slots *t)
{
    for (uint32_t i = 0; i < t->n; ++i)
        free(t->levels[i]);
}

/* The first free slot from this one on, or UINT64_MAX. */
static uint64_t find_free_slot(const taken_slots *t, uint64_t slot)
{
    uint32_t level = 0;
    for (uint64_t at = slot; level < t->n && at / 64 < t->n_words[level]; ++level) {
        const uint64_t free_bits = ~t->levels[level][at / 64] & UINT64_MAX << at % 64;
        if (!free_bits) {
            at = at / 64 + 1;
            continue;
        }
        at = at / 64 * 64 + (uint64_t)__builtin_ctzll(free_bits);
        while (level--)
            at = at * 64 + (uint64_t)__builtin_ctzll(~t->levels[level][at]);
        return at;
    }
    return UINT64_MAX;
}

static void take_slot(taken_slots *t, uint64_t slot)
{
    for (uint32_t level = 0; level < t->n; ++level, slot /= 64)
        if (~(t->levels[level][slot / 64] |= (uint64_t)1 << slot % 64))
            return;
}

/* The binary logarithm of the slots of the lexicon's table, at most two thirds of which are taken. */
static uint32_t term_hash_bits(uint64_t n_terms)
{
    uint32_t bits = 0;
    while ((uint64_t)1 << bits < n_terms + n_terms / 2 + 1)
        ++bits;
    return bits;
}

static gx_status write_term_hash(gx_section_writer *s, const gx_writer *w, gx_error *err)
{
    const uint32_t n = w->counts.n_terms;
    const uint64_t slots = (uint64_t)1 << term_hash_bits(n);
    uint32_t *table = calloc(slots, sizeof *table);
    taken_slots taken = {.n = 0};
    if (!table || !open_taken_slots(&taken, slots)) {
        free(table);
        close_taken_slots(&taken);
        return gx_fail(err, GX_ENOMEM, "out of memory: a table of %llu terms", (unsigned long long)slots);
    }
    for (uint32_t term = 0; term < n; ++term) {
        uint64_t slot = w->term_hashes[term] & (slots - 1);
        if (table[slot] && ((slot = find_free_slot(&taken, slot)) >= slots))
            slot = find_free_slot(&taken, 0);
        take_slot(&taken, slot);
        table[slot] = term + 1;
    }
    close_taken_slots(&taken);
    const gx_status st = gx_section_writer_add(s, table, slots * sizeof *table, err);
    free(table);
    return st;
}

static gx_status write_text_frames(gx_section_writer *s, const gx_writer *w, gx_error *err)
{
    const gx_text_frame last = {gx_spool_bytes(&w->text), w->counts.n_docs, 0};
    const gx_status st = gx_section_writer_add_spool(s, &w->text_frames, err);
    return st == GX_OK ? gx_section_writer_add(s, &last, sizeof last, err) : st;
}

static gx_status write_head(gx_section_writer *s, const section_job *j, gx_error *err)
{
    return j->strings                    ? write_ends(s, j->strings, err)
           : j->kind == GX_SEC_TERM_HASH ? write_term_hash(s, j->w, err)
           : j->kind == GX_SEC_TEXT      ? write_text_frames(s, j->w, err)
           : j->kind == GX_SEC_META      ? gx_section_writer_add(s, j->meta, strlen(j->meta), err)
                                         : GX_OK;
}

static void run_task(void *user, uint32_t i)
{
    section_task *t = (section_task *)user + i;
    const section_job *j = t->job;
    gx_section_writer *part;
    t->st = gx_section_writer_open_part(&part, j->w->sections, j->section, t->part,
                                        t->head ? 0 : j->head_bytes + t->from, &t->err);
    if (t->st == GX_OK && t->head)
        t->st = write_head(part, j, &t->err);
    if (t->st == GX_OK && t->n)
        t->st = gx_section_writer_add_spooled(part, j->tail, t->from, t->n, &t->err);
    if (t->st == GX_OK)
        t->st = gx_section_writer_join(part, &t->err);
    gx_section_writer_close_part(part);
}

#define MAX_JOBS 16u
#define SLICE_BYTES ((uint64_t)8 << 20)
#define MAX_SLICES 16u /* of a section */

/* The sections behind the payload, in their order in the file. Returns their number. */
static uint32_t list_jobs(gx_writer *w, const char *meta, section_job jobs[MAX_JOBS])
{
    const uint32_t hash_bits = term_hash_bits(w->counts.n_terms);
    const uint64_t n_frames = gx_spool_bytes(&w->text_frames) / sizeof(gx_text_frame);
    uint32_t n = 0;
    jobs[n++] = spool_job(GX_SEC_LISTS, &w->lists);
    jobs[n++] = spool_job(GX_SEC_HEADS, &w->heads);
    jobs[n++] = spool_job(GX_SEC_DOCID_ENDS, &w->docid_ends);
    jobs[n++] = spool_job(GX_SEC_TF_ENDS, &w->tf_ends);
    jobs[n++] = spool_job(GX_SEC_DOC_LENS, &w->doc_lens);
    jobs[n++] = (section_job){.kind = GX_SEC_META, .head_bytes = strlen(meta), .meta = meta};
    jobs[n++] = strings_job(GX_SEC_TERMS, &w->terms);
    jobs[n++] = (section_job){
        .kind = GX_SEC_TERM_HASH, .param = hash_bits, .head_bytes = sizeof(uint32_t) * ((uint64_t)1 << hash_bits)};
    jobs[n++] = strings_job(GX_SEC_DOC_IDS, &w->doc_ids);
    if (w->list_units)
        jobs[n++] = spool_job(GX_SEC_UNITS, &w->units);
    if (w->any_title || many_sections(w))
        jobs[n++] = strings_job(GX_SEC_TITLES, &w->titles);
    if (w->store_text)
        jobs[n++] = (section_job){.kind = GX_SEC_TEXT,
                                  .param = n_frames,
                                  .head_bytes = (n_frames + 1) * sizeof(gx_text_frame),
                                  .tail = &w->text};
    for (uint32_t i = 0; i < n; ++i)
        jobs[i].w = w;
    return n;
}

/* The tasks of a section: one for all, or, if it is large and there are threads, one for its
 * checksum, and slices. Returns their number. */
static uint32_t list_tasks(const section_job *j, section_task tasks[MAX_SLICES + 2])
{
    const uint64_t bytes = tail_bytes(j);
    if (j->w->threads == 1 || bytes < 2 * SLICE_BYTES) {
        tasks[0] = (section_task){.job = j, .part = GX_SECTION_WHOLE, .head = true, .n = bytes};
        return 1;
    }
    uint32_t n = 0;
    tasks[n++] = (section_task){.job = j, .part = GX_SECTION_HASH, .head = true, .n = bytes};
    tasks[n++] = (section_task){.job = j, .part = GX_SECTION_SLICE, .head = true};
    const uint64_t slice = bytes / MAX_SLICES < SLICE_BYTES ? SLICE_BYTES : bytes / MAX_SLICES + 1;
    for (uint64_t at = 0; at < bytes; at += slice)
        tasks[n++] = (section_task){
            .job = j, .part = GX_SECTION_SLICE, .from = at, .n = bytes - at < slice ? bytes - at : slice};
    return n;
}

static int largest_first(const void *a, const void *b)
{
    const section_task *x = a, *y = b;
    const uint64_t n = x->n + (x->head ? x->job->head_bytes : 0), m = y->n + (y->head ? y->job->head_bytes : 0);
    return (n < m) - (n > m);
}

/* Give each section its place in the file, then let threads put them together. */
static gx_status run_jobs(gx_section_writer *s, const gx_writer *w, section_job *jobs, uint32_t n, gx_error *err)
{
    gx_status st = GX_OK;
    uint32_t n_tasks = 0;
    section_task *tasks = calloc(MAX_JOBS * (MAX_SLICES + 2), sizeof *tasks);
    if (!tasks)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        section_job *j = &jobs[i];
        st = gx_section_writer_split(&j->section, s, j->kind, j->param, j->head_bytes + tail_bytes(j), err);
        if (st == GX_OK)
            n_tasks += list_tasks(j, tasks + n_tasks);
    }
    qsort(tasks, n_tasks, sizeof *tasks, largest_first);
    if (st == GX_OK && n && w->threads > 1)
        gx_section_writer_map(s, jobs[0].section);
    if (st == GX_OK)
        gx_parallel_for(w->threads, n_tasks, run_task, tasks);
    for (uint32_t i = 0; i < n_tasks && st == GX_OK; ++i)
        if (tasks[i].st != GX_OK)
            st = gx_fail(err, tasks[i].st, "%s", tasks[i].err.text);
    free(tasks);
    return st;
}

static gx_status write_sections(gx_section_writer *s, gx_writer *w, const char *meta, gx_error *err)
{
    static const uint8_t slack[GX_READ_SLACK];
    section_job jobs[MAX_JOBS];
    gx_status st = gx_section_writer_add(s, slack, sizeof slack, err); /* behind the payload */
    if (st == GX_OK && w->store_text)
        st = end_frame(w, err);
    if (st == GX_OK)
        st = run_jobs(s, w, jobs, list_jobs(w, meta, jobs), err);
    return st == GX_OK && w->columns ? gx_columns_write(w->columns, s, w->counts.n_docs, many_sections(w), err) : st;
}

static gx_status check_meta(const char *meta, gx_error *err)
{
    json_error_t why;
    errno = 0; /* jansson does not tell, but malloc does, if memory is short */
    json_t *root = json_loads(meta, JSON_REJECT_DUPLICATES, &why);
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
        return repeat_failure(w, err);
    gx_status st = check_meta(meta, &words);
    if (st == GX_OK && w->n_docs_announced && w->counts.n_docs < w->n_docs_announced)
        st = gx_fail(&words, GX_EUSAGE, "%s was to have %u documents; %u were added", w->path, w->n_docs_announced,
                     w->counts.n_docs);
    if (st == GX_OK)
        st = write_sections(w->sections, w, meta, &words);
    if (st == GX_OK) {
        gx_header h = {.block_len = w->block_len,
                       .n_docs = w->counts.n_docs,
                       .n_terms = w->counts.n_terms,
                       .n_postings = w->counts.n_postings,
                       .n_tokens = w->counts.n_tokens,
                       .sum_tfs = w->sum_tfs,
                       .n_blocks = w->counts.n_blocks,
                       .flags = w->impacts ? GX_HEADER_IMPACTS : 0};
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
    return st == GX_OK ? GX_OK : record_failure(w, st, &words, err);
}

gx_status gx_writer_finish_with(gx_writer *w, const gx_analyzer *an, gx_error *err)
{
    static const gx_analyzer_options whitespace = {.name = "whitespace"};
    gx_analyzer *made = NULL;
    gx_error words;
    gx_status st = an ? GX_OK : gx_analyzer_open(&made, &whitespace, &words);
    if (st != GX_OK)
        return record_failure(w, st, &words, err);
    char *json = gx_analyzer_json(an ? an : made), *meta = NULL;
    gx_analyzer_close(made);
    if (json && asprintf(&meta, "{\"analyzer\":%s}", json) < 0)
        meta = NULL;
    if (!meta)
        st = record_failure(w, gx_fail(&words, GX_ENOMEM, "out of memory"), &words, err);
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
