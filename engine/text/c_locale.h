/* c_locale.h: numbers in text have a point, whatever locale the program has set.
 *
 * In a locale such as de_DE, strtod takes "2.5" for 2 and printf writes "2,5". The library reads and writes the same
 * text in each: all its code calls the functions below in place of those of C. The rest of this thread's locale, and
 * the other threads, are not concerned.
 */
#ifndef GX_ENGINE_C_LOCALE_H
#define GX_ENGINE_C_LOCALE_H

#include <locale.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As strtod and strtof. end may be NULL. */
double gx_strtod(const char *text, char **end);
float gx_strtof(const char *text, char **end);

/* As snprintf. */
__attribute__((format(printf, 3, 4))) int gx_print(char *out, size_t size, const char *format, ...);

/* Between the two, this thread has the C locale. */
typedef struct gx_c_locale {
    locale_t c, before;
} gx_c_locale;

gx_c_locale gx_c_locale_begin(void);
void gx_c_locale_end(gx_c_locale l);

#ifdef __cplusplus
}
#endif

#endif
