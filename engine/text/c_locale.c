#include "engine/text/c_locale.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

gx_c_locale gx_c_locale_begin(void)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* glibc has it already, and allocates nothing */
    return (gx_c_locale){c, c ? uselocale(c) : (locale_t)0};
}

void gx_c_locale_end(gx_c_locale l)
{
    if (!l.c)
        return;
    uselocale(l.before);
    freelocale(l.c);
}

double gx_strtod(const char *text, char **end)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double x = c ? strtod_l(text, end, c) : strtod(text, end);
    if (c)
        freelocale(c);
    return x;
}

float gx_strtof(const char *text, char **end)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const float x = c ? strtof_l(text, end, c) : strtof(text, end);
    if (c)
        freelocale(c);
    return x;
}

int gx_print(char *out, size_t size, const char *format, ...)
{
    const gx_c_locale l = gx_c_locale_begin();
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(out, size, format, list);
    va_end(list);
    gx_c_locale_end(l);
    return n;
}
