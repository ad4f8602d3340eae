/* term_cache.h: raw tokens to term numbers, remembered, so that stemming and the rest run once for
 * each different token.
 *
 *   token of up to 11 bytes -> 16-byte slot: the bytes, the length, the number        4 slots a
 *   cache line
 *   longer                  -> 16-byte slot: hash, where the bytes are kept, the number
 *
 * Tokens come in batches: all keys are hashed and their slots prefetched before the first is
 * compared.
 */
#ifndef GX_INDEX_BUILD_TERM_CACHE_H
#define GX_INDEX_BUILD_TERM_CACHE_H

#include "index/analysis/analyzer.h"
#include "index/build/postings_buffer.h"

typedef struct gx_memo gx_memo;

/* Both outlive the memo. */
gx_status gx_memo_open(gx_memo **out, gx_analysis *analysis, gx_inverter *inverter, gx_error *err);
void gx_memo_close(gx_memo *m);

/* The term numbers of the tokens, in order, without those that are stopped or too long; *dropped
 * grows by the latter. terms[*n] belongs to the memo and lives until the next call. GX_ENOMEM. */
gx_status gx_memo_terms(gx_memo *m, const gx_tokens *tokens, const uint32_t **terms, uint32_t *n, uint64_t *dropped);

/* Forget all: the inverter has spilled. false: no memory. */
bool gx_memo_clear(gx_memo *m);
uint64_t gx_memo_bytes(const gx_memo *m);

#endif
