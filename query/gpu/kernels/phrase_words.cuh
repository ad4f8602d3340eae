/* phrase_words.cuh: the phrases of a query's program (query/plan/phrase_program.h), and where their words are. */
#ifndef GX_QUERY_GPU_KERNELS_PHRASE_WORDS_CUH
#define GX_QUERY_GPU_KERNELS_PHRASE_WORDS_CUH

#include "query/gpu/kernels/kernels.cuh"
#include "query/gpu/kernels/search.cuh"

extern "C" {
#include "query/plan/phrase_program.h"
}

namespace gx {

/* A program. */
struct phrase_program {
    const uint32_t *places, *words, *phrases; /* terms of places; terms of words that are in no phrase; the phrases */
    uint32_t n_places, n_words, n_phrases;

    __device__ __forceinline__ explicit phrase_program(const uint32_t *program)
        : places(program + GX_PROGRAM_TERMS), words(places + __ldg(program + GX_PROGRAM_PLACES)),
          phrases(words + __ldg(program + GX_PROGRAM_WORDS)), n_places(__ldg(program + GX_PROGRAM_PLACES)),
          n_words(__ldg(program + GX_PROGRAM_WORDS)), n_phrases(__ldg(program + GX_PROGRAM_PHRASES))
    {
    }
};

/* A phrase of the program: [n] words. */
struct program_phrase {
    const uint32_t *words;
    uint32_t n;
    float w;

    __device__ __forceinline__ uint32_t place(uint32_t i) const { return __ldg(words + i) & (GX_MAX_PLACES - 1); }
    __device__ __forceinline__ uint32_t offset(uint32_t i) const { return __ldg(words + i) >> GX_PLACE_BITS; }
};

/* Reads the phrase at `at` of a program, and moves behind it. */
__device__ __forceinline__ program_phrase next_phrase(const uint32_t *&at)
{
    const program_phrase p = {at + 2, __ldg(at + 1), __uint_as_float(__ldg(at))};
    at += 2 + p.n;
    return p;
}

/* Returns the number of positions that a document's title takes. */
__device__ __forceinline__ uint32_t title_positions(const gpu_positions &S, uint32_t doc)
{
    uint32_t n = 0;
    for (uint32_t i = 0; S.titles && i < S.title_width; ++i)
        n |= (uint32_t)__ldg(S.titles + (size_t)doc * S.title_width + i) << 8 * i;
    return n;
}

/* Returns doc's posting in a list that holds it, or UINT32_MAX. The arguments are the same in all lanes. */
template <class P>
__device__ __forceinline__ uint32_t find_posting(const gpu_index &X, const gpu_term *t, uint32_t doc, uint32_t lane)
{
    const term_filter f = read(&t->filter);
    if (f.map_shift == EXACT_SLOTS)
        return dense_posting(X, f, doc);
    return find_in_list<P, true>(X, t, doc, lane);
}

} // namespace gx

#endif
