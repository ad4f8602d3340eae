/* query_draw.h: a plot's gnuplot script, DIR/NAME.gp, which holds its data and makes NAME.png and
 * NAME.svg beside it. */
#ifndef GX_TOOLS_BENCH_QUERY_DRAW_H
#define GX_TOOLS_BENCH_QUERY_DRAW_H

#include <stdio.h>

enum { DRAW_FORMATS = 2 };

/* The folder made where there is none, and the script opened; NULL with the message printed and
 * *exit_code set. */
FILE *draw_begin(const char *dir, const char *name, int *exit_code);
/* Before the lines that follow "plot " in each format. */
void draw_format(FILE *f, const char *name, int format);
/* Close the script and have it drawn (bench_draw). Returns the exit code. */
int draw_end(FILE *f, const char *dir, const char *name);

#endif
