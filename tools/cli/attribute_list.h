/* attribute_list.h: the values of --attr, NAME:TYPE[:BITMAPS] with commas between, and of --field, NAME[:w=N].
 */
#ifndef GX_TOOLS_CLI_ATTRIBUTE_LIST_H
#define GX_TOOLS_CLI_ATTRIBUTE_LIST_H

#include "engine/api/gpuidx.h"
#include "tools/cli/cli.h"

typedef struct attribute_list {
    char *names; /* the text, cut into names */
    gx_attribute attributes[GX_MAX_ATTRIBUTES];
    gx_bitmap_options bitmaps[GX_MAX_ATTRIBUTES];
    uint32_t n;
} attribute_list;

/* Read --attr. 0, or the exit code with the message printed; free the list in either case. */
int attribute_list_read(attribute_list *out, const cli_args *a);
void attribute_list_free(attribute_list *l);

typedef struct field_list {
    char *text; /* cut into names */
    gx_field fields[GX_MAX_INDEX_FIELDS];
    const char *names[GX_MAX_INDEX_FIELDS];
    uint32_t n;
    bool fixed; /* all have weights */
} field_list;

/* Read --field. 0, or the exit code with the message printed; free the list in either case. */
int field_list_read(field_list *out, const cli_args *a);
void field_list_free(field_list *l);

#endif
