#include "index/inversion/builder.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/clock.h"
#include "engine/files/temporary_file.h"
#include "engine/parallel.h"
#include "engine/sized.h"
#include "engine/status.h"
#include "engine/text/ascii.h"
#include "engine/text/json_text.h"
#include "index/fields/fields.h"
#include "index/inversion/builder_state.h"

#define FIELD_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define GX_MAX_FIXED_WEIGHT 1000u
#define MAX_MEMORY ((uint64_t)32 << 30) /* chains are addressed in 2^32 units of 16 bytes, strings in bytes */

/* ---- opening ---- */

/* A copy of the analyzer, which the caller may close before it closes the copy. */
static gx_status copy_analyzer(gx_builder *b, const gx_analyzer *like, gx_error *err)
{
    const gx_analysis_change change = gx_analyzer_change(like, err);
    if (change == GX_ANALYSIS_DICTIONARY)
        return gx_fail(err, GX_EUSAGE,
                       "documents cannot be added: words of the index were found by a dictionary that this program "
                       "lacks; use a build that has ICU");
    if (change == GX_ANALYSIS_STEMMER)
        return gx_fail(err, GX_EUSAGE,
                       "documents cannot be added: the terms of the index were made by another version of the stemmer "
                       "than this program has; build it anew");
    char *json = gx_analyzer_json(like);
    const gx_status st =
        json ? gx_analyzer_open_json(&b->analyzer, json, strlen(json), err) : gx_doc_indexer_no_memory(err);
    free(json);
    return st;
}

static gx_status open_parts(gx_builder *b, const gx_analyzer *like, const gx_place *place, gx_error *err)
{
    gx_writer_options w = GX_WRITER_OPTIONS;
    w.force = b->opt.force;
    w.place = place;
    w.store_text = b->opt.store_text;
    w.impacts = b->opt.vector_bits != 0;
    w.positions = b->opt.positions;
    w.fields_in_texts = b->opt.n_fields != 0;
    w.n_fields = gx_builder_keeps_fields(b) ? b->opt.n_fields : 0;
    w.list_units = w.impacts && b->opt.list_units;
    gx_status st = gx_codec_find_pair(&w.docids, &w.tfs, b->opt.docid_codec, b->opt.tf_codec, err);
    const char *analyzer = b->opt.analyzer ? b->opt.analyzer : w.impacts ? "whitespace" : NULL;
    const gx_analyzer_options an = {analyzer, b->opt.stemmer, b->opt.stopwords, b->opt.fold, b->opt.ngrams};
    if (st == GX_OK)
        st = like ? copy_analyzer(b, like, err) : gx_analyzer_open(&b->analyzer, &an, err);
    if (st == GX_OK && (!gx_external_ids_open(&b->ids) || (w.impacts && !gx_vector_check_open(&b->check))))
        st = gx_doc_indexer_no_memory(err);
    if (st == GX_OK && b->opt.n_attributes)
        st = gx_columns_open(&b->columns, b->opt.attributes, b->opt.bitmaps, b->opt.n_attributes, b->dir, err);
    w.columns = b->columns;
    w.threads = b->opt.threads;
    if (st == GX_OK)
        st = gx_writer_open(&b->writer, b->path, &w, err);
    if (st == GX_OK && b->opt.duplicates == GX_DUPLICATES_LAST && !(b->spooled = gx_builder_open_spool(b->dir)))
        st = gx_fail(err, GX_EIO, "cannot make a temporary file in %s: %s", b->dir, strerror(errno));
    const gx_parallel_inverter_options inverter = {.threads = b->opt.threads ? b->opt.threads : 1,
                                                   .memory = b->opt.memory,
                                                   .positions = b->opt.positions,
                                                   .n_fields = b->opt.n_fields,
                                                   .field_weights = b->opt.fixed_weights ? b->field_weights : NULL,
                                                   .dir = b->dir,
                                                   .document_sink = gx_builder_take_document,
                                                   .pack = gx_builder_pack_batch,
                                                   .batch_sink = gx_builder_take_batch,
                                                   .user = b};
    if (st == GX_OK)
        st = gx_parallel_inverter_open(&b->inverter, b->analyzer, &inverter, err);
    return st;
}

static bool is_field_name(const char *name)
{
    const size_t n = name ? strlen(name) : 0;
    return n && n <= GX_MAX_FIELD_NAME && strspn(name, FIELD_LETTERS) == n && !gx_is_digit(*name);
}

/* A unit that is given: a float's, of all lists. */
static gx_status check_unit(gx_builder_options *o, gx_error *err)
{
    const float unit = (float)o->unit;
    if (o->unit == 0)
        return GX_OK;
    if (!(o->unit > 0 && unit >= FLT_MIN && isfinite(unit)))
        return gx_fail(err, GX_EUSAGE, "the unit of impacts is %g; it must be a finite number above 0", o->unit);
    if (!o->vector_bits || o->list_units)
        return gx_fail(err, GX_EUSAGE, "a unit is of the weights of vectors, and of all lists together");
    o->unit = unit;
    return GX_OK;
}

static gx_status check_fields(const gx_builder_options *o, gx_error *err)
{
    if (o->n_fields > GX_MAX_INDEX_FIELDS || (o->n_fields && !o->fields))
        return gx_fail(err, GX_EUSAGE, "%u fields; the most are %u", o->n_fields, GX_MAX_INDEX_FIELDS);
    if (o->fixed_weights && o->n_fields == 0)
        return gx_fail(err, GX_EUSAGE, "weights are fixed, and there are no fields");
    if (o->n_fields && o->vector_bits)
        return gx_fail(err, GX_EUSAGE, "an index of vectors has no fields");
    if (o->fixed_weights && o->positions)
        return gx_fail(err, GX_EUSAGE, "an index with fixed weights of fields has no positions");
    for (uint32_t f = 0; f < o->n_fields; ++f) {
        const gx_field *x = &o->fields[f];
        if (!is_field_name(x->name))
            return gx_fail(err, GX_EUSAGE,
                           "the field '%.80s' has no name of 1 to %u letters, digits and _, a letter or _ first",
                           x->name ? x->name : "", GX_MAX_FIELD_NAME);
        if (o->fixed_weights ? x->weight == 0 || x->weight > GX_MAX_FIXED_WEIGHT : x->weight != 0)
            return gx_fail(err, GX_EUSAGE, "the fixed weight of %s is %u; it must be %s", x->name, x->weight,
                           o->fixed_weights ? "1 to 1,000" : "0 where weights are not fixed");
        for (uint32_t g = 0; g < f; ++g)
            if (strcmp(o->fields[g].name, x->name) == 0)
                return gx_fail(err, GX_EUSAGE, "the field %s is named twice", x->name);
        for (uint32_t a = 0; a < o->n_attributes; ++a)
            if (strcmp(o->attributes[a].name, x->name) == 0)
                return gx_fail(err, GX_EUSAGE, "'%s' is a field and an attribute; give one of them another name",
                               x->name);
    }
    return GX_OK;
}

/* Names of the builder's own. false: no memory. */
static bool copy_fields(gx_builder *b)
{
    bool good = true;
    for (uint32_t f = 0; f < b->opt.n_fields; ++f) {
        b->field_weights[f] = b->opt.fields[f].weight;
        good = (b->fields[f].name = strdup(b->opt.fields[f].name)) && good;
        b->fields[f].weight = b->opt.fields[f].weight;
    }
    b->opt.fields = b->fields;
    return good;
}

gx_status gx_builder_open(gx_builder **out, const gx_builder_options *opt, gx_error *err)
{
    return gx_builder_open_like(out, opt, NULL, NULL, err);
}

gx_status gx_builder_open_like(gx_builder **out, const gx_builder_options *opt, const gx_analyzer *analyzer,
                               const gx_place *place, gx_error *err)
{
    *out = NULL;
    gx_builder_options o = GX_BUILDER_OPTIONS;
    gx_status st =
        gx_sized_read(&o, sizeof o, opt, GX_SIZE_THROUGH(gx_builder_options, threads), "gx_builder_options", err);
    if (st != GX_OK)
        return st;
    if (!o.path || !*o.path)
        return gx_fail(err, GX_EUSAGE, "no path is given for the index");
    if (o.memory == 0)
        o.memory = 512u << 20;
    if (o.memory > MAX_MEMORY)
        o.memory = MAX_MEMORY;
    if (o.memory < 1u << 20)
        return gx_fail(err, GX_EUSAGE, "%llu bytes of memory are too few to build with; the least is 1 MiB",
                       (unsigned long long)o.memory);
    if (o.vector_bits && (o.vector_bits < GX_MIN_IMPACT_BITS || o.vector_bits > GX_MAX_IMPACT_BITS))
        return gx_fail(err, GX_EUSAGE, "weights of %u bits; it must be %u to %u", o.vector_bits, GX_MIN_IMPACT_BITS,
                       GX_MAX_IMPACT_BITS);
    if ((st = check_unit(&o, err)) != GX_OK || (st = check_fields(&o, err)) != GX_OK)
        return st;
    if (o.positions && o.vector_bits)
        return gx_fail(err, GX_EUSAGE, "documents that are vectors have no positions");
    gx_builder *b = calloc(1, sizeof *b);
    if (!b)
        return gx_doc_indexer_no_memory(err);
    b->opt = o;
    b->counts.size = sizeof b->counts;
    b->path = strdup(o.path);
    b->dir = gx_directory_of(o.path);
    b->source = o.source ? strdup(o.source) : NULL;
    st = !b->path || !b->dir || (o.source && !b->source) || !copy_fields(b) ? gx_doc_indexer_no_memory(err)
                                                                            : open_parts(b, analyzer, place, err);
    if (st != GX_OK) {
        gx_builder_abort(b);
        return st;
    }
    *out = b;
    return GX_OK;
}

void gx_builder_abort(gx_builder *b)
{
    if (!b)
        return;
    gx_parallel_inverter_close(b->inverter); /* first: its threads use the others */
    gx_writer_close(b->writer);
    gx_columns_close(b->columns);
    gx_analyzer_close(b->analyzer);
    gx_external_ids_close(&b->ids);
    if (b->spooled)
        fclose(b->spooled);
    for (uint32_t f = 0; f < b->opt.n_fields; ++f)
        free((char *)(uintptr_t)b->fields[f].name);
    gx_vector_check_close(b->check);
    free(b->ranges);
    free(b->tombstones);
    free(b->remap);
    free(b->path);
    free(b->dir);
    free(b->source);
    free(b);
}

/* ---- counts ---- */

/* What the inverter has done so far, besides what the builder counted. */
static void add_indexer_counts(const gx_builder *b, gx_builder_counts *c)
{
    gx_indexer_counts t;
    gx_parallel_inverter_get_counts(b->inverter, &t);
    c->dropped_tokens += t.dropped_tokens;
    c->replaced_bytes += t.replaced_bytes;
    c->memory_bytes = t.memory_bytes;
    c->spills = t.spills;
    c->tokens += t.tokens;
    c->empty += t.empty;
    c->adding += gx_parallel_inverter_caller_seconds(b->inverter);
    for (int s = 0; s < GX_N_STAGES; ++s)
        c->seconds[s] += t.seconds[s];
}

gx_status gx_builder_get_counts(const gx_builder *b, gx_builder_counts *counts)
{
    gx_builder_counts c = b->counts;
    if (b->inverter)
        add_indexer_counts(b, &c);
    return gx_sized_write(counts, &c, sizeof c, GX_SIZE_THROUGH(gx_builder_counts, seconds));
}

/* ---- the end ---- */

/* Add the time since the stamp to the stage, and set the stamp for the next one. */
static void end_stage(gx_builder *b, enum gx_builder_stage stage)
{
    b->stamp = gx_stage_lap(b->counts.seconds, stage, b->stamp);
}

/* The META section; the caller frees. NULL: out of memory. */
static char *make_meta(const gx_builder *b)
{
    char created[32] = "", *analyzer = gx_analyzer_json(b->analyzer), *text = NULL;
    const time_t t = time(NULL);
    struct tm tm;
    if (gmtime_r(&t, &tm))
        strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &tm);
    json_t *an = analyzer ? gx_json_load(analyzer, strlen(analyzer), 0, NULL) : NULL;
    json_t *root =
        an ? json_pack("{s:o, s:s+, s:s}", "analyzer", an, "generator", "gpuidx ", gx_version(), "created", created)
           : NULL;
    json_t *source = root && b->source ? json_string(b->source) : NULL; /* NULL also where it is not UTF-8 */
    if (source)
        json_object_set_new(root, "source", source);
    if (root && !b->opt.store_titles)
        json_object_set_new(root, "titles", json_false());
    if (root && b->check)
        json_object_set_new(root, "impacts",
                            json_pack("{s:s, s:i, s:s}", "of", "vectors", "bits", (int)b->opt.vector_bits, "scale",
                                      b->opt.list_units ? "list"
                                      : b->opt.unit > 0 ? "given"
                                                        : "collection"));
    json_t *fields = root && b->opt.n_fields ? json_array() : NULL;
    for (uint32_t f = 0; fields && f < b->opt.n_fields; ++f)
        json_array_append_new(fields, b->opt.fixed_weights ? json_pack("{s:s, s:i}", "name", b->fields[f].name,
                                                                       "weight", (int)b->fields[f].weight)
                                                           : json_pack("{s:s}", "name", b->fields[f].name));
    if (fields)
        json_object_set_new(root, b->opt.fixed_weights ? "fixed_fields" : "fields", fields);
    if (root)
        text = gx_json_dump(root, JSON_COMPACT);
    json_decref(root);
    free(analyzer);
    return text;
}

/* Tell the writer, which has all documents, where their fields begin. */
static gx_status place_fields(gx_builder *b, const gx_parallel_inverter *inverter, gx_error *err)
{
    const uint32_t n_fields = b->opt.n_fields, n_stored = n_fields ? n_fields - 1 : 0;
    if (!b->opt.positions || n_stored == 0)
        return GX_OK;
    uint32_t *places = gx_writer_field_positions(b->writer);
    if (!places)
        return gx_doc_indexer_no_memory(err);
    for (uint32_t i = 0; i < gx_parallel_inverter_threads(inverter); ++i) {
        size_t n;
        const uint32_t *row = gx_parallel_inverter_field_positions(inverter, i, &n);
        for (; n; --n, row += n_fields) {
            const uint32_t docid = b->remap ? b->remap[*row] : *row;
            if (docid != UINT32_MAX)
                memcpy(places + (size_t)docid * n_stored, row + 1, n_stored * sizeof *row);
        }
    }
    return GX_OK;
}

static void close_inverter(void *user, uint32_t number)
{
    (void)number;
    gx_parallel_inverter_close(user);
}

gx_status gx_builder_finish(gx_builder *b, gx_error *err)
{
    if (b->done)
        return gx_fail(err, GX_EUSAGE, "the builder cannot finish: it finished or failed before");
    b->done = true;
    gx_external_ids_close(&b->ids); /* no id is looked up any more */
    gx_status st = gx_parallel_inverter_finish(b->inverter, err);
    if (st != GX_OK)
        return st;
    add_indexer_counts(b, &b->counts);
    gx_parallel_inverter *inverter = b->inverter;
    b->inverter = NULL; /* its sums are in the counts */
    b->stamp = gx_clock_seconds();
    if (b->spooled)
        st = gx_builder_write_spooled(b, err);
    end_stage(b, GX_STAGE_DOCUMENTS);
    if (b->check) {
        b->unit = b->opt.unit > 0 ? b->opt.unit : gx_impact_unit(b->range, b->opt.vector_bits);
        gx_writer_set_unit(b->writer, b->unit);
    }
    if (st == GX_OK)
        st = place_fields(b, inverter, err);
    const gx_list_sink sink = gx_builder_list_sink(b);
    if (st == GX_OK)
        st = gx_parallel_inverter_merge(inverter, &sink, err);
    /* to free its memory takes a while, in which the file gets its last sections */
    gx_threads *const closing = b->opt.threads > 1 ? gx_threads_start(1, 0, close_inverter, inverter) : NULL;
    if (!closing)
        gx_parallel_inverter_close(inverter);
    b->counts.memory_bytes = 0;
    b->stamp = gx_clock_seconds();
    char *meta = st == GX_OK ? make_meta(b) : NULL;
    if (st == GX_OK)
        st = meta ? gx_writer_finish(b->writer, meta, err) : gx_doc_indexer_no_memory(err);
    free(meta);
    gx_threads_join(closing);
    end_stage(b, GX_STAGE_DOCUMENTS);
    return st;
}

void gx_builder_keep_unnamed(gx_builder *b)
{
    gx_writer_keep_unnamed(b->writer);
}

char *gx_builder_unnamed_path(const gx_builder *b)
{
    return gx_writer_unnamed_path(b->writer);
}
