/* output.h: the answer to one query, as people and programs want it.
 *
 *   human   rank, score, id, title, snippet; the number of matches and the time
 *   trec    qid Q0 id rank score tag          TREC run, for `gpuidx eval` and trec_eval
 *   tsv     qid \t id \t rank                 MS MARCO
 *   jsonl   one object a query, "schema": 1   (only ever grows)
 *   csv     qid,rank,id,score,title           RFC 4180, one head line
 *
 * Scores that differ are printed differently, but for human, which shows four decimals. Nothing
 * from the index reaches a terminal as a control sequence.
 */
#ifndef GX_TOOLS_CLI_OUTPUT_H
#define GX_TOOLS_CLI_OUTPUT_H

#include <stdio.h>

#include "engine/api/gpuidx_advanced.h"

#define OUT_FORMATS "human|trec|tsv|jsonl|csv"
typedef enum out_format { OUT_HUMAN, OUT_TREC, OUT_TSV, OUT_JSONL, OUT_CSV } out_format;

typedef struct out_answer {
    gx_answer found;          /* with marks for human and jsonl; human shows neither qid nor query */
    bool timing;              /* human: show the time */
    const char *tag;          /* trec: the run's name */
    bool (*stop)(void *user); /* human: asked before each result: true ends the answer there. Or NULL */
} out_answer;

/* csv's head line, with the names of the attributes shown[n_shown], and columns for groups. The other formats have
 * none. */
void out_head(FILE *out, out_format format, const gx_index *ix, const uint32_t *shown, uint32_t n_shown, bool grouped);
/* GX_OK, or what reading a stored text says. Write errors are left in the stream. */
gx_status out_put_answer(FILE *out, out_format format, const out_answer *a, gx_error *err);

/* One document as a person reads it: id, title, length, attributes, text. */
gx_status out_put_document(FILE *out, const gx_index *ix, uint64_t docid, gx_error *err);
/* The formula and its numbers. */
void out_put_explanation(FILE *out, const gx_explanation *e, const char *indent);

/* A score in decimal, with up to 11 digits: one more than tells the scores of a query apart. */
const char *out_score(char text[32], double score);
/* Bytes with control characters and invalid UTF-8 made harmless. */
void out_put_clean(FILE *out, const char *text, size_t len);
/* A JSON string, quotes included; invalid UTF-8 becomes U+FFFD. */
void out_put_json(FILE *out, const char *text, size_t len);

#endif
