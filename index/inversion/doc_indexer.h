/* doc_indexer.h: one thread's way from the text or vectors of documents to postings, in bounded memory. It
 * holds an analysis, a term cache, a postings buffer, and counts of what they have done.
 */
#ifndef GX_INDEX_INVERSION_DOC_INDEXER_H
#define GX_INDEX_INVERSION_DOC_INDEXER_H

#include "index/analysis/analyzer.h"
#include "index/inversion/postings_buffer.h"
#include "index/inversion/stages.h"

typedef struct gx_doc_indexer gx_doc_indexer; /* belongs to one thread at a time */

/* Sums over the documents added. */
typedef struct gx_indexer_counts {
    uint64_t tokens, empty, dropped_tokens, replaced_bytes; /* as in gx_builder_counts */
    uint64_t memory_bytes;                                  /* held at present */
    uint32_t spills;
    double seconds[GX_N_STAGES]; /* elapsed time of the thread, by stage, estimated by the documents that are timed */
    double spilling;             /* seconds of the merge stage that spills took, while documents came */
} gx_indexer_counts;

/* analyzer must outlive the indexer. dir: the directory for temporary files. memory: when the
 * indexer holds more bytes than this after a document, it spills its postings to a file.
 * n_together: the indexers whose postings will be merged together, by as many threads. */
gx_status gx_doc_indexer_open(gx_doc_indexer **out, const gx_analyzer *analyzer, const char *dir, uint64_t memory,
                              uint32_t n_together, gx_error *err);
void gx_doc_indexer_close(gx_doc_indexer *v);

/* Index the document as docid, which is higher than all before. *n_tokens becomes its length. If
 * doc->vector is not NULL, the postings are its terms, none of them twice, with the bits of their
 * weights (quantizer.h) as tfs, and the text is not analysed. After
 * a failure the only valid call is close. GX_EIO, GX_ENOMEM. */
gx_status gx_doc_indexer_add(gx_doc_indexer *v, uint32_t docid, const gx_document *doc, uint32_t *n_tokens,
                             gx_error *err);

/* No more documents follow: free the term cache, finish the postings buffer. GX_EIO, GX_ENOMEM. */
gx_status gx_doc_indexer_finish(gx_doc_indexer *v, gx_error *err);

/* To be called before the first document: the postings' details are the positions of terms in documents. Positions
 * count tokens, stop words and dropped tokens among them, through title and text. */
void gx_doc_indexer_keep_positions(gx_doc_indexer *v);
uint32_t gx_doc_indexer_title_positions(const gx_doc_indexer *v); /* that the title of the last document takes, or 0 */
/* Of fields with positions: *n rows of n_fields numbers, one a document: its docid, and how many positions each field
 * but the last takes. */
const uint32_t *gx_doc_indexer_field_positions(const gx_doc_indexer *v, size_t *n);

gx_postings_buffer *gx_doc_indexer_postings(gx_doc_indexer *v); /* to merge; the indexer owns it */
const gx_indexer_counts *gx_doc_indexer_get_counts(const gx_doc_indexer *v);

/* To read the clock takes a hundredth of a build, so one document of several is timed. Its time counts `weight` times,
 * for the documents before it; 0: the last document was not timed. */
typedef struct gx_indexer_timing {
    double weight, stamp; /* stamp: when the last document's indexing ended */
} gx_indexer_timing;
gx_indexer_timing gx_doc_indexer_timing(const gx_doc_indexer *v);

/* Documents have n fields, whose texts doc->text has with GX_FIELD_SEPARATOR between them; titles are not indexed. A
 * detail of each posting's occurrence tells the field (gx_doc_indexer_field), or its position, which goes on from field
 * to field, where positions are kept. With weights[n] a term counts so many times, and there are no details. Before the
 * first document. GX_ENOMEM. */
gx_status gx_doc_indexer_set_fields(gx_doc_indexer *v, uint32_t n, const uint32_t *weights, gx_error *err);

/* The field that a detail tells. The last field's details are small numbers: most occurrences are there. */
#define GX_FIELD_DETAIL_SHIFT 26u
static inline uint32_t gx_doc_indexer_field(uint32_t n, uint32_t detail)
{
    const uint32_t code = detail >> GX_FIELD_DETAIL_SHIFT;
    return code ? code - 1 : n - 1;
}

gx_status gx_doc_indexer_no_memory(gx_error *err); /* GX_ENOMEM with the words that every part of a build uses */

#endif
