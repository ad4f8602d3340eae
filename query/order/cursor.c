#include "query/order/cursor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/hash.h"
#include "engine/status.h"
#include "index/read/collection.h"
#include "query/plan/plan.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char magic[3] = {'g', 'p', '1'};

static gx_status no_memory(gx_error *err)
{
    return gx_fail(err, GX_ENOMEM, "no memory for a cursor");
}

/* ---- the query ---- */

static void add_u64(gx_text *t, uint64_t x)
{
    char bytes[8];
    for (int i = 0; i < 8; ++i)
        bytes[i] = (char)(x >> 8 * i);
    gx_text_add(t, bytes, sizeof bytes);
}

static void add_bytes(gx_text *t, const char *bytes, size_t len)
{
    add_u64(t, len);
    gx_text_add(t, bytes, len);
}

static void add_double(gx_text *t, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    add_u64(t, bits);
}

static void add_float(gx_text *t, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    add_u64(t, bits);
}

gx_status gx_cursor_hash(uint64_t *out, const gx_query *q, const gx_query_options *opt, const gx_sort *sort,
                         const gx_page *page, gx_error *err)
{
    gx_text t = {0};
    float k1, b;
    add_bytes(&t, page->scope, page->scope_len);
    add_u64(&t, q->kind);
    if (q->kind == GX_QUERY_TEXT || q->kind == GX_QUERY_BOOLEAN)
        add_bytes(&t, q->text, q->len);
    for (uint32_t i = 0; q->kind == GX_QUERY_TERMS && i < q->n_terms; ++i) {
        add_bytes(&t, q->terms[i].term, q->terms[i].len);
        add_float(&t, q->terms[i].weight);
    }
    if (q->filter)
        add_bytes(&t, q->filter->text, q->filter->text_len);
    if (page->collapse_len)
        add_bytes(&t, page->collapse, page->collapse_len);
    gx_preset_parameters(opt->preset, &k1, &b);
    add_u64(&t, opt->op);
    add_u64(&t, opt->op == GX_OP_AND_OR ? opt->k : 0);
    add_u64(&t, opt->preset);
    add_float(&t, isnan(opt->k1) ? k1 : opt->k1);
    add_float(&t, isnan(opt->b) ? b : opt->b);
    if (opt->sdm.words != 0 || opt->sdm.ordered != 0 || opt->sdm.unordered != 0) {
        add_float(&t, opt->sdm.words);
        add_float(&t, opt->sdm.ordered);
        add_float(&t, opt->sdm.unordered);
    }
    if (gx_query_side_is_on(opt)) {
        add_float(&t, opt->query_k1);
        add_float(&t, opt->query_b);
    }
    if (opt->prior.weight != 0) {
        add_bytes(&t, opt->prior.name, strnlen(opt->prior.name, sizeof opt->prior.name));
        add_u64(&t, opt->prior.form);
        add_double(&t, opt->prior.weight);
        add_double(&t, opt->prior.form == GX_PRIOR_SAT ? opt->prior.half : 0);
    }
    for (uint32_t i = 0; i < sort->n; ++i)
        add_u64(&t,
                sort->levels[i].column * UINT64_C(4) + sort->levels[i].falling * 2u + sort->levels[i].missing_first);
    *out = gx_hash(t.bytes, t.len);
    free(t.bytes);
    return t.failed ? no_memory(err) : GX_OK;
}

/* ---- the place ---- */

static const uint8_t *uuid_of(const gx_index *ix)
{
    return ix->parts ? ix->parts->uuid : ix->header->uuid;
}

#define NEIGHBOURS 7                 /* parts that a cursor names on each side of the document's */
#define N_NAMES (2 * NEIGHBOURS + 1) /* the document's part in the middle */

/* A file of a collection keeps its name as long as it is a part: a number above 0 for it. */
static uint32_t name_of(const gx_index *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    const uint32_t hash = (uint32_t)gx_hash(name, strlen(name));
    return hash ? hash : 1;
}

/* 0: there is none. */
static uint32_t name_of_neighbour(const gx_parts *parts, const gx_part *part, int64_t step)
{
    const int64_t i = part - parts->parts + step;
    return i < 0 || i >= parts->n ? 0 : name_of(parts->parts[i].ix);
}

static void add_value(gx_text *t, const gx_sort_level *level, const gx_sort_value *v)
{
    gx_text_add(t, v->missing ? "-" : "+", 1);
    if (v->missing)
        return;
    if (gx_is_keyword(level->type))
        add_bytes(t, v->text, v->len);
    else
        add_u64(t, v->key);
}

static char *encode(const gx_text *t, size_t *len)
{
    const size_t n = t->len;
    char *text = malloc(n / 3 * 4 + 5), *to = text;
    if (!text)
        return NULL;
    for (size_t i = 0; i < n; i += 3) {
        const unsigned char *p = (const unsigned char *)t->bytes + i;
        const uint32_t x = (uint32_t)p[0] << 16 | (i + 1 < n ? (uint32_t)p[1] << 8 : 0) | (i + 2 < n ? p[2] : 0u);
        for (size_t d = 0; d < (n - i < 3 ? n - i + 1 : 4); ++d)
            *to++ = digits[x >> (18 - 6 * d) & 63];
    }
    *to = 0;
    *len = (size_t)(to - text);
    return text;
}

gx_status gx_cursor_write(char **out, size_t *len, const gx_index *ix, const gx_sort *sort, uint64_t hash,
                          uint64_t docid, double score, uint64_t n_before, gx_error *err)
{
    gx_text t = {0};
    uint32_t local = (uint32_t)docid;
    const gx_part *part = ix->parts ? gx_parts_find(ix->parts, docid, &local) : NULL;
    const gx_index *file = part ? part->ix : ix;
    uint64_t bits;
    size_t id_len;
    const char *id = gx_index_doc_id(ix, docid, &id_len);
    memcpy(&bits, &score, sizeof bits);
    gx_text_add(&t, magic, sizeof magic);
    add_u64(&t, hash);
    gx_text_add(&t, (const char *)uuid_of(ix), 16);
    add_u64(&t, ix->parts ? ix->parts->commit : 0);
    add_u64(&t, n_before);
    add_u64(&t, bits);
    add_u64(&t, docid);
    add_u64(&t, local);
    for (int i = -NEIGHBOURS; part && i <= NEIGHBOURS; i += 2) { /* two at a time */
        const uint64_t first = name_of_neighbour(ix->parts, part, i);
        add_u64(&t, first | (uint64_t)(i < NEIGHBOURS ? name_of_neighbour(ix->parts, part, i + 1) : 0) << 32);
    }
    for (uint32_t i = 0; i < sort->n; ++i) {
        const gx_sort_value v = gx_sort_value_of(file, &sort->levels[i], local);
        add_value(&t, &sort->levels[i], &v);
    }
    add_bytes(&t, id, id_len);
    add_u64(&t, gx_hash(t.bytes, t.len));
    *out = t.failed ? NULL : encode(&t, len);
    free(t.bytes);
    return *out ? GX_OK : no_memory(err);
}

/* ---- reading ---- */

typedef struct reader {
    const unsigned char *p;
    size_t n; /* bytes left */
    bool failed;
} reader;

static const unsigned char *take_bytes(reader *r, size_t n)
{
    const unsigned char *p = r->p;
    r->failed = r->failed || n > r->n;
    if (r->failed)
        return NULL;
    r->p += n;
    r->n -= n;
    return p;
}

static uint64_t take_u64(reader *r)
{
    const unsigned char *p = take_bytes(r, 8);
    uint64_t x = 0;
    for (int i = 0; p && i < 8; ++i)
        x |= (uint64_t)p[i] << 8 * i;
    return x;
}

static const char *take_text(reader *r, size_t *len)
{
    *len = take_u64(r);
    return (const char *)take_bytes(r, *len);
}

/* The bytes of a text, *n of them; false: it is no base64. */
static bool decode(unsigned char *out, size_t *n, const char *text, size_t len)
{
    uint32_t x = 0;
    *n = 0;
    for (size_t i = 0; i < len; ++i) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        x = x << 6 | (uint32_t)(digit - digits);
        if (i % 4)
            out[(*n)++] = (unsigned char)(x >> (6 - 2 * (i % 4)));
    }
    return len % 4 != 1;
}

static void take_value(reader *r, const gx_sort_level *level, gx_sort_value *v)
{
    const unsigned char *sign = take_bytes(r, 1);
    *v = (gx_sort_value){.missing = sign && *sign == '-'};
    if (v->missing)
        return;
    if (gx_is_keyword(level->type))
        v->text = take_text(r, &v->len);
    else
        v->key = take_u64(r);
}

/* The part of the name in the collection; NULL: there is none. */
static const gx_part *find_part(const gx_index *ix, uint32_t name)
{
    for (uint32_t i = 0; name && i < ix->parts->n; ++i)
        if (name_of(ix->parts->parts[i].ix) == name)
            return &ix->parts->parts[i];
    return NULL;
}

/* Where the document is now, or was: the first one behind it. Where its part is gone, and the document too, the parts
 * beside it tell, if they are there. */
static uint64_t find_behind(const gx_cursor *c, const gx_index *ix, uint64_t docid, const uint32_t *names,
                            uint64_t local, const char *id, size_t id_len)
{
    if (!c->moved)
        return docid + 1;
    const gx_part *part = find_part(ix, names[NEIGHBOURS]);
    if (part && local < part->ix->n_docs)
        return part->base + gx_deletes_rank(part->deletes, (uint32_t)local + 1);
    const uint64_t found = gx_index_find_doc64(ix, id, id_len);
    if (found != UINT64_MAX)
        return found + 1;
    for (int i = 1; i <= NEIGHBOURS; ++i) {
        if ((part = find_part(ix, names[NEIGHBOURS - i])))
            return part->base + part->n_live;
        if ((part = find_part(ix, names[NEIGHBOURS + i])))
            return part->base;
    }
    return docid;
}

static gx_status read_bytes(gx_cursor *c, size_t n, const gx_index *ix, const gx_sort *sort, uint64_t hash,
                            gx_error *err)
{
    static const char *const damaged = "the cursor is damaged";
    reader r = {c->bytes, n, false};
    size_t id_len = 0;
    const unsigned char *begin = take_bytes(&r, sizeof magic);
    if (!begin || memcmp(begin, magic, sizeof magic) != 0 || n < sizeof magic + 8)
        return gx_fail(err, GX_EUSAGE, "%s", damaged);
    reader sum = {c->bytes + n - 8, 8, false};
    if (take_u64(&sum) != gx_hash(c->bytes, n - 8))
        return gx_fail(err, GX_EUSAGE, "%s", damaged);
    if (take_u64(&r) != hash)
        return gx_fail(err, GX_EUSAGE, "the cursor is of another query, filter, scorer, prior or order");
    const unsigned char *uuid = take_bytes(&r, 16);
    if (uuid && memcmp(uuid, uuid_of(ix), 16) != 0)
        return gx_fail(err, GX_EUSAGE, "the cursor is of another index than %s, or of one that it has replaced",
                       ix->path);
    c->moved = take_u64(&r) != (ix->parts ? ix->parts->commit : 0);
    c->n_before = take_u64(&r);
    const uint64_t bits = take_u64(&r), docid = take_u64(&r), local = take_u64(&r);
    uint32_t names[N_NAMES + 1] = {0};
    for (int i = 0; ix->parts && i < N_NAMES; i += 2) {
        const uint64_t two = take_u64(&r);
        names[i] = (uint32_t)two;
        names[i + 1] = (uint32_t)(two >> 32);
    }
    memcpy(&c->place.score, &bits, sizeof bits);
    for (uint32_t i = 0; i < sort->n; ++i)
        take_value(&r, &sort->levels[i], &c->place.values[i]);
    const char *id = take_text(&r, &id_len);
    if (r.failed || r.n != 8 || isnan(c->place.score))
        return gx_fail(err, GX_EUSAGE, "%s", damaged);
    c->place.docid = find_behind(c, ix, docid, names, local, id, id_len);
    return GX_OK;
}

gx_status gx_cursor_read(gx_cursor *out, const char *text, size_t len, const gx_index *ix, const gx_sort *sort,
                         uint64_t hash, gx_error *err)
{
    gx_cursor c = {.bytes = malloc(len + 1)};
    size_t n;
    *out = (gx_cursor){0};
    if (!c.bytes)
        return no_memory(err);
    const gx_status st = decode(c.bytes, &n, text, len) ? read_bytes(&c, n, ix, sort, hash, err)
                                                        : gx_fail(err, GX_EUSAGE, "this is no cursor");
    if (st == GX_OK)
        *out = c;
    else
        gx_cursor_free(&c);
    return st;
}

void gx_cursor_free(gx_cursor *c)
{
    free(c->bytes);
    c->bytes = NULL;
}
