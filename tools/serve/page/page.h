/* page.h: the files of the page for people, which the build puts into the program. */
#ifndef GX_SERVE_PAGE_H
#define GX_SERVE_PAGE_H

#include <stddef.h>

typedef struct page_file {
    const char *name; /* NULL: the end */
    const unsigned char *bytes;
    size_t len;
} page_file;

extern const page_file page_files[]; /* of embed.py */

#endif
