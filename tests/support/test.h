/* test.h: what every test program includes. */
#ifndef GX_TESTS_SUPPORT_TEST_H
#define GX_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
