/* wide_world.h: collections of more than 2^32 - 2 documents for tests, and a judge of their answers.
 *
 *   parts       [ 0 1 2 ]   gap    [ 3 4 ]   gap   [ 5 6 7 8 ]      documents that are there
 *   docids        0 1 2              g+3             g+h+5          a gap is of documents without a term
 *
 * The parts are small files, made by the library. Gaps are in no file: after the collection is opened, the parts get
 * the docids that they would have, and the collection the number of documents and tokens that it would have, if parts
 * of that size lay between them. What searches it cannot tell.
 *
 * The judge has the documents as the test made them. It shares no code with the library: its own statistics, scores
 * (of GX_BM25 and GX_BM25_ATIRE, in fixed point as query/score/bm25.h defines them), and order, by score and docid.
 */
#ifndef GX_TESTS_SUPPORT_WIDE_WORLD_H
#define GX_TESTS_SUPPORT_WIDE_WORLD_H

#include "engine/api/gpuidx_advanced.h"
#include "index/read/collection.h"
#include "tests/support/test.h"

enum { WORLD_WORDS = 9, WORLD_PARTS = 5, WORLD_DOCS = 400, WORLD_GAP_LENGTH = 4 };

/* A document that is there. */
typedef struct world_doc {
    uint32_t number;          /* its id is "d<number>" */
    uint8_t tfs[WORLD_WORDS]; /* of the words w0, w1, ... */
    uint32_t length, year;    /* year 0: it has none */
    bool live;
    uint64_t docid; /* of a live one */
} world_doc;

typedef struct world {
    uint64_t seed, random;
    char dir[64]; /* the collection is DIR/wide */
    uint32_t n, n_parts, first[WORLD_PARTS + 1];
    uint64_t gaps[WORLD_PARTS]; /* documents before each part */
    uint64_t n_docs, n_tokens;  /* of all, gaps included */
    world_doc docs[WORLD_DOCS];
    gx_index *ix;
} world;

typedef struct world_query {
    uint32_t n;                  /* words, which differ */
    uint32_t words[WORLD_WORDS]; /* WORLD_WORDS and above: not in the collection */
    gx_op op;
    gx_preset preset;
    uint32_t k;
    uint32_t least_year, most_year; /* documents that may match; 0, 0: all */
} world_query;

typedef struct world_hit {
    uint64_t docid;
    uint32_t score;
    const world_doc *doc;
} world_hit;

typedef struct world_answer {
    uint32_t n; /* at most k */
    uint64_t n_matches;
    int exponent; /* a hit's score is score * 2^-exponent */
    world_hit hits[WORLD_DOCS];
} world_answer;

/* Where the parts lie among the docids. */
enum {
    WORLD_BORDER_IN_A_PART, /* document 2^32 is one in the middle of part 1 */
    WORLD_BORDER_BETWEEN_PARTS,
    WORLD_FAR,         /* docids above 2^40 */
    WORLD_JUST_WIDE,   /* 2^32 - 1 documents in all */
    WORLD_JUST_NARROW, /* one fewer: docids take 32 bits */
    WORLD_BEFORE_ALL,  /* no document is below 2^32, and 2^33 lies in a part */
    WORLD_PLACES
};

/* Make a collection in dir, delete some documents, and open it, without gaps. */
void world_open(world *w, const char *dir, uint64_t seed);
void world_place_at(world *w, int place);
void world_close(world *w); /* removes the collection */

uint32_t world_below(world *w, uint32_t n);
uint64_t world_number(const char *variable, uint64_t otherwise); /* of the environment */
void world_check(const world *w, gx_status st, const gx_error *err);

/* A random query, and what it is for gx_search. */
void world_draw_query(world *w, world_query *q);
gx_query_options world_options(const world_query *q);
void world_judge(const world *w, const world_query *q, world_answer *out);
/* Fails unless the answer is the judge's, to the bit; how: in words. */
void world_compare(const world *w, const world_query *q, const char *how, const world_answer *want, uint32_t n,
                   const uint64_t *docids, const double *scores);
/* The query's words as a text. */
const char *world_text(const world_query *q, char text[64]);

enum { WORLD_ENGINES = 4 };

/* The CPU's, another one with a cache of results, a GPU's if there is a GPU, and one of two GPUs if there are two: the
 * parts are spread over them, and its session begins with the second part. */
typedef struct world_engines {
    uint32_t n;
    const char *names[WORLD_ENGINES];
    gx_engine *engines[WORLD_ENGINES];
    gx_session *sessions[WORLD_ENGINES];
} world_engines;

void world_open_engines(world_engines *e, const world *w);
void world_close_engines(world_engines *e);

#endif
