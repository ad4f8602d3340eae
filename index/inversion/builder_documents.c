/* builder_documents.c: documents are checked and get docids, which also settles ids that come again. */
#include "index/inversion/builder_state.h"

#include <stdlib.h>
#include <string.h>

#include "engine/memory/grow.h"
#include "engine/sized.h"
#include "engine/status.h"

/* The weights of a vector that is good otherwise are not too large for a unit that is given. */
static gx_status check_weights(const gx_builder *b, const gx_document *doc, gx_error *err)
{
    char shown[64];
    for (uint32_t i = 0; b->opt.unit > 0 && i < doc->n_vector; ++i)
        if (doc->vector[i].weight / b->opt.unit > GX_MAX_IMPACT)
            return gx_fail(err, GX_EINPUT, "the weight of '%s' is %g; the most of the unit %g is %g",
                           gx_show_term(doc->vector[i].term, doc->vector[i].len, shown), doc->vector[i].weight,
                           b->opt.unit, GX_MAX_IMPACT * b->opt.unit);
    return GX_OK;
}

gx_status gx_builder_check_by(const gx_builder *b, gx_vector_check *check, const gx_document *doc, gx_error *err)
{
    const size_t title_len = b->opt.store_titles ? doc->title_len : 0;
    if (doc->id_len == 0)
        return gx_fail(err, GX_EINPUT, "the document has no id; give it one");
    for (size_t i = 0; i < doc->id_len; ++i)
        if ((unsigned char)doc->id[i] <= ' ' || doc->id[i] == 127)
            return gx_fail(err, GX_EINPUT,
                           "the id \"%.*s\" holds white space or a control character, which runs and "
                           "qrels cannot hold; replace it",
                           (int)(doc->id_len < 200 ? doc->id_len : 200), doc->id);
    if (doc->id_len >= 3 && memcmp(doc->id, "\xEF\xBB\xBF", 3) == 0)
        return gx_fail(
            err, GX_EINPUT,
            "the id \"%.*s\" begins with a byte order mark (U+FEFF), which is not seen and which files of ids "
            "may begin with; remove it",
            (int)(doc->id_len < 200 ? doc->id_len : 200), doc->id);
    if (doc->id_len > GX_MAX_STRING || title_len > GX_MAX_STRING)
        return gx_fail(err, GX_EINPUT, "the document's %s is %zu bytes long; the most is %u",
                       doc->id_len > GX_MAX_STRING ? "id" : "title",
                       doc->id_len > GX_MAX_STRING ? doc->id_len : title_len, GX_MAX_STRING);
    if (doc->text_len > GX_MAX_TEXT)
        return gx_fail(err, GX_EINPUT, "the document's text is %zu bytes long; the most is %u", doc->text_len,
                       GX_MAX_TEXT);
    uint32_t n_fields = 1;
    for (const char *p = doc->text, *end = p + doc->text_len;
         b->opt.n_fields && p && (p = memchr(p, GX_FIELD_SEPARATOR, (size_t)(end - p))); ++p)
        ++n_fields;
    if (b->opt.n_fields && n_fields > b->opt.n_fields)
        return gx_fail(err, GX_EINPUT, "the document's text has %u fields, and the index %u", n_fields,
                       b->opt.n_fields);
    if (doc->vector && doc->n_vector && !b->check)
        return gx_fail(err, GX_EUSAGE, "the document has a vector, and the index is of texts");
    if (check) {
        gx_status st = gx_vector_check_run(check, doc->vector, doc->n_vector, err);
        if (st == GX_OK)
            st = check_weights(b, doc, err);
        if (st != GX_OK)
            return st;
    }
    if (doc->values && doc->n_values && !b->columns)
        return gx_fail(err, GX_EUSAGE, "the document has values of attributes, and the index none");
    return GX_OK;
}

gx_status gx_builder_check(const gx_builder *b, const gx_document *doc, gx_error *err)
{
    const gx_status st = gx_builder_check_by(b, b->check, doc, err);
    return st == GX_OK && b->columns ? gx_columns_set(b->columns, doc->values, doc->n_values, err) : st;
}

/* Mark the document docid as deleted: it does not go into the index. */
static gx_status mark_deleted(gx_builder *b, uint32_t docid, gx_error *err)
{
    const size_t at = docid / 8;
    if (at >= b->max_tombstones) {
        const size_t max = at + at / 2 + 4096;
        uint8_t *p = realloc(b->tombstones, max);
        if (!p)
            return gx_doc_indexer_no_memory(err);
        memset(p + b->max_tombstones, 0, max - b->max_tombstones);
        b->tombstones = p;
        b->max_tombstones = max;
    }
    b->tombstones[at] |= (uint8_t)(1u << docid % 8);
    return GX_OK;
}

bool gx_builder_is_deleted(const gx_builder *b, uint32_t docid)
{
    return docid / 8 < b->max_tombstones && b->tombstones[docid / 8] >> docid % 8 & 1;
}

/* Apply the policy to an id that the document docid has already. *skip: the new document is not
 * added. */
static gx_status resolve_duplicate(gx_builder *b, const char *id, size_t id_len, uint32_t docid, bool *skip,
                                   gx_error *err)
{
    switch (b->opt.duplicates) {
    case GX_DUPLICATES_FIRST:
        ++b->counts.duplicates;
        *skip = true;
        return GX_OK;
    case GX_DUPLICATES_LAST:
        ++b->counts.duplicates;
        *skip = false;
        return mark_deleted(b, docid, err);
    default:
        return gx_fail(err, GX_EINPUT, "the id \"%.*s\" is that of document %u already",
                       (int)(id_len < 200 ? id_len : 200), id, docid + 1);
    }
}

gx_weight_range gx_document_weights(const gx_document *doc)
{
    gx_weight_range r = {0};
    for (uint32_t i = 0; i < doc->n_vector; ++i)
        gx_weight_range_add(&r, doc->vector[i].weight);
    return r;
}

/* Take the weights of the next document into account for the unit. Where a later document may
 * replace this one, keep them apart. GX_ENOMEM. */
static gx_status count_weights(gx_builder *b, gx_weight_range r, gx_error *err)
{
    if (b->opt.duplicates != GX_DUPLICATES_LAST) {
        gx_weight_range_merge(&b->range, r);
        return GX_OK;
    }
    const gx_status st = gx_grow(&b->ranges, &b->max_ranges, b->n_docs + (size_t)1, sizeof *b->ranges, err);
    if (st == GX_OK)
        b->ranges[b->n_docs] = r;
    return st;
}

gx_status gx_builder_admit(gx_builder *b, gx_id_key key, const char *id, size_t id_len, gx_weight_range weights,
                           bool *skip, gx_error *err)
{
    *skip = false;
    if (b->n_docs == UINT32_MAX - 1)
        return gx_fail(err, GX_EINPUT, "an index holds at most %u documents; split the collection", UINT32_MAX - 1);
    uint32_t *docid = gx_external_ids_insert(&b->ids, key);
    if (!docid)
        return gx_doc_indexer_no_memory(err);
    gx_status st = *docid != UINT32_MAX ? resolve_duplicate(b, id, id_len, *docid, skip, err) : GX_OK;
    if (st != GX_OK || *skip)
        return st;
    *docid = b->n_docs;
    if (b->columns)
        st = gx_columns_add(b->columns, err);
    if (st == GX_OK && b->check)
        st = count_weights(b, weights, err);
    if (st == GX_OK)
        ++b->n_docs, ++b->counts.documents;
    return st;
}

gx_status gx_builder_add(gx_builder *b, const gx_document *document, gx_error *err)
{
    gx_document own = {0}, *const doc = &own;
    if (b->done)
        return gx_fail(err, GX_EUSAGE, "the builder takes no more documents: it finished or failed before");
    gx_status st = gx_sized_read(doc, sizeof own, document, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err);
    if (st == GX_OK)
        st = gx_builder_check(b, doc, err);
    if (st != GX_OK)
        return st;
    static const gx_weighted_term none;
    if (b->check && !doc->vector)
        doc->vector = &none;
    bool skip;
    const gx_id_key key = gx_external_ids_key(&b->ids, doc->id, doc->id_len);
    b->done = true; /* until all has gone well */
    st = gx_builder_admit(b, key, doc->id, doc->id_len, b->check ? gx_document_weights(doc) : (gx_weight_range){0},
                          &skip, err);
    if (st == GX_OK && !skip)
        st = gx_parallel_inverter_add(b->inverter, doc, err);
    if (st == GX_OK && !skip)
        b->counts.text_bytes += doc->title_len + doc->text_len;
    b->done = st != GX_OK && st != GX_EINPUT;
    return st;
}

gx_status gx_builder_add_many(gx_builder *b, const gx_document *docs, size_t n, size_t *n_added, gx_error *err)
{
    gx_status st = n ? gx_sized_check(docs->size, GX_SIZE_THROUGH(gx_document, text_len), "gx_document", err) : GX_OK;
    const size_t size = st == GX_OK && n ? docs->size : 0;
    const char *const first = (const char *)docs;
    *n_added = 0;
    for (size_t i = 1; st == GX_OK && i < n; ++i) {
        const size_t other = ((const gx_document *)(first + i * size))->size;
        if (other != size)
            st =
                gx_fail(err, GX_EUSAGE, "documents of one call have the same size; document %zu has %zu, the first %zu",
                        i, other, size);
    }
    for (size_t i = 0; st == GX_OK && i < n; ++i)
        if ((st = gx_builder_add(b, (const gx_document *)(first + i * size), err)) == GX_OK)
            ++*n_added;
    return st;
}

uint32_t gx_builder_find(const gx_builder *b, const char *id, size_t len)
{
    const uint32_t *docid = gx_external_ids_find(&b->ids, gx_external_ids_key(&b->ids, id, len));
    return docid ? *docid : UINT32_MAX;
}

uint32_t gx_builder_forget(gx_builder *b, const char *id, size_t len)
{
    uint32_t *place = gx_external_ids_find(&b->ids, gx_external_ids_key(&b->ids, id, len)), docid = UINT32_MAX;
    if (place) {
        docid = *place;
        *place = UINT32_MAX;
    }
    return docid;
}
