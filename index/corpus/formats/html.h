/* html.h: the text of an HTML page or of SGML. */
#ifndef GX_INDEX_CORPUS_FORMATS_HTML_H
#define GX_INDEX_CORPUS_FORMATS_HTML_H

#include "index/corpus/source_reader.h"

/* Make text, in place, the words of a page.
 *
 * html true: tags, comments and character references as the tokenizer of the HTML standard (section 13.2.5) takes
 * them. A space replaces a tag, unless its element is inline (b, i, a, mark, ...); nothing replaces a comment. Scripts
 * and style sheets are dropped, and the words of the first <title> are moved to title. What is not closed at the
 * page's end goes to the end.
 *
 * html false: a space replaces each tag and comment of SGML, CDATA sections are their content, and what forms no tag
 * and no reference stays as it is. title may be NULL.
 *
 * false: no memory. */
bool gx_html_to_text(gx_span *text, gx_scratch *title, bool html);

/* The code point of a named reference, such as "eacute", the first if it stands for two; 0: there is none. */
unsigned gx_html_entity(const char *name, size_t n);

/* The longest named reference at the beginning of the n bytes at p, which stand behind a '&'. Its one or two
 * characters go to codes (the second 0: one). Returns its bytes, with the semicolon; 0: there is none. sgml: a name of
 * HTML 4.01 needs no semicolon where none of a name's characters follows. */
size_t gx_html_named_reference(const char *p, size_t n, bool sgml, unsigned codes[2]);

#endif
