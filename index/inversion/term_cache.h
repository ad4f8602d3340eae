/* term_cache.h: raw tokens to term numbers. The cache remembers each token, so that case folding,
 * stop words and stemming run once for each different token.
 *
 *   token of up to 11 bytes -> 16-byte slot: the bytes, the length, the term number
 *   longer token            -> 16-byte slot: a hash, where the bytes are kept, the term number
 *
 * A cache line holds four slots. Tokens come in batches: all keys of a batch are hashed and their
 * slots prefetched before the first is compared.
 */
#ifndef GX_INDEX_INVERSION_TERM_CACHE_H
#define GX_INDEX_INVERSION_TERM_CACHE_H

#include "index/analysis/analyzer.h"
#include "index/inversion/postings_buffer.h"

typedef struct gx_term_cache gx_term_cache;

/* analysis and postings must outlive the cache. */
gx_status gx_term_cache_open(gx_term_cache **out, gx_analysis *analysis, gx_postings_buffer *postings, gx_error *err);
void gx_term_cache_close(gx_term_cache *m);

/* The term numbers of a document's tokens, in order, without stop words and without tokens that are
 * too long; *dropped grows by the number of the latter. The cache owns terms[*n], which is valid
 * until the next call. GX_ENOMEM. */
gx_status gx_term_cache_document(gx_term_cache *m, const gx_tokens *tokens, const uint32_t **terms, uint32_t *n,
                                 uint64_t *dropped);

/* The same with each term's place among the tokens, positions[*n], which the caller may change. */
gx_status gx_term_cache_positions(gx_term_cache *m, const gx_tokens *tokens, const uint32_t **terms,
                                  uint32_t **positions, uint32_t *n, uint64_t *dropped);

/* Forget all tokens, because the postings buffer spills and numbers terms anew. false: no
 * memory. */
bool gx_term_cache_clear(gx_term_cache *m);
uint64_t gx_term_cache_bytes(const gx_term_cache *m);

#endif
