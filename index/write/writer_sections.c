/* writer_sections.c: the sections behind the payload: heads made here, and what spools hold, by several threads. */
#include "index/write/writer_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/parallel.h"
#include "engine/status.h"
#include "index/fields/fields.h"

/* A section behind the payload: a head, and then what a spool holds. */
typedef struct section_job {
    gx_writer *w;
    uint32_t kind;
    uint64_t param, head_bytes;
    const gx_spool *tail;              /* or NULL */
    const gx_spooled_strings *strings; /* whose ends are the head; NULL: the head is by the kind */
    const char *meta;                  /* of GX_SEC_META */
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

static uint64_t count_strings(const gx_spooled_strings *p)
{
    return gx_spool_bytes(&p->lens) / sizeof(uint32_t);
}

static uint32_t width_of(const gx_spooled_strings *p)
{
    return gx_spool_bytes(&p->bytes) > UINT32_MAX ? 8 : 4;
}

static section_job spool_job(uint32_t kind, const gx_spool *spool)
{
    return (section_job){.kind = kind, .tail = spool};
}

static section_job strings_job(uint32_t kind, const gx_spooled_strings *p)
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
static gx_status write_ends(gx_section_writer *s, const gx_spooled_strings *p, gx_error *err)
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

/* Bytes of a title's number of positions. */
static uint32_t title_position_width(const gx_writer *w)
{
    return w->most_title_positions > UINT16_MAX ? 4 : w->most_title_positions > UINT8_MAX ? 2 : 1;
}

/* Whether the documents' fields, not their titles, are told apart by positions. */
static bool places_fields(const gx_writer *w)
{
    return w->with_positions && w->n_fields;
}

/* What each document has of PLEN. */
static uint64_t count_places(const gx_writer *w)
{
    return (uint64_t)w->counts.n_docs * (places_fields(w) ? w->n_fields - 1 : 1);
}

/* values[n], NULL: zeros, in width bytes each. */
static gx_status write_numbers(gx_section_writer *s, const uint32_t *values, uint64_t n, uint32_t width, gx_error *err)
{
    gx_status st = GX_OK;
    for (uint64_t at = 0; at < n && st == GX_OK;) {
        const size_t some = n - at < LENGTHS_AT_ONCE ? (size_t)(n - at) : LENGTHS_AT_ONCE;
        uint8_t *room;
        st = gx_section_writer_reserve(s, some * width, &room, err);
        for (size_t i = 0; i < some && st == GX_OK; ++i) {
            const uint32_t value = values ? values[at + i] : 0;
            memcpy(room + i * width, &value, width); /* little-endian: the low bytes come first */
        }
        if (st == GX_OK)
            gx_section_writer_commit(s, some * width);
        at += some;
    }
    return st;
}

static uint32_t numbers_width(const uint32_t *values, uint64_t n)
{
    uint32_t any = 0;
    for (uint64_t i = 0; values && i < n; ++i)
        any |= values[i];
    return any > UINT16_MAX ? 4 : any > UINT8_MAX ? 2 : 1;
}

static uint32_t places_width(const gx_writer *w)
{
    return places_fields(w) ? numbers_width(w->field_positions, count_places(w)) : title_position_width(w);
}

static gx_status write_title_positions(gx_section_writer *s, const gx_writer *w, uint32_t width, gx_error *err)
{
    const uint64_t n = gx_spool_bytes(&w->title_positions) / sizeof(uint32_t);
    uint32_t values[LENGTHS_AT_ONCE];
    gx_status st = GX_OK;
    if (places_fields(w))
        return write_numbers(s, w->field_positions, count_places(w), width, err);
    for (uint64_t at = 0; at < w->counts.n_docs && st == GX_OK;) {
        const size_t some = w->counts.n_docs - at < LENGTHS_AT_ONCE ? (size_t)(w->counts.n_docs - at) : LENGTHS_AT_ONCE;
        uint8_t *room;
        if (n)
            st = gx_spool_read(&w->title_positions, at * sizeof *values, values, some * sizeof *values, err);
        else
            memset(values, 0, sizeof values);
        if (st == GX_OK)
            st = gx_section_writer_reserve(s, some * width, &room, err);
        for (size_t i = 0; i < some && st == GX_OK; ++i)
            memcpy(room + i * width, &values[i], width); /* little-endian: the low bytes come first */
        if (st == GX_OK)
            gx_section_writer_commit(s, some * width);
        at += some;
    }
    return st;
}

static uint64_t count_field_lens(const gx_writer *w)
{
    return (uint64_t)w->counts.n_docs * (w->n_fields - 1);
}

/* Bytes of a length by field. */
static uint32_t field_len_width(const gx_writer *w)
{
    return numbers_width(atomic_load(&w->field_lens), count_field_lens(w));
}

/* The lengths by field, and zeros up to a multiple of 8. */
static gx_status write_field_lens(gx_section_writer *s, const gx_writer *w, uint32_t width, gx_error *err)
{
    static const uint8_t zeros[8];
    const uint64_t n = count_field_lens(w);
    const gx_status st = write_numbers(s, atomic_load(&w->field_lens), n, width, err);
    return st == GX_OK ? gx_section_writer_add(s, zeros, -(n * width) % 8, err) : st;
}

/* What stands before the tfs by field: lengths and ends. */
static gx_status write_fields(gx_section_writer *s, const section_job *j, gx_error *err)
{
    static const uint8_t zeros[8];
    const gx_writer *w = j->w;
    const uint64_t ends = gx_spool_bytes(&w->field_ends) + gx_spool_bytes(&w->field_wraps);
    gx_status st = write_field_lens(s, w, (uint32_t)(j->param >> 8 & 0xff), err);
    if (st == GX_OK)
        st = gx_section_writer_add_spool(s, &w->field_ends, err);
    if (st == GX_OK)
        st = gx_section_writer_add_spool(s, &w->field_wraps, err);
    return st == GX_OK ? gx_section_writer_add(s, zeros, -ends % 8, err) : st;
}

static section_job fields_job(const gx_writer *w)
{
    const uint32_t width = field_len_width(w), n_wraps = (uint32_t)(gx_spool_bytes(&w->field_wraps) / sizeof(uint32_t));
    return (section_job){.kind = GX_SEC_FIELDS,
                         .param = gx_fields_param(w->n_fields, width, n_wraps),
                         .head_bytes = gx_fields_lens_bytes(w->counts.n_docs, w->n_fields, width) +
                                       gx_fields_ends_bytes(w->counts.n_terms, n_wraps),
                         .tail = &w->field_tfs};
}

static gx_status write_head(gx_section_writer *s, const section_job *j, gx_error *err)
{
    return j->strings                     ? write_ends(s, j->strings, err)
           : j->kind == GX_SEC_TERM_HASH  ? write_term_hash(s, j->w, err)
           : j->kind == GX_SEC_TEXT       ? write_text_frames(s, j->w, err)
           : j->kind == GX_SEC_TITLE_LENS ? write_title_positions(s, j->w, (uint32_t)j->param, err)
           : j->kind == GX_SEC_FIELDS     ? write_fields(s, j, err)
           : j->kind == GX_SEC_META       ? gx_section_writer_add(s, j->meta, strlen(j->meta), err)
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

#define MAX_JOBS 19u
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
    if (w->any_title || gx_writer_has_many_sections(w))
        jobs[n++] = strings_job(GX_SEC_TITLES, &w->titles);
    if (w->store_text)
        jobs[n++] = (section_job){.kind = GX_SEC_TEXT,
                                  .param = n_frames,
                                  .head_bytes = (n_frames + 1) * sizeof(gx_text_frame),
                                  .tail = &w->text};
    if (w->with_positions) {
        jobs[n++] = spool_job(GX_SEC_POSITIONS, &w->positions);
        jobs[n] = spool_job(GX_SEC_POSITION_ENDS, &w->position_ends);
        jobs[n++].param = w->n_position_wraps;
        if (w->n_fields != 1) {
            const uint32_t width = places_width(w);
            jobs[n++] =
                (section_job){.kind = GX_SEC_TITLE_LENS, .param = width, .head_bytes = count_places(w) * width};
        }
    }
    if (w->n_fields)
        jobs[n++] = fields_job(w);
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

gx_status gx_writer_write_sections(gx_section_writer *s, gx_writer *w, const char *meta, gx_error *err)
{
    static const uint8_t slack[GX_READ_SLACK];
    section_job jobs[MAX_JOBS];
    gx_status st = gx_section_writer_add(s, slack, sizeof slack, err); /* behind the payload */
    if (st == GX_OK && w->with_positions)
        st = gx_spool_add(&w->positions, slack, sizeof slack, err);
    if (st == GX_OK && w->with_positions)
        st = gx_spool_add(&w->position_ends, w->position_wraps, w->n_position_wraps * sizeof(uint32_t), err);
    if (st == GX_OK && w->store_text)
        st = gx_writer_end_frame(w, err);
    if (st == GX_OK && w->n_fields)
        st = gx_spool_add(&w->field_tfs, slack, GX_FIELD_TFS_SLACK, err);
    if (st == GX_OK)
        st = run_jobs(s, w, jobs, list_jobs(w, meta, jobs), err);
    return st == GX_OK && w->columns
               ? gx_columns_write(w->columns, s, w->counts.n_docs, gx_writer_has_many_sections(w), err)
               : st;
}
