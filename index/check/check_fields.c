/* check_fields.c: the section FLDS: bound to arrays, its structure, its contents. */
#include "index/check/check_fields.h"

#include <stdlib.h>
#include <string.h>

#include "engine/status.h"
#include "engine/text/json_text.h"
#include "index/check/check_parts.h"
#include "index/fields/fields.h"
#include "index/positions.h"

#define ULL(x) ((unsigned long long)(x))

static bool all_zero(const uint8_t *p, uint64_t n)
{
    uint8_t any = 0;
    for (uint64_t i = 0; i < n; ++i)
        any |= p[i];
    return !any;
}

gx_status gx_fields_bind(gx_index *ix, gx_error *err)
{
    const gx_section *s = gx_index_section(ix, GX_SEC_FIELDS);
    const bool flag = ix->header->flags & GX_HEADER_FIELDS;
    if (!s && !flag)
        return GX_OK;
    if (!s || !flag || ix->impacts)
        return gx_corrupt(err, ix, GX_SEC_FIELDS, "%s",
                          !s      ? "it is missing"
                          : !flag ? "the header does not announce it"
                                  : "tfs are impacts");
    const uint32_t n = s->param & 0xff, width = s->param >> 8 & 0xff, n_wraps = (uint32_t)(s->param >> 32);
    if (n == 0 || n > GX_MAX_FIELDS || (width != 1 && width != 2 && width != 4) || (s->param >> 16 & 0xffff) ||
        n_wraps > ix->n_terms)
        return gx_corrupt(err, ix, s->kind, "its parameter is %llx", ULL(s->param));
    const uint64_t lens = gx_fields_lens_bytes(ix->n_docs, n, width), ends = gx_fields_ends_bytes(ix->n_terms, n_wraps);
    if (s->bytes < lens + ends + GX_FIELD_TFS_SLACK)
        return gx_corrupt(err, ix, s->kind, "it has %llu bytes; lengths and ends take %llu", ULL(s->bytes),
                          ULL(lens + ends + GX_FIELD_TFS_SLACK));
    gx_fields *f = ix->fields = calloc(1, sizeof *f);
    if (!f)
        return gx_fail(err, GX_ENOMEM, "out of memory");
    const uint8_t *const begin = ix->file + s->offset;
    f->n = n;
    f->len_width = width;
    f->lens = begin;
    f->ends = (const uint32_t *)(const void *)(begin + lens);
    f->wraps = f->ends + ix->n_terms;
    f->n_wraps = n_wraps;
    f->bytes = begin + lens + ends;
    f->n_bytes = s->bytes - lens - ends - GX_FIELD_TFS_SLACK;
    return GX_OK;
}

/* META's "fields": [{"name": "title"}, ...]. */
static gx_status read_names(gx_index *ix, gx_error *err)
{
    gx_fields *f = ix->fields;
    json_t *root = gx_json_load(ix->meta, ix->meta_len, 0, NULL);
    const json_t *list = json_object_get(root, "fields");
    gx_status st = root ? GX_OK : gx_fail(err, GX_ENOMEM, "out of memory");
    if (st == GX_OK && json_array_size(list) != f->n)
        st = gx_corrupt(err, ix, GX_SEC_META, "it names %zu fields, not %u", json_array_size(list), f->n);
    for (uint32_t i = 0; st == GX_OK && i < f->n; ++i) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        const size_t len = json_string_length(name);
        if (len == 0 || len > GX_MAX_FIELD_NAME || strlen(json_string_value(name)) != len)
            st = gx_corrupt(err, ix, GX_SEC_META, "field %u has no name of 1 to %u bytes", i, GX_MAX_FIELD_NAME);
        else if (!(f->names[i] = strdup(json_string_value(name))))
            st = gx_fail(err, GX_ENOMEM, "out of memory");
        for (uint32_t j = 0; st == GX_OK && j < i; ++j)
            if (strcmp(f->names[j], f->names[i]) == 0)
                st = gx_corrupt(err, ix, GX_SEC_META, "two fields have the name %s", f->names[i]);
    }
    json_decref(root);
    return st;
}

static gx_status check_ends(const gx_index *ix, gx_error *err)
{
    const gx_fields *f = ix->fields;
    uint64_t last = 0, wraps = 0;
    for (uint32_t i = 0; i < f->n_wraps; ++i)
        if (f->wraps[i] >= ix->n_terms || (i && f->wraps[i] < f->wraps[i - 1]))
            return gx_corrupt(err, ix, GX_SEC_FIELDS, "its count passes 2^32 at list %u", f->wraps[i]);
    for (uint32_t t = 0; t < ix->n_terms; ++t) {
        while (wraps < f->n_wraps && f->wraps[wraps] == t)
            ++wraps;
        const uint64_t end = wraps << 32 | f->ends[t];
        if (end < last || end > f->n_bytes)
            return gx_corrupt(err, ix, GX_SEC_FIELDS, "list %u ends at byte %llu, not in %llu to %llu", t, ULL(end),
                              ULL(last), ULL(f->n_bytes));
        last = end;
    }
    if (last != f->n_bytes)
        return gx_corrupt(err, ix, GX_SEC_FIELDS, "lists end at byte %llu, the section at %llu", ULL(last),
                          ULL(f->n_bytes));
    return GX_OK;
}

static gx_status check_lens(const gx_index *ix, gx_error *err)
{
    gx_fields *f = ix->fields;
    uint32_t lens[GX_MAX_FIELDS];
    memset(f->n_tokens, 0, sizeof f->n_tokens);
    for (uint32_t d = 0; d < ix->n_docs; ++d) {
        uint64_t sum = 0;
        gx_fields_lens(f, d, lens);
        for (uint32_t i = 0; i + 1 < f->n; ++i) {
            f->n_tokens[i] += lens[i];
            sum += lens[i];
        }
        if (sum > ix->doc_lens[d])
            return gx_corrupt(err, ix, GX_SEC_FIELDS, "document %u has length %u, and its fields %llu", d,
                              ix->doc_lens[d], ULL(sum));
        f->n_tokens[f->n - 1] += ix->doc_lens[d] - sum;
    }
    return GX_OK;
}

gx_status gx_fields_check_structure(gx_index *ix, gx_error *err)
{
    const gx_fields *f = ix->fields;
    if (!f)
        return GX_OK;
    const uint64_t lens = (uint64_t)ix->n_docs * (f->n - 1) * f->len_width,
                   ends = ((uint64_t)ix->n_terms + f->n_wraps) * sizeof(uint32_t);
    if (!all_zero(f->lens + lens, -lens % 8) || !all_zero((const uint8_t *)f->ends + ends, -ends % 8) ||
        !all_zero(f->bytes + f->n_bytes, GX_FIELD_TFS_SLACK))
        return gx_corrupt(err, ix, GX_SEC_FIELDS, "the bytes behind its arrays are not zero");
    gx_status st = read_names(ix, err);
    if (st == GX_OK)
        st = check_ends(ix, err);
    return st == GX_OK ? check_lens(ix, err) : st;
}

/* ---- contents ---- */

typedef struct scratch {
    uint32_t docids[GX_MAX_BLOCK + 32], tfs[GX_MAX_BLOCK + 32];
    uint32_t *field_tfs; /* of the longest list */
    uint32_t *doc_tfs;   /* [n_docs * (n - 1)] sums, modulo 2^32 */
    uint32_t *positions; /* [max_positions] of a block */
    size_t max_positions;
} scratch;

/* Each posting's tfs by field are those of its positions; `at`: the number of the block's first posting. */
static gx_status check_places(const gx_index *ix, uint32_t term, uint32_t j, scratch *x, uint32_t n_here, uint32_t at,
                              gx_error *err)
{
    const uint32_t n = ix->fields->n - 1, df = ix->lists[term].df;
    uint64_t begins[GX_MAX_FIELDS];
    size_t end;
    gx_status st =
        gx_index_decode_positions(ix, term, j, x->tfs, n_here, &x->positions, &x->max_positions, 0, &end, err);
    const uint32_t *p = x->positions;
    for (uint32_t i = 0; i < n_here && st == GX_OK; ++i) {
        uint32_t counts[GX_MAX_FIELDS] = {0}, n_begins, f = 0;
        gx_index_stretches(ix, x->docids[i], &n_begins, begins);
        for (const uint32_t *const behind = p + x->tfs[i]; p < behind; ++p) {
            for (; f < n_begins && *p >= begins[f]; ++f)
                ;
            ++counts[f];
        }
        for (uint32_t k = 0; k < n && st == GX_OK; ++k)
            if (counts[k] != x->field_tfs[(size_t)k * df + at + i])
                st = gx_corrupt(err, ix, GX_SEC_FIELDS, "list %u: document %u has %u positions in field %u, not its tf",
                                term, x->docids[i], counts[k], k);
    }
    return st;
}

static gx_status check_list(const gx_index *ix, uint32_t term, scratch *x, gx_error *err)
{
    const gx_fields *f = ix->fields;
    const gx_list l = gx_index_list(ix, term);
    const uint32_t n = f->n - 1;
    size_t n_bytes;
    const uint8_t *bytes = gx_fields_list(f, term, &n_bytes);
    uint32_t dfs[GX_MAX_FIELDS], found[GX_MAX_FIELDS] = {0};
    memset(x->field_tfs, 0, (size_t)l.df * n * sizeof *x->field_tfs);
    if (!gx_field_tfs_count(bytes, n_bytes, l.df, f->n, dfs) ||
        !gx_field_tfs_decode(bytes, n_bytes, l.df, f->n, x->field_tfs))
        return gx_corrupt(err, ix, GX_SEC_FIELDS, "the tfs by field of list %u do not decode", term);
    for (uint32_t j = 0, at = 0; j < l.n_blocks; ++j) {
        const uint32_t n_here = gx_list_decode_docids(&l, j, x->docids);
        gx_list_decode_tfs(&l, j, x->tfs);
        const gx_status st = ix->positions ? check_places(ix, term, j, x, n_here, at, err) : GX_OK;
        if (st != GX_OK)
            return st;
        for (uint32_t i = 0; i < n_here; ++i, ++at) {
            uint64_t sum = 0;
            for (uint32_t k = 0; k < n; ++k) {
                const uint32_t tf = x->field_tfs[(size_t)k * l.df + at];
                sum += tf;
                found[k] += tf != 0;
                x->doc_tfs[(size_t)x->docids[i] * n + k] += tf;
            }
            if (sum > x->tfs[i])
                return gx_corrupt(err, ix, GX_SEC_FIELDS, "list %u: document %u has tf %u, and its fields %llu", term,
                                  x->docids[i], x->tfs[i], ULL(sum));
            found[n] += sum != x->tfs[i];
        }
    }
    if (memcmp(found, dfs, f->n * sizeof *dfs) != 0)
        return gx_corrupt(err, ix, GX_SEC_FIELDS, "list %u does not have as many postings by field as it says", term);
    return GX_OK;
}

gx_status gx_fields_check_contents(const gx_index *ix, gx_error *err)
{
    const gx_fields *f = ix->fields;
    uint32_t most = 0, lens[GX_MAX_FIELDS];
    gx_status st = GX_OK;
    scratch x = {.positions = NULL};
    if (!f || f->n == 1)
        return GX_OK;
    for (uint32_t t = 0; t < ix->n_terms; ++t)
        most = ix->lists[t].df > most ? ix->lists[t].df : most;
    const uint32_t n = f->n - 1;
    x.field_tfs = calloc(((size_t)most + 1) * n, sizeof *x.field_tfs);
    x.doc_tfs = calloc(((size_t)ix->n_docs + 1) * n, sizeof *x.doc_tfs);
    if (!x.field_tfs || !x.doc_tfs)
        st = gx_fail(err, GX_ENOMEM, "out of memory while checking %s", ix->path);
    for (uint32_t t = 0; t < ix->n_terms && st == GX_OK; ++t)
        st = check_list(ix, t, &x, err);
    for (uint32_t d = 0; st == GX_OK && ix->sum_tfs == ix->n_tokens && d < ix->n_docs; ++d) {
        gx_fields_lens(f, d, lens);
        for (uint32_t k = 0; k < n && st == GX_OK; ++k)
            if (x.doc_tfs[(size_t)d * n + k] != lens[k])
                st = gx_corrupt(err, ix, GX_SEC_FIELDS, "document %u has length %u in field %u, its tfs add up to %u",
                                d, lens[k], k, x.doc_tfs[(size_t)d * n + k]);
    }
    free(x.field_tfs);
    free(x.doc_tfs);
    free(x.positions);
    return st;
}
