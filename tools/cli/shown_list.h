/* shown_list.h: the attributes whose values are printed beside results: price,brand or all. */
#ifndef GX_TOOLS_CLI_SHOWN_LIST_H
#define GX_TOOLS_CLI_SHOWN_LIST_H

#include "engine/api/gpuidx_advanced.h"

typedef struct shown_list {
    uint32_t numbers[GX_MAX_ATTRIBUTES]; /* [n], as gx_index_get_attribute numbers them */
    uint32_t n;
    char *text; /* as it was given; NULL: nothing is shown */
} shown_list;

/* Read names with commas between, or `all`; text NULL: none. GX_EUSAGE (no such attribute, with the nearest name; a
 * name twice; the index has no attributes), GX_ENOMEM. */
gx_status shown_list_read(shown_list *out, const gx_index *ix, const char *text, gx_error *err);
void shown_list_free(shown_list *l);

#endif
