/* cli.h: what every command of gpuidx and gpuidx-bench is made of: a description of its flags, a place to read
 * their values, and the few ways in which it speaks to people.
 *
 *   tools/commands/NAME.c     const cli_command cmd_NAME = { name, summary, ..., flags, run };
 *   tools/gpuidx.c            the program gpuidx: its name, texts and commands; tools/bench/bench.c: gpuidx-bench
 *   tools/cli/program.c       what main.c calls: finds the command
 *   tools/cli/cli.c           the table of a command -> parsing and messages
 *   tools/cli/manual.c        the same table -> --help and the man pages
 *   tools/cli/completion.c    the same table -> completions
 *
 * A command's file in short:
 *
 *   static const cli_flag flags[] = {
 *       {"output", 'o', CLI_TEXT, "FILE", NULL, "write to `FILE`"},
 *       {"top", 'k', CLI_COUNT, "N", "10", "print at most `N` results", .min = 1, .max =
 *       UINT32_MAX}, {"engine", 0, CLI_CHOICE, "auto|gpu|cpu", "auto", "where to search"},
 *       {"force", 0, CLI_SWITCH, NULL, NULL, "overwrite"},
 *       {NULL},
 *   };
 *   static int run(const cli_args *a)
 *   {
 *       const char *out = cli_text(a, "output");            // NULL: not given, and there is no
 *       default const uint64_t k = cli_count(a, "top");             // already checked against min
 *       and max ...
 *       if (gx_index_open(&ix, a->argv[0], NULL, &err))
 *           return cli_fail_error(&err);                    // prints "gpuidx: ..." and gives the
 *           exit code
 *       printf(...);                                        // stdout is flushed and checked by
 *       main return 0;
 *   }
 *   const cli_command cmd_NAME = {.name = "NAME", ..., .flags = flags, .min_args = 1, .max_args =
 *   1, .run = run};
 *
 * Texts are plain, with `back quotes` round what a person types or a metavariable; a blank line
 * parts paragraphs, a line that begins with two spaces stays as it is.
 */
#ifndef GX_TOOLS_CLI_CLI_H
#define GX_TOOLS_CLI_CLI_H

#include <stdio.h>

#include "engine/api/gpuidx.h"

typedef enum cli_kind {
    CLI_SWITCH, /* no value */
    CLI_TEXT,   /* any string */
    CLI_LIST,   /* strings with commas between; where the flag is given again, its values add up */
    CLI_FILTER, /* an expression; where the flag is given again, all expressions hold */
    CLI_CHOICE, /* one of arg's words, "auto|gpu|cpu" */
    CLI_COUNT,  /* a whole number in [min, max]; max 0: no limit */
    CLI_BYTES,  /* the same with K, M, G or T (powers of 1024) behind it: 512M */
    CLI_NUMBER  /* a finite number in [min, max]; max 0: no limit */
} cli_kind;

typedef struct cli_flag {
    const char *name; /* long name, without dashes; NULL ends a table */
    char letter;      /* short name, or 0 */
    cli_kind kind;
    const char *arg;  /* metavariable ("FILE"), or a choice's words; NULL for a switch */
    const char *def;  /* what holds when it is not given, in the form that a person would type; NULL: nothing */
    const char *help; /* begins in lower case, no full stop at its end: that or the default is added */
    double min, max;
    const char *bare; /* the value of --name alone, where that is allowed: another one then needs "=". Or NULL */
} cli_flag;

typedef struct cli_section {
    const char *title, *text; /* title NULL ends a table */
} cli_section;

typedef struct cli_args cli_args;

typedef struct cli_command {
    const char *name;              /* "query" */
    const char *summary;           /* a line: "answer queries from an index" */
    const char *synopsis;          /* what follows the name, a line each form: "[OPTIONS] INDEX [QUERY]" */
    const char *description;       /* paragraphs */
    const cli_section *sections;   /* further sections of the manual, or NULL */
    const cli_section *examples;   /* title: the command line; text: what it does. Or NULL */
    const cli_flag *flags;         /* or NULL */
    const char *common;            /* the flags that help shows where there are many, "top op"; NULL: it shows all */
    int min_args, max_args;        /* positional arguments; max_args -1: any number */
    int (*run)(const cli_args *a); /* returns the exit code */
    /* Of a word that starts another program, which lies beside this one, instead: that program's name, and the
     * command there, NULL: the one that the next argument names. All but name, summary and synopsis is the other's. */
    const char *program, *command;
} cli_command;

typedef struct cli_program {
    const char *name; /* "gpuidx" */
    const char *summary, *description;
    const cli_section *examples;
    const cli_command *const *commands; /* NULL-terminated, in the order in which help lists them */
    const cli_section *others; /* title: what other engines' programs call a command; text: its name. Or NULL */
} cli_program;

/* A parsed command line. */
struct cli_args {
    const cli_command *command;
    int argc;    /* positional arguments */
    char **argv; /* [argc] */
    const struct cli_value *values;
};

/* ---- the program ---- */

extern const cli_program cli_this; /* each program defines its own */
/* What main.c calls; and how that begins, for programs that run single commands. */
int cli_main(int argc, char **argv);
void cli_begin(void);
extern const cli_flag cli_common_flags[]; /* of every command: --help, --quiet, --verbose, --color */

const cli_command *cli_find_command(const char *name); /* or NULL */
int cli_unknown_command(const char *name);             /* say that there is none of that name, and exit code 2 */

/* Become the other program of a command that has one. Its arguments are those of `first`, which ends at NULL (NULL:
 * none), the command's name there, and argv[argc]. Returns only if that cannot be: the exit code. */
int cli_become(const cli_command *command, const char *const *first, int argc, char **argv);
/* Run a program that lies in this one's folder, args[0] its name, to its end. Returns its exit code; 0 if it is not
 * there. */
int cli_run_beside(const char *program, const char *const *args /* ends at NULL */);

/* Commands; each is defined in tools/commands/NAME.c and listed in gpuidx.c. The last two belong to every program. */
extern const cli_command cmd_build, cmd_calibrate, cmd_query, cmd_replay, cmd_eval, cmd_fuse, cmd_sweep, cmd_doc,
    cmd_term, cmd_analyze, cmd_info, cmd_check, cmd_import, cmd_export, cmd_recode, cmd_reorder, cmd_collect,
    cmd_add, cmd_update, cmd_delete, cmd_merge, cmd_devices, cmd_completion, cmd_help;
extern const cli_command cmd_mcp, cmd_serve; /* where libmicrohttpd is there */

/* clang-format off */
/* The flags of what analyses text, besides the analyzer. */
#define CLI_WORD_FLAGS \
    {"stemmer", 0, CLI_TEXT, "NAME", NULL, \
     "cut words to their stems, so that `indexing` finds `indexes`: `porter`, `english` (Porter2), another of " \
     "Snowball's, such as `german`, or `none`. Give the language of the text; without this flag, the analyzer's own. " \
     "`french`, `italian` and `catalan` also cut elisions, so that `l'avion` is `avion`; `turkish` has two letters " \
     "I, " \
     "and cuts a name's suffix behind an apostrophe"}, \
    {"stopwords", 0, CLI_TEXT, "WORDS", NULL, \
     "common words to leave out: `lucene` (33 English words), a file with one word on each line, or `none`; without " \
     "this flag, the analyzer's own. In a file, `|` or a `#` at a line's begin begins a comment, and a line that no " \
     "term can equal is an error; gzip is read"}

/* The flags of what packs postings. */
#define CLI_CODEC_FLAGS \
    {"codec", 0, CLI_TEXT, "NAME", "gpubp128", \
     "how document numbers are compressed; it changes size and speed, never results. A codec that has an id in " \
     "`gpuidx bench codecs --list`, or `auto`: for each list the one that costs least in size and time"}, \
    {"tf-codec", 0, CLI_TEXT, "NAME", NULL, "how term frequencies are compressed; without it, as document numbers"}
/* clang-format on */

/* ---- reading a command line ---- */

/* Parse and run: argv[0] is the command's name. Returns the exit code; usage errors are 2. */
int cli_run(const cli_command *command, int argc, char **argv);

/* Does the command have the flag? */
bool cli_has(const cli_args *a, const char *flag);
/* Was the flag on the command line? */
bool cli_given(const cli_args *a, const char *flag);
/* Values: the given one, else the default. A flag without either: false, NULL, 0, NaN. The name
 * must be in the command's table (asserted). */
bool cli_switch(const cli_args *a, const char *flag);
const char *cli_text(const cli_args *a, const char *flag); /* of any kind but numbers and switches */
uint64_t cli_count(const cli_args *a, const char *flag);   /* CLI_COUNT and CLI_BYTES */
double cli_number(const cli_args *a, const char *flag);

/* Which of choices' words ("auto|gpu|cpu") is word: 0, 1, ...; -1 if none. */
int cli_choice_index(const char *choices, const char *word);
/* The same for a CLI_CHOICE flag's value. */
int cli_choice(const cli_args *a, const char *flag);

/* The nearest of choices' words to word, in buf, or NULL when none is near. */
const char *cli_nearest_choice(const char *choices, const char *word, char buf[64]);

/* The nearest of n names to word, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);

/* The text as a number of CLI_COUNT, CLI_BYTES or CLI_NUMBER's form and range; false with why in
 * why[]. For values that come from elsewhere than the command line (the shell's dot commands). */
bool cli_read_number(const cli_flag *flag, const char *text, double *number, uint64_t *count, char *why,
                     size_t why_len);

/* ---- speaking ---- */

/* "gpuidx: what: where: why" on stderr, and the status's exit code. */
int cli_fail(gx_status st, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_fail_error(const gx_error *err); /* with cli_advice */
/* What follows the library's message: the flag of the running command that helps, or "". */
const char *cli_advice(const gx_error *err);
/* A usage error of the running command: the message and a hint at --help; exit code 2. */
int cli_usage(const cli_args *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Warnings always; notes not with -q. */
void cli_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool cli_quiet(void);
bool cli_verbose(void); /* -v: details are wanted, as notes */

/* Whether to colour what goes to stream: --color, else NO_COLOR, TERM=dumb and whether it is a
 * terminal. */
bool cli_color(FILE *stream);
/* An escape sequence, or "" when stream is not coloured. */
typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_UNDERLINE, CLI_RED, CLI_GREEN, CLI_YELLOW } cli_style;
const char *cli_paint(FILE *stream, cli_style style);
/* Does stream go to a terminal, perhaps through a pager? */
bool cli_is_terminal(FILE *stream);
/* Columns of the terminal on stream, 80 if it is none. */
unsigned cli_columns(FILE *stream);
/* stream, a terminal until now, goes to one through a pager, or again without (pager.h): colours
 * and columns stay the terminal's. */
void cli_set_paged(FILE *stream, bool paged);

/* ---- output ---- */

/* Flush and close a stream whose path is, for messages, "path", "-" being stdout. Finds late errors (no
 * space, broken pipe): 0, or the exit code with the message printed. */
int cli_close_output(FILE *f, const char *path);
/* Are both the same file that is there, by whatever path? For outputs that must not replace an
 * input. */
bool cli_same_file(const char *a, const char *b);
/* Is it a regular file that can be looked at without taking from it what others shall read? */
bool cli_is_regular(const char *path);
/* Is it one that begins as an index does? */
bool cli_is_index(const char *path);
/* True once a write to stdout has failed: a long output may stop. main reports it and exits with 5.
 * */
bool cli_output_failed(void);
/* Flush stdout, and remember why that failed. */
void cli_flush(void);
/* Jansson's functions may fail again; until this call the program exits with 6 when jansson has no
 * memory. To be called once an output is in place: exit code 6 would say that it is not. */
void cli_json_memory_may_fail(void);

/* ---- the manual (manual.c, completion.c) ---- */

/* Words of text from column `at` of a line on, wrapped at the width of a terminal and continued at `indent`; back
 * quotes become bold. Ends the line. */
void cli_put_wrapped(FILE *out, const char *text, unsigned at, unsigned indent);
/* NULL: of the program as a whole. all: also the flags that are not in `common`. */
void cli_print_help(FILE *out, const cli_command *command, bool all);
void cli_print_man(FILE *out, const cli_command *command); /* mdoc(7) */

/* Call `each` for all flags of a command (NULL: the common ones), its own first; letter: 0 where it has none. */
typedef void cli_flag_fn(FILE *out, const cli_flag *flag, char letter);
void cli_for_flags(FILE *out, const cli_command *command, cli_flag_fn *each);

#endif
