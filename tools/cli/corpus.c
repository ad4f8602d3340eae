#include "tools/cli/corpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"

static void warn_of_broken_links(const gx_source_counts *in)
{
    if (in->broken_links == 1)
        cli_warn("a symbolic link in the corpus leads nowhere, and was passed over: %s", in->broken_link);
    else if (in->broken_links)
        cli_warn("%s symbolic links in the corpus lead nowhere, and were passed over; the first is %s",
                 show_count(in->broken_links), in->broken_link);
}

/* Names of files and of members may hold anything: a terminal is shown no control characters. */
static const char *plain(const char *name)
{
    static char shown[256];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof shown; ++n)
        shown[n] = (unsigned char)name[n] < ' ' || name[n] == 0x7f ? '?' : name[n];
    shown[n] = 0;
    return shown;
}

void corpus_tell_notes(const gx_source *s)
{
    const gx_source_counts in = gx_source_get_counts(s);
    gx_source_note note;
    warn_of_broken_links(&in);
    for (size_t i = 0; gx_source_get_note(s, i, &note); ++i) {
        char line[24] = "";
        if (note.line)
            snprintf(line, sizeof line, ":%" PRIu64, note.line);
        (note.is_loss ? cli_warn : cli_note)("%s %s%s%s%s", show_count(note.count), note.text,
                                             note.count == 1 ? ": " : "; the first is ", plain(note.file), line);
    }
}

static void put_string(const char *text)
{
    out_put_json(stdout, text, strlen(text));
}

void corpus_print_notes(const gx_source *s)
{
    gx_source_note note;
    fputs(",\"notes\":[", stdout);
    for (size_t i = 0; gx_source_get_note(s, i, &note); ++i) {
        printf("%s{\"name\":\"%s\",\"detail\":", i ? "," : "", note.name);
        if (note.detail)
            put_string(note.detail);
        else
            fputs("null", stdout);
        printf(",\"count\":%" PRIu64 ",\"file\":", note.count);
        put_string(note.file);
        printf(",\"line\":%" PRIu64 "}", note.line);
    }
    putchar(']');
}
