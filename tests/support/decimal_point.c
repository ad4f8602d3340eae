/* decimal_point.c: preloaded, it sets the Arabic decimal point, of two bytes, before the program's main, as a host of
 * the library may set its own. */
#include "tests/support/decimal_point.h"

__attribute__((constructor)) static void set_point(void)
{
    if (set_decimal_point("\xd9\xab", 0x66b))
        return;
    fputs("this C library takes no locale that is made here\n", stderr);
    _exit(77); /* skipped */
}
