/* corpus.h: what the commands that read a corpus tell of it. */
#ifndef GX_TOOLS_CLI_CORPUS_H
#define GX_TOOLS_CLI_CORPUS_H

#include "engine/api/gpuidx_advanced.h"

/* Tell on stderr what has been passed over, or read in another way than it is written: losses as warnings. */
void corpus_tell_notes(const gx_source *s);

/* Print the same to stdout as a member of a JSON object: ,"notes":[{"name","detail","count","file","line"}, ...] */
void corpus_print_notes(const gx_source *s);

#endif
