/* signs.h: signs in the words of a boolean query that mean something in other engines and nothing here. Analysis would
 * drop them, so that another query is answered than was meant; they are refused, with the cure.
 *
 *   at a word's beginning   !word  &word  [a TO b]  {a TO b}  :word  #name(a b)  typographic dashes and quotes
 *   anywhere in a word      a|b  year>2016  year=2016  a&&b  wor~d  word~3
 *   at its end              year:
 *
 * In quotes or behind a backslash they are as other characters.
 */
#ifndef GX_QUERY_SYNTAX_SIGNS_H
#define GX_QUERY_SYNTAX_SIGNS_H

#include "engine/api/gpuidx_advanced.h"
#include "query/syntax/scanner.h"

#define GX_OR_QUOTES "; put the word in quotes to search for it as it stands"

/* A sign that makes a word stand for several: 0 (none), '*' (or ?) or '~', and its place. */
typedef struct gx_word_sign {
    char kind;
    size_t at;
} gx_word_sign;

/* Where the colon is that makes a condition of the word that begins here; 0: nowhere, or refused (s->st). */
size_t gx_scan_signs(gx_scanner *s, gx_word_sign *sign);

/* The first quoted span of plain text at or behind *begin: *begin and *end are those of what stands between the quotes,
 * *behind is where the text goes on, behind the second quote and a ~n, which *slop tells; 0: there is none. A quote
 * opens where a blank, a bracket or a sign is before it, and closes where no letter or digit follows. */
bool gx_plain_quotes(const char *text, size_t len, size_t *begin, size_t *end, size_t *behind, uint32_t *slop);

/* Whether the character at text[at, len) needs a backslash in a word, because it may be a sign. */
bool gx_is_sign(const char *text, size_t at, size_t len);

#endif
