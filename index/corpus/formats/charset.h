/* charset.h: the characters of a page, which may be written in any character set, as UTF-8.
 *
 * The set is what a byte order mark says, else the server (Content-Type), else the page itself (<meta charset>,
 * <meta http-equiv>, <?xml encoding>), as the HTML standard has it (section 13.2.3); UTF-8 where nothing does. Its name
 * means what the Encoding Standard says: "latin1" is Windows-1252. iconv knows the sets. */
#ifndef GX_INDEX_CORPUS_FORMATS_CHARSET_H
#define GX_INDEX_CORPUS_FORMATS_CHARSET_H

#include "index/corpus/source_reader.h"

/* Make *page UTF-8, or leave it as it is: where it is UTF-8, and where iconv does not know its set, which is noted. A
 * copy in s->page takes its place else; bytes that form no character in it are U+FFFD, and counted. server: the value
 * of Content-Type, or absent. html: the page may tell its set. Nothing is done to files that are read as Latin-1. */
gx_status gx_page_to_utf8(gx_source *s, gx_span *page, gx_span server, bool html, gx_error *err);

/* What stands behind "charset=" in the value of Content-Type; absent: nothing does. */
gx_span gx_find_charset(gx_span content_type);

#endif
