/* signs.h: signs in the words of a boolean query that mean something in other engines and nothing here. Analysis would
 * drop them, so that another query is answered than was meant; they are refused, with the cure.
 *
 *   at a word's beginning   !word  &word  /word/  [a TO b]  {a TO b}  :word  #name(a b)  typographic dashes and quotes
 *   anywhere in a word      wor*  wor?  word~2  a|b  year>2016  year=2016  a&&b
 *   at its end              year:
 *
 * In quotes or behind a backslash they are as other characters.
 */
#ifndef GX_QUERY_SYNTAX_SIGNS_H
#define GX_QUERY_SYNTAX_SIGNS_H

#include "engine/api/gpuidx_advanced.h"
#include "query/syntax/scanner.h"

/* Where the colon is that makes a condition of the word that begins here; 0: nowhere, or refused (s->st). */
size_t gx_scan_signs(gx_scanner *s);

/* Whether the character at text[at, len) needs a backslash in a word, because it may be a sign. */
bool gx_is_sign(const char *text, size_t at, size_t len);

#endif
