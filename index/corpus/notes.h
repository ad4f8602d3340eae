/* notes.h: what a source passes over, and what it reads in another way than it is written, by kind and count.
 *
 * Notes take no memory beside their own, so that nothing is lost where memory lacks. Kinds with a detail, such as the
 * type of a record, share GX_MAX_NOTES places; where these are taken, further details are counted as "others". */
#ifndef GX_INDEX_CORPUS_NOTES_H
#define GX_INDEX_CORPUS_NOTES_H

#include "engine/api/gpuidx_advanced.h" /* gx_source_note */

typedef enum gx_note_kind {
    /* archives */
    GX_NOTE_HIDDEN_ENTRIES,
    GX_NOTE_PARENT_ENTRIES, /* with ".." in the name */
    GX_NOTE_LINK_ENTRIES,   /* symbolic links */
    GX_NOTE_HARD_LINK_ENTRIES,
    GX_NOTE_SPECIAL_ENTRIES, /* devices, FIFOs, sockets */
    GX_NOTE_UNENDED_ARCHIVES,
    GX_NOTE_BYTES_BEHIND_ARCHIVES,
    GX_NOTE_BYTES_BEFORE_ARCHIVES,
    /* directories */
    GX_NOTE_HIDDEN_FILES,
    GX_NOTE_SPECIAL_FILES,
    GX_NOTE_LINKS_OUTSIDE,
    /* records and pages, with a detail */
    GX_NOTE_RECORD_TYPES,
    GX_NOTE_MEDIA_TYPES,
    GX_NOTE_CODINGS,
    GX_NOTE_CHARSETS,
    GX_NOTE_DAMAGED_CODINGS,
    GX_N_NOTE_KINDS
} gx_note_kind;

enum { GX_MAX_NOTES = 80, GX_MAX_NOTE_DETAIL = 40, GX_MAX_NOTE_PATH = 160 };

typedef struct gx_notes {
    struct gx_note {
        gx_note_kind kind;
        uint64_t count, line;            /* the first one's line; 0: none */
        char detail[GX_MAX_NOTE_DETAIL]; /* "": none */
        char path[GX_MAX_NOTE_PATH];     /* the first one's */
    } list[GX_MAX_NOTES];
    unsigned n;
} gx_notes; /* n = 0: none */

/* Count one more, with a detail [n_detail] if its kind has one; the first is at path, and at line unless that is 0.
 * notes may be NULL. */
void gx_notes_add(gx_notes *notes, gx_note_kind kind, const char *detail, size_t n_detail, const char *path,
                  uint64_t line);

/* Add the counts of `from`, whose lines count from behind `lines` lines. */
void gx_notes_merge(gx_notes *to, const gx_notes *from, uint64_t lines);

/* The note as the public interface has it; it points into *note. */
gx_source_note gx_notes_describe(const struct gx_note *note);

#endif
