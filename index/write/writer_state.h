/* writer_state.h: what the files of a writer share: its state, and the calls between them.
 *
 *   writer.c             opens, finishes and closes it
 *   writer_documents.c   documents: ids, titles, texts, lengths
 *   writer_lists.c       lists that are encoded: terms, the directory, heads and ends, the payload
 *   writer_sections.c    the sections behind the payload, put together at the end
 */
#ifndef GX_INDEX_WRITE_WRITER_STATE_H
#define GX_INDEX_WRITE_WRITER_STATE_H

#include <stdatomic.h>
#include <zstd.h>

#include "engine/files/spool.h"
#include "index/format.h"
#include "index/write/list_encoder.h"
#include "index/write/section_writer.h"
#include "index/write/writer.h"

/* Strings on their way into a strings section. */
typedef struct gx_spooled_strings {
    gx_spool lens, bytes;
} gx_spooled_strings;

/* Texts of the frame that is being filled. */
typedef struct gx_open_frame {
    uint32_t *ends;
    char *bytes;
    size_t n, max_ends, n_bytes, max_bytes;
    uint32_t first_doc;
    ZSTD_CCtx *zstd;
} gx_open_frame;

typedef struct gx_writer_totals {
    uint32_t n_docs, n_terms;
    uint64_t n_postings, n_tokens, n_blocks;
} gx_writer_totals;

struct gx_writer {
    char *path, *dir;
    bool unnamed, store_text, impacts, list_units, with_positions, any_title, finished;
    uint32_t threads;
    double unit;
    const gx_codec *docids, *tfs; /* gx_codec_auto: a list's own */
    gx_coding codings[GX_MAX_CODINGS];
    uint32_t n_codings, block_len;
    uint32_t n_docs_announced; /* 0: lists come after all documents */
    uint8_t uuid[16];
    gx_writer_totals counts; /* so far */
    uint64_t sum_tfs;

    uint32_t n_fields;
    bool fields_in_texts;
    _Atomic(uint32_t *) field_lens; /* [n_docs * (n_fields - 1)] as lists come; NULL: none has come */
    uint32_t *field_positions; /* [n_docs * (n_fields - 1)]; NULL: none asked for them */
    uint64_t field_bytes; /* of all lists so far */
    gx_spool field_ends, field_wraps, field_tfs;

    gx_columns *columns;         /* not the writer's own */
    gx_section_writer *sections; /* the output; the payload goes there at once, the rest is spooled until finish */
    gx_spool lists, heads, docid_ends, tf_ends, doc_lens, units;
    gx_spool positions, position_ends, title_positions;
    uint64_t position_words;
    uint32_t *position_wraps; /* blocks at whose end position_words passes a multiple of 2^32 */
    uint32_t n_position_wraps, most_title_positions;
    size_t max_position_wraps;
    gx_spooled_strings terms, doc_ids, titles;
    gx_spool text_frames, text;
    gx_open_frame frame;

    uint32_t *term_hashes; /* [n_terms] low halves */
    size_t max_term_hashes;
    char *last_term;
    size_t last_term_len, max_last_term;
    gx_list_encoder encoder; /* a list that is given by itself */

    gx_error failed; /* the first failure's words, status GX_OK: none yet */
};

/* The first failure once more. */
gx_status gx_writer_repeat_failure(gx_writer *w, gx_error *err);

/* Every failing path of the public functions ends here: the first failure is kept. */
gx_status gx_writer_record_failure(gx_writer *w, gx_status st, const gx_error *words, gx_error *err);

/* Compress the frame of texts, and begin the next one. GX_EIO, GX_ENOMEM. */
gx_status gx_writer_end_frame(gx_writer *w, gx_error *err);

/* Write all sections behind the payload. */
gx_status gx_writer_write_sections(gx_section_writer *s, gx_writer *w, const char *meta, gx_error *err);

/* A file with units and texts, or with positions, has a section table that is so long that the sections behind it begin
 * 256 bytes later. Whether there are titles and bitmap columns is not known when the first of them
 * begins, so such a file always has a section of titles and, with attributes, one of bitmaps. */
static inline bool gx_writer_has_many_sections(const gx_writer *w)
{
    return (w->list_units && w->store_text) || w->with_positions;
}

#endif
