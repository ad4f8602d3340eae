#include "query/syntax/scanner.h"

#include <stdarg.h>
#include <stdio.h>

#include "engine/status.h"
#include "engine/text/c_locale.h"

uint32_t gx_scan_refuse(gx_scanner *s, uint32_t column, const char *format, ...)
{
    char what[500];
    va_list list;
    if (s->st != GX_OK)
        return GX_NOT_SCANNED;
    const gx_c_locale l = gx_c_locale_begin();
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    gx_c_locale_end(l);
    s->st = gx_fail(s->err, GX_EUSAGE, "%scolumn %u: %s", s->prefix, column, what);
    return GX_NOT_SCANNED;
}
