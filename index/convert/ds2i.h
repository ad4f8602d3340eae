/* ds2i.h: the set of files of an export for ds2i and PISA, with one more beside them. */
#ifndef GX_INDEX_CONVERT_DS2I_H
#define GX_INDEX_CONVERT_DS2I_H

#include "engine/api/gpuidx_advanced.h"
#include "engine/files/atomic_file.h"

/* As gx_ds2i_export. beside (NULL: none) is a further file that belongs to the set. The caller has
 * written and synced it, and closes it; it gets its name with the others. */
gx_status gx_ds2i_export_with(const gx_index *ix, const char *base, const gx_export_options *opt,
                              gx_atomic_file *beside, gx_error *err);

#endif
