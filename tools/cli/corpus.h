/* corpus.h: what the commands that read a corpus tell of it. */
#ifndef GX_TOOLS_CLI_CORPUS_H
#define GX_TOOLS_CLI_CORPUS_H

#include "engine/api/gpuidx_advanced.h"
#include "tools/cli/cli.h"

/* Tell on stderr what has been passed over, or read in another way than it is written: losses as warnings. */
void corpus_tell_notes(const gx_source *s);

/* Print the same to stdout as a member of a JSON object: ,"notes":[{"name","detail","count","file","line"}, ...] */
void corpus_print_notes(const gx_source *s);

/* clang-format off */
/* --unit; `of` and `else_` are strings of the help. */
#define CLI_UNIT_FLAG(of, else_) \
    {"unit", 0, CLI_TEXT, "X|INDEX", NULL, \
     of "the weight that a whole number of 1 stands for: a number above 0, or that of another index of vectors. " \
     "Indexes of one unit can be the files of a collection, and weights of up to 65,535 units can be added; " else_}
/* clang-format on */

/* Set *unit to what --unit says; 0: it is not given. 0, or the exit code with the message printed. */
int cli_read_unit(const cli_args *a, double *unit);

#endif
