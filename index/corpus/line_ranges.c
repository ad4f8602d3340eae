#include "index/corpus/line_ranges.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/grow.h"
#include "engine/parallel.h"

#define RANGE_BYTES (1u << 20)
#define LEAST_BYTES (8u * RANGE_BYTES) /* shorter rests are read by the caller's thread */
#define MAX_READERS 16u

/* A document of a parsed range, or an error in its place. Offsets are of the range's bytes, where
 * id, title and text follow each other, or the error's words stand. */
typedef struct parsed_document {
    size_t begin, title_len, text_len, first_value, first_weight;
    uint64_t line; /* in the range, from 1 */
    uint32_t id_len, n_values, n_vector;
    gx_status status;
    bool has_title, has_vector;
} parsed_document;

typedef struct parsed_value {
    uint32_t attribute;
    size_t begin, len;
} parsed_value;

typedef struct parsed_weight {
    size_t begin, len;
    float weight;
} parsed_weight;

typedef struct range {
    gx_scratch bytes;
    parsed_document *docs; /* [n_docs] */
    size_t n_docs, max_docs;
    parsed_value *values; /* [n_values] of all documents */
    size_t n_values, max_values;
    parsed_weight *weights; /* [n_weights] of all documents */
    size_t n_weights, max_weights;
    gx_source_counts counts; /* of the range alone */
    uint64_t lines;
    bool no_memory;
    bool done; /* under the lock */
} range;

struct gx_line_ranges {
    const char *path;
    int fd;             /* the caller's */
    gx_source *readers; /* [n_readers], one a thread */
    uint32_t n_readers;
    gx_threads *threads;
    range *ranges; /* [n_ranges]: number i of the file is at i % n_ranges */
    uint32_t n_ranges;

    pthread_mutex_t lock; /* of what follows, and of ranges' done */
    pthread_cond_t room, parsed;
    uint64_t at, size; /* where the next range begins; of the file, when it was cut */
    uint64_t n_taken, n_given;
    bool cut; /* no range is left to take */
    atomic_bool stop;

    /* the caller's: */
    bool begun;     /* the oldest range's counts have been taken */
    size_t next;    /* document of the oldest range */
    uint64_t lines; /* before the oldest range */
    bool failed;    /* by a status after which there is no next document */
};

/* ---- a range ---- */

static bool append_bytes(gx_scratch *b, const char *p, size_t n)
{
    return n == 0 || gx_scratch_add(b, p, n);
}

static bool append_values(range *g, const gx_document *doc)
{
    if (!gx_reserve(&g->values, &g->max_values, g->n_values + doc->n_values, sizeof *g->values))
        return false;
    for (uint32_t i = 0; i < doc->n_values; ++i) {
        const gx_attribute_value *v = &doc->values[i];
        g->values[g->n_values++] = (parsed_value){v->attribute, g->bytes.n, v->len};
        if (!append_bytes(&g->bytes, v->text, v->len))
            return false;
    }
    return true;
}

static bool append_weights(range *g, const gx_document *doc)
{
    if (!gx_reserve(&g->weights, &g->max_weights, g->n_weights + doc->n_vector, sizeof *g->weights))
        return false;
    for (uint32_t i = 0; i < doc->n_vector; ++i) {
        const gx_weighted_term *t = &doc->vector[i];
        g->weights[g->n_weights++] = (parsed_weight){g->bytes.n, t->len, t->weight};
        if (!append_bytes(&g->bytes, t->term, t->len))
            return false;
    }
    return true;
}

static bool append_document(range *g, const gx_source_document *d)
{
    const gx_document *doc = &d->doc;
    if (!gx_reserve(&g->docs, &g->max_docs, g->n_docs + 1, sizeof *g->docs))
        return false;
    g->docs[g->n_docs++] = (parsed_document){.begin = g->bytes.n,
                                             .title_len = doc->title_len,
                                             .text_len = doc->text_len,
                                             .first_value = g->n_values,
                                             .first_weight = g->n_weights,
                                             .line = d->line,
                                             .id_len = (uint32_t)doc->id_len,
                                             .n_values = doc->n_values,
                                             .n_vector = doc->n_vector,
                                             .has_title = doc->title != NULL,
                                             .has_vector = doc->vector != NULL};
    return append_bytes(&g->bytes, doc->id, doc->id_len) && append_bytes(&g->bytes, doc->title, doc->title_len) &&
           append_bytes(&g->bytes, doc->text, doc->text_len) && append_values(g, doc) && append_weights(g, doc);
}

static bool append_error(range *g, const gx_error *err)
{
    if (!gx_reserve(&g->docs, &g->max_docs, g->n_docs + 1, sizeof *g->docs))
        return false;
    g->docs[g->n_docs++] = (parsed_document){.begin = g->bytes.n, .text_len = strlen(err->text), .status = err->status};
    return append_bytes(&g->bytes, err->text, strlen(err->text));
}

/* Parse bytes [begin, end) of the file. */
static void parse_range(const gx_line_ranges *r, gx_source *reader, range *g, uint64_t begin, uint64_t end)
{
    g->bytes.n = g->n_docs = g->n_values = g->n_weights = 0;
    reader->counts = (gx_source_counts){0};
    reader->in.bytes = reader->in.raw_bytes = reader->in.nul_bytes = reader->in.too_long = 0;
    gx_input_open_range(&reader->in, r->path, r->fd, begin, end);
    bool found = true, memory = true;
    while (found && memory && !atomic_load_explicit(&r->stop, memory_order_relaxed)) {
        gx_error err = {0};
        const gx_status st = gx_source_read_record(reader, &found, &err);
        if (st) {
            memory = append_error(g, &err);
            found = st == GX_EINPUT;
        } else if (found) {
            memory = append_document(g, &reader->doc);
        }
    }
    g->no_memory = !memory;
    g->counts = gx_source_get_counts(reader);
    g->lines = reader->in.line - 1;
    gx_input_close(&reader->in);
}

/* ---- threads ---- */

/* The first line that begins at or behind `from`; the file's end: UINT64_MAX. */
static uint64_t find_line(const gx_line_ranges *r, uint64_t from)
{
    char piece[4096];
    for (uint64_t at = from - 1;;) { /* a line that begins at `from` follows a line end */
        const ssize_t n = pread(r->fd, piece, sizeof piece, (off_t)at);
        if (n <= 0)
            return UINT64_MAX;
        const char *end = memchr(piece, '\n', (size_t)n);
        if (end)
            return at + (uint64_t)(end - piece) + 1;
        at += (uint64_t)n;
    }
}

/* Take the next range, which is [*begin, *end). NULL: there is none. The lock is held. */
static range *take_range(gx_line_ranges *r, uint64_t *begin, uint64_t *end)
{
    while (!r->cut && !atomic_load(&r->stop) && r->n_taken - r->n_given == r->n_ranges)
        pthread_cond_wait(&r->room, &r->lock);
    if (r->cut || atomic_load(&r->stop))
        return NULL;
    *begin = r->at;
    *end = r->size - r->at > 2 * RANGE_BYTES ? find_line(r, r->at + RANGE_BYTES) : UINT64_MAX;
    r->at = *end;
    r->cut = *end >= r->size;
    if (r->cut)
        *end = UINT64_MAX; /* and what has been appended since */
    return &r->ranges[r->n_taken++ % r->n_ranges];
}

static void read_ranges(void *user, uint32_t number)
{
    gx_line_ranges *r = user;
    uint64_t begin, end;
    pthread_mutex_lock(&r->lock);
    for (range *g; (g = take_range(r, &begin, &end));) {
        pthread_mutex_unlock(&r->lock);
        parse_range(r, &r->readers[number], g, begin, end);
        pthread_mutex_lock(&r->lock);
        g->done = true;
        pthread_cond_signal(&r->parsed);
    }
    pthread_cond_broadcast(&r->room); /* another thread may wait for room, and no range be left */
    pthread_mutex_unlock(&r->lock);
}

/* ---- opening and closing ---- */

static bool is_of_lines(gx_source_format format)
{
    return format == GX_SOURCE_JSONL || format == GX_SOURCE_TSV || format == GX_SOURCE_VECTORS;
}

/* Whether the rest of the open file can be cut, and where it begins and ends. */
static bool can_cut(const gx_source *s, uint64_t *at, uint64_t *size)
{
    struct stat st;
    const gx_input *in = &s->in;
    if (!is_of_lines(s->format) || in->archive || in->layers[0].unpack || in->latin1 || in->nul_bytes || in->fd < 0 ||
        fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    const off_t read_to = lseek(in->fd, 0, SEEK_CUR);
    if (read_to < 0 || (uint64_t)read_to < in->end - in->begin)
        return false;
    *at = (uint64_t)read_to - (in->end - in->begin);
    *size = (uint64_t)st.st_size;
    return *size > *at && *size - *at >= LEAST_BYTES;
}

static gx_status open_reader(gx_source *reader, const gx_source *s, gx_error *err)
{
    reader->opt = s->opt;
    reader->in = GX_INPUT_INIT;
    reader->in.max_record = s->in.max_record;
    reader->format = s->format;
    reader->n_given = s->n_given;
    reader->n_columns = s->n_columns;
    memcpy(reader->given, s->given, sizeof s->given);
    memcpy(reader->columns, s->columns, sizeof s->columns);
    return gx_json_fields_parse(reader, err);
}

gx_status gx_line_ranges_open(gx_line_ranges **out, gx_source *s, gx_error *err)
{
    uint64_t at, size;
    *out = NULL;
    if (s->opt.threads == 0 || !can_cut(s, &at, &size))
        return GX_OK;
    const uint32_t n = s->opt.threads < MAX_READERS ? s->opt.threads : MAX_READERS;
    gx_line_ranges *r = calloc(1, sizeof *r);
    if (!r)
        return gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->room, NULL);
    pthread_cond_init(&r->parsed, NULL);
    r->path = s->in.path;
    r->fd = s->in.fd;
    r->at = at;
    r->size = size;
    r->lines = s->in.line - 1;
    r->n_ranges = 2 * n + 2;
    r->ranges = calloc(r->n_ranges, sizeof *r->ranges);
    r->readers = calloc(n, sizeof *r->readers);
    gx_status st = r->ranges && r->readers ? GX_OK : gx_fail(err, GX_ENOMEM, "no memory to read %s", s->in.path);
    for (; st == GX_OK && r->n_readers < n; ++r->n_readers)
        st = open_reader(&r->readers[r->n_readers], s, err);
    if (st == GX_OK)
        r->threads = gx_threads_start(n, 0, read_ranges, r);
    if (!r->threads) {
        gx_line_ranges_close(r);
        return st;
    }
    const size_t unread = s->in.end - s->in.begin; /* the threads read it again */
    s->in.bytes -= unread;
    s->in.raw_bytes -= unread;
    s->in.begin = s->in.end;
    *out = r;
    return GX_OK;
}

void gx_line_ranges_close(gx_line_ranges *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    atomic_store(&r->stop, true);
    pthread_cond_broadcast(&r->room);
    pthread_mutex_unlock(&r->lock);
    gx_threads_join(r->threads);
    for (uint32_t i = 0; i < r->n_readers; ++i)
        gx_source_free_buffers(&r->readers[i]);
    for (uint32_t i = 0; r->ranges && i < r->n_ranges; ++i) {
        free(r->ranges[i].bytes.p);
        free(r->ranges[i].docs);
        free(r->ranges[i].values);
        free(r->ranges[i].weights);
    }
    pthread_cond_destroy(&r->parsed);
    pthread_cond_destroy(&r->room);
    pthread_mutex_destroy(&r->lock);
    free(r->ranges);
    free(r->readers);
    free(r);
}

/* ---- the caller's side ---- */

/* Wait for the oldest range. NULL: there is none. */
static range *wait_for_range(gx_line_ranges *r)
{
    range *g = &r->ranges[r->n_given % r->n_ranges];
    pthread_mutex_lock(&r->lock);
    while (!(g->done && r->n_given < r->n_taken) && !(r->cut && r->n_given == r->n_taken))
        pthread_cond_wait(&r->parsed, &r->lock);
    const bool any = r->n_given < r->n_taken;
    pthread_mutex_unlock(&r->lock);
    return any ? g : NULL;
}

/* The oldest range has been given: another may be read in its place. */
static void release_range(gx_line_ranges *r, range *g)
{
    r->lines += g->lines;
    r->begun = false;
    r->next = 0;
    pthread_mutex_lock(&r->lock);
    g->done = false;
    ++r->n_given;
    pthread_cond_signal(&r->room);
    pthread_mutex_unlock(&r->lock);
}

/* Add what a range's reader has counted, but for its documents. */
static void add_counts(gx_source *s, const gx_source_counts *c)
{
    s->counts.empty += c->empty;
    s->counts.latin1 += c->latin1;
    s->counts.replaced += c->replaced;
    s->in.bytes += c->bytes;
    s->in.raw_bytes += c->raw_bytes;
    s->in.nul_bytes += c->nul_bytes;
    s->in.too_long += c->too_long;
}

/* Fail with a reader's words, which begin with the path and, mostly, with a line of the range. */
static gx_status fail_at(const gx_line_ranges *r, gx_status st, const char *words, size_t n, gx_error *err)
{
    const size_t path = strlen(r->path);
    char *end;
    if (n > path + 2 && memcmp(words, r->path, path) == 0 && words[path] == ':' && words[path + 1] >= '0' &&
        words[path + 1] <= '9') {
        const uint64_t line = strtoull(words + path + 1, &end, 10);
        return gx_fail(err, st, "%s:%" PRIu64 "%.*s", r->path, r->lines + line, (int)(words + n - end), end);
    }
    return gx_fail(err, st, "%.*s", (int)n, words);
}

static gx_status give_document(const gx_line_ranges *r, const range *g, const parsed_document *p, gx_source *s,
                               gx_error *err)
{
    char *const bytes = g->bytes.p, *const id = bytes ? bytes + p->begin : NULL;
    char *const title = id ? id + p->id_len : NULL, *const text = id ? title + p->title_len : NULL;
    gx_status st = GX_OK;
    s->n_values = s->n_vector = 0;
    for (size_t i = p->first_value; i < p->first_value + p->n_values && !st; ++i)
        st = gx_source_add_value(s, g->values[i].attribute, (gx_span){bytes + g->values[i].begin, g->values[i].len},
                                 err);
    for (size_t i = p->first_weight; i < p->first_weight + p->n_vector && !st; ++i)
        st = gx_source_add_weight(s, bytes + g->weights[i].begin, g->weights[i].len, g->weights[i].weight, err);
    static const gx_weighted_term none;
    s->doc = (gx_source_document){
        .doc = {.size = sizeof(gx_document),
                .id = id,
                .title = p->has_title ? title : NULL,
                .text = text,
                .id_len = p->id_len,
                .title_len = p->title_len,
                .text_len = p->text_len,
                .values = s->values,
                .n_values = p->n_values,
                .vector = !p->has_vector ? NULL
                          : s->vector    ? s->vector
                                         : &none,
                .n_vector = p->n_vector},
        .file = r->path,
        .line = r->lines + p->line,
    };
    s->counts.documents += st == GX_OK;
    return st;
}

gx_status gx_line_ranges_next(gx_line_ranges *r, gx_source *s, bool *found, gx_error *err)
{
    *found = false;
    for (range *g; !r->failed && (g = wait_for_range(r)); release_range(r, g)) {
        if (!r->begun) {
            if (s->opt.cancel && s->opt.cancel(s->opt.user)) {
                r->failed = true;
                return gx_fail(err, GX_ECANCELLED, "interrupted while reading %s", r->path);
            }
            add_counts(s, &g->counts);
            r->begun = true;
        }
        if (g->no_memory) {
            r->failed = true;
            return gx_fail(err, GX_ENOMEM, "no memory to read %s", r->path);
        }
        if (r->next == g->n_docs)
            continue;
        const parsed_document *p = &g->docs[r->next++];
        if (p->status != GX_OK) {
            r->failed = p->status != GX_EINPUT;
            s->counts.bad += p->status == GX_EINPUT;
            return fail_at(r, p->status, g->bytes.p + p->begin, p->text_len, err);
        }
        *found = true;
        return give_document(r, g, p, s, err);
    }
    return GX_OK;
}
