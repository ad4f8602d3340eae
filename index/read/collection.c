#include "index/read/collection.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/hash.h"
#include "engine/lower_bound.h"
#include "engine/memory/prefetch.h"
#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/analysis/analyzer.h"
#include "index/attributes/attributes.h"
#include "index/fields/fields.h"

#define MAX_TRIES 100u /* commits that may replace the manifest while its files are being opened */

/* ---- parts ---- */

typedef struct gx_lexicon_of_parts {
    pthread_mutex_t lock;
    _Atomic(gx_collection_term *) terms; /* [n]; NULL: not made yet */
    uint32_t n;
} gx_lexicon_of_parts;

static void close_part(gx_part *p)
{
    gx_deletes_close(p->deletes);
    gx_index_close(p->ix);
}

void gx_parts_close(gx_parts *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n; ++i)
        close_part(&p->parts[i]);
    if (p->lexicon) {
        pthread_mutex_destroy(&p->lexicon->lock);
        free(atomic_load(&p->lexicon->terms));
        free(p->lexicon);
    }
    free(p->parts);
    free(p);
}

static bool same_attributes(const gx_index *a, const gx_index *b)
{
    bool same = a->n_columns == b->n_columns;
    for (uint32_t i = 0; same && i < a->n_columns; ++i)
        same = a->columns[i].type == b->columns[i].type && a->columns[i].name_len == b->columns[i].name_len &&
               memcmp(a->columns[i].name, b->columns[i].name, a->columns[i].name_len) == 0;
    return same;
}

static bool same_fields(const gx_index *a, const gx_index *b)
{
    bool same = !a->fields == !b->fields && (!a->fields || a->fields->n == b->fields->n);
    for (uint32_t i = 0; same && a->fields && i < a->fields->n; ++i)
        same = strcmp(a->fields->names[i], b->fields->names[i]) == 0;
    return same;
}

static gx_status same_analysis(const gx_index *a, const gx_index *b, gx_error *err)
{
    gx_analyzers_differ how;
    if (a->analyzer_text && b->analyzer_text && strcmp(a->analyzer_text, b->analyzer_text) == 0)
        return GX_OK;
    if (gx_analyzers_agree(a->analyzer, b->analyzer, &how) != GX_OK)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    if (how == GX_ANALYZERS_STEMMER)
        return gx_fail(err, GX_EUSAGE, "the terms of %s were made by another version of the stemmer than those of %s",
                       b->path, a->path);
    if (how != GX_ANALYZERS_SAME)
        return gx_fail(
            err, GX_EUSAGE,
            "%s makes terms of text in another way than %s: another analyzer, stemmer, stop words, fold or n-grams",
            b->path, a->path);
    return GX_OK;
}

uint32_t gx_index_impact_bits(const gx_index *ix)
{
    json_t *meta = ix->impacts && ix->meta_len ? gx_json_load(ix->meta, ix->meta_len, 0, NULL) : NULL;
    const json_t *impacts = json_object_get(meta, "impacts");
    const char *of = json_string_value(json_object_get(impacts, "of"));
    const json_int_t bits = json_integer_value(json_object_get(impacts, "bits"));
    const bool good = of && strcmp(of, "vectors") == 0 && bits >= 4 && bits <= 16;
    json_decref(meta);
    return good ? (uint32_t)bits : 0;
}

gx_status gx_parts_agree(const gx_index *a, const gx_index *b, gx_error *err)
{
    const gx_status st = same_analysis(a, b, err);
    if (st != GX_OK)
        return st;
    if (a->impacts != b->impacts)
        return gx_fail(err, GX_EUSAGE, "%s holds %s, and %s %s", b->path, b->impacts ? "impacts" : "term frequencies",
                       a->path, a->impacts ? "impacts" : "term frequencies");
    if (a->units || b->units)
        return gx_fail(err, GX_EUSAGE, "%s has a unit of impacts for each list, and lists of a collection have one",
                       a->units ? a->path : b->path);
    if (a->n_docs && b->n_docs && a->impact_unit != b->impact_unit)
        return gx_fail(err, GX_EUSAGE, "the impacts of %s have the unit %g, and those of %s %g", b->path,
                       b->impact_unit, a->path, a->impact_unit);
    if (a->block_len != b->block_len)
        return gx_fail(err, GX_EUSAGE, "%s has blocks of %u postings, and %s of %u: recode one of them", b->path,
                       b->block_len, a->path, a->block_len);
    if (a->n_docs && b->n_docs && !a->text != !b->text)
        return gx_fail(err, GX_EUSAGE, "%s stores %s, and %s %s", b->path, b->text ? "texts" : "no texts", a->path,
                       a->text ? "some" : "none");
    if (a->n_docs && b->n_docs && !a->positions != !b->positions)
        return gx_fail(err, GX_EUSAGE, "%s has %s, and %s %s: build both with --positions, or take them out by recode",
                       b->path, b->positions ? "positions" : "no positions", a->path, a->positions ? "some" : "none");
    if (!same_fields(a, b))
        return gx_fail(err, GX_EUSAGE, "%s has other fields than %s", b->path, a->path);
    if (!same_attributes(a, b))
        return gx_fail(err, GX_EUSAGE, "%s has other attributes than %s", b->path, a->path);
    return GX_OK;
}

/* Whether tfs of parts add up to lengths, so that those of all do. */
static void sum_up(gx_index *ix, const gx_part *p, bool first)
{
    const gx_index *of = p->ix;
    const gx_deletes *d = p->deletes;
    const uint32_t min = d ? d->min_doc_len : of->min_doc_len, max = d ? d->max_doc_len : of->max_doc_len;
    ix->n_postings += of->n_postings - (d ? d->n_postings : 0);
    ix->n_tokens += of->n_tokens - (d ? d->n_tokens : 0);
    ix->file_bytes += of->file_bytes;
    ix->max_doc_len = max > ix->max_doc_len ? max : ix->max_doc_len;
    if (p->n_live)
        ix->min_doc_len = first || min < ix->min_doc_len ? min : ix->min_doc_len;
}

/* Add the lengths by field of the part's live documents. */
static void add_field_tokens(gx_fields *to, const gx_part *p)
{
    const gx_fields *of = p->ix->fields;
    uint32_t lens[GX_MAX_FIELDS];
    for (uint32_t f = 0; f < to->n; ++f)
        to->n_tokens[f] += of->n_tokens[f];
    for (uint32_t d = 0; p->deletes && d < p->ix->n_docs; ++d) {
        uint32_t rest = p->ix->doc_lens[d];
        if (gx_deletes_is_live(p->deletes, d))
            continue;
        gx_fields_lens(of, d, lens);
        for (uint32_t f = 0; f + 1 < to->n; ++f) {
            to->n_tokens[f] -= lens[f];
            rest -= lens[f];
        }
        to->n_tokens[to->n - 1] -= rest;
    }
}

/* The fields of a collection: names, and counts of its live documents. */
static gx_status bind_fields(gx_index *ix, gx_error *err)
{
    const gx_fields *of = ix->parts->parts[0].ix->fields;
    if (!of)
        return GX_OK;
    if (!(ix->fields = calloc(1, sizeof *ix->fields)))
        return gx_fail(err, GX_ENOMEM, "out of memory");
    ix->fields->n = of->n;
    for (uint32_t f = 0; f < of->n; ++f)
        if (!(ix->fields->names[f] = strdup(of->names[f])))
            return gx_fail(err, GX_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < ix->parts->n; ++i)
        add_field_tokens(ix->fields, &ix->parts->parts[i]);
    return GX_OK;
}

/* Takes the parts; `agree`: they have been compared before. */
static gx_status bind_parts(gx_index *ix, gx_part *parts, uint32_t n, bool agree, gx_error *err)
{
    gx_status st = GX_OK;
    uint64_t base = 0;
    gx_parts *p = calloc(1, sizeof *p);
    if (p)
        p->lexicon = calloc(1, sizeof *p->lexicon);
    if (!p || !p->lexicon) {
        free(p);
        for (uint32_t i = 0; i < n; ++i)
            close_part(&parts[i]);
        free(parts);
        return gx_fail(err, GX_ENOMEM, "no memory for a collection of %u parts", n);
    }
    pthread_mutex_init(&p->lexicon->lock, NULL);
    p->parts = parts;
    p->n = n;
    ix->parts = p;
    const gx_index *first = parts[0].ix;
    ix->sum_tfs = 0;
    for (uint32_t i = 0; i < n && st == GX_OK; ++i) {
        gx_part *part = &parts[i];
        part->n_live = part->ix->n_docs - (part->deletes ? part->deletes->n_deleted : 0);
        part->base = base;
        sum_up(ix, part, base == 0);
        base += part->n_live;
        st = agree ? GX_OK : gx_parts_agree(first, part->ix, err);
    }
    if (st != GX_OK)
        return st;
    ix->n_docs = base < UINT32_MAX ? (uint32_t)base : UINT32_MAX;
    ix->n_docs_beyond = base - ix->n_docs;
    ix->block_len = first->block_len;
    ix->impacts = first->impacts;
    for (uint32_t i = 0; i < n; ++i)
        if (i == 0 || (ix->impact_unit == 1 && parts[i].ix->n_docs))
            ix->impact_unit = parts[i].ix->impact_unit;
    ix->avgdl = base && ix->n_tokens ? (double)ix->n_tokens / (double)base : 1;
    ix->header = first->header;
    ix->analyzer = first->analyzer;
    ix->meta = first->meta;
    ix->meta_len = first->meta_len;
    ix->n_columns = first->n_columns;
    ix->columns = first->columns;
    ix->column_strings = first->column_strings;
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *of = parts[i].ix;
        ix->text = ix->text ? ix->text : of->text;
        ix->titles = ix->titles.n ? ix->titles : of->titles;
    }
    return bind_fields(ix, err);
}

gx_status gx_collection_of_parts(gx_index *ix, gx_part *parts, uint32_t n, gx_error *err)
{
    return bind_parts(ix, parts, n, false, err);
}

gx_status gx_collection_of_joined(gx_index **out, const gx_index *like, gx_part *parts, uint32_t n, gx_error *err)
{
    gx_index *ix = calloc(1, sizeof *ix);
    *out = NULL;
    if (!ix || !(ix->path = strdup(like->path))) {
        for (uint32_t i = 0; i < n; ++i)
            close_part(&parts[i]);
        free(parts);
        free(ix);
        return gx_fail(err, GX_ENOMEM, "no memory for a collection of %u parts", n);
    }
    const gx_status st = bind_parts(ix, parts, n, true, err);
    if (st != GX_OK) {
        gx_index_close(ix);
        return st;
    }
    ix->impact_unit = like->impact_unit; /* a part without documents has another */
    ix->parts->commit = like->parts->commit;
    *out = ix;
    return GX_OK;
}

bool gx_index_stores_titles(const gx_index *ix)
{
    bool stored = ix->titles.n > 0;
    for (uint32_t i = 0; !stored && ix->parts && i < ix->parts->n; ++i)
        stored = gx_index_stores_titles(ix->parts->parts[i].ix);
    return stored || (!ix->parts && !ix->without_titles);
}

/* ---- opening ---- */

/* An index of old that has this file open. */
static gx_index *find_open(const gx_index *old, const gx_manifest_part *m)
{
    for (uint32_t i = 0; old && i < old->parts->n; ++i) {
        gx_index *ix = old->parts->parts[i].ix;
        if (memcmp(ix->header->uuid, m->uuid, sizeof m->uuid) == 0 && ix->file_bytes == m->bytes)
            return ix;
    }
    return NULL;
}

static gx_status check_part(const gx_index *ix, const gx_manifest_part *m, gx_error *err)
{
    if (memcmp(ix->header->uuid, m->uuid, sizeof m->uuid) != 0 || ix->file_bytes != m->bytes)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: this is another index than the one that the collection was made with (its UUID or size "
                       "differs): put that one back",
                       ix->path);
    if (ix->n_docs != m->n_docs || ix->n_tokens != m->n_tokens)
        return gx_fail(err, GX_ECORRUPT,
                       "%s: it has %u documents and %llu tokens, not %u and %llu as the manifest says", ix->path,
                       ix->n_docs, (unsigned long long)ix->n_tokens, m->n_docs, (unsigned long long)m->n_tokens);
    return GX_OK;
}

/* A collection that is being opened. */
typedef struct opening {
    int dir_fd; /* of its folder, so that no files of another one come between where that is replaced */
    const char *dir;
    gx_check level;
    gx_load load;
    const gx_index *old;
} opening;

static gx_status open_part(gx_part *p, const opening *o, const gx_manifest_part *m, gx_error *err)
{
    gx_status st = GX_OK;
    gx_index *open = find_open(o->old, m);
    if (open) {
        p->ix = gx_index_share(open);
    } else {
        char *path = gx_path_in(o->dir, m->file);
        st = path ? gx_index_open_in(&p->ix, o->dir_fd, path, o->level, o->load, err)
                  : gx_fail(err, GX_ENOMEM, "out of memory");
        free(path);
        if (st == GX_OK)
            st = check_part(p->ix, m, err);
    }
    if (st == GX_OK && m->deletes.file[0])
        st = gx_deletes_open(&p->deletes, o->dir_fd, o->dir, &m->deletes, p->ix, err);
    if (st == GX_OK && p->deletes && o->level >= GX_CHECK_FULL) {
        char *path = gx_path_in(o->dir, m->deletes.file);
        st = path ? gx_deletes_check(p->deletes, p->ix, path, err) : gx_fail(err, GX_ENOMEM, "out of memory");
        free(path);
    }
    return st;
}

static gx_status open_parts(gx_index *ix, const opening *o, const gx_manifest *m, gx_error *err)
{
    gx_part *parts = calloc(m->n_parts, sizeof *parts);
    gx_status st = parts ? GX_OK : gx_fail(err, GX_ENOMEM, "%s: no memory for %u parts", ix->path, m->n_parts);
    uint32_t n = 0;
    while (st == GX_OK && n < m->n_parts)
        if ((st = open_part(&parts[n], o, &m->parts[n], err)) == GX_OK)
            ++n;
    if (st == GX_OK && o->level >= GX_CHECK_FULL)
        st = gx_parts_check_ids(parts, n, err);
    if (st == GX_OK)
        return gx_collection_of_parts(ix, parts, n, err);
    for (uint32_t i = 0; parts && i < m->n_parts; ++i)
        close_part(&parts[i]);
    free(parts);
    return st;
}

/* Read the manifest and open its parts. GX_ENOTFOUND with *found: of the parts one is missing. *last: the checksum of
 * the
 * manifest before, whose parts are not tried again, and of this one. */
static gx_status open_last(gx_index *ix, const opening *o, uint64_t *last, bool *found, gx_error *err)
{
    gx_manifest m;
    gx_status st = gx_manifest_read(&m, o->dir_fd, o->dir, err);
    const bool again = *found && m.checksum == *last;
    if (st != GX_OK)
        *found = false;
    if (st != GX_OK || again) {
        gx_manifest_free(&m);
        return st == GX_OK ? GX_ECORRUPT : st;
    }
    *found = true;
    *last = m.checksum;
    st = open_parts(ix, o, &m, err);
    if (st == GX_OK) {
        ix->parts->commit = m.commit;
        ix->parts->checksum = m.checksum;
        memcpy(ix->parts->uuid, m.uuid, sizeof m.uuid);
    }
    gx_manifest_free(&m);
    return st;
}

/* A writer removes the files of old commits, so a file that is gone is a reason to read the
 * manifest again: it names others then, unless somebody else has removed it. */
gx_status gx_collection_bind(gx_index *ix, int dir_fd, gx_check level, gx_load load, const gx_index *old, gx_error *err)
{
    opening o = {dir_fd, ix->path, level, load, old};
    gx_error why = {0};
    uint64_t last = 0;
    bool found = false;
    gx_status st = GX_ENOTFOUND;
    for (uint32_t tries = 0; tries < MAX_TRIES && st == GX_ENOTFOUND && (found || tries == 0); ++tries) {
        if (dir_fd == AT_FDCWD)
            o.dir_fd = open(ix->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (o.dir_fd < 0)
            o.dir_fd = AT_FDCWD;
        st = open_last(ix, &o, &last, &found, &why);
        if (o.dir_fd != dir_fd)
            close(o.dir_fd);
    }
    if (st == GX_OK)
        return st;
    if (found && (st == GX_ENOTFOUND || st == GX_ECORRUPT) && why.status == GX_ENOTFOUND)
        return gx_fail(err, GX_ECORRUPT, "%s (a file of the collection %s)", why.text, ix->path);
    return gx_fail(err, st == GX_EUSAGE ? GX_ECORRUPT : st, "%s", why.text); /* GX_EUSAGE: the parts do not agree */
}

gx_status gx_collection_share(gx_index **out, const char *path, const gx_part *from, uint32_t n, gx_error *err)
{
    *out = NULL;
    gx_index *ix = calloc(1, sizeof *ix);
    gx_part *parts = calloc(n + 1, sizeof *parts);
    if (!ix || !parts || !(ix->path = strdup(path))) {
        gx_index_close(ix);
        free(parts);
        return gx_fail(err, GX_ENOMEM, "no memory for a collection of %u parts", n);
    }
    for (uint32_t i = 0; i < n; ++i)
        parts[i] = (gx_part){gx_index_share(from[i].ix), gx_deletes_share(from[i].deletes), 0, 0};
    const gx_status st = gx_collection_of_parts(ix, parts, n, err);
    if (st == GX_OK)
        *out = ix;
    else
        gx_index_close(ix);
    return st;
}

gx_status gx_collection_slice(gx_index **out, const gx_index *collection, uint32_t first, uint32_t n, gx_error *err)
{
    return gx_collection_share(out, collection->path, collection->parts->parts + first, n, err);
}

/* ---- documents ---- */

const gx_part *gx_parts_find(const gx_parts *p, uint64_t docid, uint32_t *local)
{
    GX_FIRST(uint32_t, behind, 1, p->n, p->parts[behind].base > docid);
    const gx_part *part = &p->parts[behind - 1];
    *local = gx_deletes_select(part->deletes, (uint32_t)(docid - part->base));
    return part;
}

/* Which of a part's documents from 64 w on are live, up to 64 of them. */
static uint64_t live_word(const gx_part *p, size_t w)
{
    const size_t here = p->ix->n_docs - w * 64;
    const uint64_t there = here < 64 ? (UINT64_C(1) << here) - 1 : UINT64_MAX;
    return p->deletes ? there & p->deletes->live[w] : there;
}

/* 64 bits of words from bit `at` on. Those behind the last word are read only where `most`, the
 * number of bits that the caller uses, needs them. */
static uint64_t bits_at(const uint64_t *words, uint64_t at, uint32_t most)
{
    const uint64_t low = words[at / 64] >> at % 64;
    return at % 64 && at % 64 + most > 64 ? low | words[at / 64 + 1] << (64 - at % 64) : low;
}

void gx_part_scatter(const gx_part *p, const uint64_t *words, uint64_t *local)
{
    const uint32_t n_docs = p->ix->n_docs;
    uint64_t at = p->base;
    for (size_t w = 0; w * 64 < n_docs; ++w) {
        uint64_t live = live_word(p, w);
        const uint32_t n = (uint32_t)__builtin_popcountll(live);
        uint64_t from = n ? bits_at(words, at, n) : 0, to = 0;
        if (n == 64)
            to = from;
        else
            for (; live; live &= live - 1, from >>= 1)
                to |= from & 1 ? live & -live : 0;
        local[w] = to;
        at += n;
    }
}

void gx_part_gather(const gx_part *p, const uint64_t *local, uint64_t *words)
{
    const uint32_t n_docs = p->ix->n_docs;
    uint64_t at = p->base;
    for (size_t w = 0; w * 64 < n_docs; ++w) {
        uint64_t live = live_word(p, w);
        const uint32_t n = (uint32_t)__builtin_popcountll(live);
        uint64_t from = local[w] & live, to = n == 64 ? from : 0;
        if (n < 64)
            for (uint32_t i = 0; live; live &= live - 1, ++i)
                to |= from & live & -live ? UINT64_C(1) << i : 0;
        if (to) {
            words[at / 64] |= to << at % 64;
            if (at % 64 && at % 64 + n > 64)
                words[at / 64 + 1] |= to >> (64 - at % 64);
        }
        at += n;
    }
}

/* ---- terms ---- */

/* The parts' tables are read one behind the other, so that the processor waits for all of them at
 * once: first the slots, then where the terms' bytes are, then the bytes. */
enum { AT_ONCE = 16 };

static void prefetch_terms(const gx_part *parts, uint32_t n, uint64_t hash)
{
    uint32_t found[AT_ONCE];
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *ix = parts[i].ix;
        gx_prefetch(&ix->term_hash[hash & (((uint64_t)1 << ix->term_hash_bits) - 1)]);
    }
    for (uint32_t i = 0; i < n; ++i) {
        const gx_index *ix = parts[i].ix;
        found[i] = ix->term_hash[hash & (((uint64_t)1 << ix->term_hash_bits) - 1)];
        if (found[i]) {
            gx_prefetch((const char *)ix->terms.offsets + (size_t)(found[i] - 1) * ix->terms.width);
            gx_prefetch(&ix->lists[found[i] - 1]);
        }
    }
    for (uint32_t i = 0; i < n; ++i) {
        size_t len;
        if (found[i])
            gx_prefetch(gx_strings_get(&parts[i].ix->terms, found[i] - 1, &len));
    }
}

uint64_t gx_parts_find_ids(const gx_parts *p, const char *term, size_t len, uint32_t *ids)
{
    const uint64_t hash = gx_hash(term, len);
    uint64_t df = 0;
    for (uint32_t first = 0; first < p->n; first += AT_ONCE) {
        const uint32_t n = p->n - first < AT_ONCE ? p->n - first : AT_ONCE;
        if (n > 1)
            prefetch_terms(&p->parts[first], n, hash);
        for (uint32_t i = first; i < first + n; ++i) {
            ids[i] = gx_index_find_hashed(p->parts[i].ix, hash, term, len);
            df += ids[i] == UINT32_MAX ? 0 : gx_part_df(&p->parts[i], ids[i]);
        }
    }
    return df;
}

uint64_t gx_parts_df(const gx_parts *p, const char *term, size_t len)
{
    const uint64_t hash = gx_hash(term, len);
    uint64_t df = 0;
    for (uint32_t i = 0; i < p->n; ++i) {
        const uint32_t id = gx_index_find_hashed(p->parts[i].ix, hash, term, len);
        df += id == UINT32_MAX ? 0 : gx_part_df(&p->parts[i], id);
    }
    return df;
}

static uint32_t max_live_tf(const gx_part *p, uint32_t term)
{
    uint32_t docids[GX_MAX_BLOCK], tfs[GX_MAX_BLOCK], most = 0;
    const gx_list l = gx_index_list(p->ix, term);
    for (uint32_t j = 0; j < l.n_blocks; ++j) {
        const uint32_t n = gx_list_decode_docids(&l, j, docids);
        gx_list_decode_tfs(&l, j, tfs);
        for (uint32_t i = 0; i < n; ++i)
            if (docids[i] < p->ix->n_docs && tfs[i] > most && gx_deletes_is_live(p->deletes, docids[i]))
                most = tfs[i];
    }
    return most;
}

uint32_t gx_parts_max_tf(const gx_parts *p, const char *term, size_t len)
{
    const uint64_t hash = gx_hash(term, len);
    uint32_t most = 1;
    for (uint32_t i = 0; i < p->n; ++i) {
        const gx_part *part = &p->parts[i];
        const uint32_t id = gx_index_find_hashed(part->ix, hash, term, len);
        if (id == UINT32_MAX || gx_index_max_tf(part->ix, id) <= most)
            continue;
        const uint32_t here =
            part->deletes && part->deletes->dfs[id] ? max_live_tf(part, id) : gx_index_max_tf(part->ix, id);
        most = here > most ? here : most;
    }
    return most;
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    const size_t n = a_len < b_len ? a_len : b_len;
    const int order = n ? memcmp(a, b, n) : 0;
    return order ? order : (a_len > b_len) - (a_len < b_len);
}

/* Where the merge of the parts' terms stands: the next term of each part. */
typedef struct term_cursor {
    const gx_part *part;
    uint32_t next;
    const char *term;
    size_t len;
} term_cursor;

static void read_cursor(term_cursor *c)
{
    if (c->next < c->part->ix->n_terms)
        c->term = gx_strings_get(&c->part->ix->terms, c->next, &c->len);
    else
        c->term = NULL;
}

/* The least of n terms, or NULL at the end. */
static const term_cursor *least_term(const term_cursor *cursors, uint32_t n)
{
    const term_cursor *least = NULL;
    for (uint32_t i = 0; i < n; ++i)
        if (cursors[i].term && (!least || compare_bytes(cursors[i].term, cursors[i].len, least->term, least->len) < 0))
            least = &cursors[i];
    return least;
}

static gx_collection_term *make_terms(const gx_parts *p, uint32_t *n)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < p->n; ++i)
        most += p->parts[i].ix->n_terms;
    gx_collection_term *terms = malloc(most * sizeof *terms);
    term_cursor *cursors = calloc(p->n, sizeof *cursors);
    if (!terms || !cursors) {
        free(terms);
        free(cursors);
        return NULL;
    }
    for (uint32_t i = 0; i < p->n; ++i) {
        cursors[i].part = &p->parts[i];
        read_cursor(&cursors[i]);
    }
    *n = 0;
    for (const term_cursor *least; (least = least_term(cursors, p->n));) {
        const char *term = least->term; /* the bytes belong to the part */
        const size_t len = least->len;
        gx_collection_term t = {0};
        for (uint32_t i = 0; i < p->n; ++i) {
            term_cursor *c = &cursors[i];
            if (!c->term || compare_bytes(c->term, c->len, term, len) != 0)
                continue;
            const uint32_t df = gx_part_df(c->part, c->next);
            if (df && !t.df)
                t = (gx_collection_term){i, c->next, 0};
            t.df += df;
            ++c->next;
            read_cursor(c);
        }
        if (t.df)
            terms[(*n)++] = t;
    }
    free(cursors);
    gx_collection_term *fit = realloc(terms, (*n + 1ull) * sizeof *terms);
    return fit ? fit : terms;
}

const gx_collection_term *gx_parts_terms(const gx_parts *p, uint32_t *n)
{
    gx_lexicon_of_parts *l = p->lexicon;
    gx_collection_term *terms = atomic_load(&l->terms);
    if (!terms) {
        pthread_mutex_lock(&l->lock);
        if (!(terms = atomic_load(&l->terms)) && (terms = make_terms(p, &l->n)))
            atomic_store(&l->terms, terms);
        pthread_mutex_unlock(&l->lock);
    }
    *n = terms ? l->n : 0;
    return terms;
}

const char *gx_parts_term(const gx_parts *p, uint32_t term, size_t *len)
{
    uint32_t n;
    const gx_collection_term *terms = gx_parts_terms(p, &n);
    *len = 0;
    return term < n ? gx_strings_get(&p->parts[terms[term].part].ix->terms, terms[term].term, len) : NULL;
}

uint32_t gx_parts_find_term(const gx_parts *p, const char *term, size_t len)
{
    uint32_t n, lo = 0;
    gx_parts_terms(p, &n);
    for (uint32_t hi = n; lo < hi;) {
        const uint32_t mid = lo + (hi - lo) / 2;
        size_t found_len;
        const char *found = gx_parts_term(p, mid, &found_len);
        const int order = compare_bytes(found, found_len, term, len);
        if (order == 0)
            return mid;
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return UINT32_MAX;
}
