/* builder_state.h: what the files of a builder share: its state, and the calls between them.
 *
 *   builder.c             opens it, finishes and aborts; META
 *   builder_documents.c   checks documents, and gives them docids
 *   builder_source.c      reads the documents of a source on several threads
 *   builder_spool.c       hands documents to the writer, or spools those that a later one may replace
 *   builder_lists.c       encodes the lists of terms, and hands them to the writer
 */
#ifndef GX_INDEX_INVERSION_BUILDER_STATE_H
#define GX_INDEX_INVERSION_BUILDER_STATE_H

#include <stdio.h>

#include "engine/api/gpuidx_advanced.h"
#include "index/analysis/analyzer.h"
#include "index/inversion/builder.h"
#include "index/inversion/parallel_inverter.h"
#include "index/inversion/vector_check.h"
#include "index/write/external_ids.h"
#include "index/write/quantizer.h"
#include "index/write/writer.h"

struct gx_builder {
    gx_builder_options opt;
    char *path, *dir, *source;
    gx_field fields[GX_MAX_INDEX_FIELDS]; /* [opt.n_fields] with names of its own */
    uint32_t field_weights[GX_MAX_INDEX_FIELDS];
    gx_analyzer *analyzer;
    gx_parallel_inverter *inverter; /* NULL at the end */
    gx_writer *writer;
    gx_columns *columns; /* NULL: there are no attributes */
    gx_external_ids ids;
    gx_builder_counts counts;
    uint32_t n_docs; /* docids given, those of documents taken out later included */

    /* GX_DUPLICATES_LAST: the writer wants no document that is taken out later, so all wait in a
     * file. */
    FILE *spooled;
    gx_weight_range *ranges; /* [max_ranges] of vectors: those of each document's weights */
    size_t max_ranges;
    uint8_t *tombstones;   /* [max_tombstones] a bit a docid */
    size_t max_tombstones; /* in bytes */
    uint32_t *remap;       /* [n_docs] at the end: the docid in the index, or UINT32_MAX */
    /* Of vectors. */
    gx_vector_check *check;
    gx_weight_range range; /* of all weights in the index */
    double unit;           /* at the end */
    bool done;
    double stamp; /* when the stage at hand began */
};

/* Whether the index will have fields: not where their weights are fixed. */
static inline bool gx_builder_keeps_fields(const gx_builder *b)
{
    return b->opt.n_fields && !b->opt.fixed_weights;
}

/* Whether the builder would take the document, but for its values and an id that comes again. Any
 * thread may ask; check: of its own. */
gx_status gx_builder_check_by(const gx_builder *b, gx_vector_check *check, const gx_document *doc, gx_error *err);

gx_weight_range gx_document_weights(const gx_document *doc); /* of its vector */

/* Give the document whose values were set last the next docid. *skip: an earlier one keeps its
 * place. The weights are those of its vector. GX_EINPUT: its id comes again; GX_EIO, GX_ENOMEM. */
gx_status gx_builder_admit(gx_builder *b, gx_id_key key, const char *id, size_t id_len, gx_weight_range weights,
                           bool *skip, gx_error *err);

/* Whether a later document has replaced the document docid. */
bool gx_builder_is_deleted(const gx_builder *b, uint32_t docid);

/* Receive the next document, from the caller's thread. */
gx_document_sink_fn gx_builder_take_document;

/* Make a batch ready for gx_builder_take_batch, on one of the inverter's threads, in any order. */
gx_batch_fn gx_builder_pack_batch;

/* Receive the next batch in order, from one of the inverter's threads. gx_builder_add may run at
 * the same time. */
gx_batch_fn gx_builder_take_batch;

/* A file in dir, without a name, for documents that a later one may replace. NULL: errno says why. */
FILE *gx_builder_open_spool(const char *dir);

/* Hand the documents that stay to the writer, and number them. */
gx_status gx_builder_write_spooled(gx_builder *b, gx_error *err);

/* Where the inverter's lists go; valid as long as the builder. */
gx_list_sink gx_builder_list_sink(gx_builder *b);

#endif
