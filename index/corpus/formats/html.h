/* html.h: take the tags out of an HTML page or of SGML. Bytes that do not form a tag or an entity
 * stay as they are. */
#ifndef GX_INDEX_CORPUS_FORMATS_HTML_H
#define GX_INDEX_CORPUS_FORMATS_HTML_H

#include "index/corpus/source_reader.h"

/* Take the tags and comments out of text, in place, and decode entities. A space replaces each tag.
 * With html true, the rules of HTML apply as well: nothing replaces an inline tag (b, i, a, ...),
 * scripts and styles are dropped, and the words of the first <title> are moved to title. title may
 * be NULL if html is false. false: no memory. */
bool gx_html_to_text(gx_span *text, gx_scratch *title, bool html);

/* The code point of a named entity, such as "eacute"; 0: there is no entity of that name. */
unsigned gx_html_entity(const char *name, size_t n);

#endif
