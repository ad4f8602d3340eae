#include "index/corpus/notes.h"

#include <stdio.h>
#include <string.h>

static const struct kind {
    const char *name, *one, *many; /* "%s" stands for the detail */
    bool is_loss;
} kinds[GX_N_NOTE_KINDS] = {
    [GX_NOTE_HIDDEN_ENTRIES] = {"hidden_entries", "hidden entry of an archive was passed over",
                                "hidden entries of archives were passed over", false},
    [GX_NOTE_PARENT_ENTRIES] = {"parent_entries", "entry of an archive with '..' in its name was passed over",
                                "entries of archives with '..' in their names were passed over", true},
    [GX_NOTE_LINK_ENTRIES] = {"link_entries", "symbolic link in an archive was passed over",
                              "symbolic links in archives were passed over", true},
    [GX_NOTE_HARD_LINK_ENTRIES] = {"hard_link_entries",
                                   "hard link in an archive was passed over, as its file cannot be read again",
                                   "hard links in archives were passed over, as their files cannot be read again",
                                   true},
    [GX_NOTE_SPECIAL_ENTRIES] = {"special_entries", "entry of an archive that is no file was passed over",
                                 "entries of archives that are no files were passed over", false},
    [GX_NOTE_UNENDED_ARCHIVES] = {"unended_archives", "tar archive has no end mark, and may have been cut off",
                                  "tar archives have no end mark, and may have been cut off", true},
    [GX_NOTE_BYTES_BEHIND_ARCHIVES] = {"bytes_behind_archives",
                                       "archive has bytes behind its end, which were passed over",
                                       "archives have bytes behind their ends, which were passed over", true},
    [GX_NOTE_BYTES_BEFORE_ARCHIVES] = {"bytes_before_archives",
                                       "zip archive follows another one in its file, which was passed over",
                                       "zip archives follow others in their files, which were passed over", true},
    [GX_NOTE_HIDDEN_FILES] = {"hidden_files", "hidden name in a directory was passed over",
                              "hidden names in directories were passed over", false},
    [GX_NOTE_SPECIAL_FILES] = {"special_files", "name in a directory that is no file was passed over",
                               "names in directories that are no files were passed over", false},
    [GX_NOTE_LINKS_OUTSIDE] = {"links_outside", "symbolic link that leads out of its directory was followed",
                               "symbolic links that lead out of their directories were followed", false},
    [GX_NOTE_RECORD_TYPES] = {"record_types", "record of the type %s was passed over",
                              "records of the type %s were passed over", false},
    [GX_NOTE_MEDIA_TYPES] = {"media_types", "record of %s was passed over", "records of %s were passed over", false},
    [GX_NOTE_CODINGS] = {"codings", "page was passed over, as its encoding %s cannot be undone",
                         "pages were passed over, as their encoding %s cannot be undone", true},
    [GX_NOTE_CHARSETS] = {"charsets", "page was read as UTF-8, as its character set %s is not known",
                          "pages were read as UTF-8, as their character set %s is not known", true},
    [GX_NOTE_DAMAGED_CODINGS] = {"damaged_codings", "page was read as far as its encoding %s could be undone",
                                 "pages were read as far as their encoding %s could be undone", true},
};

static struct gx_note *find_note(gx_notes *notes, gx_note_kind kind, const char *detail)
{
    for (unsigned i = 0; i < notes->n; ++i)
        if (notes->list[i].kind == kind && strcmp(notes->list[i].detail, detail) == 0)
            return &notes->list[i];
    return NULL;
}

/* Room for notes of further kinds is kept: a place for each kind, with the detail "others" if it has one. */
static struct gx_note *new_note(gx_notes *notes, gx_note_kind kind, const char *detail)
{
    if (*detail && notes->n >= GX_MAX_NOTES - GX_N_NOTE_KINDS) {
        detail = "others";
        struct gx_note *others = find_note(notes, kind, detail);
        if (others)
            return others;
    }
    struct gx_note *note = &notes->list[notes->n++];
    note->kind = kind;
    note->count = note->line = 0;
    note->path[0] = 0;
    snprintf(note->detail, sizeof note->detail, "%s", detail);
    return note;
}

static void add(gx_notes *notes, gx_note_kind kind, const char *detail, uint64_t count, const char *path, uint64_t line)
{
    struct gx_note *note = find_note(notes, kind, detail);
    if (!note)
        note = new_note(notes, kind, detail);
    if (note->count == 0) {
        note->line = line;
        snprintf(note->path, sizeof note->path, "%s", path);
    }
    note->count += count;
}

void gx_notes_add(gx_notes *notes, gx_note_kind kind, const char *detail, size_t n_detail, const char *path,
                  uint64_t line)
{
    char name[GX_MAX_NOTE_DETAIL];
    size_t n = 0;
    if (!notes)
        return;
    for (; n < n_detail && n + 1 < sizeof name && detail[n]; ++n) {
        const char c = detail[n];
        name[n] = c >= 'A' && c <= 'Z' ? (char)(c | 32) : c > ' ' && c < 0x7f ? c : '?';
    }
    name[n] = 0;
    add(notes, kind, name, 1, path, line);
}

void gx_notes_merge(gx_notes *to, const gx_notes *from, uint64_t lines)
{
    for (unsigned i = 0; i < from->n; ++i) {
        const struct gx_note *note = &from->list[i];
        add(to, note->kind, note->detail, note->count, note->path, note->line ? note->line + lines : 0);
    }
}

gx_source_note gx_notes_describe(const struct gx_note *note)
{
    const struct kind *k = &kinds[note->kind];
    const char *words = note->count == 1 ? k->one : k->many, *hole = strstr(words, "%s");
    gx_source_note out = {k->name, *note->detail ? note->detail : NULL, note->path, note->line, note->count, k->is_loss,
                          ""};
    if (hole)
        snprintf(out.text, sizeof out.text, "%.*s%s%s", (int)(hole - words), words, note->detail, hole + 2);
    else
        snprintf(out.text, sizeof out.text, "%s", words);
    return out;
}
