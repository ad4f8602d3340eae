/* term_postings.h: a term and its whole list, on the way from the postings buffer to the encoder.
 * */
#ifndef GX_INDEX_WRITE_TERM_POSTINGS_H
#define GX_INDEX_WRITE_TERM_POSTINGS_H

#include "engine/api/gpuidx.h"

/* Who makes it owns the bytes and the arrays; a function that is given one does not keep them. */
typedef struct gx_term_postings {
    const char *term; /* [len] bytes */
    size_t len;
    uint32_t df;
    const uint32_t *docids, *tfs; /* [df] */
    const uint32_t *positions;    /* [sum of tfs] rising for each posting, posting by posting; NULL: not kept */
    const uint32_t *gaps;         /* in their place: of each posting the first, then each less the last one and 1 */
    const uint32_t *field_tfs;    /* [df * (n_fields - 1)] of an index with fields: of all fields but the last */
    float unit;                   /* of the list's impacts, where each list has its own; 0: 1 */
} gx_term_postings;

#endif
