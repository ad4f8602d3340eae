/* coding.h: the body of an HTTP message as it is, without the encodings in which it came over the network. */
#ifndef GX_INDEX_CORPUS_FORMATS_CODING_H
#define GX_INDEX_CORPUS_FORMATS_CODING_H

#include "index/corpus/source_reader.h"

typedef enum gx_coding_state {
    GX_CODING_UNDONE,
    GX_CODING_DAMAGED, /* undone as far as that could be */
    GX_CODING_UNKNOWN, /* it cannot be undone; the body is as it was */
    GX_CODING_TOO_LONG,
    GX_CODING_NO_MEMORY
} gx_coding_state;

/* Undo the encodings of the value of Transfer-Encoding or Content-Encoding: chunked, gzip, deflate, br, zstd. *body
 * moves in place, or to s->bodies. A body that is not encoded so stays as it is: some crawlers undo the encoding and
 * keep the line. Of the states the worst; *which: the encoding to which it belongs. */
gx_coding_state gx_undo_codings(gx_source *s, gx_span codings, gx_span *body, gx_span *which);

/* Whether the first bytes are those of text (WHATWG's MIME Sniffing, "binary data byte"). */
bool gx_looks_like_text(gx_span body);

#endif
