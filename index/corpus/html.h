/* html.h: the words of an HTML page, or of SGML, without their tags. Tolerant: what is no tag stays
 * as it stands. */
#ifndef GX_INDEX_CORPUS_HTML_H
#define GX_INDEX_CORPUS_HTML_H

#include "index/corpus/source_reader.h"

/* Take the tags out of text, in place, and decode entities. A tag parts words, save HTML's inline
 * ones (b, i, a, ...). With html, scripts, styles and comments go too, and the first <title>'s
 * words are added to title instead of staying. title may be NULL without html. False: no memory. */
bool gx_html_to_text(gx_span *text, gx_scratch *title, bool html);

/* A named entity's code point ("eacute"), or 0. */
unsigned gx_html_entity(const char *name, size_t n);

#endif
