#include "index/build/writer.h"

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
#include "engine/hash.h"
#include "engine/spool.h"
#include "engine/status.h"
#include "engine/temporary_file.h"
#include "index/build/list_encoder.h"
#include "index/build/section_writer.h"
#include "index/format.h"

#define FRAME_BYTES (64u << 10) /* of texts, before compression */
#define TEXT_LEVEL 3            /* zstd's */

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

/* ---- lists ---- */

static gx_status add_term(gx_writer *w, const char *term, size_t len, gx_error *err)
{
    char a[64], b[64];
    if (w->counts.n_terms == UINT32_MAX / 2)
        return gx_fail(err, GX_EUSAGE, "%s would have more than %u terms", w->path, UINT32_MAX / 2);
    if (w->counts.n_terms) {
        const size_t common = len < w->last_term_len ? len : w->last_term_len;
        const int order = memcmp(w->last_term, term, common);
        if (order > 0 || (order == 0 && w->last_term_len >= len))
            return gx_fail(err, GX_EUSAGE, "terms out of order: '%s' after '%s'", gx_show_term(term, len, a),
                           gx_show_term(w->last_term, w->last_term_len, b));
    }
    gx_status st = gx_grow(&w->last_term, &w->max_last_term, len + 1, 1, err);
    if (st == GX_OK)
        st = gx_grow(&w->term_hashes, &w->max_term_hashes, (size_t)w->counts.n_terms + 1, sizeof *w->term_hashes, err);
    if (st == GX_OK)
        st = add_string(&w->terms, term, len, err);
    if (st != GX_OK)
        return st;
    if (len) /* the first term may be empty, and term NULL */
        memcpy(w->last_term, term, len);
    w->last_term_len = len;
    w->term_hashes[w->counts.n_terms] = (uint32_t)gx_hash(term, len);
    return GX_OK;
}

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

/* A encoded list's term and entry; *payload and the counts go on. */
static gx_status add_entry(gx_writer *w, const char *term, const gx_encoded_list *l, uint64_t *payload, gx_error *err)
{
    const uint64_t n_blocks = ((uint64_t)l->df + w->block_len - 1) / w->block_len;
    gx_status st = add_term(w, term, l->term_len, err);
    if (st != GX_OK)
        return st;
    if (w->counts.n_blocks + n_blocks > UINT32_MAX || *payload >> 40)
        return gx_fail(err, GX_EUSAGE, "%s would have more than 2^32 blocks or 2^40 words", w->path);
    const gx_list_entry entry = {.df = l->df,
                                 .first_block = (uint32_t)w->counts.n_blocks,
                                 .payload_lo = (uint32_t)*payload,
                                 .payload_hi = (uint8_t)(*payload >> 32),
                                 .coding = coding_of(w, l->docids, l->tfs),
                                 .docid_param = l->docid_param,
                                 .tf_param = l->tf_param};
    if ((st = gx_spool_add(&w->lists, &entry, sizeof entry, err)) != GX_OK)
        return st;
    const float unit = l->unit > 0 ? l->unit : 1;
    if (w->list_units && (st = gx_spool_add(&w->units, &unit, sizeof unit, err)) != GX_OK)
        return st;
    *payload += l->n_words;
    ++w->counts.n_terms;
    w->counts.n_blocks += n_blocks;
    w->counts.n_postings += l->df;
    w->sum_tfs += l->sum_tfs;
    return GX_OK;
}

static gx_status add_encoded_lists(gx_writer *w, const gx_list_encoder *c, gx_error *err)
{
    uint64_t payload = gx_section_writer_section_bytes(w->sections) / sizeof(uint32_t);
    const char *term = c->terms;
    gx_status st = GX_OK;
    for (size_t i = 0; i < c->n_lists && st == GX_OK; term += c->lists[i++].term_len)
        st = add_entry(w, term, &c->lists[i], &payload, err);
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

static gx_status write_spool_section(gx_section_writer *s, uint32_t kind, const gx_spool *from, uint64_t param,
                                     gx_error *err)
{
    gx_status st = gx_section_writer_begin(s, kind, param, err);
    return st == GX_OK ? gx_section_writer_add_spool(s, from, err) : st;
}

static gx_status write_strings_section(gx_section_writer *s, uint32_t kind, const spooled_strings *p, gx_error *err)
{
    const uint64_t total = gx_spool_bytes(&p->bytes), n = gx_spool_bytes(&p->lens) / sizeof(uint32_t);
    const uint32_t width = total > UINT32_MAX ? 8 : 4;
    uint32_t lens[1024];
    uint64_t end = 0;
    gx_status st = gx_section_writer_begin(s, kind, width, err);
    if (st == GX_OK)
        st = gx_section_writer_add(s, &end, width, err);
    for (uint64_t at = 0; at < n && st == GX_OK;) {
        const size_t some = n - at < 1024 ? (size_t)(n - at) : 1024;
        st = gx_spool_read(&p->lens, at * sizeof *lens, lens, some * sizeof *lens, err);
        for (size_t i = 0; i < some && st == GX_OK; ++i) {
            end += lens[i];
            st = gx_section_writer_add(s, &end, width, err); /* little-endian: the low bytes come first */
        }
        at += some;
    }
    return st == GX_OK ? gx_section_writer_add_spool(s, &p->bytes, err) : st;
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

static gx_status write_term_hash(gx_section_writer *s, const gx_writer *w, gx_error *err)
{
    const uint32_t n = w->counts.n_terms;
    uint32_t bits = 0;
    while ((uint64_t)1 << bits < (uint64_t)n + n / 2 + 1) /* at most two thirds full */
        ++bits;
    const uint64_t slots = (uint64_t)1 << bits;
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
    gx_status st = gx_section_writer_begin(s, GX_SEC_TERM_HASH, bits, err);
    if (st == GX_OK)
        st = gx_section_writer_add(s, table, slots * sizeof *table, err);
    free(table);
    return st;
}

static gx_status write_text_section(gx_section_writer *s, gx_writer *w, gx_error *err)
{
    gx_status st = end_frame(w, err);
    const gx_text_frame last = {gx_spool_bytes(&w->text), w->counts.n_docs, 0};
    const uint64_t n_frames = gx_spool_bytes(&w->text_frames) / sizeof last;
    if (st == GX_OK)
        st = gx_section_writer_begin(s, GX_SEC_TEXT, n_frames, err);
    if (st == GX_OK)
        st = gx_section_writer_add_spool(s, &w->text_frames, err);
    if (st == GX_OK)
        st = gx_section_writer_add(s, &last, sizeof last, err);
    return st == GX_OK ? gx_section_writer_add_spool(s, &w->text, err) : st;
}

static gx_status write_sections(gx_section_writer *s, gx_writer *w, const char *meta, gx_error *err)
{
    static const uint8_t slack[GX_READ_SLACK];
    gx_status st;
    if ((st = gx_section_writer_add(s, slack, sizeof slack, err)) != GX_OK || /* behind the payload */
        (st = write_spool_section(s, GX_SEC_LISTS, &w->lists, 0, err)) != GX_OK ||
        (st = write_spool_section(s, GX_SEC_HEADS, &w->heads, 0, err)) != GX_OK ||
        (st = write_spool_section(s, GX_SEC_DOCID_ENDS, &w->docid_ends, 0, err)) != GX_OK ||
        (st = write_spool_section(s, GX_SEC_TF_ENDS, &w->tf_ends, 0, err)) != GX_OK ||
        (st = write_spool_section(s, GX_SEC_DOC_LENS, &w->doc_lens, 0, err)) != GX_OK ||
        (st = gx_section_writer_begin(s, GX_SEC_META, 0, err)) != GX_OK ||
        (st = gx_section_writer_add(s, meta, strlen(meta), err)) != GX_OK ||
        (st = write_strings_section(s, GX_SEC_TERMS, &w->terms, err)) != GX_OK ||
        (st = write_term_hash(s, w, err)) != GX_OK ||
        (st = write_strings_section(s, GX_SEC_DOC_IDS, &w->doc_ids, err)) != GX_OK)
        return st;
    if (w->list_units && (st = write_spool_section(s, GX_SEC_UNITS, &w->units, 0, err)) != GX_OK)
        return st;
    if ((w->any_title || many_sections(w)) && (st = write_strings_section(s, GX_SEC_TITLES, &w->titles, err)) != GX_OK)
        return st;
    if (w->store_text && (st = write_text_section(s, w, err)) != GX_OK)
        return st;
    return w->columns ? gx_columns_write(w->columns, s, w->counts.n_docs, many_sections(w), err) : GX_OK;
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
